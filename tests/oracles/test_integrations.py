"""The originals' own metrics on our judge: outlines enforces their models, and none of their calls fails.

The stub refuses `json_object` with 400, as a vLLM with the outlines backend does.
"""

import asyncio
import json
from collections.abc import Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from airjudge import Judge
from airjudge.errors import SchemaRefused
from airjudge.integrations.deepeval import DeepEvalJudge
from airjudge.integrations.opik import OpikJudge
from airjudge.integrations.ragas import RagasJudge
from tests.stub import Fault, Stub, StubConfig
from tests.stub import faults as faults_of

if TYPE_CHECKING:
    from tests.oracles.conftest import Served

RECALL = {"user_input": "Where is it?", "retrieved_contexts": ["It is in Paris."], "reference": "In Paris. Tom."}
CLASSIFIED = [
    {"statement": "In Paris.", "reason": "r", "attributed": 1},
    {"statement": "T", "reason": "r", "attributed": 0},
]
JUDGED = [{"statement": "In Paris.", "reason": "r", "verdict": 1}, {"statement": "Tom.", "reason": "r", "verdict": 0}]


@pytest.fixture
def served() -> Iterator[Stub]:
    """A vLLM with the outlines backend, as far as it can be seen."""
    with Stub(StubConfig(max_model_len=32768)) as stub:
        yield stub
        formats = [one.body.get("response_format") for one in stub.chats]
        # The probe is the only one; the outlines backend refuses it by name.
        assert [one for one in formats if one == {"type": "json_object"}] == formats[:1]


def judge_of(stub: Stub) -> Judge:
    return Judge.connect(stub.base_url, stub.model, api_key=stub.api_key)


def says(stub: Stub, **replies: object) -> None:
    """Want to say a reply under each schema."""
    stub.faults[:] = [
        Fault(faults_of.want(json.dumps(reply)), when=faults_of.schema_named(name)) for name, reply in replies.items()
    ]


async def test_ragas_own_client_fails_on_such_a_server(served: Stub) -> None:
    from openai import AsyncOpenAI
    from ragas.llms import llm_factory
    from ragas.metrics.collections import ContextRecall

    client = AsyncOpenAI(base_url=served.base_url, api_key=served.api_key, max_retries=0)
    with pytest.raises(Exception, match="json_object"):
        await ContextRecall(llm=llm_factory("judge", client=client)).ascore(**RECALL)
    served.clear()


def test_ragas_context_recall_is_the_share_of_what_is_attributed(served: Stub) -> None:
    from ragas.metrics.collections import ContextRecall

    says(served, ContextRecallOutput={"classifications": CLASSIFIED})
    assert ContextRecall(llm=RagasJudge(judge_of(served))).score(**RECALL).value == 0.5


async def test_ragas_cannot_be_given_an_attributed_of_seven(served: Stub) -> None:
    from ragas.metrics.collections import ContextRecall

    says(served, ContextRecallOutput={"classifications": [{"statement": "s", "reason": "r", "attributed": 7}]})
    result = await ContextRecall(llm=RagasJudge(judge_of(served))).ascore(**RECALL)
    assert result.value in {0.0, 1.0}


async def test_other_metrics_of_ragas_ask_for_their_own_models(served: Stub) -> None:
    from ragas.metrics.collections import AnswerAccuracy, ContextPrecision, ContextRelevance, Faithfulness

    llm, said = RagasJudge(judge_of(served)), {"user_input": "q", "response": "It is. Tom."}
    says(served, ContextPrecisionOutput={"reason": "r", "verdict": 1})
    precise = await ContextPrecision(llm=llm).ascore(user_input="q", reference="r", retrieved_contexts=["c"])
    assert precise.value == pytest.approx(1.0)
    says(served, StatementGeneratorOutput={"statements": ["a", "b"]}, NLIStatementOutput={"statements": JUDGED})
    assert (await Faithfulness(llm=llm).ascore(**said, retrieved_contexts=["c"])).value == 0.5
    says(served, AnswerAccuracyOutput={"rating": 2}, ContextRelevanceOutput={"rating": 2})
    assert (await AnswerAccuracy(llm=llm).ascore(user_input="q", response="a", reference="b")).value == 0.5
    assert (await ContextRelevance(llm=llm).ascore(user_input="q", retrieved_contexts=["c"])).value == 1.0


