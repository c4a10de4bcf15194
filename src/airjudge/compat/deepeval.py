"""deepeval's contextual recall by our judge: the same shape and definition, one enforced verdict a statement.

The score is deepeval's: statements of the expected output that the retrieval context supports, over all of them.
The statements are split off before a judge sees them, and each gets a verdict of its own, so a reply can neither
fail to parse nor leave one out. Test cases of deepeval are taken as well as ours. deepeval's own `evaluate` and
`assert_test` take nothing but subclasses of its `BaseMetric`: with them, keep deepeval's metric and change its
model (`airjudge.integrations`).
"""

import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from airjudge.errors import AirjudgeError, EvaluationError
from airjudge.judge import Judge, check_method
from airjudge.metrics import record, without_contexts
from airjudge.resident import resident
from airjudge.schema import Made, ReasonsPolicy, Record, Sample, ScoredSample, Signature, Verdict
from airjudge.statements import split_statements

__all__ = [
    "ContextualRecallMetric",
    "DeepEvalError",
    "LLMTestCase",
    "MeasureFailed",
    "MissingTestCaseParamsError",
    "VerdictWithExpectedOutput",
]

REQUIRED: Final = ("input", "retrieval_context", "expected_output")
"""What a test case must have, in the order in which deepeval names what is missing."""

Measured = tuple[ScoredSample, Signature | None]
"""The record of a test case, and who ruled; None where nobody was asked."""

Ruling = Callable[[Judge], Coroutine[Any, Any, Measured]]


class DeepEvalError(Exception):
    """The root of this module's errors, as in deepeval."""


class MissingTestCaseParamsError(DeepEvalError):
    """A test case lacks what the metric reads."""


class MeasureFailed(DeepEvalError, ValueError):
    """The judge gave no verdict on some statement; the cause is an error of ours, its next step is in the text.

    It is a ValueError, which is what deepeval raises where its judge's reply cannot be read.
    """


class LLMTestCase(BaseModel):
    """One case, with those of deepeval's fields that matter here, by either of their spellings; others are ignored."""

    model_config = ConfigDict(extra="ignore")

    input: str
    actual_output: str | None = Field(default=None, validation_alias=AliasChoices("actualOutput", "actual_output"))
    expected_output: str | None = Field(
        default=None, validation_alias=AliasChoices("expectedOutput", "expected_output")
    )
    context: list[str] | None = None
    retrieval_context: list[str] | None = Field(
        default=None, validation_alias=AliasChoices("retrievalContext", "retrieval_context")
    )
    metadata: dict[str, Any] | None = None
    name: str | None = None
    tags: list[str] | None = None
    multimodal: bool = False

    @field_validator("input", "actual_output", mode="before")
    @classmethod
    def _refuse_no_string(cls, value: object, about: ValidationInfo) -> object:
        if value is not None and not isinstance(value, str):
            msg = f"'{about.field_name}' must be a string"
            raise TypeError(msg)
        return value

    @field_validator("context", "retrieval_context", mode="before")
    @classmethod
    def _refuse_no_strings(cls, value: object, about: ValidationInfo) -> object:
        if value is not None and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            msg = f"'{about.field_name}' must be None or a list of strings"
            raise TypeError(msg)
        return value


class VerdictWithExpectedOutput(Record):
    """One verdict as deepeval keeps it, and beside it the statement that it is on, with its probability.

    `reason` is None where none was asked for: a supported statement needs none.
    """

    verdict: Literal["yes", "no"]
    reason: str | None
    expected_output: str
    statement: str
    probability: float | None


