"""deepeval's own ContextualRecallMetric and ours on the same verdicts: equal scores and outcomes, known differences."""

import inspect
import json
from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from typing import Any

import pytest
from deepeval import assert_test
from deepeval.errors import DeepEvalError
from deepeval.metrics import ContextualRecallMetric as Original
from deepeval.models import LocalModel
from deepeval.test_case import LLMTestCase as OriginalCase
from deepeval.test_case import RetrievedContextData
from hypothesis import given, settings
from hypothesis import strategies as st

from airjudge import Judge
from airjudge.compat import deepeval as ours
from airjudge.compat.deepeval import ContextualRecallMetric, LLMTestCase
from tests.oracles.replaying import Replay
from tests.stub import Fault, by_text
from tests.stub import faults as faults_of

TREES = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Ginkgo")
REQUIRED = ("input", "retrieval_context", "expected_output")
FIELDS = {"input": "What grows?", "expected_output": "An Alder grows. A Birch grows.", "retrieval_context": ["Trees."]}
UNREADABLE = [
    "no JSON",
    '{"verdicts": [{"verdict": "yes", "reason": "cut',
    '{"verdicts": [{"verdict": "yes"}]}',
    '{"verdicts": [{"verdict": "perhaps", "reason": "a"}]}',
    '{"verdicts": [{"reason": "a"}]}',
    '{"verdicts": "yes"}',
    '{"classes": []}',
    '<think>{"a": 1}</think> [',
    "[1]",
]


@pytest.fixture(autouse=True)
def _answers(replay: Replay) -> Iterator[None]:
    """Leave the shared stub as it was."""
    config, before = replay.stub.config, replay.stub.config.answer
    yield
    config.answer = before


@pytest.fixture(scope="session")
def judge(replay: Replay) -> Judge:
    return Judge.connect(replay.base_url, replay.model, api_key=replay.api_key)


def original(replay: Replay, **options: Any) -> Original:
    model = LocalModel(model=replay.model, base_url=replay.base_url, api_key=replay.api_key)
    return Original(model=model, **{"include_reason": False, **options})


def measure(metric: Original, case: OriginalCase) -> float:
    return float(metric.measure(case, _show_indicator=False))


def verdicts(supported: Sequence[bool]) -> str:
    """What the original's judge says of statements in order."""
    items = [{"verdict": "yes" if one else "no", "reason": "because"} for one in supported]
    return json.dumps({"verdicts": items})


def rule(replay: Replay, supported: Sequence[bool]) -> str:
    """Let both judges rule so, and give the expected output that they rule on."""
    named = list(zip(TREES, supported, strict=False))
    replay.replies = [verdicts(supported)]
    replay.stub.config.answer = by_text({f"{tree} was planted": str(int(one)) for tree, one in named})
    return " ".join(f"The {tree} was planted." for tree, _ in named)


def test_the_parameters_are_those_of_the_original() -> None:
    theirs, own = (inspect.signature(one.__init__).parameters for one in (Original, ContextualRecallMetric))
    assert list(own) == list(theirs)
    differing = {name for name in own if own[name].default != theirs[name].default}
    assert differing == {"evaluation_template"}


@settings(max_examples=250)
@given(
    supported=st.lists(st.booleans(), min_size=1, max_size=len(TREES)),
    threshold=st.one_of(st.none(), st.floats(0, 1)),
    strict_mode=st.booleans(),
)
def test_equal_verdicts_give_equal_scores_and_outcomes(
    replay: Replay, judge: Judge, supported: list[bool], threshold: float | None, strict_mode: bool
) -> None:
    expected = rule(replay, supported)
    theirs = original(replay, threshold=threshold, strict_mode=strict_mode)
    own = ContextualRecallMetric(model=judge, threshold=threshold, strict_mode=strict_mode, include_reason=False)
    case = OriginalCase(input="What was planted?", expected_output=expected, retrieval_context=["Trees."])
    assert measure(theirs, case) == own.measure(case)
    assert (theirs.score, theirs.success, theirs.threshold) == (own.score, own.success, own.threshold)
    assert theirs.is_successful() is own.is_successful()
    assert [str(one.verdict) for one in theirs.verdicts] == [one.verdict for one in own.verdicts]
    assert theirs.__name__ == own.__name__


@pytest.mark.parametrize("reply", UNREADABLE)
def test_what_cannot_be_read_raises_what_the_callers_of_the_original_catch(
    replay: Replay, judge: Judge, reply: str
) -> None:
    replay.replies = [reply]
    case = OriginalCase(**FIELDS)
    with pytest.raises((DeepEvalError, ValueError)):
        measure(original(replay), case)
    ContextualRecallMetric(model=judge).measure(case)
    replay.before_reply(Fault(faults_of.say(reply), when=faults_of.mentions("Statement: ")))
    with pytest.raises(ours.DeepEvalError) as caught:
        ContextualRecallMetric(model=judge).measure(case)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("missing", chain.from_iterable(combinations(REQUIRED[1:], size) for size in (1, 2)))
