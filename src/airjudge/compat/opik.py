"""opik's ContextRecall by our judge: the same names, a score that is one of eleven steps, enforced while decoding.

It is not recall as ragas and airjudge define it: a judge reads input, output, expected output and context, and
grades how well the *output* reaches what was expected by what the context says. The two do not compare.

Nothing is sent to opik: `track` and `project_name` have no effect. `track` is true in every script that does not
speak of it, so that is one line of the log a process, at level INFO; a project is named on purpose, so it is one
UserWarning a process.
"""

import logging
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypedDict

from airjudge.errors import EvaluationError
from airjudge.judge import Judge, JudgeSettings, check_method
from airjudge.metrics import GradedContextRecall, GradedResult
from airjudge.resident import ResidentJudge, resident
from airjudge.schema import GradedExample

__all__ = ["ContextRecall", "FewShotExampleContextRecall", "MetricComputationError", "OpikException", "ScoreResult"]

_log: Final = logging.getLogger("airjudge.compat.opik")

_TEXTS: Final = ("title", "input", "output", "expected_output", "reason")
"""What of an example is one text."""

Grading = Callable[[Judge], Coroutine[Any, Any, GradedResult]]


class OpikException(Exception):
    """The root of this module's errors, as in opik."""


class MetricComputationError(OpikException):
    """A score cannot be computed; the cause is an error of ours where there is one, its next step is in the text."""


@dataclass
class ScoreResult:
    """A score with its reason, field by field as in opik; `metadata` holds the signature of what made it."""

    name: str
    value: float
    reason: str | None = None
    category_name: str | None = None
    metadata: dict[str, Any] | None = None
    scoring_failed: bool = False


class FewShotExampleContextRecall(TypedDict):
    """A graded case that the judge is shown; its score is in [0, 1], its context one text or several."""

    title: str
    input: str
    expected_output: str
    context: str | list[str]
    output: str
    context_recall_score: float
    reason: str


class ContextRecall:
    """How well an output reaches what was expected by what the context says, as a judge grades it."""

    def __init__(
        self,
        model: str | Judge | None = None,
        name: str = "context_recall_metric",
        few_shot_examples: Sequence[FewShotExampleContextRecall] | None = None,
        track: bool = True,
        project_name: str | None = None,
        seed: int | None = None,
        temperature: float | None = None,
    ) -> None:
        """Ask nothing yet.

        Args:
            model: The name of a served model or of a profile, or a judge; None finds one, as
                `airjudge.resident.resident` says.
            name: Stands in the results.
            few_shot_examples: Graded cases that the judge is shown; None means our three, an empty list none.
            track: Has no effect.
            project_name: Has no effect.
            seed: Sent with each question, and part of the signature.
            temperature: The same; 0 if it is not given.

        Raises:
            ValueError: If an example is unusable, by its number; if a judge does not grade, or has settings of its
                own beside which others are given.
            TypeError: If the model is an object of opik's.
        """
        _say_what_is_not_sent(track, project_name)
        self.name, self.track, self.project_name = name, track, project_name
        self.few_shot_examples = few_shot_examples
        self._judge = _judge_of(model, seed=seed, temperature=temperature)
        _examples(few_shot_examples)

    def score(self, input: str, output: str, expected_output: str, context: Any, **ignored_kwargs: Any) -> ScoreResult:
        """Grade an output; inside a running event loop that loop is blocked meanwhile, so await `ascore` there.

        Args:
            input: What was asked.
            output: What the system under test answered.
            expected_output: What it should have answered.
            context: What it was given: a list of texts, one text, or None for nothing.
            ignored_kwargs: Fields of the data set that other metrics read.

        Raises:
            MetricComputationError: If a text is None or the judge's reply is no grade.
            JudgeError: If the judge cannot be used.
        """
        with _as_opik_raises():
            return self._result(self._judge.wait(self._grading(input, output, expected_output, context)))

    async def ascore(
        self, input: str, output: str, expected_output: str, context: Any, **ignored_kwargs: Any
    ) -> ScoreResult:
        """Grade an output, as `score` does."""
        with _as_opik_raises():
            return self._result(await self._judge.acall(self._grading(input, output, expected_output, context)))

    def _grading(self, input: object, output: object, expected_output: object, context: object) -> Grading:
        examples = _examples(self.few_shot_examples)
        user_input, response = _text("input", input), _text("output", output)
        reference, contexts = _text("expected_output", expected_output), _contexts(context)

        async def grade(judge: Judge) -> GradedResult:
            return await GradedContextRecall(judge, few_shot_examples=examples).ascore(
                user_input=user_input, response=response, reference=reference, retrieved_contexts=contexts
            )

        return grade

    def _result(self, graded: GradedResult) -> ScoreResult:
        if graded.value is None:
            msg = "the judge gave no grade"
            raise MetricComputationError(msg)
        signature = {"signature": str(graded.signature)}
        return ScoreResult(self.name, graded.value, graded.reason, metadata=signature)


