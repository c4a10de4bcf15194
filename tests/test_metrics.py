"""The metric object: what it refuses, what it asks, what it gives back."""

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from airjudge import ContextRecall, Judge, JudgeSettings
from airjudge.errors import EvaluationError
from airjudge.profiles import load_profile
from airjudge.schema import Pointwise, Sample, Statement
from airjudge.server import Server
from tests.stub import Fault, Stub, by_text
from tests.stub import faults as faults_of

FERRY = {
    "user_input": "When does the ferry leave, and from where?",
    "retrieved_contexts": ["The ferry departs at six."],
    "reference": "The ferry departs at six. Whales sing.",
}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


def judge_of(stub: Stub, **settings: object) -> Judge:
    return Judge.connect(
        stub.base_url, stub.model, api_key=stub.api_key, settings=JudgeSettings.model_validate(settings)
    )


def verdict_requests(stub: Stub) -> int:
    """Chat requests under the verdict schema, the warm-up left out."""
    return sum(request.schema_name == "verdict" for request in stub.requests) - 1


def test_score_is_the_share_of_attributed_statements(stub: Stub) -> None:
    result = ContextRecall(judge_of(stub)).score(**FERRY)  # type: ignore[arg-type]
    assert result.value == 0.5
    assert [(one.id, one.text, one.attributed) for one in result.statements] == [
        ("1", "The ferry departs at six.", True),
        ("2", "Whales sing.", False),
    ]
    # The stub gives its label 0.9.
    assert [one.probability for one in result.statements] == pytest.approx([0.9, 0.1])


def test_the_result_carries_the_signature_of_what_made_it(stub: Stub) -> None:
    result = ContextRecall(judge_of(stub)).score(**FERRY)  # type: ignore[arg-type]
    assert result.signature.enforcement == "outlines"
    assert result.signature.server == "vllm-0.32.0"
    assert result.signature.weights == "unverified"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("user_input", ""),
        ("user_input", "  \n"),
        ("reference", ""),
        ("reference", "\t"),
        ("retrieved_contexts", []),
        ("retrieved_contexts", [""]),
        ("retrieved_contexts", ["  ", "\n"]),
        ("retrieved_contexts", "The ferry departs at six."),
        ("retrieved_contexts", [["nested"]]),
        ("retrieved_contexts", ["a", None]),
        ("retrieved_contexts", [3]),
        ("retrieved_contexts", None),
        ("user_input", None),
        ("reference", 7),
    ],
)
def test_an_unusable_field_is_a_value_error_that_names_it_and_asks_nothing(
    stub: Stub, field: str, value: object
) -> None:
    with pytest.raises(ValueError, match=field):
        ContextRecall(judge_of(stub)).score(**(FERRY | {field: value}))  # type: ignore[arg-type]
    assert not stub.requests


def test_the_fields_are_checked_in_the_order_of_the_seed(stub: Stub) -> None:
    with pytest.raises(ValueError, match="user_input"):
        ContextRecall(judge_of(stub)).score(user_input="", retrieved_contexts=[], reference="")
    with pytest.raises(ValueError, match="reference"):
        ContextRecall(judge_of(stub)).score(user_input="a", retrieved_contexts=[], reference="")


async def test_score_inside_an_event_loop_is_a_runtime_error(stub: Stub) -> None:
    metric = ContextRecall(judge_of(stub))
    with pytest.raises(RuntimeError):
        metric.score(**FERRY)  # type: ignore[arg-type]
    assert (await metric.ascore(**FERRY)).value == 0.5  # type: ignore[arg-type]


def test_one_judge_serves_many_event_loops_and_proves_enforcement_once(stub: Stub) -> None:
    metric = ContextRecall(judge_of(stub))
    for _ in range(3):
        assert metric.score(**FERRY).value == 0.5  # type: ignore[arg-type]
    assert sum(request.schema_name == "canary" for request in stub.requests) == 1
    assert verdict_requests(stub) == 6


async def test_scores_asked_for_at_once_share_one_connection_and_one_proof(stub: Stub) -> None:
    metric = ContextRecall(judge_of(stub))
    results = await asyncio.gather(*(metric.ascore(**FERRY) for _ in range(5)))  # type: ignore[arg-type]
    assert [one.value for one in results] == [0.5] * 5
    assert sum(request.schema_name == "canary" for request in stub.requests) == 1


