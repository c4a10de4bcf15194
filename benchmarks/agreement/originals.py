"""Public data sets with human labels, as their authors publish them, turned into our own data format.

    python benchmarks/agreement/originals.py wice subclaim/test.jsonl -o wice.jsonl

| name | file | from |
|---|---|---|
| `wice` | `data/entailment_retrieval/{claim,subclaim}/*.jsonl` | github.com/ryokamoi/wice |
| `factcheck` | `factcheck-GPT-benchmark.jsonl` | github.com/yuxiaw/Factcheck-GPT |
| `klue` | `klue_benchmark/klue-nli-v1/klue-nli-v1_dev.json` | github.com/KLUE-benchmark/KLUE |
| `aggrefact` | a split of `lytang/LLM-AggreFact` as JSON Lines, CSV or Parquet | the Hugging Face hub |

Nothing is fetched here: the files are named on the command line, and `airjudge score` reads what is written.
"""

import argparse
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from pydantic import JsonValue

Row = dict[str, JsonValue]

CONTEXT_CHARACTERS: Final = 1000
"""WiCE gives its evidence by the sentence; so many characters make a passage, as a retriever would bring it."""

# None of the sets but Factcheck-GPT has a question, so a neutral one stands there.
ASKED: Final = "What does the text say?"
KLUE_ASKED: Final = "이 글에서 무엇을 알 수 있습니까?"


def wice(path: Path) -> Iterator[Row]:
    """WiCE: claims of Wikipedia, or parts of them, against the web pages that they cite.

    Attributed is what the annotators call supported; partly supported statements are marked. The parts of one
    claim become the statements of one sample: their ids are the claim's with a number behind it.
    """
    for name, rows in groupby(_json_lines(path), key=lambda row: _text(_object(row["meta"])["id"]).partition("-")[0]):
        parts = list(rows)
        meta = _object(parts[0]["meta"])
        yield {
            "id": f"wice-{name}",
            "group": name,
            "lang": "en",
            "user_input": f"What do the cited sources say about {meta['claim_title']} ({meta['claim_section']})?",
            "retrieved_contexts": list(_passages(_texts(parts[0]["evidence"]))),
            "reference": " ".join(_text(row["claim"]) for row in parts),
            "statements": [
                {
                    "id": _object(row["meta"])["id"],
                    "text": row["claim"],
                    "label": int(row["label"] == "supported"),
                    "partial": row["label"] == "partially_supported",
                }
                for row in parts
            ],
        }


def factcheck(path: Path) -> Iterator[Row]:
    """Factcheck-GPT: a claim of a model's answer against the five passages that were found for it.

    Attributed if a passage supports it completely; claims without a passage are left out, as nobody judged them.
    """
    for number, response in enumerate(_json_lines(path)):
        for sentence, told in _object(response["sentences"]).items():
            fields = _object(told)
            claims = zip(
                _texts(fields["claims"]), _list(fields["auto_evidence"]), _list(fields["stance_claim_autoEvid"]),
                strict=True,
            )  # fmt: skip
            for place, (claim, passages, stances) in enumerate(claims):
                if not _list(passages):
                    continue
                said = _texts(stances)
                supported = "completely-support" in said
                name = f"fc{number:03}-{sentence}-{place}"
                yield {
                    "id": f"fcb-{name}",
                    "group": f"p{number:03}",
                    "lang": "en",
                    "user_input": response["prompt"],
                    "retrieved_contexts": list(_texts(passages)),
                    "reference": claim,
                    "statements": [
                        {
                            "id": name,
                            "text": claim,
                            "label": int(supported),
                            "partial": not supported and "partially-support" in said,
                        }
                    ],
                }


def klue(path: Path) -> Iterator[Row]:
    """KLUE-NLI: a Korean premise and its hypotheses; attributed is what it entails, by the votes of five people."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    for premise, grouped in groupby(rows, key=lambda row: row["premise"]):
        parts = list(grouped)
        yield {
            "id": f"klue-{parts[0]['guid']}",
            "group": parts[0]["guid"],
            "lang": "ko",
            "user_input": KLUE_ASKED,
            "retrieved_contexts": [premise],
            "reference": " ".join(row["hypothesis"] for row in parts),
            "statements": [
                {
                    "id": row["guid"],
                    "text": row["hypothesis"],
                    "label": int(row["gold_label"] == "entailment"),
                    "annotators": [
                        int(row[who] == "entailment") for who in ("author", "label2", "label3", "label4", "label5")
                    ],
                }
                for row in parts
            ],
        }


def aggrefact(path: Path) -> Iterator[Row]:
    """LLM-AggreFact: a claim against one document, of eleven data sets, which `dataset` names."""
    for number, row in enumerate(_rows(path)):
        document = _text(row["doc"])
        yield {
            "id": f"aggrefact-{number}",
            "group": hashlib.sha256(document.encode()).hexdigest()[:12],
            "dataset": row["dataset"],
            "user_input": ASKED,
            "retrieved_contexts": [document],
            "reference": row["claim"],
            "statements": [{"id": "1", "text": row["claim"], "label": int(_text(str(row["label"])))}],
        }


READERS: Final[Mapping[str, Callable[[Path], Iterator[Row]]]] = {
    "wice": wice,
    "factcheck": factcheck,
    "klue": klue,
    "aggrefact": aggrefact,
}


def _passages(sentences: Sequence[str]) -> Iterator[str]:
    """Sentences in order, joined to passages of about the same length."""
    held: list[str] = []
    for sentence in sentences:
        held.append(sentence)
        if sum(map(len, held)) >= CONTEXT_CHARACTERS:
            yield "\n".join(held)
            held.clear()
    if held:
        yield "\n".join(held)


def _json_lines(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield _object(json.loads(line))


def _rows(path: Path) -> Iterator[Row]:
    """Rows of a table or of JSON Lines."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415

        for batch in pq.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    elif path.suffix == ".csv":
        import csv  # noqa: PLC0415

        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
    else:
        yield from _json_lines(path)


def _object(value: JsonValue) -> Row:
    if not isinstance(value, dict):
        msg = f"not an object: {value!r}"
        raise TypeError(msg)
    return value


def _list(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        msg = f"not a list: {value!r}"
        raise TypeError(msg)
    return value


def _text(value: JsonValue) -> str:
    if not isinstance(value, str):
        msg = f"not a text: {value!r}"
        raise TypeError(msg)
    return value


def _texts(value: JsonValue) -> list[str]:
    return [_text(one) for one in _list(value)]


def main() -> None:
    """Write one original as JSON Lines in our format."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(READERS))
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    asked = parser.parse_args()
    with asked.out.open("w", encoding="utf-8") as out:
        n_rows = 0
        for row in READERS[asked.name](asked.file):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            n_rows += 1
    print(f"{n_rows} samples in {asked.out}")


if __name__ == "__main__":
    main()