class ContextualRecallMetric:
    """Contextual recall: attributed statements of the expected output over all of them."""

    def __init__(
        self,
        threshold: float | None = 0.5,
        model: str | Judge | None = None,
        system_one_model: None = None,
        eval_mode: str | None = None,
        include_reason: bool = True,
        async_mode: bool = True,
        strict_mode: bool = False,
        verbose_mode: bool = False,
        flaky: bool = False,
        evaluation_template: None = None,
    ) -> None:
        """Ask nothing yet.

        Args:
            threshold: From which score on a case passes; None means that none passes or fails.
            model: The name of a served model or of a profile, or a judge; None finds one, as
                `airjudge.resident.resident` says.
            system_one_model: deepeval's Jev, which there is none of here.
            eval_mode: `llm` is the only one.
            include_reason: Whether misses are explained: one more question for each of them.
            async_mode: Kept; both modes ask the same way.
            strict_mode: A threshold of 1, and a score of 0 unless everything is supported.
            verbose_mode: Whether verdicts and score are printed.
            flaky: Kept for whoever reads it.
            evaluation_template: What judges are asked is ours, and part of the signature.

        Raises:
            ValueError: If something is chosen that there is only in deepeval, or a judge grades instead.
            TypeError: If the model is an object of deepeval's.
        """
        _refuse_foreign(system_one_model, eval_mode, evaluation_template)
        _check_model(model)
        self._judge = resident(model)
        self.success: bool | None
        self.threshold = 1 if strict_mode else threshold
        self.evaluation_model = model if isinstance(model, str) else None
        self.include_reason, self.async_mode, self.strict_mode = include_reason, async_mode, strict_mode
        self.verbose_mode, self.flaky, self.skipped = verbose_mode, flaky, False
        self.signature: Signature | None = None
        self._forget()

    @property
    def __name__(self) -> str:
        return "Contextual Recall"

    def measure(self, test_case: Any, _show_indicator: bool = True, _in_component: bool = False) -> float:
        """Score a case; inside a running event loop that loop is blocked meanwhile, so await `a_measure` there.

        Raises:
            MissingTestCaseParamsError: If input, retrieval context or expected output is None.
            ValueError: If it is no test case of texts.
            MeasureFailed: If a statement could not be judged.
            JudgeError: If the judge cannot be used.
        """
        self._forget()
        with self._failure_kept():
            sample = self._sample_of(test_case)
            found = _without_judge(sample)
            if found is None:
                found = self._judge.wait(self._ruling(sample))
        return self._keep(found, sample)

    async def a_measure(self, test_case: Any, _show_indicator: bool = True, _in_component: bool = False) -> float:
        """Score a case, as `measure` does."""
        self._forget()
        with self._failure_kept():
            sample = self._sample_of(test_case)
            found = _without_judge(sample)
            if found is None:
                found = await self._judge.acall(self._ruling(sample))
        return self._keep(found, sample)

    def is_successful(self) -> bool | None:
        """Whether the last case passed; None without a threshold."""
        if self.threshold is None:
            self.success = None
        else:
            self.success = self.error is None and self.score is not None and self.score >= self.threshold
        return self.success

    def _forget(self) -> None:
        """Forget the last case, whose error would otherwise fail the next one."""
        self.score: float | None = None
        self.reason: str | None = None
        self.success = None
        self.error: str | None = None
        self.verbose_logs: str | None = None
        self.verdicts: list[VerdictWithExpectedOutput] = []

    def _ruling(self, sample: Sample) -> Ruling:
        return partial(_ruled, sample=sample, reasons="misses" if self.include_reason else "none")

    @contextmanager
    def _failure_kept(self) -> Iterator[None]:
        """Keep a failure where deepeval does, in `error` and `success`, and raise it as deepeval would."""
        try:
            yield
        except EvaluationError as error:
            self.error, self.success = f"{error}. {error.hint}", False
            raise MeasureFailed(self.error) from error
        except (AirjudgeError, DeepEvalError, ValueError, TypeError) as error:
            self.error, self.success = str(error), False
            raise

    def _sample_of(self, test_case: Any) -> Sample:
        """The sample that a case stands for, with deepeval's checks in deepeval's order."""
        if getattr(test_case, "multimodal", False):
            msg = f"{self.__name__} reads texts alone, and this case holds images"
            raise ValueError(msg)
        if not all(hasattr(test_case, field) for field in REQUIRED):
            msg = f"{self.__name__} measures an LLMTestCase: got {type(test_case).__name__}"
            raise ValueError(msg)
        missing = [f"'{field}'" for field in REQUIRED if getattr(test_case, field) is None]
        if missing:
            msg = f"{_listed(missing)} cannot be None for the '{self.__name__}' metric"
            raise MissingTestCaseParamsError(msg)
        sample = Sample(
            id="1",
            user_input=_text("input", test_case.input),
            reference=_text("expected_output", test_case.expected_output),
            retrieved_contexts=_contexts(test_case.retrieval_context),
        )
        return sample.model_copy(update={"statements": split_statements(sample)})

    def _keep(self, found: Measured, sample: Sample) -> float:
        """Fill in what deepeval's metric holds after a case, and give the score."""
        scored, signature = found
        if signature is not None:
            self.signature, self.evaluation_model = signature, signature.judge
        recall = scored.score or 0.0  # None, without any statement, is deepeval's 0
        self.score = score = 0.0 if self.strict_mode and recall < 1 else recall
        self.verdicts = [_as_deepeval(one, sample.reference) for one in scored.statements]
        self.reason = _reason(scored, score) if self.include_reason else None
        self.is_successful()
        self.verbose_logs = "Verdicts:\n" + "\n".join(one.model_dump_json() for one in self.verdicts)
        if self.verbose_mode:
            _show(f"{self.__name__}\n{self.verbose_logs}\n\nScore: {score}\nReason: {self.reason}\n")
        return score


