"""Graded context recall: how well a response reaches the expected answer by what the contexts tell."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import ClassVar, Self

from airjudge.decoding import Grade
from airjudge.errors import EmptyContexts, EvaluationError
from airjudge.judge import (
    NOTHING_KNOWN,
    Judge,
    JudgeSettings,
    Numbered,
    OnVerdicts,
    check_method,
    refuse_running_loop,
    unheard,
)
from airjudge.metrics.recall import failed, has_no_context
from airjudge.schema import (
    GradedExample,
    Made,
    ReasonsPolicy,
    Record,
    Sample,
    SampleError,
    ScoredSample,
    ServerUse,
    Signature,
    StatementMaker,
    Suspicion,
    Usage,
)
from airjudge.screening import screen


class GradedResult(Record):
    """The grade of one response, with the judge's reason.

    `value` is a step of 0.1 in [0, 1], None with `error` set; `reason` is None where the reply was cut before it.
    `suspicions` mark texts that look as if they were aimed at the judge.
    """

    value: float | None
    reason: str | None
    signature: Signature
    error: SampleError | None = None
    suspicions: tuple[Suspicion, ...] = ()


class GradedContextRecall:
    """How well a response reaches the expected answer by what the contexts tell, as one number of a judge.

    It is a grade and no share of anything: not comparable with `ContextRecall`, and only to be had of a judge of
    method `opik`.

    Source:
        The definition of opik's metric of the name ContextRecall, with the range of its score enforced.
    """

    required: ClassVar = ("user_input", "response", "reference", "retrieved_contexts")

    def __init__(self, judge: Judge, *, few_shot_examples: Sequence[GradedExample] | None = None) -> None:
        """Grade by a judge.

        Args:
            judge: Its settings have the method `opik`.
            few_shot_examples: Graded cases that it is shown; None means ours, an empty list none.

        Raises:
            ValueError: If the judge rules on statements instead.
        """
        check_method(judge.settings.method, grades=True)
        self.judge = Grader(judge, None if few_shot_examples is None else tuple(few_shot_examples))
        self.statements: StatementMaker = "given"
        self.reasons: ReasonsPolicy = "none"
        self.evidence = False

    def score(
        self, *, user_input: str, response: str, reference: str, retrieved_contexts: Sequence[str]
    ) -> GradedResult:
        """Grade one response; `ascore` for use inside an event loop. Blank texts are graded as they are.

        Raises:
            ValueError: If a field is no text, or the contexts are no list of texts.
            EvaluationError: If there is no grade.
            JudgeError: If the judge cannot be used.
            RuntimeError: If called inside a running event loop.
        """
        refuse_running_loop("ascore")
        return asyncio.run(
            self.ascore(
                user_input=user_input, response=response, reference=reference, retrieved_contexts=retrieved_contexts
            )
        )

    async def ascore(
        self, *, user_input: str, response: str, reference: str, retrieved_contexts: Sequence[str]
    ) -> GradedResult:
        """Grade one response, as `score` does."""
        sample = _sample(
            user_input=user_input, response=response, reference=reference, retrieved_contexts=retrieved_contexts
        )
        async with self.judge:
            return self._result(_graded(sample, await self.judge.grade(sample)))

    def batch_score(self, samples: Iterable[Mapping[str, object]]) -> list[GradedResult]:
        """Grade many responses, in order; one without a grade carries its `error` and does not stop the others.

        Args:
            samples: Mappings with user_input, response, reference and retrieved_contexts.

        Raises:
            ValueError: If a sample is malformed; its place in the batch is named, and nothing was asked.
            JudgeError: If the judge cannot be used.
            RuntimeError: If called inside a running event loop.
        """
        refuse_running_loop("abatch_score")
        return asyncio.run(self.abatch_score(samples))

    async def abatch_score(self, samples: Iterable[Mapping[str, object]]) -> list[GradedResult]:
        """Grade many responses, as `batch_score` does."""
        checked = [_numbered_sample(index, fields) for index, fields in enumerate(samples)]
        if not checked:
            return []
        places = asyncio.Semaphore(self.judge.max_in_flight)

        async def one(sample: Sample) -> GradedResult:
            async with places:
                return self._result(await self._record(sample))

        async with self.judge:
            return await asyncio.gather(*(one(sample) for sample in checked))

    async def make(self, sample: Sample) -> Made:  # noqa: ARG002 -- as a run asks each metric
        """No statements: the response is graded as a whole."""
        return Made(statements=())

    async def score_sample(
        self,
        sample: Sample,
        *,
        made: Made | EvaluationError | None = None,  # noqa: ARG002 -- as a run asks each metric
        zero_if_empty: bool = True,
        known: Numbered = NOTHING_KNOWN,  # noqa: ARG002 -- as above
        on_verdicts: OnVerdicts = unheard,  # noqa: ARG002 -- as above
    ) -> ScoredSample:
        """Grade one sample of a data set; whatever concerns only this sample becomes its record.

        The judge must be open. Without any context that is not blank the grade is 0, and the judge is not asked.
        `made`, `known` and `on_verdicts` are of metrics that rule on statements.

        Raises:
            ValueError: If the sample has no response: its data set was not opened for this metric.
        """
        if not has_no_context(sample):
            return await self._record(sample)
        if not zero_if_empty:
            return failed(sample, EmptyContexts()).model_copy(update={"empty_contexts": True})
        return _graded(sample, Grade(value=0.0)).model_copy(update={"empty_contexts": True})

    async def _record(self, sample: Sample) -> ScoredSample:
        try:
            return _graded(sample, await self.judge.grade(sample))
        except EvaluationError as error:
            return failed(sample, error)

    def _result(self, scored: ScoredSample) -> GradedResult:
        signature = self.judge.signature(self.statements)
        return GradedResult(
            value=scored.score,
            reason=scored.reason,
            signature=signature,
            error=scored.error,
            suspicions=scored.suspicions,
        )


class Grader:
    """A judge with the graded cases that it is shown, which are in its signature; entered as the judge itself."""

    def __init__(self, judge: Judge, examples: tuple[GradedExample, ...] | None) -> None:
        """Show these examples; None means ours."""
        self.judge, self.examples = judge, examples

    async def grade(self, sample: Sample) -> Grade:
        """Grade a sample's response, as `Judge.grade` does."""
        return await self.judge.grade(sample, examples=self.examples)

    def signature(self, statements: StatementMaker) -> Signature:
        """What makes its grades comparable, as `Judge.signature` does."""
        return self.judge.signature(statements, examples=self.examples)

    def uncalibrated_signature(self, statements: StatementMaker) -> Signature:
        """The same: a calibration is of verdicts."""
        return self.signature(statements)

    @property
    def settings(self) -> JudgeSettings:
        """How the judge is asked."""
        return self.judge.settings

    @property
    def max_in_flight(self) -> int:
        """Requests that may ever be in flight at once."""
        return self.judge.max_in_flight

    @property
    def usage(self) -> Usage:
        """Counts of all requests of the current entry, or of the last one."""
        return self.judge.usage

    @property
    def servers(self) -> list[ServerUse]:
        """The account of each server."""
        return self.judge.servers

    def count_earlier(self, usage: Usage) -> None:
        """Count what earlier starts of a run used."""
        self.judge.count_earlier(usage)

    async def __aenter__(self) -> Self:
        """Enter the judge."""
        await self.judge.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the judge."""
        await self.judge.__aexit__(kind, error, trace)


def _graded(sample: Sample, grade: Grade) -> ScoredSample:
    return ScoredSample(
        id=sample.id,
        score=grade.value,
        status="scored",
        reason=grade.reason,
        group=sample.group,
        suspicions=screen(sample),
    )


def _sample(*, user_input: object, response: object, reference: object, retrieved_contexts: object) -> Sample:
    """A sample from what a caller passed; texts may be blank, as in the original.

    Raises:
        ValueError: If a field is no text, or the contexts are no list of texts.
    """
    texts = {"user_input": user_input, "response": response, "reference": reference}
    for field, value in texts.items():
        if not isinstance(value, str):
            msg = f"{field} must be a string: got {type(value).__name__}"
            raise ValueError(msg)  # noqa: TRY004 -- as of ContextRecall, for every unusable field
    contexts = retrieved_contexts
    # A lone string would be taken apart into characters.
    if not isinstance(contexts, list | tuple) or not all(isinstance(text, str) for text in contexts):
        msg = f"retrieved_contexts must be a list of strings: got {type(contexts).__name__}"
        raise ValueError(msg)
    return Sample.model_validate({"id": "1", **texts, "retrieved_contexts": tuple(contexts)})


def _numbered_sample(index: int, fields: Mapping[str, object]) -> Sample:
    try:
        return _sample(**{name: fields[name] for name in GradedContextRecall.required})
    except KeyError as error:
        msg = f"sample {index} of the batch has no {error}"
        raise ValueError(msg) from error
    except ValueError as error:
        msg = f"sample {index} of the batch: {error}"
        raise ValueError(msg) from error