async def test_the_older_metrics_of_ragas_take_the_same_judge(served: Stub) -> None:
    from ragas import SingleTurnSample
    from ragas.metrics import LLMContextRecall

    says(served, ContextRecallClassifications={"classifications": CLASSIFIED})
    metric = LLMContextRecall(llm=RagasJudge(judge_of(served)))
    assert await metric.single_turn_ascore(SingleTurnSample(**RECALL)) == 0.5


async def test_every_model_that_a_metric_of_ragas_asks_for_can_be_enforced() -> None:
    from ragas.metrics import collections
    from ragas.prompt.metrics.base_prompt import BasePrompt

    from airjudge.enforceable import enforceable, json_schema_of

    assert collections
    models = {prompt.output_model for prompt in BasePrompt.__subclasses__() if hasattr(prompt, "output_model")}
    assert len(models) >= 15
    for model in models:
        enforceable(json_schema_of(model))


def test_opik_context_recall_and_others_get_scores_that_their_parsers_take(served: Stub) -> None:
    from opik.evaluation.metrics import AnswerRelevance, ContextRecall, Hallucination, Moderation, Usefulness

    model = OpikJudge(judge_of(served))
    says(
        served,
        ContextRecallResponseFormat={"context_recall_score": 0.9, "reason": "It says so."},
        AnswerRelevanceResponseFormat={"answer_relevance_score": 0.8, "reason": "r"},
        UsefulnessResponseFormat={"score": 0.3, "reason": "r"},
        ModerationResponseFormat={"score": 0.3, "reason": "r"},
        HallucinationResponseFormat={"score": 0.4, "reason": ["a", "b"]},
    )
    recall = ContextRecall(model=model, track=False).score("i", "o", "e", ["c"])
    assert (recall.value, recall.reason) == (0.9, "It says so.")
    assert AnswerRelevance(model=model, track=False).score("i", "o", ["c"]).value == 0.8
    assert Usefulness(model=model, track=False).score("i", "o").value == 0.3
    assert Moderation(model=model, track=False).score("i").value == 0.3
    found = asyncio.run(Hallucination(model=model, track=False).ascore("i", "o", ["c"]))
    assert (found.value, found.reason) == (0.4, "a\nb")


def test_opik_cannot_be_given_a_score_out_of_its_range(served: Stub) -> None:
    from opik.evaluation.metrics import ContextRecall, GEval

    model = OpikJudge(judge_of(served))
    wanted = {"context_recall_score": 7, "score": 70, "reason": "r"}
    says(served, ContextRecallResponseFormat=wanted, GEvalScoreFormat=wanted)
    assert 0 <= ContextRecall(model=model, track=False).score("i", "o", "e", ["c"]).value <= 1
    # G-Eval thinks in free text first.
    metric = GEval(task_introduction="t", evaluation_criteria="c", model=model, track=False)
    assert 0 <= metric.score(output="o").value <= 1


def test_opik_s_other_ways_to_ask(served: Stub) -> None:
    from opik.evaluation.models import base_model

    model = OpikJudge(judge_of(served))
    served.config.answer = lambda _: "free"
    assert model.generate_string("What?") == "free"
    with base_model.get_provider_response(model, [{"role": "user", "content": "What?"}]) as response:
        assert response.choices[0].message.content == "free"
    with pytest.raises(NotImplementedError, match="no tools"):
        model.generate_chat_completion([{"role": "user", "content": "What?"}], tools=[{}])


