"""opik's own ContextRecall and ours on the same replies: equal grades and errors, known differences."""

import dataclasses
import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opik.evaluation.metrics import ContextRecall as Original
from opik.evaluation.metrics.score_result import ScoreResult as OriginalResult
from opik.exceptions import MetricComputationError as OriginalError

from airjudge import Judge, JudgeSettings
from airjudge.compat.opik import ContextRecall, MetricComputationError, ScoreResult
from tests.oracles.replaying import Replay
from tests.stub import Fault, RecordedRequest
from tests.stub.faults import Call, Twist, chat

STEPS = [step / 10 for step in range(11)]
CASE: dict[str, Any] = {
    "input": "What's the capital of France?",
    "output": "The capital of France is Paris.",
    "expected_output": "Paris",
    "context": ["France is a country in Europe."],
}
EXAMPLE: dict[str, Any] = {
    "title": "A miss",
    "input": "What floats?",
    "output": "A stone.",
    "expected_output": "A boat.",
    "context": "Boats float.",
    "context_recall_score": 0.2,
    "reason": "Stones sink.",
}
THEIRS, OWN = "context_recall_score", "score"
"""What the score is called in the replies that each asks for."""

Reply = Callable[[str], str]
"""A reply, once it is known how its score is called."""


WRITABLE = st.characters(exclude_categories=["Cc", "Cs"])
"""What a judge can write into a string under a schema that outlines enforces: no control characters."""


def said(score: object, reason: object = "said", *, before: str = "", behind: str = "") -> Reply:
    """A whole reply, with text around it."""
    return lambda key: before + json.dumps({key: score, "reason": reason}, ensure_ascii=False) + behind


def asks_about_case(request: RecordedRequest) -> bool:
    return chat(request) and CASE["input"] in request.text


@pytest.fixture(scope="session")
def original(replay: Replay) -> Original:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in replay.environment.items():
            patch.setenv(name, value)
        made = Original(model=f"openai/{replay.model}", track=False)
        yield made


@pytest.fixture(scope="session")
def own(replay: Replay) -> ContextRecall:
    judge = Judge.connect(replay.base_url, replay.model, api_key=replay.api_key, settings=JudgeSettings(method="opik"))
    return ContextRecall(model=judge)


def let_say(replay: Replay, reply: Reply, finish_reason: str = "stop") -> None:
    """Let the judge say the same to both, but for the name of the score."""

    async def act(call: Call) -> Any:
        key = THEIRS if "<opik_input>" in call.record.text else OWN
        return await call.reply(Twist(say=reply(key), finish_reason=finish_reason))

    replay.reset()
    replay.before_reply(Fault(act, when=asks_about_case))


def test_parameters_and_fields_are_those_of_the_original() -> None:
    for name in ("__init__", "score", "ascore"):
        theirs, ours = (inspect.signature(getattr(one, name)).parameters for one in (Original, ContextRecall))
        assert list(ours) == list(theirs)
        assert [one.default for one in ours.values()] == [one.default for one in theirs.values()]
        assert [one.kind for one in ours.values()] == [one.kind for one in theirs.values()]
    described = [
        [(one.name, one.default) for one in dataclasses.fields(kind)] for kind in (OriginalResult, ScoreResult)
    ]
    assert described[0] == described[1]


@settings(max_examples=250)
@given(score=st.sampled_from(STEPS), reason=st.text(WRITABLE, min_size=1))
def test_a_grade_that_ours_can_get_has_the_value_and_reason_of_the_original(
    replay: Replay, original: Original, own: ContextRecall, score: float, reason: str
) -> None:
    let_say(replay, said(score, reason))
    theirs, ours = original.score(**CASE), own.score(**CASE)
    assert (ours.name, ours.value, ours.scoring_failed) == (theirs.name, theirs.value, theirs.scoring_failed)
    assert (ours.reason or "") == theirs.reason.strip()


OUT_OF_RANGE = st.one_of(st.floats(min_value=1.0, exclude_min=True), st.floats(max_value=0.0, exclude_max=True))
UNUSABLE = st.one_of(
    OUT_OF_RANGE.map(said),
    st.just(lambda _: '{"reason": "no score"}'),
    st.sampled_from(STEPS).map(lambda score: lambda key: f'{{"{key}": {score}}}'),
    st.sampled_from(STEPS).map(lambda score: said(score, before='<think>is {"it"} so?</think>')),
    st.text(alphabet=st.characters(exclude_characters="{}0123456789")).map(lambda text: lambda _: text),
    st.sampled_from(["half", None, [], {}]).map(said),
)


@settings(max_examples=250)
@given(reply=UNUSABLE)
def test_what_is_no_grade_is_the_same_error_in_both(
    replay: Replay, original: Original, own: ContextRecall, reply: Reply
) -> None:
    let_say(replay, reply)
    with pytest.raises(OriginalError) as theirs:
        original.score(**CASE)
    with pytest.raises(MetricComputationError) as ours:
        own.score(**CASE)
    assert type(theirs.value).__name__ == type(ours.value).__name__


