"""The public originals become our data format: the same rows as those of the data folder, where it holds them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from airjudge.datasets import open_source
from airjudge.schema import Sample
from benchmarks.agreement.originals import READERS, Row

WICE = [
    {
        "label": label,
        "supporting_sentences": [[0]],
        "claim": claim,
        "evidence": ["The mill burnt down.", "x" * 1000, "It was rebuilt."],
        "meta": {"id": f"test7-{n}", "claim_title": "Old mill", "claim_section": "History", "claim_context": ""},
    }
    for n, (claim, label) in enumerate([("It burnt.", "supported"), ("It burnt twice.", "partially_supported")])
]
FACTCHECK = [
    {
        "prompt": "When was the mill built?",
        "sentences": {
            "sentence1": {
                "claims": ["The mill was built in 1803.", "The mill was tall.", "Nobody looked."],
                "auto_evidence": [["Built in 1803.", "A mill."], ["A mill stood here."], []],
                "stance_claim_autoEvid": [["completely-support", "irrelevant"], ["partially-support"], []],
            }
        },
    }
]
KLUE = [
    {"guid": f"dev_{n}", "premise": "방앗간이 불탔다.", "hypothesis": text, "gold_label": label, "author": label}
    | {f"label{k}": vote for k, vote in enumerate(votes, 2)}
    for n, (text, label, votes) in enumerate(
        [
            ("불이 났다.", "entailment", ["entailment"] * 4),
            ("비가 왔다.", "neutral", ["neutral", "entailment", "neutral", "contradiction"]),
        ]
    )
]
AGGREFACT = [{"dataset": "ExpertQA", "doc": "The mill burnt down.", "claim": "The mill burnt.", "label": 1}]


def read(tmp_path: Path, name: str, content: str) -> list[Row]:
    (tmp_path / "original.jsonl").write_text(content, encoding="utf-8")
    return list(READERS[name](tmp_path / "original.jsonl"))


def lines(rows: Sequence[Mapping[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def rulings(row: Row) -> list[tuple[object, ...]]:
    assert isinstance(row["statements"], list)
    told = [one for one in row["statements"] if isinstance(one, dict)]
    return [(one["id"], one["text"], one["label"], one.get("partial", False)) for one in told]


def test_parts_of_a_wice_claim_are_the_statements_of_one_sample(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "wice", lines(WICE))
    assert rulings(row) == [("test7-0", "It burnt.", 1, False), ("test7-1", "It burnt twice.", 0, True)]
    # A passage ends with the sentence that makes it 1,000 characters long.
    assert row["retrieved_contexts"] == ["The mill burnt down.\n" + "x" * 1000, "It was rebuilt."]
    assert row["reference"] == "It burnt. It burnt twice."
    assert row["user_input"] == "What do the cited sources say about Old mill (History)?"


def test_a_factcheck_claim_is_supported_by_one_passage_and_left_out_without_any(tmp_path: Path) -> None:
    first, second = read(tmp_path, "factcheck", lines(FACTCHECK))
    assert rulings(first) == [("fc000-sentence1-0", "The mill was built in 1803.", 1, False)]
    assert rulings(second) == [("fc000-sentence1-1", "The mill was tall.", 0, True)]
    assert first["group"] == second["group"] == "p000"


def test_klue_hypotheses_carry_the_votes_of_five_people(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "klue", json.dumps(KLUE))
    assert isinstance(row["statements"], list)
    assert [one["annotators"] for one in row["statements"] if isinstance(one, dict)] == [
        [1, 1, 1, 1, 1],
        [0, 0, 1, 0, 0],
    ]
    assert [label for _, _, label, _ in rulings(row)] == [1, 0]


def test_an_aggrefact_claim_stands_against_its_document(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "aggrefact", lines(AGGREFACT))
    assert rulings(row) == [("1", "The mill burnt.", 1, False)]
    assert (row["dataset"], row["retrieved_contexts"]) == ("ExpertQA", ["The mill burnt down."])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("wice", lines(WICE)),
        ("factcheck", lines(FACTCHECK)),
        ("klue", json.dumps(KLUE)),
        ("aggrefact", lines(AGGREFACT)),
    ],
)
def test_what_is_written_is_a_data_set(tmp_path: Path, name: str, content: str) -> None:
    out = tmp_path / "ours.jsonl"
    out.write_text(lines(read(tmp_path, name, content)), encoding="utf-8")
    for entry in open_source([str(out)]).entries(lambda _: False):
        assert isinstance(entry.value, Sample)
        assert entry.value.statements
