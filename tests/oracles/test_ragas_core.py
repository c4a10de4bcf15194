"""What ragas' own ContextRecall does with its judge and its results, and the core does otherwise.

Scores and errors are held against each other at the door, in test_ragas.py.
"""

import json
from typing import Any

import pytest
from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import ContextRecall as Original

from airjudge import ContextRecall, Judge, JudgeSettings, RecallResult
from airjudge.datasets import source_of
from airjudge.run import read_scored, score_dataset
from tests.oracles.conftest import Served
from tests.oracles.replaying import Replay

TREES = ("alder", "birch", "cedar", "elder", "fir", "hazel")
STATEMENTS = [f"The {tree} was planted near the old {tree} mill." for tree in TREES]


def case(n_statements: int) -> dict[str, Any]:
    return {
        "user_input": "What was planted?",
        "retrieved_contexts": ["Somebody planted trees."],
        "reference": " ".join(STATEMENTS[:n_statements]),
    }


def said(*items: tuple[str, int]) -> str:
    """A reply with one item a statement."""
    found = [{"statement": text, "reason": "because", "attributed": label} for text, label in items]
    return json.dumps({"classifications": found})


@pytest.fixture
def original(replay: Replay) -> Original:
    """A new one each time: a client that outlives its event loop trips over its old connections."""
    client = AsyncOpenAI(base_url=replay.base_url, api_key=replay.api_key)
    return Original(llm=llm_factory(replay.model, client=client))


@pytest.fixture(scope="session")
def own(replay: Replay) -> ContextRecall:
    asked = JudgeSettings(method="ragas")
    return ContextRecall(Judge.connect(replay.base_url, replay.model, api_key=replay.api_key, settings=asked))


def test_a_string_of_contexts_reaches_the_judge_of_the_original_as_characters(
    replay: Replay, original: Original
) -> None:
    replay.replies = [said((STATEMENTS[0], 1))]
    original.score(**case(1) | {"retrieved_contexts": "Trees."})
    assert json.dumps("\n".join("Trees.")) in replay.asked[0].text


def test_verdicts_and_reasons_are_thrown_away_by_the_original_and_kept_here(
    replay: Replay, original: Original, own: ContextRecall
) -> None:
    replay.replies = [said((STATEMENTS[0], 1), (STATEMENTS[1], 0))]
    theirs = original.score(**case(2))
    assert (theirs.reason, theirs.traces) == (None, None)
    result = own.score(**case(2))
    assert [(one.attributed, one.reason) for one in result.statements] == [(True, "because"), (False, "because")]
    assert all(one.probability is not None for one in result.statements)


def test_prose_is_asked_about_again_and_at_greater_length_by_the_original_alone(
    replay: Replay, original: Original, own: ContextRecall
) -> None:
    replay.replies = ["The first statement is supported, I think."]
    with pytest.raises(Exception, match="failed_attempts"):
        original.score(**case(1))
    sizes = [len(one.raw) for one in replay.asked]
    assert len(sizes) > 1
    assert sizes == sorted(set(sizes))
    replay.stub.clear()
    assert own.score(**case(1)).value == 0.0
    assert len(replay.asked) == 1


async def test_an_empty_retrieval_of_a_data_set_is_recall_0_here_and_an_error_to_the_original(
    replay: Replay, original: Original, own: ContextRecall, tmp_path: Any
) -> None:
    fields = case(1) | {"retrieved_contexts": []}
    with pytest.raises(ValueError, match="retrieved_contexts"):
        await original.ascore(**fields)
    await score_dataset(source_of([{"id": "a", **fields}]), own, tmp_path / "run")
    assert [one.score for one in read_scored(tmp_path / "run")] == [0.0]
    assert replay.asked == []


def test_every_score_here_names_what_made_it(replay: Replay, original: Original, own: ContextRecall) -> None:
    replay.replies = [said((STATEMENTS[0], 1))]
    assert not hasattr(original.score(**case(1)), "signature")
    result: RecallResult = own.score(**case(1))
    assert replay.model in str(result.signature)
    assert "ragas" in str(result.signature)


def test_the_reply_of_a_verdict_is_one_token_where_the_original_writes_all_statements_again(
    replay: Replay, original: Original
) -> None:
    replay.replies = [said((STATEMENTS[0], 1), (STATEMENTS[1], 0))]
    original.score(**case(2))
    assert replay.asked[0].body["max_tokens"] == 1024
    replay.stub.clear()
    pointwise = ContextRecall(Judge.connect(replay.base_url, replay.model, api_key=replay.api_key))
    pointwise.score(**case(2))
    asked = [one.body for one in replay.stub.chats if "Somebody planted trees." in one.text]
    assert [one["max_completion_tokens"] for one in asked] == [1, 1]


@pytest.mark.server
async def test_a_server_with_outlines_refuses_every_call_of_the_original_and_none_of_ours(
    oracle_server: Served,
) -> None:
    client = AsyncOpenAI(base_url=oracle_server.base_url, api_key=oracle_server.api_key)
    theirs = Original(llm=llm_factory(oracle_server.model, client=client))
    with pytest.raises(Exception, match="json_object"):
        await theirs.ascore(**case(2))
    judge = Judge.connect(oracle_server.base_url, oracle_server.model, api_key=oracle_server.api_key)
    result = await ContextRecall(judge).ascore(**case(2))
    assert result.value in {0.0, 0.5, 1.0}
