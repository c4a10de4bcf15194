"""Context recall by a judge, with the constructor, the methods and the errors of ragas' collections."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

from airjudge.compat.ragas.llm import JudgeLLM
from airjudge.compat.ragas.prompt import METHODS, ContextRecallPrompt, Method
from airjudge.compat.ragas.result import MetricResult
from airjudge.judge import Judge, JudgeSettings, refuse_running_loop
from airjudge.metrics import ContextRecall as Recall
from airjudge.metrics import RecallResult, checked_sample
from airjudge.resident import ResidentJudge
from airjudge.schema import ReasonsPolicy, Sample, SampleError, ScoredSample, Signature

_NO_STATEMENT: Final = SampleError(kind="no_statement", message="the reference has no statement: recall is undefined")


class ContextRecall:
    """The share of a reference's statements that the retrieved contexts support."""

    def __init__(
        self,
        llm: JudgeLLM,
        name: str = "context_recall",
        method: Method = "pointwise",
        *,
        reasons: ReasonsPolicy = "none",
        allowed_values: tuple[float, float] = (0.0, 1.0),
        **kwargs: Any,
    ) -> None:
        """Ask nothing yet.

        Args:
            llm: What `llm_factory` made.
            name: Names the metric.
            method: `pointwise` asks about one statement at a time, which small judges are far better at; `ragas` about
                the whole reference in one call, as the original does.
            reasons: Which verdicts are explained: none, the misses, or all. The single call explains all.
            allowed_values: Kept as it is.
            kwargs: Have no effect, of which a UserWarning tells.

        Raises:
            ValueError: If `llm` is anything else, or there is no such method.
        """
        self.llm, self.name, self.method, self.reasons = checked_llm(llm), name, checked_method(method), reasons
        self.allowed_values = allowed_values
        self.prompt = ContextRecallPrompt(method)
        if kwargs:
            warnings.warn(f"ContextRecall: {', '.join(sorted(kwargs))}: without effect here", UserWarning, stacklevel=2)

    def score(self, **kwargs: Any) -> MetricResult:
        """Score one sample by keywords, as `ascore`.

        Raises:
            RuntimeError: If called inside a running event loop: await `ascore` there.
        """
        refuse_running_loop("ascore")
        sample = _sample(**kwargs)
        return self._judge().call(lambda judge: self._scored(judge, sample))

    async def ascore(self, user_input: str, retrieved_contexts: Sequence[str], reference: str) -> MetricResult:
        """Score one sample.

        Raises:
            ValueError: If a field is empty or blank, or the contexts are not a list of strings.
            EvaluationError: If a statement could not be judged.
            JudgeError: If the judge cannot be used.
        """
        sample = _sample(user_input, retrieved_contexts, reference)
        return await self._judge().acall(lambda judge: self._scored(judge, sample))

    def batch_score(self, inputs: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
        """Score many samples, as `abatch_score`.

        Raises:
            RuntimeError: If called inside a running event loop: await `abatch_score` there.
        """
        refuse_running_loop("abatch_score")
        rows = [_row(one) for one in inputs]
        return self._judge().call(lambda judge: self._all_scored(judge, rows)) if rows else []

    async def abatch_score(self, inputs: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
        """Score many samples, in order; one that cannot be scored has no value, and its error, and stops no other.

        Raises:
            TypeError: If one lacks a field or has one that is unknown; then nothing was asked.
            JudgeError: If the judge cannot be used.
        """
        rows = [_row(one) for one in inputs]
        return await self._judge().acall(lambda judge: self._all_scored(judge, rows)) if rows else []

    def _judge(self) -> ResidentJudge:
        return self.llm.judge(JudgeSettings(method=self.method, wording=self.prompt.wording()))

    async def _scored(self, judge: Judge, sample: Sample) -> MetricResult:
        result = await Recall(judge, reasons=self.reasons).ascore(
            user_input=sample.user_input, retrieved_contexts=sample.retrieved_contexts, reference=sample.reference
        )
        return _as_ragas(result.value, result, result.signature)

    async def _all_scored(self, judge: Judge, rows: Sequence[Sample | SampleError]) -> list[MetricResult]:
        samples = [one for one in rows if isinstance(one, Sample)]
        scored = iter(await Recall(judge, reasons=self.reasons).score_samples(samples))
        signature = judge.signature("given")
        return [
            MetricResult(None, signature=signature, error=row)
            if isinstance(row, SampleError)
            else _scored_as_ragas(next(scored), signature)
            for row in rows
        ]


def checked_llm(llm: object) -> JudgeLLM:
    """What `llm_factory` made.

    Raises:
        ValueError: If it is anything else.
    """
    if not isinstance(llm, JudgeLLM):
        msg = (
            f"llm must come from airjudge.compat.ragas.llm_factory: got {type(llm).__name__}. "
            "To keep ragas' metrics and change their model, see airjudge.integrations"
        )
        raise ValueError(msg)  # noqa: TRY004 -- as the original
    return llm


def checked_method(method: Method) -> Method:
    """A method that there is.

    Raises:
        ValueError: If there is no such method.
    """
    if method not in METHODS:
        msg = f"method is {' or '.join(METHODS)}: got {method!r}"
        raise ValueError(msg)
    return method


def _sample(user_input: object, retrieved_contexts: object, reference: object) -> Sample:
    """A sample; None is taken for empty, as the original takes it."""
    return checked_sample(
        "" if user_input is None else user_input,
        "" if reference is None else reference,
        [] if retrieved_contexts is None else retrieved_contexts,
    )


def _row(fields: Mapping[str, Any]) -> Sample | SampleError:
    try:
        return _sample(**fields)
    except ValueError as error:
        return SampleError(kind="invalid_sample", message=str(error))


def _as_ragas(value: float | None, scored: RecallResult | ScoredSample, signature: Signature) -> MetricResult:
    error = scored.error or (_NO_STATEMENT if value is None else None)
    return MetricResult(value, statements=scored.statements, signature=signature, error=error)


def _scored_as_ragas(scored: ScoredSample, signature: Signature) -> MetricResult:
    return _as_ragas(scored.score, scored, signature)
