"""Data rows for tests against the stub, and the way from rows to their records."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from airjudge import ContextRecall, Judge
from airjudge.judge import JudgeSettings
from airjudge.run import read_scored, score_dataset
from airjudge.schema import ScoredSample
from tests.stub import Stub

Row = dict[str, object]

_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def row(name: str, n_statements: int = 1) -> Row:
    """Build a row whose contexts support all of its statements, each of which names the row."""
    texts = [f"Harbour {name} opened pier {number}." for number in _NUMBERS[:n_statements]]
    return {
        "id": name,
        "user_input": f"What did Harbour {name} open?",
        "reference": " ".join(texts),
        "retrieved_contexts": texts,
        "statements": [{"id": str(n), "text": text} for n, text in enumerate(texts, 1)],
    }


def connected(stub: Stub, settings: JudgeSettings | None = None) -> Judge:
    """Connect to a stub with its key."""
    return Judge.connect(stub.base_url, stub.model, api_key=stub.api_key, settings=settings)


async def score_rows(
    stub: Stub, rows: Sequence[Mapping[str, object]], folder: Path, *, settings: JudgeSettings | None = None
) -> list[ScoredSample]:
    """Score rows as a data set, and give the records that the run wrote."""
    data, out = folder / "rows.jsonl", folder / "run"
    data.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in rows), encoding="utf-8")
    await score_dataset(data, ContextRecall(connected(stub, settings)), out)
    return list(read_scored(out))


def kinds(records: Sequence[ScoredSample]) -> dict[str, str | None]:
    """Give each record's kind of error by id; None for one that was scored."""
    return {one.id: one.error.kind if one.error else None for one in records}