def _judge_of(model: object, *, seed: int | None, temperature: float | None) -> ResidentJudge:
    """The judge that a model names, asked as the metric says."""
    if model is not None and not isinstance(model, str | Judge):
        msg = (
            "model must be the name of a served model or of a profile, or an airjudge.Judge: "
            f"got {type(model).__name__}. To keep opik's metric and change its model, see airjudge.integrations."
        )
        raise TypeError(msg)
    if isinstance(model, Judge):
        check_method(model.settings.method, grades=True)
        if (seed, temperature) != (None, None):
            msg = "seed and temperature are a judge's own: set them in its JudgeSettings"
            raise ValueError(msg)
    given = {"seed": seed, "temperature": temperature}
    chosen = {name: value for name, value in given.items() if value is not None}
    return resident(model, settings=JudgeSettings.model_validate({"method": "opik", **chosen}))


def _say_what_is_not_sent(track: bool, project_name: str | None) -> None:
    """Refuse what opik refuses, and say once what has no effect here."""
    if project_name is not None:
        if not track:
            msg = "project_name can be set only when track is True"
            raise ValueError(msg)
        _warn_of_project()
    if track:
        _tell_of_track()


@cache
def _tell_of_track() -> None:
    _log.info("track=True has no effect: nothing is sent to opik")


@cache
def _warn_of_project() -> None:
    warnings.warn("project_name has no effect: nothing is sent to opik", UserWarning, stacklevel=4)


@contextmanager
def _as_opik_raises() -> Iterator[None]:
    try:
        yield
    except EvaluationError as error:
        msg = f"{error}. {error.hint}"
        raise MetricComputationError(msg) from error


def _text(field: str, value: object) -> str:
    """A text as opik would show it to its judge, but for None, which it would show as a word."""
    if value is None:
        msg = f"{field} is None: give a text, or leave the case out"
        raise MetricComputationError(msg)
    return str(value)


def _contexts(value: object) -> tuple[str, ...]:
    """Contexts as texts, one for each item of a list; anything else but None is one of them."""
    if value is None:
        return ()
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)


def _examples(given: Sequence[FewShotExampleContextRecall] | None) -> tuple[GradedExample, ...] | None:
    """Examples as our records; None stays None.

    Raises:
        ValueError: If one is unusable; it is named by its number, from 1, and by what is wrong.
    """
    return None if given is None else tuple(_example(number, one) for number, one in enumerate(given, 1))


def _example(number: int, given: FewShotExampleContextRecall) -> GradedExample:
    wrong = _what_is_wrong(given)
    if wrong:
        msg = f"few_shot_examples: example {number} {wrong}"
        raise ValueError(msg)
    return GradedExample(
        title=given["title"],
        user_input=given["input"],
        response=given["output"],
        reference=given["expected_output"],
        retrieved_contexts=_contexts(given["context"]),
        value=given["context_recall_score"],
        reason=given["reason"],
    )


def _what_is_wrong(given: object) -> str | None:
    """Why an example cannot be shown to a judge; None if it can."""
    if not isinstance(given, Mapping):
        return f"is no dict but a {type(given).__name__}"
    missing = [name for name in FewShotExampleContextRecall.__annotations__ if name not in given]
    if missing:
        return f"has no {', '.join(missing)}"
    no_texts = [name for name in _TEXTS if not isinstance(given[name], str)]
    if no_texts:
        return f"has no text as {', '.join(no_texts)}"
    score = given["context_recall_score"]
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        return f"has a context_recall_score that is no number in 0..1: {score!r}"
    return None