def _refuse_foreign(system_one_model: object, eval_mode: str | None, evaluation_template: object) -> None:
    if system_one_model is not None or eval_mode not in {None, "llm"}:
        msg = "there is no System One here: leave system_one_model and eval_mode out"
        raise ValueError(msg)
    if evaluation_template is not None:
        msg = "what the judge is asked is fixed, so that scores compare: leave evaluation_template out"
        raise ValueError(msg)


def _check_model(model: object) -> None:
    if model is not None and not isinstance(model, str | Judge):
        msg = (
            "model must be the name of a served model or of a profile, or an airjudge.Judge: "
            f"got {type(model).__name__}. To keep deepeval's metric and change its model, see airjudge.integrations."
        )
        raise TypeError(msg)
    if isinstance(model, Judge):
        check_method(model.settings.method, grades=False)


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        msg = f"'{field}' must be a string: got {type(value).__name__}"
        raise TypeError(msg)
    return value


def _contexts(value: object) -> tuple[str, ...]:
    """Contexts as texts; one with a source, as deepeval's connectors bring them, is read as deepeval stores it."""
    if not isinstance(value, list | tuple):
        msg = f"'retrieval_context' must be a list of strings: got {type(value).__name__}"
        raise TypeError(msg)
    return tuple(
        f"{one.source}: {one.context}" if hasattr(one, "source") and hasattr(one, "context")
        else _text("retrieval_context", one)
        for one in value
    )  # fmt: skip


def _listed(names: Sequence[str]) -> str:
    """Names as a sentence lists them."""
    *before, last = names
    return last if not before else f"{', '.join(before)}{',' * (len(before) > 1)} and {last}"


def _without_judge(sample: Sample) -> Measured | None:
    """What is known without a question: nothing is supported by nothing, and no statement needs support."""
    statements = sample.statements or ()
    if statements and any(text.strip() for text in sample.retrieved_contexts):
        return None
    return without_contexts(sample, statements, zero_if_empty=True), None


async def _ruled(judge: Judge, *, sample: Sample, reasons: ReasonsPolicy) -> Measured:
    """The record of a sample by an open judge.

    Raises:
        EvaluationError: If a statement could not be judged.
    """
    statements = sample.statements or ()
    outcomes = await judge.rule(sample, Made(statements=statements), reasons=reasons)
    for outcome in outcomes:
        if isinstance(outcome, EvaluationError):
            raise outcome
    return record(sample, statements, outcomes), judge.signature("given")


def _as_deepeval(verdict: Verdict, expected_output: str) -> VerdictWithExpectedOutput:
    return VerdictWithExpectedOutput(
        verdict="yes" if verdict.attributed else "no",
        reason=verdict.reason,
        expected_output=expected_output,
        statement=verdict.text,
        probability=verdict.probability,
    )


def _reason(scored: ScoredSample, score: float) -> str:
    """Why the score is what it is, from the verdicts alone: a judge that is asked again may say something else."""
    if not scored.statements:
        return f"The score is {score:.2f}: the expected output holds no statement."
    missed = [one for one in scored.statements if not one.attributed]
    n_supported, n_statements = len(scored.statements) - len(missed), len(scored.statements)
    told = f"The score is {score:.2f}: the retrieval context supports {n_supported} of {n_statements} statements"
    if not missed:
        return f"{told}."
    listed = "; ".join(f'"{one.text}"' + (f" ({one.reason.strip()})" if one.reason else "") for one in missed)
    return f"{told}. Not supported: {listed}"


def _show(text: str) -> None:
    """Print a text without control characters, which could steer the terminal."""
    sys.stdout.write("".join(one if one.isprintable() or one == "\n" else " " for one in text))
