"""Context recall: the share of a reference's statements that the retrieved contexts support, by a judge."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from airjudge import scoring
from airjudge.chunks import chunks_of
from airjudge.errors import EmptyContexts, EvaluationError
from airjudge.judge import (
    NOTHING_KNOWN,
    Judge,
    Numbered,
    OnVerdicts,
    Outcome,
    check_method,
    refuse_running_loop,
    unheard,
)
from airjudge.schema import (
    Chunks,
    Echoes,
    Made,
    ReasonsPolicy,
    Record,
    Sample,
    SampleError,
    ScoredSample,
    Signature,
    Statement,
    StatementMaker,
    Status,
    Suspicion,
    Verdict,
)
from airjudge.screening import screen
from airjudge.statements import split_statements


class RecallResult(Record):
    """The recall of one sample, with all that it stands on.

    `value` is in [0, 1]; None if the reference has no statement, or with `error` set. `echoes` is the account of
    the single call, where the method makes one; `chunks` is what the contexts are worth, if that was asked.
    `suspicions` mark texts that look as if they were aimed at the judge.
    """

    value: float | None
    statements: tuple[Verdict, ...]
    signature: Signature
    error: SampleError | None = None
    echoes: Echoes | None = None
    suspicions: tuple[Suspicion, ...] = ()
    chunks: Chunks | None = None


class ContextRecall:
    """Context recall: the share of a reference's statements that the retrieved contexts support.

    Source:
        The definition of ragas' metric of the same name, with statements made before the judge sees
        them, one enforced verdict each.
    """

    required: ClassVar = ("user_input", "reference", "retrieved_contexts")

    def __init__(
        self,
        judge: Judge,
        *,
        statements: StatementMaker = "given",
        reasons: ReasonsPolicy = "none",
        evidence: bool = False,
    ) -> None:
        """Score by a judge.

        Args:
            judge: Rules on the statements.
            statements: Where they come from: `given` takes those of the sample and splits the
                reference of a sample without any; `sentences` always splits; `claims` has the judge write
                atomic claims out of the reference, once, before it rules on them.
            reasons: Which verdicts are explained: none, the misses, or all.
            evidence: Whether each context that the judge read for an attributed statement is asked about alone, for
                the verdict's `support` and the figures in `chunks`.

        Raises:
            ValueError: If the judge grades responses.
        """
        check_method(judge.settings.method, grades=False)
        self.judge, self.statements, self.reasons, self.evidence = judge, statements, reasons, evidence

    def score(self, *, user_input: str, retrieved_contexts: Sequence[str], reference: str) -> RecallResult:
        """Score one sample; `ascore` for use inside an event loop.

        Raises:
            ValueError: If a field is empty or blank, or the contexts are not a list of strings.
            EvaluationError: If a statement could not be judged.
            JudgeError: If the judge cannot be used.
            RuntimeError: If called inside a running event loop.
        """
        refuse_running_loop("ascore")
        return asyncio.run(
            self.ascore(user_input=user_input, retrieved_contexts=retrieved_contexts, reference=reference)
        )

    async def ascore(self, *, user_input: str, retrieved_contexts: Sequence[str], reference: str) -> RecallResult:
        """Score one sample, as `score` does."""
        sample = checked_sample(user_input, reference, retrieved_contexts)
        async with self.judge:
            made = await self.make(sample)
            if isinstance(made, EvaluationError):
                raise made
            told = _Told(made.echoes, unheard)
            outcomes = await self.judge.rule(sample, made, reasons=self.reasons, on_verdicts=told)
            for outcome in outcomes:
                if isinstance(outcome, EvaluationError):
                    raise outcome
            scored = await self._recorded(sample, made.statements, outcomes)
            return self._result(scored.model_copy(update={"echoes": told.echoes}))

    def batch_score(self, samples: Iterable[Mapping[str, object]]) -> list[RecallResult]:
        """Score many samples, in order; one that fails carries its `error` and does not stop the others.

        Args:
            samples: Mappings with user_input, retrieved_contexts and reference.

        Raises:
            ValueError: If a sample is malformed; its place in the batch is named, and nothing was asked.
            JudgeError: If the judge cannot be used.
            RuntimeError: If called inside a running event loop.
        """
        refuse_running_loop("abatch_score")
        return asyncio.run(self.abatch_score(samples))

    async def abatch_score(self, samples: Iterable[Mapping[str, object]]) -> list[RecallResult]:
        """Score many samples, as `batch_score` does."""
        checked = [_checked_mapping(index, fields) for index, fields in enumerate(samples)]
        if not checked:
            return []
        return [self._result(scored) for scored in await self.score_samples(checked)]

    async def score_samples(self, samples: Sequence[Sample]) -> list[ScoredSample]:
        """Records of samples, in order; as many samples are open as requests may be in flight."""
        places = asyncio.Semaphore(self.judge.max_in_flight)

        async def one(sample: Sample) -> ScoredSample:
            async with places:
                return await self.score_sample(sample)

        async with self.judge:
            return await asyncio.gather(*(one(sample) for sample in samples))

    async def make(self, sample: Sample) -> Made | EvaluationError:
        """The statements of a sample, of which each judge has to rule on the same; the judge must be open.

        It is asked where it has to make them, unless there is no context to judge them against: the
        statements are sentences then, all missed.
        """
        if self.statements != "claims" or has_no_context(sample):
            return Made(statements=split_statements(sample, self.statements))
        try:
            return await self.judge.make_claims(sample)
        except EvaluationError as error:
            return error

    async def score_sample(
        self,
        sample: Sample,
        *,
        made: Made | EvaluationError | None = None,
        zero_if_empty: bool = True,
        known: Numbered = NOTHING_KNOWN,
        on_verdicts: OnVerdicts = unheard,
    ) -> ScoredSample:
        """Score one sample of a data set; whatever concerns only this sample becomes its record.

        The judge must be open. A sample of which a statement failed is `failed` with the kind of the
        first failure and keeps its other verdicts. Without any context that is not blank every
        statement is missed, and the judge is not asked. `made` is what `make` gave for the sample, if it was
        asked before, with the account of a single call on them; `known` and `on_verdicts` are those of `Judge.rule`.
        """
        made = made or await self.make(sample)
        if isinstance(made, EvaluationError):
            return failed(sample, made)
        if has_no_context(sample):
            return self._ranked(sample, without_contexts(sample, made.statements, zero_if_empty=zero_if_empty))
        told = _Told(made.echoes, on_verdicts)
        outcomes = await self.judge.rule(sample, made, reasons=self.reasons, known=known, on_verdicts=told)
        accounts = {"claims": made.claims, "echoes": told.echoes}
        scored = await self._recorded(sample, made.statements, outcomes, on_verdicts=told)
        return scored.model_copy(update=accounts)

    async def _recorded(
        self,
        sample: Sample,
        statements: Sequence[Statement],
        outcomes: Sequence[Outcome],
        *,
        on_verdicts: OnVerdicts = unheard,
    ) -> ScoredSample:
        """The record of a sample, its contexts asked about one by one if that is wanted."""
        if self.evidence:
            outcomes = await self.judge.support(sample, outcomes, on_verdicts=on_verdicts)
        return self._ranked(sample, record(sample, statements, outcomes))

    def _ranked(self, sample: Sample, scored: ScoredSample) -> ScoredSample:
        if not self.evidence or scored.status != "scored":
            return scored
        return scored.model_copy(update={"chunks": chunks_of(scored.statements, sample.retrieved_contexts)})

    def _result(self, scored: ScoredSample) -> RecallResult:
        return RecallResult(
            value=scored.score,
            statements=scored.statements,
            signature=self.judge.signature(self.statements),
            error=scored.error,
            echoes=scored.echoes,
            suspicions=scored.suspicions,
            chunks=scored.chunks,
        )


@dataclass(slots=True)
class _Told:
    """Passes verdicts on, and keeps the account of the single call that came with them, or was known before."""

    echoes: Echoes | None
    on_verdicts: OnVerdicts

    def __call__(self, verdicts: Numbered, /, echoes: Echoes | None = None) -> None:
        self.echoes = echoes or self.echoes
        self.on_verdicts(verdicts, echoes)


def record(sample: Sample, statements: Sequence[Statement], outcomes: Sequence[Outcome]) -> ScoredSample:
    """The record of a sample from what became of its statements, in their order."""
    failures = [outcome for outcome in outcomes if isinstance(outcome, EvaluationError)]
    verdicts = tuple(
        outcome if isinstance(outcome, Verdict) else Verdict(id=one.id, text=one.text, attributed=None)
        for one, outcome in zip(statements, outcomes, strict=True)
    )
    if failures:
        return failed(sample, failures[0], verdicts)
    score = scoring.context_recall(verdicts)
    status: Status = "undefined" if score is None else "scored"
    return ScoredSample(
        id=sample.id,
        score=score,
        status=status,
        statements=verdicts,
        group=sample.group,
        suspicions=screen(sample),
    )


def failed(sample: Sample, error: EvaluationError, verdicts: tuple[Verdict, ...] = ()) -> ScoredSample:
    """The record of a sample that failed, with the verdicts that it has."""
    return ScoredSample(
        id=sample.id,
        score=None,
        status="failed",
        error=SampleError(kind=error.kind, message=str(error)),
        statements=verdicts,
        group=sample.group,
        suspicions=screen(sample),
    )


def has_no_context(sample: Sample) -> bool:
    """Whether nothing was retrieved, or nothing but blanks."""
    return not any(text.strip() for text in sample.retrieved_contexts)


def without_contexts(
    sample: Sample, statements: Sequence[Statement], *, zero_if_empty: bool, field: str = "retrieved_contexts"
) -> ScoredSample:
    """The record of a sample whose `field` is empty or all blank: each statement is missed, or that is an error."""
    outcomes: list[Outcome] = [
        Verdict(id=one.id, text=one.text, attributed=False) if zero_if_empty else EmptyContexts(field)
        for one in statements
    ]
    return record(sample, statements, outcomes).model_copy(update={"empty_contexts": True})


def checked_sample(user_input: object, reference: object, retrieved_contexts: object) -> Sample:
    """A sample from what a caller passed, checked in the seed's order.

    Raises:
        ValueError: If a field is empty or blank, or the contexts are not strings in a list.
    """
    sample = readable_sample(user_input, reference, retrieved_contexts)
    if has_no_context(sample):
        msg = "retrieved_contexts cannot be empty"
        raise ValueError(msg)
    return sample


def readable_sample(user_input: object, reference: object, retrieved_contexts: object) -> Sample:
    """The same, but for contexts, which may be empty or blank: then recall is 0, and no judge need be asked.

    Raises:
        ValueError: If a text is empty or blank, or the contexts are not strings in a list.
    """
    question = _text("user_input", user_input)
    answer = _text("reference", reference)
    return Sample(id="1", user_input=question, reference=answer, retrieved_contexts=_contexts(retrieved_contexts))


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        msg = f"{field} must be a string: got {type(value).__name__}"
        raise ValueError(msg)  # noqa: TRY004 -- as the seed, for every unusable field
    if not value.strip():
        msg = f"{field} cannot be empty"
        raise ValueError(msg)
    return value


def _contexts(value: object) -> tuple[str, ...]:
    """Contexts as strings; a lone string would be taken apart into characters, so it is refused."""
    if not isinstance(value, list | tuple):
        msg = f"retrieved_contexts must be a list of strings: got {type(value).__name__}"
        raise ValueError(msg)  # noqa: TRY004 -- as above
    if not all(isinstance(text, str) for text in value):
        msg = "retrieved_contexts must hold nothing but strings"
        raise ValueError(msg)
    return tuple(value)


def _checked_mapping(index: int, fields: Mapping[str, object]) -> Sample:
    try:
        return checked_sample(fields["user_input"], fields["reference"], fields["retrieved_contexts"])
    except KeyError as error:
        msg = f"sample {index} of the batch has no {error}"
        raise ValueError(msg) from error
    except ValueError as error:
        msg = f"sample {index} of the batch: {error}"
        raise ValueError(msg) from error