async def test_phrasings_are_averaged_and_what_is_said_without_contexts_is_taken_off(stub: Stub) -> None:
    # logit(.8) = ln 4 and logit(.5) = 0 average to ln 2. Without contexts logit(.2) = -ln 4, which is ln 2 less
    # than the mean of -ln 2; half of that is added: 1.5 ln 2, so p = 2^1.5 / (1 + 2^1.5).
    said = {"N/A": 0.2, "following is true? The ferry": 0.5, "Statement: The ferry": 0.8}
    stub.config.probability = lambda messages: next(
        (p for key, p in said.items() if key in str(messages[-1]["content"])), 0.9
    )
    how = {"phrasings": 2, "prior": {"weight": 0.5, "log_odds": -math.log(2)}}
    judge = judge_of(stub, pointwise=how)
    result = await ContextRecall(judge).ascore(
        user_input="When?", retrieved_contexts=["It departs at six."], reference="The ferry departs at six."
    )
    assert result.statements[0].probability == pytest.approx(2**1.5 / (1 + 2**1.5))
    assert verdict_requests(stub) == 3
    assert "phrasings=2" in result.signature.decoding
    assert 'prior="0.5@-0.693147"' in result.signature.decoding


def test_the_default_judge_is_asked_what_its_profile_says() -> None:
    server = Server(
        base_url="http://127.0.0.1:9/v1",
        model="m",
        api_key="k",
        profile="qwen2.5-coder-1.5b",
        digest="d",
        pid=1,
        log=Path("server.log"),
    )
    assert Judge.of_server(server, None).settings.pointwise == load_profile("qwen2.5-coder-1.5b").pointwise
    alone = JudgeSettings(pointwise=Pointwise())
    assert Judge.of_server(server, alone).settings.pointwise == Pointwise()


def test_a_batch_keeps_its_order_and_a_failing_sample_to_itself(stub: Stub) -> None:
    stub.faults.append(Fault(faults_of.respond(400), when=faults_of.mentions("comet")))
    batch = [FERRY, FERRY | {"reference": "A comet fell."}, FERRY | {"reference": "The ferry departs at six."}]
    results = ContextRecall(judge_of(stub)).batch_score(batch)
    assert [one.value for one in results] == [0.5, None, 1.0]
    assert results[1].error is not None
    assert results[1].error.kind == "request_failed"


def test_an_empty_batch_gives_nothing_and_asks_nothing(stub: Stub) -> None:
    assert ContextRecall(judge_of(stub)).batch_score([]) == []
    assert not stub.requests


def test_a_malformed_sample_of_a_batch_is_named_before_anything_is_asked(stub: Stub) -> None:
    with pytest.raises(ValueError, match="sample 1 of the batch"):
        ContextRecall(judge_of(stub)).batch_score([FERRY, {"user_input": "a", "reference": "b"}])
    assert not stub.requests


def test_a_statement_that_fails_raises_from_score(stub: Stub) -> None:
    stub.faults.append(Fault(faults_of.respond(400), when=faults_of.mentions("Whales")))
    with pytest.raises(EvaluationError):
        ContextRecall(judge_of(stub)).score(**FERRY)  # type: ignore[arg-type]


async def test_a_failed_statement_keeps_the_verdicts_of_its_siblings(stub: Stub) -> None:
    stub.faults.append(Fault(faults_of.respond(400), when=faults_of.mentions("Whales")))
    sample = Sample(id="s", group="g", **FERRY)  # type: ignore[arg-type]
    [scored] = await ContextRecall(judge_of(stub)).score_samples([sample])
    assert (scored.status, scored.score, scored.group) == ("failed", None, "g")
    assert [one.attributed for one in scored.statements] == [True, None]


async def test_given_statements_are_judged_and_sentences_only_without_them(stub: Stub) -> None:
    given = Sample(id="s", statements=(Statement(id="a", text="Whales sing."),), **FERRY)  # type: ignore[arg-type]
    [scored] = await ContextRecall(judge_of(stub)).score_samples([given])
    assert [one.id for one in scored.statements] == ["a"]
    [scored] = await ContextRecall(judge_of(stub), statements="sentences").score_samples([given])
    assert [one.id for one in scored.statements] == ["1", "2"]


async def test_a_sample_without_statements_is_undefined_and_never_zero(stub: Stub) -> None:
    [scored] = await ContextRecall(judge_of(stub)).score_samples([Sample(id="s", statements=(), **FERRY)])  # type: ignore[arg-type]
    assert (scored.status, scored.score, scored.error) == ("undefined", None, None)


@pytest.mark.parametrize("contexts", [(), ("",), ("  ", "\n\t")])
async def test_an_empty_retrieval_recalls_nothing_without_a_request(stub: Stub, contexts: tuple[str, ...]) -> None:
    metric = ContextRecall(judge_of(stub))
    sample = Sample(id="s", **(FERRY | {"retrieved_contexts": contexts}))  # type: ignore[arg-type]
    [scored] = await metric.score_samples([sample])
    assert (scored.score, scored.empty_contexts) == (0.0, True)
    assert [one.attributed for one in scored.statements] == [False, False]
    assert verdict_requests(stub) == 0


