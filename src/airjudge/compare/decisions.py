"""Whether a decision depends on the judge: a gate that passes or not, systems that are ranked."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy import stats

from airjudge.compare.columns import Column
from airjudge.compare.frame import Bools, Floats
from airjudge.compare.judges import Judge
from airjudge.compare.records import GateDecision, GateOutcome, Ranking, RankingPair, SystemMeans
from airjudge.gates import TOLERANCE, FailUnder


def gate_decision(judges: Sequence[Judge], limit: float) -> GateDecision:
    """Hold each judge's mean recall against a limit, as `airjudge score --fail-under` does."""
    results = [FailUnder(limit).check(judge.summary) for judge in judges]
    outcomes = tuple(
        GateOutcome(judge=judge.name, value=result.value, passed=result.passed)
        for judge, result in zip(judges, results, strict=True)
    )
    return GateDecision(limit=limit, outcomes=outcomes, flips=len({one.passed for one in outcomes}) > 1)


def ranking(judges: Sequence[Judge], column: Column) -> Ranking:
    """Rank the systems, the values of a column, by each judge; samples without a value belong to none."""
    pairs = tuple(_pair(a, b, column) for a, b in combinations(judges, 2))
    return Ranking(
        column=column.name,
        systems=column.named,
        judges=tuple(_means(judge, column) for judge in judges),
        pairs=pairs,
        flips=any(pair.flipped for pair in pairs),
    )


def _means(judge: Judge, column: Column) -> SystemMeans:
    scores = judge.rulings.scores
    means, counts = system_means(scores, ~np.isnan(scores), column)
    return SystemMeans(
        judge=judge.name,
        means=tuple(None if np.isnan(mean) else float(mean) for mean in means),
        n_samples=tuple(int(count) for count in counts),
    )


def system_means(scores: Floats, scored: Bools, column: Column) -> tuple[Floats, Floats]:
    """Mean score of each system over scored samples, NaN without any, and the number of samples."""
    n_systems = len(column.named)
    places = np.flatnonzero(scored & (column.of_sample < n_systems))
    systems = column.of_sample[places]
    counts = np.bincount(systems, minlength=n_systems).astype(np.float64)
    sums = np.bincount(systems, weights=scores[places], minlength=n_systems)
    return np.divide(sums, counts, out=np.full(n_systems, np.nan), where=counts > 0), counts


def _pair(a: Judge, b: Judge, column: Column) -> RankingPair:
    """Two judges over the samples that both scored, so that a flip is theirs and not that of other samples."""
    shared = ~np.isnan(a.rulings.scores + b.rulings.scores)
    of_a, counts = system_means(a.rulings.scores, shared, column)
    of_b, _ = system_means(b.rulings.scores, shared, column)
    known = np.flatnonzero(counts > 0)
    return RankingPair(
        a=a.name,
        b=b.name,
        n_samples=int(counts.sum()),
        tau=_tau(of_a[known], of_b[known]),
        flipped=tuple(
            (column.named[first], column.named[second])
            for one, other in combinations(known, 2)
            for first, second in ((one, other), (other, one))
            if of_a[first] > of_a[second] + TOLERANCE and of_b[second] > of_b[first] + TOLERANCE
        ),
    )


def _tau(x: Floats, y: Floats) -> float | None:
    """Kendall's tau-b; None with fewer than two systems, or where a judge finds all of them equal.

    Source:
        Kendall (1945). doi:10.1093/biomet/33.3.239
    """
    if len(x) < 2 or np.ptp(x) <= TOLERANCE or np.ptp(y) <= TOLERANCE:
        return None
    return float(stats.kendalltau(np.round(x, 9), np.round(y, 9)).statistic)
