"""Many scored samples in a few numbers, with the intervals, bounds and slices that belong to them."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from airjudge.calibration import abstains
from airjudge.schema import (
    Abstained,
    ChunkMeans,
    ClaimCounts,
    Claims,
    EchoCounts,
    Echoes,
    Rates,
    ScoredSample,
    Slice,
    Summary,
    Suspected,
    SuspicionKind,
    Usage,
)
from airjudge.scoring import recall_bounds
from airjudge.tally import Interval, Recalls, Sums, exact_sum, interval_of

MAX_VALUES: Final = 50
"""Values of a column that get a slice of their own: the first ones met, since a stream is read once."""

NONE, OTHER = "(none)", "(other)"

_FIGURES: Final = ("precision", "average_precision", "reciprocal_rank")


@dataclass(slots=True)
class _Part:
    """The samples of a slice, or all of them."""

    status: Counter[str] = field(default_factory=Counter)
    recalls: Recalls = field(default_factory=Recalls)

    def add(self, sample: ScoredSample) -> None:
        """Count one sample."""
        self.status[sample.status] += 1
        if sample.status == "scored":
            if sample.score is None:
                msg = f"sample {sample.id} is scored, but has no score"
                raise ValueError(msg)
            self.recalls.add(sample, sample.score)


@dataclass(slots=True)
class _Doubts:
    """The verdicts of scored samples that lie in a band, and what recall is at least and at most with them."""

    band: tuple[float, float] | None
    lows: Counter[float] = field(default_factory=Counter)
    highs: Counter[float] = field(default_factory=Counter)
    n_samples: int = 0
    n_statements: int = 0
    n_sure: int = 0

    def add(self, sample: ScoredSample) -> None:
        """Count a scored sample, if anybody asked."""
        if self.band is None:
            return
        if not sample.statements:  # a grade, which no band is of
            self.lows[sample.score or 0.0] += 1
            self.highs[sample.score or 0.0] += 1
            return
        doubted = [abstains(one, self.band) for one in sample.statements]
        n_sure = sum(one.attributed is True for one, doubt in zip(sample.statements, doubted, strict=True) if not doubt)
        self.lows[n_sure / len(doubted)] += 1
        self.highs[(n_sure + sum(doubted)) / len(doubted)] += 1
        self.n_samples += any(doubted)
        self.n_statements += sum(doubted)
        self.n_sure += n_sure

    def record(self, n_scored: int, n_statements: int) -> Abstained | None:
        """What the summary tells of it; None without a band."""
        if self.band is None:
            return None
        low, high = (exact_sum(counted.items()) for counted in (self.lows, self.highs))
        n_possible = self.n_sure + self.n_statements
        return Abstained(
            band=self.band,
            n_statements=self.n_statements,
            n_samples=self.n_samples,
            bounds=(low / n_scored, high / n_scored) if n_scored else None,
            micro_bounds=(self.n_sure / n_statements, n_possible / n_statements) if n_statements else None,
        )


@dataclass(slots=True)
class _Accounts:
    """The accounts of single calls, added up."""

    counts: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, echoes: Echoes | None) -> None:
        """Count one sample's, if it has one."""
        if echoes is None:
            return
        self.counts.update(n_samples=1, **echoes.model_dump(exclude={"coverage", "error"}))
        if echoes.error is not None:
            self.errors[echoes.error] += 1

    def record(self) -> EchoCounts | None:
        """What the summary tells of them; None if no single call was made."""
        if not self.counts:
            return None
        n_told = self.counts["n_once"] + self.counts["n_split"] + self.counts["n_repeated"]
        coverage = _ratio(n_told, n_told + self.counts["n_missing"])
        return EchoCounts(**self.counts, coverage=coverage, errors=dict(sorted(self.errors.items())))


@dataclass(slots=True)
class _Marks:
    """Samples with a mark, by kind, and the scores of those without."""

    n_samples: int = 0
    kinds: Counter[SuspicionKind] = field(default_factory=Counter)
    others: Counter[float] = field(default_factory=Counter)

    def add(self, sample: ScoredSample) -> None:
        """Count one sample."""
        self.n_samples += bool(sample.suspicions)
        self.kinds.update({one.kind for one in sample.suspicions})
        if sample.score is not None and not sample.suspicions:
            self.others[sample.score] += 1

    def record(self) -> Suspected | None:
        """What the summary tells of them; None if no sample is marked."""
        if not self.n_samples:
            return None
        n_scored = self.others.total()
        return Suspected(
            n_samples=self.n_samples,
            kinds=dict(sorted(self.kinds.items())),
            n_scored_without=n_scored,
            mean_without=_ratio(exact_sum(self.others.items()), n_scored),
        )