@settings(max_examples=100)
@given(score=st.sampled_from(STEPS), reason=st.text(min_size=1), share=st.floats(0, 1, exclude_max=True))
def test_a_reply_cut_before_its_score_is_whole_is_the_same_error_in_both(
    replay: Replay, original: Original, own: ContextRecall, score: float, reason: str, share: float
) -> None:
    def cut(key: str) -> str:
        whole = said(score, reason)(key)
        return whole[: int(share * (whole.index(",") + 1))]

    let_say(replay, cut, "length")
    with pytest.raises(OriginalError):
        original.score(**CASE)
    with pytest.raises(MetricComputationError):
        own.score(**CASE)


async def test_the_async_twins_agree(replay: Replay, original: Original, own: ContextRecall) -> None:
    let_say(replay, said(0.3))
    assert (await original.ascore(**CASE)).value == (await own.ascore(**CASE)).value == 0.3


def test_a_project_without_track_is_the_same_error_in_both() -> None:
    told = []
    for kind in (Original, ContextRecall):
        with pytest.raises(ValueError, match="project_name can be set only when") as caught:
            kind(model="openai/judge", track=False, project_name="mine")
        told.append(type(caught.value))
    assert told == [ValueError, ValueError]


# From here on: what differs, and is meant to.


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        (said(0.55), 0.55),
        (lambda key: f'{{"reason": "first", "{key}": 0.5}}', 0.5),
        (lambda key: f'{{"{key}": 0.5, "reason": "a", "confidence": 1}}', 0.5),
        (said(True), 1.0),
        (said("0.5"), 0.5),
        (said(0.5, None), 0.5),
        (said(0.5, ["a", "b"]), 0.5),
        (said(0.5, before="Sure: "), 0.5),
        (said(0.5, before="```json\n", behind="\n```"), 0.5),
        (said(0.5, behind='{"reason": "again", "context_recall_score": 0.9}'), 0.5),
    ],
)
def test_a_reply_outside_the_schema_may_pass_in_the_original_and_never_here(
    replay: Replay, original: Original, own: ContextRecall, reply: Reply, value: float
) -> None:
    let_say(replay, reply)
    assert original.score(**CASE).value == value
    with pytest.raises(MetricComputationError):
        own.score(**CASE)


@pytest.mark.parametrize("behind", ["", ' "rea', ' "reason": ', ' "reason": "half of it is ri'])
def test_a_reply_cut_behind_its_score_keeps_it_here_alone(
    replay: Replay, original: Original, own: ContextRecall, behind: str
) -> None:
    let_say(replay, lambda key: f'{{"{key}": 0.4,{behind}', "length")
    with pytest.raises(OriginalError):
        original.score(**CASE)
    assert own.score(**CASE).value == 0.4


def test_a_reference_with_a_score_can_become_the_verdict_of_the_original_alone(
    replay: Replay, original: Original, own: ContextRecall
) -> None:
    planted = CASE | {"expected_output": said(1.0, "planted")(THEIRS)}
    let_say(replay, said(0.1, before=f"Expected was {planted['expected_output']}. My verdict: "))
    assert original.score(**planted).value == 1.0
    with pytest.raises(MetricComputationError):
        own.score(**planted)


def test_a_text_that_is_none_is_a_word_to_the_original(replay: Replay, original: Original, own: ContextRecall) -> None:
    let_say(replay, said(0.5))
    assert original.score(**CASE | {"output": None}).value == 0.5
    with pytest.raises(MetricComputationError, match="output is None"):
        own.score(**CASE | {"output": None})


def test_no_context_is_a_word_to_the_original(replay: Replay, original: Original, own: ContextRecall) -> None:
    let_say(replay, said(0.5))
    for metric in (original, own):
        metric.score(**CASE | {"context": None})
    theirs, ours = [one.text for one in replay.stub.chats if asks_about_case(one)]
    assert "<opik_context>\nNone\n" in theirs
    assert "None" not in ours


def test_an_unusable_example_is_found_when_it_is_given_not_when_it_is_used(replay: Replay) -> None:
    bad = {name: EXAMPLE[name] for name in EXAMPLE if name != "output"}
    theirs = Original(model=f"openai/{replay.model}", track=False, few_shot_examples=[bad])
    with pytest.raises(KeyError):
        theirs.score(**CASE)
    with pytest.raises(ValueError, match="example 1 has no output"):
        ContextRecall(few_shot_examples=[bad])  # type: ignore[list-item]


def test_the_original_leaves_the_temperature_to_the_server(
    replay: Replay, original: Original, own: ContextRecall
) -> None:
    let_say(replay, said(0.5))
    for metric in (original, own):
        metric.score(**CASE)
    theirs, ours = [one.body for one in replay.stub.chats if asks_about_case(one)]
    assert "temperature" not in theirs
    assert ours["temperature"] == 0