def test_missing_parameters_are_told_alike(replay: Replay, judge: Judge, missing: tuple[str, ...]) -> None:
    theirs, own = original(replay), ContextualRecallMetric(model=judge)
    fields = {name: value for name, value in FIELDS.items() if name not in missing}
    with pytest.raises(DeepEvalError) as their_error:
        theirs.measure(OriginalCase(**fields), _show_indicator=False)
    with pytest.raises(ours.MissingTestCaseParamsError) as own_error:
        own.measure(LLMTestCase(**fields))  # type: ignore[arg-type]
    assert str(own_error.value) == str(their_error.value)
    assert own.error == theirs.error
    assert type(own_error.value).__name__ == type(their_error.value).__name__


@pytest.mark.parametrize(
    "wrong", [{"input": 3}, {"actual_output": 3}, {"expected_output": 3}, {"context": "a"}, {"retrieval_context": [3]}]
)
def test_a_case_of_other_types_is_refused_alike(wrong: dict[str, Any]) -> None:
    raised = []
    for kind in (OriginalCase, LLMTestCase):
        with pytest.raises((TypeError, ValueError)) as caught:
            kind(**FIELDS | wrong)
        raised.append(type(caught.value))
    assert raised[0] is raised[1]


def test_a_context_with_its_source_is_read_as_the_original_stores_it(replay: Replay, judge: Judge) -> None:
    sourced = RetrievedContextData(context="Trees.", source="atlas")
    ContextualRecallMetric(model=judge).measure(OriginalCase(**FIELDS | {"retrieval_context": [sourced]}))
    assert sourced.model_dump() == "atlas: Trees."
    assert replay.stub.bodies("atlas: Trees.")


# From here on: what differs, and is meant to.


def test_an_empty_retrieval_is_asked_about_by_the_original_alone(replay: Replay, judge: Judge) -> None:
    case = OriginalCase(**FIELDS | {"retrieval_context": []})
    replay.replies = [verdicts([True, True])]
    assert measure(original(replay), case) == 1.0
    n_asked = len(replay.stub.requests)
    assert ContextualRecallMetric(model=judge).measure(case) == 0.0
    assert len(replay.stub.requests) == n_asked


def test_a_statement_that_its_judge_leaves_out_is_no_miss_to_the_original(replay: Replay, judge: Judge) -> None:
    expected = rule(replay, [True, False])
    replay.replies = [verdicts([True])]
    case = OriginalCase(**FIELDS | {"expected_output": expected})
    assert measure(original(replay), case) == 1.0
    assert ContextualRecallMetric(model=judge).measure(case) == 0.5


def test_a_reply_without_verdicts_is_a_zero_to_the_original(replay: Replay, judge: Judge) -> None:
    replay.replies = ['{"verdicts": []}']
    replay.before_reply(Fault(faults_of.say('{"verdicts": []}'), when=faults_of.mentions("Statement: An Alder")))
    assert measure(original(replay), OriginalCase(**FIELDS)) == 0
    with pytest.raises(ours.MeasureFailed):
        ContextualRecallMetric(model=judge).measure(OriginalCase(**FIELDS))


def test_an_earlier_error_fails_a_later_case_of_the_original_alone(replay: Replay, judge: Judge) -> None:
    expected = rule(replay, [True])
    theirs, own = original(replay), ContextualRecallMetric(model=judge)
    for metric in (theirs, own):
        with pytest.raises(Exception, match="cannot be None"):
            metric.measure(OriginalCase(input="a?"))
    case = OriginalCase(**FIELDS | {"expected_output": expected})
    assert (measure(theirs, case), theirs.success) == (1.0, False)
    assert (own.measure(case), own.success) == (1.0, True)


def test_the_original_asks_its_judge_for_the_reason_of_the_score(replay: Replay, judge: Judge) -> None:
    expected = rule(replay, [True, True])
    replay.replies = [verdicts([True, True]), '{"reason": "as the judge likes"}']
    case = OriginalCase(**FIELDS | {"expected_output": expected})
    theirs, own = original(replay, include_reason=True), ContextualRecallMetric(model=judge)
    measure(theirs, case)
    own.measure(case)
    assert theirs.reason == "as the judge likes"
    assert own.reason == "The score is 1.00: the retrieval context supports 2 of 2 statements."


def test_the_original_evaluate_takes_its_own_subclasses_alone(judge: Judge) -> None:
    with pytest.raises(ValueError, match="instances of 'BaseMetric'"):
        assert_test(OriginalCase(**FIELDS), [ContextualRecallMetric(model=judge)])