@dataclass(slots=True)
class _Worths:
    """What the contexts of scored samples are worth, added up: rows of three figures and 1."""

    sums: Sums = field(default_factory=lambda: Sums(4))
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, sample: ScoredSample) -> None:
        """Count a scored sample, if its contexts were asked about."""
        told = sample.chunks
        if told is None:
            return
        figures = told.precision, told.average_precision, told.reciprocal_rank
        known = [one for one in figures if one is not None]
        if len(known) == len(figures):
            self.sums.add((*known, 1.0), sample.group)
        self.counts["n_without"] += len(known) < len(figures)
        for support in (one.support for one in sample.statements if one.support is not None):
            rulings = [one.attributed for one in support]
            self.counts["n_alone"] += True in rulings
            self.counts["n_together"] += all(one is False for one in rulings)
        self.counts["n_supported"] += sum(one.attributed is True for one in sample.statements)

    def record(self, rng: np.random.Generator) -> ChunkMeans | None:
        """What the summary tells of it; None if nobody asked."""
        if not self.counts:
            return None
        *sums, n_samples = self.sums.totals()
        drawn = self.sums.drawn(rng)
        means = {name: _ratio(value, int(n_samples)) for name, value in zip(_FIGURES, sums, strict=True)}
        intervals = {
            f"{name}_ci95": None if drawn is None else interval_of(drawn[:, at], drawn[:, -1])
            for at, name in enumerate(_FIGURES)
        }
        counts = {name: self.counts[name] for name in ("n_without", "n_supported", "n_alone", "n_together")}
        found: dict[str, object] = {"n_samples": int(n_samples), **counts, **means, **intervals}
        return ChunkMeans.model_validate(found)


@dataclass(slots=True)
class _Whole:
    """All samples, with what only their summary says."""

    doubts: _Doubts
    part: _Part = field(default_factory=_Part)
    failures: Counter[str] = field(default_factory=Counter)
    lows: Counter[float] = field(default_factory=Counter)
    highs: Counter[float] = field(default_factory=Counter)
    claims: Counter[str] = field(default_factory=Counter)
    claim_errors: Counter[str] = field(default_factory=Counter)
    echoes: _Accounts = field(default_factory=_Accounts)
    marks: _Marks = field(default_factory=_Marks)
    worths: _Worths = field(default_factory=_Worths)
    n_empty_contexts: int = 0
    n_in_parts: int = 0
    n_verdicts: int = 0
    n_unjudged: int = 0

    def add(self, sample: ScoredSample) -> None:
        """Count one sample, and what its failure leaves open."""
        self.part.add(sample)
        self._add_claims(sample.claims)
        self.echoes.add(sample.echoes)
        self.marks.add(sample)
        if sample.status == "scored":
            self.doubts.add(sample)
            self.worths.add(sample)
        n_judged = sum(v.attributed is not None for v in sample.statements)
        self.n_verdicts += n_judged
        self.n_unjudged += len(sample.statements) - n_judged
        self.n_in_parts += sum(one.n_parts is not None for one in sample.statements)
        self.n_empty_contexts += sample.status == "scored" and sample.empty_contexts
        if sample.status == "failed":
            self.failures[sample.error.kind if sample.error else "unknown"] += 1
            low, high = recall_bounds(sample.statements)
            self.lows[low] += 1
            self.highs[high] += 1

    def _add_claims(self, claims: Claims | None) -> None:
        if claims is None:
            return
        without = claims.n_claims == 0
        self.claims.update(n_samples=1, n_without=without, **claims.model_dump(exclude={"error"}))
        if claims.error is not None:
            self.claim_errors[claims.error] += 1

    def claim_counts(self) -> ClaimCounts | None:
        """What came of asking for claims; None if no sample's were asked for."""
        errors = dict(sorted(self.claim_errors.items()))
        return ClaimCounts(**self.claims, errors=errors) if self.claims else None


class _Slices:
    """The parts of one column: at most `MAX_VALUES` values, samples without one, and the rest."""

    def __init__(self, column: str) -> None:
        self.column = column
        self.values: dict[str, _Part] = {}
        # Apart from the values: a column may well hold the text "(none)".
        self.none, self.other = _Part(), _Part()

    def add(self, sample: ScoredSample) -> None:
        value = column_text(sample.group if self.column == "group" else sample.metadata.get(self.column))
        if value is None:
            self.none.add(sample)
        elif value in self.values or len(self.values) < MAX_VALUES:
            self.values.setdefault(value, _Part()).add(sample)
        else:
            self.other.add(sample)

    def records(self, seed: int) -> list[Slice]:
        """Largest first, then by value; what has no value of its own comes last."""
        ordered = sorted(self.values.items(), key=lambda item: (-item[1].status.total(), item[0]))
        last = [(label, part) for label, part in ((NONE, self.none), (OTHER, self.other)) if part.status]
        return [_slice(self.column, value, part, seed=seed) for value, part in [*ordered, *last]]


