"""The door for scripts of ragas: its names, methods, errors and results, on our judge."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI

from airjudge.compat.ragas import (
    ContextRecall,
    ContextRecallClassification,
    ContextRecallInput,
    ContextRecallOutput,
    ContextRecallPrompt,
    DistanceMeasure,
    IDBasedContextRecall,
    JudgeLLM,
    LLMContextRecall,
    MetricResult,
    NonLLMContextRecall,
    SingleTurnSample,
    llm_factory,
)
from airjudge.errors import JudgeRemote, JudgeUnreachable
from airjudge.judge import JudgeSettings
from airjudge.wordings import find_wording
from tests.stub import Fault, Stub
from tests.stub.faults import Call, Twist, schema_named

FERRY: dict[str, Any] = {
    "user_input": "When does the ferry leave?",
    "retrieved_contexts": ["The ferry departs at six in the morning."],
    "reference": "The ferry departs at six in the morning. Whales sing beautiful songs.",
}


def client_of(stub: Stub) -> SimpleNamespace:
    return SimpleNamespace(base_url=stub.base_url, api_key=stub.api_key)


def llm_of(stub: Stub, **kwargs: Any) -> JudgeLLM:
    return llm_factory(stub.model, client=client_of(stub), **kwargs)


@pytest.fixture
def llm(stub: Stub) -> JudgeLLM:
    return llm_of(stub)


@pytest.mark.parametrize("method", ["pointwise", "ragas"])
def test_a_sample_scores_the_same_in_all_four_ways(stub: Stub, method: Any) -> None:
    metric = ContextRecall(llm_of(stub), method=method)

    async def awaited() -> list[MetricResult]:
        return [await metric.ascore(**FERRY), *await metric.abatch_score([FERRY, FERRY])]

    results = [metric.score(**FERRY), *metric.batch_score([FERRY]), *asyncio.run(awaited())]
    assert [one.value for one in results] == [0.5] * 5
    assert [one.attributed for one in results[0].statements] == [True, False]
    assert results[0].signature is not None
    assert f" {method}#" in str(results[0].signature)
    assert results[0].to_dict() == {"result": 0.5, "reason": None}


@pytest.mark.parametrize("kind", [AsyncOpenAI, OpenAI])
def test_the_clients_of_openai_do(stub: Stub, kind: Any) -> None:
    llm = llm_factory(stub.model, client=kind(base_url=stub.base_url, api_key=stub.api_key), max_tokens=4096)
    assert ContextRecall(llm=llm).score(**FERRY) == 0.5


def test_without_a_client_the_judge_is_found_by_its_name(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRJUDGE_BASE_URL", stub.base_url)
    monkeypatch.setenv("AIRJUDGE_API_KEY", stub.api_key or "")
    llm = llm_factory(stub.model, max_tokens=1000)
    try:
        assert ContextRecall(llm).score(**FERRY) == 0.5
    finally:
        llm.judge(JudgeSettings()).close()


@pytest.mark.parametrize("base_url", ["https://8.8.8.8/v1", "http://[2001:4860::1]/v1"])
def test_an_address_outside_is_refused_unless_it_is_allowed(base_url: str) -> None:
    client = SimpleNamespace(base_url=base_url, api_key="k")
    with pytest.raises(JudgeRemote):
        llm_factory("m", client=client)
    assert llm_factory("m", client=client, allow_remote=True).allow_remote


def test_what_has_no_effect_is_told_and_what_cannot_be_is_refused(stub: Stub) -> None:
    with pytest.warns(UserWarning, match="cache, system_prompt: without effect"):
        llm_of(stub, cache=object(), system_prompt="Be kind.")
    assert llm_of(stub, temperature=0.01, top_p=0.1, adapter="instructor", provider="openai").max_tokens is None
    for wrong in (0, -1, True, "9"):
        with pytest.raises(ValueError, match="max_tokens must be a whole number"):
            llm_of(stub, max_tokens=wrong)
    with pytest.raises(ValueError, match="model parameter is required"):
        llm_factory("", client=client_of(stub))
    with pytest.raises(ValueError, match="client must have base_url and api_key"):
        llm_factory("m", client=object())
    with pytest.warns(UserWarning, match="embeddings: without effect"):
        ContextRecall(llm_of(stub), embeddings=None)


def test_max_tokens_bounds_the_single_call_and_is_signed(stub: Stub) -> None:
    result = ContextRecall(llm_of(stub, max_tokens=40), method="ragas").score(**FERRY)
    (asked,) = [one.body for one in stub.chats if one.schema_name == "classifications" and "Whales" in one.text]
    assert asked["max_completion_tokens"] == 40
    assert result == 0.5  # the reply was cut: what it left out was asked for one by one
    assert "max_tokens=40" in str(result.signature)
    assert "max_tokens" not in str(ContextRecall(llm_of(stub), method="ragas").score(**FERRY).signature)


def test_anything_but_an_llm_of_ours_is_refused() -> None:
    for wrong in (None, "gpt-4o", object()):
        with pytest.raises(ValueError, match=r"llm must come from airjudge\.compat\.ragas\.llm_factory"):
            ContextRecall(llm=wrong)  # type: ignore[arg-type]


def test_fields_are_checked_in_order_before_anything_is_asked(stub: Stub, llm: JudgeLLM) -> None:
    metric = ContextRecall(llm)
    empty: dict[str, Any] = {"user_input": "", "reference": "", "retrieved_contexts": []}
    for field, good in (("user_input", "a?"), ("reference", "b."), ("retrieved_contexts", ["c"])):
        with pytest.raises(ValueError, match=f"{field} cannot be empty"):
            metric.score(**empty)
        with pytest.raises(ValueError, match=f"{field} cannot be empty"):
            metric.score(**empty | {field: None})
        empty[field] = good
    for contexts in ("text", [""], ["  "], [1]):
        with pytest.raises(ValueError, match="retrieved_contexts"):
            metric.score(**FERRY | {"retrieved_contexts": contexts})
    for fields in (FERRY | {"response": "x"}, {"user_input": "a?"}):
        with pytest.raises(TypeError):
            metric.score(**fields)
        with pytest.raises(TypeError):
            metric.batch_score([FERRY, fields])
    assert not stub.requests


async def test_the_sync_methods_refuse_a_running_loop(llm: JudgeLLM) -> None:
    metric, sample = ContextRecall(llm), SingleTurnSample(**FERRY)
    for call in (lambda: metric.score(**FERRY), lambda: metric.score(nonsense=1), lambda: metric.batch_score([FERRY])):
        with pytest.raises(RuntimeError, match="event loop is running"):
            call()
    with pytest.raises(RuntimeError, match="await single_turn_ascore"):
        LLMContextRecall(llm=llm).single_turn_score(sample)


def test_a_batch_keeps_order_and_isolates_rows(stub: Stub, llm: JudgeLLM) -> None:
    metric = ContextRecall(llm)
    assert metric.batch_score([]) == []
    none = FERRY | {"reference": "Whales sing beautiful songs."}
    stub.faults.append(Fault(refuse, when=lambda one: "Walrus" in one.text))
    rows = [FERRY, FERRY | {"user_input": ""}, none, FERRY | {"reference": "Walrus."}, FERRY]
    first, invalid, zero, failed, last = metric.batch_score(rows)
    assert [first.value, invalid.value, zero.value, failed.value, last.value] == [0.5, None, 0.0, None, 0.5]
    assert invalid.error is not None
    assert (invalid.error.kind, invalid.reason) == ("invalid_sample", "invalid_sample: user_input cannot be empty")
    assert failed.error is not None
    assert failed.error.kind == "reply_refused"


async def refuse(call: Call) -> Any:
    return await call.reply(Twist(say="perhaps"))


def test_a_judge_that_is_away_raises_for_the_whole_batch() -> None:
    client = SimpleNamespace(base_url="http://127.0.0.1:9/v1", api_key="k")
    with pytest.raises(JudgeUnreachable):
        ContextRecall(llm_factory("m", client=client)).batch_score([FERRY])


def test_a_result_acts_as_its_number() -> None:
    half, one = MetricResult(0.5), MetricResult(1.0, reason="said")
    assert (float(half), int(one), bool(half), round(half, 1), abs(half), -half) == (0.5, 1, True, 0.5, 0.5, -0.5)
    assert (half + 1, 1 + half, half - 1, 1 - half) == (1.5, 1.5, -0.5, 0.5)
    assert (half * 2, 2 * half, half / 2, 1 / half, half + one, half / one) == (1.0, 1.0, 0.25, 2.0, 1.5, 0.5)
    assert half < one
    assert half <= 0.5
    assert one > 0.5
    assert one >= half
    assert (half == 0.5, half == MetricResult(0.5), half != one, hash(half) == hash(0.5)) == (True,) * 4
    assert sum([half, one]) / 2 == 0.75
    assert f"{half:.2f} {half}" == "0.50 MetricResult(value=0.5)"
    assert repr(one) == "MetricResult(value=1.0, reason='said')"
    with pytest.raises(ValueError, match="not judge"):
        MetricResult(1.0, traces={"judge": {}})


def test_a_result_without_a_value_says_why_wherever_its_number_is_needed() -> None:
    nothing = MetricResult(None, reason="no_statement: the reference has no statement")
    for use in (float, int, bool, abs, lambda one: one + 1, lambda one: one < 1, lambda one: f"{one:.1f}"):
        with pytest.raises(TypeError, match="this result has no value: no_statement"):
            use(nothing)
    assert nothing.value is None
    assert nothing != 0
    assert nothing.to_dict()["result"] is None


@pytest.mark.parametrize("method", ["pointwise", "ragas"])
def test_an_edited_prompt_is_asked_with_and_signed(stub: Stub, llm: JudgeLLM, method: Any) -> None:
    metric = ContextRecall(llm, method=method)
    before = metric.score(**FERRY).signature
    assert before is not None
    metric.prompt.instruction += " Mind the walrus."
    metric.prompt.examples.append(
        (
            ContextRecallInput(question="What floats?", context="Boats float.\nStones sink.", answer="Boats."),
            ContextRecallOutput(
                classifications=[ContextRecallClassification(statement="Boats.", reason="They do.", attributed=1)]
            ),
        )
    )
    after = metric.score(**FERRY).signature
    assert after is not None
    assert after.prompt != before.prompt
    assert after.model_copy(update={"prompt": before.prompt}) == before
    asked = stub.bodies("Mind the walrus.")
    assert asked
    assert all("[2] Stones sink." in str(one) for one in asked if "Whales" in str(one))


def test_an_unusable_prompt_is_refused_by_what_is_wrong(llm: JudgeLLM) -> None:
    metric = ContextRecall(llm)
    metric.prompt.examples.append(("question", "answer"))
    with pytest.raises(ValueError, match="example 1 of the prompt"):
        metric.score(**FERRY)
    metric.prompt = ContextRecallPrompt()
    metric.prompt.instruction = " "
    with pytest.raises(ValueError, match="pointwise"):
        metric.score(**FERRY)


@pytest.mark.parametrize("method", ["pointwise", "ragas"])
def test_a_prompt_adapts_offline_and_its_signature_with_it(stub: Stub, llm: JudgeLLM, method: Any) -> None:
    metric = ContextRecall(llm, method=method)
    before = metric.score(**FERRY).signature
    metric.prompt = asyncio.run(metric.prompt.adapt("chinese", llm))
    assert metric.prompt.language == "chinese"
    after = metric.score(**FERRY).signature
    assert before is not None
    assert after is not None
    assert after.prompt != before.prompt
    words = find_wording("zh")
    assert stub.bodies(words.single_call if method == "ragas" else words.phrasings[0].behind)


def test_adapting_without_the_instruction_changes_the_examples_alone() -> None:
    prompt = ContextRecallPrompt("ragas")
    prompt.instruction = "Mine."
    adapted = prompt.adapted("fr", adapt_instruction=False)
    assert adapted.instruction == "Mine."
    assert adapted.examples[0][0].question == "Quand part le ferry ?"
    assert prompt.language == "english"
    with pytest.raises(ValueError, match="no words in 'klingon'"):
        prompt.adapted("klingon")
    unchanged = prompt.adapted("english").wording()
    assert unchanged is None


def test_older_metrics_read_any_object_with_their_fields(stub: Stub, llm: JudgeLLM) -> None:
    metric = LLMContextRecall(llm=llm)
    assert metric.single_turn_score(SingleTurnSample(**FERRY)) == 0.5
    assert asyncio.run(metric.single_turn_ascore(SimpleNamespace(**FERRY), timeout=60)) == 0.5
    with pytest.raises(ValueError, match="reference cannot be empty"):
        metric.single_turn_score(SingleTurnSample(user_input="a?", retrieved_contexts=["b"]))
    with pytest.raises(ValueError, match="llm must come from"):
        LLMContextRecall().single_turn_score(SingleTurnSample(**FERRY))
    stub.config.latency_s = 1.0
    with pytest.raises(TimeoutError):
        asyncio.run(metric.single_turn_ascore(SingleTurnSample(**FERRY), timeout=0.2))


def test_the_majority_of_votes_decides_each_statement(stub: Stub, llm: JudgeLLM) -> None:
    votes = iter("101")

    async def vote(call: Call) -> Any:
        return await call.reply(Twist(wish=next(votes)))

    one = SingleTurnSample(user_input="a?", retrieved_contexts=["b"], reference="Whales sing beautiful songs.")
    metric = LLMContextRecall(llm=llm, n_votes=3)
    ContextRecall(llm).score(**FERRY)
    stub.faults.append(Fault(vote, when=schema_named("verdict")))
    assert metric.single_turn_score(one) == 1.0
    with pytest.raises(ValueError, match="n_votes"):
        LLMContextRecall(n_votes=0)


def test_recall_without_a_judge_by_likeness_and_by_id() -> None:
    likeness, ids = NonLLMContextRecall(), IDBasedContextRecall()
    alike = SingleTurnSample(retrieved_contexts=["The ferry departs."], reference_contexts=["The ferry departs", "Nil"])
    assert likeness.single_turn_score(alike) == 0.5
    assert asyncio.run(likeness.single_turn_ascore(alike)) == 0.5
    likeness.distance_measure = DistanceMeasure.JARO
    assert likeness.distance_measure is DistanceMeasure.JARO
    with pytest.raises(ValueError, match="a distance is one of levenshtein"):
        likeness.distance_measure = "cosine"
    found = SingleTurnSample(retrieved_context_ids=[1, "b"], reference_context_ids=["1", 2])
    assert ids.single_turn_score(found) == 0.5
    assert (
        asyncio.run(ids.single_turn_ascore(SingleTurnSample(retrieved_context_ids=[1], reference_context_ids=[])))
        is None
    )
    with pytest.raises(ValueError, match="retrieved_contexts"):
        likeness.single_turn_score(SingleTurnSample())
