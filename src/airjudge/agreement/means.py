"""Two judges' scores of the same samples: do their means differ, are they equivalent, do they move together."""

from typing import Final

import numpy as np
import numpy.typing as npt

from airjudge.agreement.arrays import Floats, check_finite, check_shapes, divided
from airjudge.agreement.clusters import clustered_mean, sums_by_group
from airjudge.agreement.resampling import Interval, table_bootstrap
from airjudge.schema import Record

_LEVEL: Final = 1e-12
"""Scores closer than this differ by rounding alone."""


class Difference(Record):
    """Mean of x less mean of y over the same samples, its 95 % interval, and over how many samples and groups."""

    mean: float | None
    ci95: Interval
    n: int
    n_groups: int


class Equivalence(Record):
    """Two one-sided tests that a mean difference lies within (-margin, margin).

    `p_lower` is that of the test against "at or below -margin", `p_upper` against "at or above margin", `p` the larger;
    `equivalent` is p below .05, which is the same as `ci90` inside the margin. None with fewer than two groups.
    """

    margin: float
    mean: float | None
    ci90: Interval
    p_lower: float | None
    p_upper: float | None
    p: float | None
    equivalent: bool | None
    n: int
    n_groups: int


def paired_difference(x: Floats, y: Floats, groups: npt.ArrayLike, *, rng: np.random.Generator) -> Difference:
    """Difference of two judges' mean recalls over the same samples, with its bootstrap interval over groups.

    Args:
        x: The first judge's score of each sample, shape (n_samples,).
        y: The second judge's, same shape, same order.
        groups: The group of each sample, same shape: any labels that sort; the sample's id if it has none.
        rng: Where the bootstrap's randomness comes from.

    Returns:
        The mean of x - y, each sample counting once. `mean` is None without samples, `ci95` with fewer than
        two groups.

    Raises:
        ValueError: If the shapes differ, or a score is NaN or infinite.

    Source:
        Percentile bootstrap of a ratio of sums over groups: Davison and Hinkley (1997), sections 3.8 and 5.3.
    """
    sums = _sums_of_differences(x, y, groups)
    interval = table_bootstrap(lambda rows: divided(rows[..., 0], rows[..., 1]), sums, rng=rng)
    return Difference(mean=float((x - y).mean()) if len(x) else None, ci95=interval, n=len(x), n_groups=len(sums))


def equivalence(x: Floats, y: Floats, groups: npt.ArrayLike, *, margin: float) -> Equivalence:
    """Test whether two judges' mean recalls differ by less than a margin: two one-sided t-tests.

    The tested mean is over samples. Its standard error is that of a ratio of sums over groups, with
    n_groups - 1 degrees of freedom; if every sample is its own group this is the paired t-test. Without any
    spread (two judges with equal scores) p is 0 inside the margin and 1 outside.

    Args:
        x: The first judge's score of each sample, shape (n_samples,).
        y: The second judge's, same shape, same order.
        groups: The group of each sample, same shape: any labels that sort; the sample's id if it has none.
        margin: The largest difference that does not matter, above 0, in the unit of the scores.

    Raises:
        ValueError: If the margin is not above 0, the shapes differ, or a score is NaN or infinite.

    Source:
        Schuirmann (1987), doi:10.1007/BF01068419; the standard error is Cochran (1977), Sampling
        Techniques, chapter 9A (ratio to size).
    """
    if not margin > 0:
        msg = f"the margin must be above 0: got {margin}"
        raise ValueError(msg)
    _check_scores(x, y)
    estimate = clustered_mean(x - y, groups)
    if estimate is None:
        return Equivalence(
            margin=margin, mean=float((x - y).mean()) if len(x) else None, ci90=None,
            p_lower=None, p_upper=None, p=None, equivalent=None, n=len(x), n_groups=min(len(x), 1),
        )  # fmt: skip
    p_lower, p_upper = estimate.p_above(-margin), estimate.p_below(margin)
    return Equivalence(
        margin=margin,
        mean=estimate.mean,
        ci90=estimate.interval(0.90),
        p_lower=p_lower,
        p_upper=p_upper,
        p=max(p_lower, p_upper),
        equivalent=max(p_lower, p_upper) < 0.05,
        n=len(x),
        n_groups=estimate.n_groups,
    )


def pearson(x: Floats, y: Floats) -> float | None:
    """Pearson's correlation of two judges' scores.

    Args:
        x: The first judge's score of each sample, shape (n_samples,).
        y: The second judge's, same shape, same order.

    Returns:
        In [-1, 1]. None with fewer than two samples, or if one judge gives every sample the same score.

    Raises:
        ValueError: If the shapes differ, or a score is NaN or infinite.

    Source:
        Pearson (1896). doi:10.1098/rsta.1896.0007
    """
    _check_scores(x, y)
    if len(x) < 2 or min(np.ptp(x), np.ptp(y)) < _LEVEL:
        return None
    a, b = x - x.mean(), y - y.mean()
    return float(np.clip((a @ b) / (np.linalg.norm(a) * np.linalg.norm(b)), -1, 1))


def spearman(x: Floats, y: Floats) -> float | None:
    """Spearman's rank correlation of two judges' scores: Pearson's of their ranks, ties sharing the mean rank.

    Args:
        x: The first judge's score of each sample, shape (n_samples,).
        y: The second judge's, same shape, same order.

    Returns:
        In [-1, 1]. None with fewer than two samples, or if one judge gives every sample the same score.

    Raises:
        ValueError: If the shapes differ, or a score is NaN or infinite.

    Source:
        Spearman (1904). doi:10.2307/1412159
    """
    _check_scores(x, y)
    return pearson(_ranks(x), _ranks(y))


def _sums_of_differences(x: Floats, y: Floats, groups: npt.ArrayLike) -> Floats:
    """Sum of differences and number of samples of each group, shape (n_groups, 2)."""
    _check_scores(x, y)
    return sums_by_group(np.stack([x - y, np.ones_like(x)], axis=1), groups)


def _ranks(scores: Floats) -> Floats:
    """Ranks from 1; scores that are level share their mean rank."""
    _, place, counts = np.unique(np.round(scores / _LEVEL), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place], dtype=np.float64)


def _check_scores(x: Floats, y: Floats) -> None:
    check_shapes(x, y)
    check_finite(x, y)