@pytest.mark.parametrize("async_mode", [True, False])
def test_deepeval_metrics_get_instances_of_their_schemas(served: Stub, async_mode: bool) -> None:
    from deepeval.metrics import AnswerRelevancyMetric, ContextualRecallMetric, FaithfulnessMetric
    from deepeval.test_case import LLMTestCase

    model = DeepEvalJudge(judge_of(served))
    case = LLMTestCase(input="i", actual_output="o", expected_output="In Paris. Tom.", retrieval_context=["c"])
    verdicts = [{"verdict": "yes", "reason": "r"}, {"verdict": "no", "reason": "r"}]
    says(
        served,
        Verdicts={"verdicts": verdicts},
        ContextualRecallScoreReason={"reason": "Half of it."},
        Statements={"statements": ["a", "b"]},
        Truths={"truths": ["t"]},
        Claims={"claims": ["a", "b"]},
    )
    metric = ContextualRecallMetric(model=model, async_mode=async_mode)
    assert (metric.measure(case, _show_indicator=False), metric.reason) == (0.5, "Half of it.")
    assert AnswerRelevancyMetric(model=model, async_mode=async_mode).measure(case, _show_indicator=False) == 0.5
    assert FaithfulnessMetric(model=model, async_mode=async_mode).measure(case, _show_indicator=False) == 0.5


def test_a_schema_of_a_user_that_would_be_weakened_is_refused_by_name(served: Stub) -> None:
    from pydantic import BaseModel, Field

    class Counted(BaseModel):
        n: int = Field(ge=0)

    judge = judge_of(served)
    for ask in (
        RagasJudge(judge).generate,
        OpikJudge(judge).generate_string,
        DeepEvalJudge(judge).generate_with_schema,
    ):
        with pytest.raises(SchemaRefused, match=r"\$.n: 'minimum'"):
            ask("How many?", **({"schema": Counted} if "schema" in ask.__name__ else {_named(ask): Counted}))


def _named(ask: Any) -> str:
    return "response_format" if ask.__name__ == "generate_string" else "response_model"


# SmolLM2-135M is no judge: what it says is not looked at, that every reply of it can be used is.
N_SAMPLES = 50
ROWS = [
    (f"When does ferry {n} leave?", [f"Ferry {n} departs at {n}."], f"Ferry {n} departs at {n}.")
    for n in range(N_SAMPLES)
]


def real(served: "Served") -> Judge:
    return Judge.connect(served.base_url, served.model, api_key=served.api_key)


async def all_of(tasks: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Eight at a time, as a patient user does; a failure is a result."""
    places = asyncio.Semaphore(8)

    async def one(task: Coroutine[Any, Any, Any]) -> Any:
        async with places:
            return await task

    return await asyncio.gather(*map(one, tasks), return_exceptions=True)


@pytest.mark.server
@pytest.mark.timeout(1800)
async def test_ragas_on_a_real_vllm_has_no_reply_that_cannot_be_parsed(oracle_server: "Served") -> None:
    from ragas.metrics.collections import ContextPrecision

    metric = ContextPrecision(llm=RagasJudge(real(oracle_server), max_tokens=160))
    found = await all_of([metric.ascore(user_input=q, retrieved_contexts=c, reference=r) for q, c, r in ROWS])
    assert [one for one in found if isinstance(one, BaseException)] == []


@pytest.mark.server
@pytest.mark.timeout(1800)
async def test_opik_on_a_real_vllm_has_no_reply_that_cannot_be_parsed(oracle_server: "Served") -> None:
    from opik.evaluation.metrics import ContextRecall

    metric = ContextRecall(model=OpikJudge(real(oracle_server), max_tokens=160), few_shot_examples=[], track=False)
    found = await all_of([metric.ascore(q, r, r, c) for q, c, r in ROWS])
    assert [one for one in found if isinstance(one, BaseException)] == []


@pytest.mark.server
@pytest.mark.timeout(1800)
async def test_deepeval_on_a_real_vllm_has_no_reply_that_cannot_be_parsed(oracle_server: "Served") -> None:
    from deepeval.metrics import ContextualRecallMetric
    from deepeval.test_case import LLMTestCase

    model = DeepEvalJudge(real(oracle_server), max_tokens=320)
    cases = [LLMTestCase(input=q, actual_output=r, expected_output=r, retrieval_context=c) for q, c, r in ROWS]
    metrics = [ContextualRecallMetric(model=model, include_reason=False) for _ in cases]
    found = await all_of([one.a_measure(case, _show_indicator=False) for one, case in zip(metrics, cases, strict=True)])
    assert [one for one in found if isinstance(one, BaseException)] == []
