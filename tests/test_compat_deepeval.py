"""The deepeval door: its shape and definition, a verdict a statement, and no request where nothing can be asked."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from airjudge import JudgeSettings, resident
from airjudge.compat.deepeval import (
    ContextualRecallMetric,
    DeepEvalError,
    LLMTestCase,
    MeasureFailed,
    MissingTestCaseParamsError,
)
from airjudge.errors import JudgeUnauthorized, JudgeUnreachable, ReplyRefused
from tests.rows import connected
from tests.stub import Fault, Stub
from tests.stub import faults as faults_of

FERRY = LLMTestCase(
    input="When does the ferry leave?",
    actual_output="At six.",
    expected_output="The ferry departs at six. Whales sing.",
    retrieval_context=["The ferry departs at six."],
)
ON_VERDICTS = faults_of.all_of(faults_of.schema_named("verdict"), faults_of.mentions("Whales sing."))


@pytest.fixture(autouse=True)
def _no_judge_found_yet() -> Iterator[None]:
    """Let each test find its judge anew: its stub has an address of its own."""
    resident._named.cache_clear()
    yield
    resident._named.cache_clear()


def metric_of(stub: Stub, **options: object) -> ContextualRecallMetric:
    return ContextualRecallMetric(model=connected(stub), **options)  # type: ignore[arg-type]


def case(**changes: object) -> LLMTestCase:
    return FERRY.model_copy(update=changes)


def test_the_score_is_the_share_of_supported_statements(stub: Stub) -> None:
    metric = metric_of(stub)
    assert metric.measure(FERRY) == 0.5
    assert metric.score == 0.5
    assert metric.is_successful() is True
    assert (metric.success, metric.error) == (True, None)
    assert [(one.verdict, one.statement) for one in metric.verdicts] == [
        ("yes", "The ferry departs at six."),
        ("no", "Whales sing."),
    ]
    assert {one.expected_output for one in metric.verdicts} == {FERRY.expected_output}


def test_the_reason_is_made_of_the_verdicts_without_a_question_of_its_own(stub: Stub) -> None:
    metric = metric_of(stub)
    metric.measure(FERRY)
    why = metric.verdicts[1].reason
    assert why
    assert metric.reason == (
        f'The score is 0.50: the retrieval context supports 1 of 2 statements. Not supported: "Whales sing." ({why})'
    )
    # One for the miss; the supported statement is not explained.
    assert sum(one.schema_name == "reason" for one in stub.chats) == 1


def test_without_reasons_nothing_but_verdicts_is_asked(stub: Stub) -> None:
    metric = metric_of(stub, include_reason=False)
    assert metric.measure(FERRY) == 0.5
    assert metric.reason is None
    assert [one.reason for one in metric.verdicts] == [None, None]
    assert not any(one.schema_name == "reason" for one in stub.chats)


def test_everything_supported_needs_no_explanation(stub: Stub) -> None:
    metric = metric_of(stub)
    assert metric.measure(case(expected_output="The ferry departs at six.")) == 1.0
    assert metric.reason == "The score is 1.00: the retrieval context supports 1 of 1 statements."


@pytest.mark.parametrize(
    ("expected_output", "score"), [("The ferry departs at six.", 1), ("The ferry departs at six. Whales sing.", 0)]
)
def test_strict_mode_is_all_or_nothing(stub: Stub, expected_output: str, score: float) -> None:
    metric = metric_of(stub, strict_mode=True, threshold=0.2)
    assert metric.threshold == 1
    assert metric.measure(case(expected_output=expected_output)) == score
    assert metric.is_successful() is bool(score)


@pytest.mark.parametrize(("threshold", "passes"), [(0.5, True), (0.51, False), (0, True), (None, None)])
def test_a_case_passes_from_the_threshold_on(stub: Stub, threshold: float | None, passes: bool | None) -> None:
    metric = metric_of(stub, threshold=threshold)
    metric.measure(FERRY)
    assert metric.success is passes
    assert metric.is_successful() is passes


def test_a_metric_that_measured_nothing_has_not_succeeded(stub: Stub) -> None:
    assert metric_of(stub).is_successful() is False
    assert not stub.requests


@pytest.mark.parametrize("contexts", [[], [""], ["  ", "\n"]])
def test_an_empty_retrieval_scores_zero_without_a_request(stub: Stub, contexts: list[str]) -> None:
    # deepeval#3168: the judge was asked all the same, and its answers flapped.
    metric = metric_of(stub)
    assert metric.measure(case(retrieval_context=contexts)) == 0.0
    assert metric.success is False
    assert [one.verdict for one in metric.verdicts] == ["no", "no"]
    assert "supports 0 of 2 statements" in str(metric.reason)
    assert not stub.requests


@pytest.mark.parametrize("expected_output", ["", "  \n"])
def test_an_expected_output_without_statements_scores_zero_without_a_request(stub: Stub, expected_output: str) -> None:
    metric = metric_of(stub)
    assert metric.measure(case(expected_output=expected_output)) == 0.0
    assert metric.verdicts == []
    assert metric.reason == "The score is 0.00: the expected output holds no statement."
    assert not stub.requests


def test_an_empty_input_is_judged_as_in_deepeval(stub: Stub) -> None:
    assert metric_of(stub).measure(case(input="")) == 0.5


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        (["expected_output"], "'expected_output' cannot"),
        (["retrieval_context", "expected_output"], "'retrieval_context' and 'expected_output' cannot"),
        (["input", "retrieval_context", "expected_output"], "'input', 'retrieval_context', and 'expected_output' cann"),
    ],
)
def test_what_a_case_lacks_is_named_and_kept(stub: Stub, missing: list[str], named: str) -> None:
    metric = metric_of(stub)
    with pytest.raises(MissingTestCaseParamsError, match=named) as caught:
        metric.measure(case(**dict.fromkeys(missing)))
    assert isinstance(caught.value, DeepEvalError)
    assert metric.error == str(caught.value)
    assert metric.is_successful() is False
    assert not stub.requests


def test_the_error_of_one_case_does_not_fail_the_next(stub: Stub) -> None:
    metric = metric_of(stub)
    with pytest.raises(MissingTestCaseParamsError):
        metric.measure(case(expected_output=None))
    metric.measure(FERRY)
    assert (metric.error, metric.success) == (None, True)


def test_no_actual_output_is_needed(stub: Stub) -> None:
    assert metric_of(stub).measure(case(actual_output=None)) == 0.5


def test_the_case_of_another_library_is_read_by_its_fields(stub: Stub) -> None:
    sourced = SimpleNamespace(context="The ferry departs at six.", source="timetable")
    foreign = SimpleNamespace(**FERRY.model_dump() | {"retrieval_context": [sourced, "Nothing."]})
    assert metric_of(stub).measure(foreign) == 0.5
    assert stub.bodies("timetable: The ferry departs at six.")


@pytest.mark.parametrize(
    ("foreign", "error", "said"),
    [
        ("a string", ValueError, "measures an LLMTestCase: got str"),
        (SimpleNamespace(**FERRY.model_dump() | {"multimodal": True}), ValueError, "images"),
        (SimpleNamespace(**FERRY.model_dump() | {"retrieval_context": "The ferry."}), TypeError, "list of strings"),
        (SimpleNamespace(**FERRY.model_dump() | {"retrieval_context": [3]}), TypeError, "'retrieval_context' must"),
        (SimpleNamespace(**FERRY.model_dump() | {"expected_output": 3}), TypeError, "'expected_output' must"),
    ],
)
def test_what_is_no_case_of_texts_is_refused_and_kept(
    stub: Stub, foreign: object, error: type[Exception], said: str
) -> None:
    metric = metric_of(stub)
    with pytest.raises(error, match=said):
        metric.measure(foreign)
    assert said in str(metric.error)
    assert metric.success is False
    assert not stub.requests


def test_our_test_case_takes_both_spellings_and_refuses_other_types_as_deepeval_does() -> None:
    camel = LLMTestCase.model_validate(
        {"input": "a?", "expectedOutput": "b", "retrievalContext": ["c"], "toolsCalled": []}
    )
    assert (camel.expected_output, camel.retrieval_context) == ("b", ["c"])
    with pytest.raises(TypeError, match="'input' must be a string"):
        LLMTestCase(input=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'retrieval_context' must be None or a list of strings"):
        LLMTestCase(input="a?", retrieval_context="b")  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="expected_output"):
        LLMTestCase(input="a?", expected_output=3)  # type: ignore[arg-type]


def test_a_statement_without_a_verdict_is_a_value_error_with_a_next_step(stub: Stub) -> None:
    metric = metric_of(stub)
    stub.faults.append(Fault(faults_of.say("perhaps"), when=ON_VERDICTS))
    with pytest.raises(MeasureFailed, match="perhaps") as caught:
        metric.measure(FERRY)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value.__cause__, ReplyRefused)
    assert ReplyRefused.hint in str(caught.value)
    assert (metric.error, metric.score, metric.is_successful()) == (str(caught.value), None, False)


def test_a_judge_that_cannot_be_used_is_an_error_of_ours(stub: Stub) -> None:
    metric = metric_of(stub)
    stub.faults.append(Fault(faults_of.respond(401), when=ON_VERDICTS))
    with pytest.raises(JudgeUnauthorized) as caught:
        metric.measure(FERRY)
    assert metric.error == str(caught.value)
    assert metric.success is False


async def test_both_ways_work_inside_a_running_loop(stub: Stub) -> None:
    metric = metric_of(stub)
    assert metric.measure(FERRY) == 0.5
    others = [metric_of(stub) for _ in range(3)]
    assert await asyncio.gather(*(one.a_measure(FERRY) for one in others)) == [0.5] * 3
    assert all(one.success for one in others)


def test_verbose_mode_prints_verdicts_without_steering_the_terminal(
    stub: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    metric = metric_of(stub, verbose_mode=True)
    metric.measure(case(expected_output="The ferry departs at six\x9b31m. Whales sing."))
    printed = capsys.readouterr().out
    assert printed.startswith("Contextual Recall\nVerdicts:\n")
    assert "Score: 0.5\nReason: The score is 0.50" in printed
    assert "\x9b" not in printed
    assert str(metric.verbose_logs).count("expected_output") == 2
    metric_of(stub).measure(FERRY)
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    "options", [{"system_one_model": "jev"}, {"eval_mode": "hybrid"}, {"evaluation_template": object}]
)
def test_what_there_is_only_in_deepeval_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"leave .*{next(iter(options))}"):
        ContextualRecallMetric(**options)  # type: ignore[arg-type]


def test_the_one_mode_may_be_named() -> None:
    assert ContextualRecallMetric(eval_mode="llm").threshold == 0.5


def test_a_model_object_of_deepeval_is_sent_to_the_integrations() -> None:
    with pytest.raises(TypeError, match=r"got SimpleNamespace.*airjudge\.integrations"):
        ContextualRecallMetric(model=SimpleNamespace())  # type: ignore[arg-type]


def test_a_judge_that_grades_is_refused(stub: Stub) -> None:
    with pytest.raises(ValueError, match="grades responses"):
        ContextualRecallMetric(model=connected(stub, JudgeSettings(method="opik")))


def test_the_environment_names_the_judge_of_a_metric_without_a_model(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRJUDGE_BASE_URL", stub.base_url)
    monkeypatch.setenv("AIRJUDGE_API_KEY", stub.api_key or "")
    metric = ContextualRecallMetric(model=stub.model)
    assert metric.evaluation_model == stub.model
    assert metric.measure(FERRY) == 0.5
    assert metric.signature is not None
    assert metric.evaluation_model == metric.signature.judge == stub.model


def test_nothing_is_contacted_before_a_case_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRJUDGE_BASE_URL", "http://127.0.0.1:9/v1")
    metric = ContextualRecallMetric(model="nobody")
    with pytest.raises(JudgeUnreachable, match="127"):
        metric.measure(FERRY)


def test_the_judge_of_the_user_keeps_its_settings(stub: Stub) -> None:
    judge = connected(stub, JudgeSettings(method="ragas"))
    metric = ContextualRecallMetric(model=judge)
    assert metric.measure(FERRY) == 0.5
    assert metric.signature is not None
    assert metric.signature.method == "ragas"


def test_the_name_is_that_of_deepeval() -> None:
    assert ContextualRecallMetric().__name__ == "Contextual Recall"