def summarise(
    samples: Iterable[ScoredSample],
    *,
    rng: np.random.Generator,
    by: Sequence[str] = (),
    band: tuple[float, float] | None = None,
) -> Summary:
    """Mean recall of many samples, its interval, how many have no score, and the same of slices.

    Args:
        samples: Read once; memory grows with the number of groups only.
        rng: Where the bootstrap's randomness comes from.
        by: Metadata columns to slice by; `group` is the sample's group.
        band: Probabilities of verdicts that are left to people, ends included; None if none are.

    Returns:
        `mean` is over scored samples (macro), `micro_mean` over their statements, of which there
        are `n_statements`. `ci95` and `micro_ci95` are percentile intervals from resampling whole
        groups (a sample without group is its own); None with fewer than two groups. `bounds` are
        over scored and failed samples; undefined samples stay out of everything but their count.

    Raises:
        ValueError: If a sample says that it is scored and has no score.
    """
    whole, columns = _Whole(_Doubts(band)), [_Slices(column) for column in dict.fromkeys(by)]
    for sample in samples:
        whole.add(sample)
        for column in columns:
            column.add(sample)
    ci95, micro_ci95 = whole.part.recalls.intervals(rng)
    # One seed for all slices and for the contexts: the interval of one does not depend on which others were asked for.
    seed = int(rng.integers(2**63))
    slices = tuple(record for column in columns for record in column.records(seed))
    told = {"slices": slices, "chunks": whole.worths.record(np.random.default_rng(seed))}
    return _means(whole, ci95, micro_ci95).model_copy(update=told)


def rates(summary: Summary, usage: Usage, *, seconds: float) -> Rates | None:
    """How fast a run went; None without time.

    Args:
        summary: Of all its samples.
        usage: Tokens of all starts of the run together.
        seconds: Wall time of the same starts.
    """
    if seconds <= 0:
        return None
    return Rates(
        verdicts=summary.n_verdicts / seconds,
        samples=summary.n / seconds,
        computed_prompt_tokens=(usage.prompt_tokens - usage.cached_tokens) / seconds,
    )


def _means(whole: _Whole, ci95: Interval, micro_ci95: Interval) -> Summary:
    status, recalls = whole.part.status, whole.part.recalls
    scores, n_scored, attributed, n_statements = recalls.totals()
    return Summary(
        n=status.total(),
        n_scored=n_scored,
        n_undefined=status["undefined"],
        n_failed=status["failed"],
        mean=_ratio(scores, n_scored),
        ci95=ci95,
        micro_mean=_ratio(attributed, n_statements),
        micro_ci95=micro_ci95,
        bounds=_bounds(whole, scores),
        n_statements=n_statements,
        n_verdicts=whole.n_verdicts,
        n_unjudged=whole.n_unjudged,
        sample_coverage=_ratio(n_scored, status.total()),
        statement_coverage=_ratio(whole.n_verdicts, whole.n_verdicts + whole.n_unjudged),
        n_empty_contexts=whole.n_empty_contexts,
        n_in_parts=whole.n_in_parts,
        failures=dict(sorted(whole.failures.items())),
        claims=whole.claim_counts(),
        echoes=whole.echoes.record(),
        abstained=whole.doubts.record(n_scored, n_statements),
        suspected=whole.marks.record(),
    )


def _slice(column: str, value: str, part: _Part, *, seed: int) -> Slice:
    """The record of a part; half a surrogate pair in its value becomes text that JSON can hold."""
    scores, n_scored, attributed, n_statements = part.recalls.totals()
    ci95, _ = part.recalls.intervals(np.random.default_rng(seed))
    return Slice(
        column=column,
        value=value.encode("utf-8", "backslashreplace").decode(),
        n=part.status.total(),
        n_scored=n_scored,
        n_undefined=part.status["undefined"],
        n_failed=part.status["failed"],
        mean=_ratio(scores, n_scored),
        ci95=ci95,
        micro_mean=_ratio(attributed, n_statements),
        n_statements=n_statements,
    )


def _bounds(whole: _Whole, scores: float) -> Interval:
    """What the mean over scored and failed samples is at least and at most."""
    n_bounded = whole.part.status["scored"] + whole.part.status["failed"]
    if not n_bounded:
        return None
    low, high = (exact_sum(counted.items(), (scores,)) for counted in (whole.lows, whole.highs))
    return low / n_bounded, high / n_bounded


def _ratio(numerator: float, denominator: int) -> float | None:
    return numerator / denominator if denominator else None


def column_text(value: object) -> str | None:
    """A metadata value as text: strings as they are, others as JSON, so that true and "true" are one value.

    Returns:
        None for a missing value, which JSON's null and the NaN of tables are too.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
