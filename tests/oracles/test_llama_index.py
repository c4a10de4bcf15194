"""Context recall inside LlamaIndex: as an evaluator alone, of a response with its nodes, and in a batch."""

import asyncio
from collections.abc import Iterator

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import BatchEvalRunner, CorrectnessEvaluator
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode

from airjudge import Judge
from airjudge.integrations.llama_index import ContextRecallEvaluator
from tests.stub import Stub

QUERY = "Where is the boat?"
CONTEXT = "The red boat lies in Bergen harbour."
REFERENCE = f"{CONTEXT} Captain Thomas sings loudly."


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.fixture
def evaluator(stub: Stub) -> ContextRecallEvaluator:
    return ContextRecallEvaluator(Judge.connect(stub.base_url, api_key=stub.api_key))


def test_a_sample_has_its_recall_and_what_was_missed(evaluator: ContextRecallEvaluator) -> None:
    found = evaluator.evaluate(query=QUERY, response="Bergen", contexts=[CONTEXT], reference=REFERENCE)
    assert (found.score, found.passing, found.invalid_result) == (0.5, False, False)
    assert (found.query, found.response, found.contexts) == (QUERY, "Bergen", [CONTEXT])
    first, second = (found.feedback or "").splitlines()
    assert first == "1 of 2 statements missed"
    assert second.startswith("  missed (probability 0.")
    assert second.endswith(": Captain Thomas sings loudly.")


def test_the_threshold_says_who_passes(stub: Stub) -> None:
    judge = Judge.connect(stub.base_url, api_key=stub.api_key)
    found = ContextRecallEvaluator(judge, score_threshold=0.5).evaluate(
        query=QUERY, contexts=[CONTEXT], reference=REFERENCE
    )
    assert found.passing is True


def test_a_response_brings_its_own_contexts(evaluator: ContextRecallEvaluator) -> None:
    response = Response("Bergen", source_nodes=[NodeWithScore(node=TextNode(text=CONTEXT))])
    found = evaluator.evaluate_response(query=QUERY, response=response, reference=CONTEXT)
    assert (found.score, found.passing) == (1.0, True)


def test_a_batch_has_each_sample_in_order_and_one_that_cannot_be_judged_stops_no_other(
    evaluator: ContextRecallEvaluator,
) -> None:
    contexts: list[list[str]] = [[CONTEXT], ["boat " * 100_000], []]
    runner = BatchEvalRunner({"recall": evaluator, "correctness": CorrectnessEvaluator(MockLLM())}, workers=3)
    found = asyncio.run(
        runner.aevaluate_response_strs([QUERY] * 3, ["Bergen"] * 3, contexts, reference=[CONTEXT, CONTEXT, CONTEXT])
    )
    judged, refused, empty = found["recall"]
    assert (judged.score, judged.passing) == (1.0, True)
    assert (refused.score, refused.passing, refused.invalid_result) == (None, None, True)
    assert (refused.invalid_reason or "").startswith("prompt_too_long: ")
    assert (empty.score, empty.passing) == (0.0, False)


def test_the_judge_is_proved_once_for_all_loops(evaluator: ContextRecallEvaluator, stub: Stub) -> None:
    for _ in range(3):
        evaluator.evaluate(query=QUERY, contexts=[CONTEXT], reference=CONTEXT)
    assert len(stub.bodies("Reply with the single word")) == 1


@pytest.mark.parametrize("missing", ["query", "contexts", "reference"])
def test_what_is_missing_is_a_misuse_as_in_its_own_evaluators(evaluator: ContextRecallEvaluator, missing: str) -> None:
    fields = {"query": QUERY, "contexts": [CONTEXT], "reference": REFERENCE} | {missing: None}
    with pytest.raises(ValueError, match="must be provided"):
        evaluator.evaluate(**fields)


def test_one_string_is_no_list_of_contexts(evaluator: ContextRecallEvaluator) -> None:
    with pytest.raises(ValueError, match="must be a list of strings"):
        evaluator.evaluate(query=QUERY, contexts=CONTEXT, reference=REFERENCE)


def test_it_has_no_prompt_to_edit(evaluator: ContextRecallEvaluator) -> None:
    evaluator.update_prompts({})
    assert evaluator.get_prompts() == {}
