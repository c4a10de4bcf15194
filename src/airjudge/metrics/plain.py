"""Context recall without a judge: what was to be retrieved held against what was, by likeness or by id.

The statements of these metrics are the reference contexts, or their ids; a verdict says whether one was found, and
has no probability. So journal, exports, comparison and report are those of any other run.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from airjudge.errors import EvaluationError
from airjudge.judge import NOTHING_KNOWN, Numbered, OnVerdicts, fitting, unheard
from airjudge.metrics.recall import RecallResult, failed, has_no_context, record, without_contexts
from airjudge.metrics.unjudged import Comparing, NoJudge
from airjudge.schema import Made, ReasonsPolicy, Sample, SampleError, ScoredSample, Statement, StatementMaker, Verdict
from airjudge.similarity import Distance, library, similarity

Rule = Callable[[Sample, Statement], Verdict]

_NO_CONTEXTS: Final = SampleError(
    kind="no_reference_contexts", message="there is no reference context: recall is undefined"
)
_NO_IDS: Final = SampleError(kind="no_reference_ids", message="there is no reference context id: recall is undefined")


class NonLLMContextRecall:
    """Context recall by likeness of texts: the share of reference contexts that a retrieved one is like.

    Of each reference context the best similarity over the retrieved contexts counts. It knows letters, not
    meaning: a paraphrase is missed, and a negation found.

    Source:
        The definition of ragas' metric of the same name.
    """

    name: ClassVar = "non_llm_context_recall"
    required: ClassVar = ("retrieved_contexts", "reference_contexts")
    statements: ClassVar[StatementMaker] = "given"
    reasons: ClassVar[ReasonsPolicy] = "all"
    evidence: ClassVar = False

    def __init__(self, *, threshold: float = 0.5, distance: Distance = "levenshtein") -> None:
        """Score by a measure of rapidfuzz.

        Args:
            threshold: A reference context is found if its best similarity is above that, in [0, 1].
            distance: What similarity is one minus: levenshtein, hamming, jaro or jaro_winkler, each normalised.

        Raises:
            ValueError: If the threshold is no number in [0, 1], or there is no such distance.
            ExtraMissing: If rapidfuzz is not installed.
        """
        if not (math.isfinite(threshold) and 0 <= threshold <= 1):
            msg = f"threshold must be in [0, 1]: got {threshold}"
            raise ValueError(msg)
        self.threshold, self.distance = float(threshold), distance
        self._similarity = similarity(distance)
        how = Comparing(metric=self.name, distance=distance, threshold=self.threshold)
        self.judge = NoJudge(f"{library()} {distance}>{self.threshold}", how)

    def score(self, *, retrieved_contexts: Sequence[str], reference_contexts: Sequence[str]) -> RecallResult:
        """Score one sample; undefined, with `error` set, if there is no reference context.

        Raises:
            ValueError: If either is not a list of strings, or there is none to look for a reference context in.
        """
        sample = Sample(
            id="1",
            user_input="",
            reference="",
            retrieved_contexts=_texts("retrieved_contexts", retrieved_contexts),
            reference_contexts=_texts("reference_contexts", reference_contexts),
        )
        if sample.reference_contexts and not sample.retrieved_contexts:
            msg = "retrieved_contexts cannot be empty"
            raise ValueError(msg)
        return _result(self.judge, _ruled(sample, _numbered(sample), rule=self._verdict), undefined=_NO_CONTEXTS)

    async def ascore(self, *, retrieved_contexts: Sequence[str], reference_contexts: Sequence[str]) -> RecallResult:
        """Score one sample, as `score` does."""
        return self.score(retrieved_contexts=retrieved_contexts, reference_contexts=reference_contexts)

    def batch_score(self, samples: Iterable[Mapping[str, object]]) -> list[RecallResult]:
        """Score many samples, in order.

        Args:
            samples: Mappings with the keywords of `score`.

        Raises:
            ValueError: If a sample is malformed; its place in the batch is named.
        """
        return _each(self.score, samples, fields=self.required)

    async def abatch_score(self, samples: Iterable[Mapping[str, object]]) -> list[RecallResult]:
        """Score many samples, as `batch_score` does."""
        return self.batch_score(samples)

    async def make(self, sample: Sample) -> Made:
        """The reference contexts of a sample, each of which counts, equal ones too.

        Raises:
            ValueError: If the sample was read without them.
        """
        return Made(statements=_numbered(sample))

    async def score_sample(
        self,
        sample: Sample,
        *,
        made: Made | EvaluationError | None = None,
        zero_if_empty: bool = True,
        known: Numbered = NOTHING_KNOWN,
        on_verdicts: OnVerdicts = unheard,
    ) -> ScoredSample:
        """Score one sample of a data set, in which an empty retrieval is recall 0, or an error."""
        made = made or await self.make(sample)
        if isinstance(made, EvaluationError):
            return failed(sample, made)
        if has_no_context(sample):
            return without_contexts(sample, made.statements, zero_if_empty=zero_if_empty)
        return _ruled(sample, made.statements, rule=self._verdict, known=known, on_verdicts=on_verdicts)

    def _verdict(self, sample: Sample, statement: Statement) -> Verdict:
        found = [self._similarity(one, statement.text) for one in sample.retrieved_contexts]
        best = max(found)
        reason = f"similarity {best:.3f} to retrieved context {found.index(best) + 1}"
        return Verdict(id=statement.id, text=statement.text, attributed=best > self.threshold, reason=reason)


class IDBasedContextRecall:
    """Context recall by ids: the share of distinct reference ids that are among those of the retrieved contexts.

    Ids are compared as texts: 7 is "7", and not "07".

    Source:
        The definition of ragas' metric of the same name.
    """

    name: ClassVar = "id_based_context_recall"
    required: ClassVar = ("retrieved_context_ids", "reference_context_ids")
    statements: ClassVar[StatementMaker] = "given"
    reasons: ClassVar[ReasonsPolicy] = "none"
    evidence: ClassVar = False

    def __init__(self) -> None:
        """Score by ids alone."""
        self.judge = NoJudge("ids", Comparing(metric=self.name))

    def score(
        self, *, retrieved_context_ids: Sequence[str | int], reference_context_ids: Sequence[str | int]
    ) -> RecallResult:
        """Score one sample; undefined, with `error` set, if there is no reference id.

        Raises:
            ValueError: If either is not a list of strings and whole numbers.
        """
        sample = Sample(
            id="1",
            user_input="",
            reference="",
            retrieved_contexts=(),
            retrieved_context_ids=_ids("retrieved_context_ids", retrieved_context_ids),
            reference_context_ids=_ids("reference_context_ids", reference_context_ids),
        )
        return _result(self.judge, _ruled(sample, _distinct(sample), rule=_by_id), undefined=_NO_IDS)

    async def ascore(
        self, *, retrieved_context_ids: Sequence[str | int], reference_context_ids: Sequence[str | int]
    ) -> RecallResult:
        """Score one sample, as `score` does."""
        return self.score(retrieved_context_ids=retrieved_context_ids, reference_context_ids=reference_context_ids)

    def batch_score(self, samples: Iterable[Mapping[str, object]]) -> list[RecallResult]:
        """Score many samples, in order.

        Args:
            samples: Mappings with the keywords of `score`.

        Raises:
            ValueError: If a sample is malformed; its place in the batch is named.
        """
        return _each(self.score, samples, fields=self.required)

    async def abatch_score(self, samples: Iterable[Mapping[str, object]]) -> list[RecallResult]:
        """Score many samples, as `batch_score` does."""
        return self.batch_score(samples)

    async def make(self, sample: Sample) -> Made:
        """The distinct reference ids of a sample, each its own id and text.

        Raises:
            ValueError: If the sample was read without them.
        """
        return Made(statements=_distinct(sample))

    async def score_sample(
        self,
        sample: Sample,
        *,
        made: Made | EvaluationError | None = None,
        zero_if_empty: bool = True,
        known: Numbered = NOTHING_KNOWN,
        on_verdicts: OnVerdicts = unheard,
    ) -> ScoredSample:
        """Score one sample of a data set, in which an empty retrieval is recall 0, or an error."""
        made = made or await self.make(sample)
        if isinstance(made, EvaluationError):
            return failed(sample, made)
        if not _read(sample.retrieved_context_ids, "retrieved_context_ids"):
            return without_contexts(sample, made.statements, zero_if_empty=zero_if_empty, field="retrieved_context_ids")
        return _ruled(sample, made.statements, rule=_by_id, known=known, on_verdicts=on_verdicts)


def _by_id(sample: Sample, statement: Statement) -> Verdict:
    retrieved = _read(sample.retrieved_context_ids, "retrieved_context_ids")
    return Verdict(id=statement.id, text=statement.text, attributed=statement.text in retrieved)


def _numbered(sample: Sample) -> tuple[Statement, ...]:
    texts = _read(sample.reference_contexts, "reference_contexts")
    return tuple(Statement(id=str(number), text=text) for number, text in enumerate(texts, start=1))


def _distinct(sample: Sample) -> tuple[Statement, ...]:
    ids = _read(sample.reference_context_ids, "reference_context_ids")
    return tuple(Statement(id=one, text=one) for one in dict.fromkeys(ids))


def _read(values: tuple[str, ...] | None, field: str) -> tuple[str, ...]:
    """A field of a sample; to take one that nobody read for an empty one would make a score of nothing."""
    if values is None:
        msg = f"the sample was read without {field}: open its data with required=metric.required"
        raise ValueError(msg)
    return values


def _ruled(
    sample: Sample,
    statements: Sequence[Statement],
    *,
    rule: Rule,
    known: Numbered = NOTHING_KNOWN,
    on_verdicts: OnVerdicts = unheard,
) -> ScoredSample:
    """The record of a sample by a rule for one statement; verdicts that are known stand."""
    held = fitting(known, statements)
    verdicts = [held.get(number) or rule(sample, one) for number, one in enumerate(statements)]
    on_verdicts({number: one for number, one in enumerate(verdicts) if number not in held})
    return record(sample, statements, verdicts)


def _result(judge: NoJudge, scored: ScoredSample, *, undefined: SampleError) -> RecallResult:
    return RecallResult(
        value=scored.score,
        statements=scored.statements,
        signature=judge.signature("given"),
        error=undefined if scored.status == "undefined" else None,
    )


def _each(
    score: Callable[..., RecallResult], samples: Iterable[Mapping[str, object]], *, fields: Sequence[str]
) -> list[RecallResult]:
    results = []
    for index, sample in enumerate(samples):
        try:
            results.append(score(**{field: sample[field] for field in fields}))
        except KeyError as error:
            msg = f"sample {index} of the batch has no {error}"
            raise ValueError(msg) from error
        except ValueError as error:
            msg = f"sample {index} of the batch: {error}"
            raise ValueError(msg) from error
    return results


def _texts(field: str, values: object) -> tuple[str, ...]:
    """Texts in a list; a lone string would be taken apart into characters, so it is refused."""
    if not isinstance(values, list | tuple) or not all(isinstance(one, str) for one in values):
        msg = f"{field} must be a list of strings"
        raise ValueError(msg)
    return tuple(values)


def _ids(field: str, values: object) -> tuple[str, ...]:
    """Ids as texts; anything but text and whole numbers is refused, for 7.0 is not the text 7."""
    if not isinstance(values, list | tuple) or not all(_is_id(one) for one in values):
        msg = f"{field} must be a list of strings and whole numbers"
        raise ValueError(msg)
    return tuple(map(str, values))


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