async def test_reasons_are_asked_for_the_misses_or_all_and_only_after_the_verdict(stub: Stub) -> None:
    sample = Sample(id="s", **FERRY)  # type: ignore[arg-type]
    stub.config.answer = by_text(
        {"supports it": '"Context 1."', "not support?": '"Nothing sings."', "Whales": "0", "six": "1"}
    )
    for reasons, expected in (("misses", [None, "Nothing sings."]), ("all", ["Context 1.", "Nothing sings."])):
        metric = ContextRecall(judge_of(stub), reasons=reasons)  # type: ignore[arg-type]
        [scored] = await metric.score_samples([sample])
        assert [one.reason for one in scored.statements] == expected


async def test_a_reason_that_fails_leaves_its_verdict_standing(stub: Stub) -> None:
    stub.faults.append(Fault(faults_of.respond(400), when=faults_of.schema_named("reason")))
    [scored] = await ContextRecall(judge_of(stub), reasons="all").score_samples([Sample(id="s", **FERRY)])  # type: ignore[arg-type]
    assert scored.score == 0.5
    assert [one.reason for one in scored.statements] == [None, None]


async def test_the_lead_statement_goes_alone_and_the_others_follow(stub: Stub) -> None:
    reference = " ".join(f"Fact {n} holds." for n in range(6))
    [scored] = await ContextRecall(judge_of(stub)).score_samples([Sample(id="s", **(FERRY | {"reference": reference}))])  # type: ignore[arg-type]
    assert len(scored.statements) == 6
    asked = [request for request in stub.requests if request.schema_name == "verdict"][1:]
    assert "Fact 0 holds." in asked[0].text
    assert asked[0].in_flight == 1


class TestSingleCall:
    """Method `ragas`: the seed's one call, aligned and completed."""

    async def test_one_request_rules_on_all_statements(self, stub: Stub) -> None:
        [scored] = await ContextRecall(judge_of(stub, method="ragas")).score_samples([Sample(id="s", **FERRY)])  # type: ignore[arg-type]
        assert [one.attributed for one in scored.statements] == [True, False]
        assert all(one.reason == "word overlap" for one in scored.statements)
        assert verdict_requests(stub) == 0

    async def test_a_cut_reply_keeps_its_whole_items_and_the_rest_is_asked_one_by_one(self, stub: Stub) -> None:
        whole = '{"classifications":[{"statement":"The ferry departs at six.","reason":"1","attributed":1}'
        cut = faults_of.say(whole + ', {"statement":"Wha', finish_reason="length")
        stub.faults.append(Fault(cut, when=faults_of.schema_named("classifications"), after=1))
        [scored] = await ContextRecall(judge_of(stub, method="ragas")).score_samples([Sample(id="s", **FERRY)])  # type: ignore[arg-type]
        assert [(one.attributed, one.reason) for one in scored.statements] == [(True, "1"), (False, None)]
        assert verdict_requests(stub) == 1

    async def test_a_reply_without_one_whole_item_is_completed_too(self, stub: Stub) -> None:
        stub.faults.append(Fault(faults_of.runaway(), when=faults_of.schema_named("classifications"), after=1))
        [scored] = await ContextRecall(judge_of(stub, method="ragas")).score_samples([Sample(id="s", **FERRY)])  # type: ignore[arg-type]
        assert scored.score == 0.5
        assert verdict_requests(stub) == 2

    async def test_an_invented_statement_does_not_change_the_denominator(self, stub: Stub) -> None:
        items = [("The ferry departs at six.", 1), ("The moon is round.", 1), ("Whales sing.", 0)]
        listed = ",".join(f'{{"statement":"{s}","reason":"r","attributed":{a}}}' for s, a in items)
        said = faults_of.want(f'{{"classifications":[{listed}]}}')
        stub.faults.append(Fault(said, when=faults_of.schema_named("classifications")))
        [scored] = await ContextRecall(judge_of(stub, method="ragas")).score_samples([Sample(id="s", **FERRY)])  # type: ignore[arg-type]
        assert scored.score == 0.5
        assert len(scored.statements) == 2

    async def test_forty_sentences_are_all_judged_though_the_reply_has_room_for_few(self, stub: Stub) -> None:
        reference = " ".join(f"Fact number {n} holds in every single case that was looked at." for n in range(40))
        sample = Sample(id="s", **(FERRY | {"reference": reference}))  # type: ignore[arg-type]
        [scored] = await ContextRecall(judge_of(stub, method="ragas")).score_samples([sample])
        assert scored.status == "scored"
        assert len(scored.statements) == 40
        assert all(one.attributed is not None for one in scored.statements)
