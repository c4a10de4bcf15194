"""The turns of the benchmark of peers, each tool as it is used there, against a judge that says what it is told."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from benchmarks.peers import turn
from tests.oracles.replaying import Replay

STATEMENTS = ["Kemp teaches in London.", "Kemp was born in Leeds."]
SAMPLE = turn.Sample(
    id="A",
    user_input="Who is Kemp?",
    reference=" ".join(STATEMENTS),
    retrieved_contexts=["Kemp teaches in London."],
    statements=[turn.Labelled(id=one, text=one, label=1) for one in STATEMENTS],
)
ITEMS = [
    {"statement": one, "reason": "because", "attributed": label} for one, label in zip(STATEMENTS, (1, 0), strict=True)
]
RULED = json.dumps({"classifications": ITEMS})
GRADED = json.dumps({"context_recall_score": 0.5, "reason": "half of it"})
ANSWERED = json.dumps({"verdicts": [{"verdict": one, "reason": "because"} for one in ("yes", "no")]})


def rows(replay: Replay, tool: str, monkeypatch: pytest.MonkeyPatch, n_samples: int = 2) -> Sequence[turn.Row]:
    for name, value in replay.environment.items():
        monkeypatch.setenv(name, value)
    asked = turn.Asked(
        tool=tool,
        base_url=replay.base_url,
        api_key=replay.api_key,
        model=replay.model,
        profile="",
        data="",
        out="",
        concurrency=2,
    )
    samples = [turn.Sample(**{**SAMPLE, "id": name}) for name in "ABC"[:n_samples]]

    async def run() -> list[turn.Row]:
        return await turn.TOOLS[tool](asked).run(samples)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("tool", "reply", "texts"),
    [
        ("ragas", [RULED], STATEMENTS),
        ("opik", [GRADED], []),
        ("deepeval", [ANSWERED, json.dumps({"reason": "half of it"})], ["", ""]),
    ],
)
def test_a_turn_keeps_the_score_of_each_sample_and_the_verdicts_that_the_tool_has(
    replay: Replay, monkeypatch: pytest.MonkeyPatch, tool: str, reply: list[str], texts: list[str]
) -> None:
    replay.replies = reply
    (found,) = rows(replay, tool, monkeypatch, 1)
    assert (found["id"], found["score"], found["error"]) == ("A", 0.5, "")
    assert [one["text"] for one in found["verdicts"]] == texts
    assert [one["attributed"] for one in found["verdicts"]] == [True, False][: len(texts)]


@pytest.mark.parametrize("tool", ["ragas", "opik", "deepeval"])
def test_what_a_tool_cannot_read_is_a_failure_of_that_sample(
    replay: Replay, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    replay.replies = ["I would say so."]
    found = rows(replay, tool, monkeypatch)
    assert [(one["score"], bool(one["error"])) for one in found] == [(None, True), (None, True)]


def test_verdicts_of_samples_in_flight_together_stay_apart(replay: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    replay.replies = [RULED]
    found = rows(replay, "ragas", monkeypatch, 3)
    assert [(one["id"], len(one["verdicts"]), one["score"]) for one in found] == [(name, 2, 0.5) for name in "ABC"]
