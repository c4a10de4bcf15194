"""Intervals and tests that take whole groups as the unit, since statements of one document err together."""

from collections.abc import Callable
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt

from airjudge.agreement.arrays import Floats, Indices, check_finite

Interval = tuple[float, float] | None

DEFINED_SHARE: Final = 0.9
"""An interval needs at least this share of its resamples to have a value."""

_CELLS_AT_ONCE: Final = 4_000_000
_MANY_KINDS: Final = 2000
"""From so many kinds on, draws are made one by one: a binomial for each kind costs more."""

_ENUMERATED: Final = 14
"""Up to so many groups all signs are tried: 2^14 are about as many as are drawn otherwise."""


def cluster_bootstrap(
    statistic: Callable[[Indices], float | None],
    groups: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    n_resamples: int = 2000,
) -> Interval:
    """95 % percentile interval of a statistic, from resampling whole groups.

    Statements of one document err together; drawing groups keeps that, and drawing statements
    would make the interval too narrow. It calls the statistic for each resample: for what depends on
    sums over groups alone, `table_bootstrap` does the same a thousand times faster.

    Args:
        statistic: Its value over the statements at these positions; None where undefined.
        groups: The group of each statement, shape (n_statements,): any labels that sort.
        rng: Where the randomness comes from.
        n_resamples: How many times as many groups are drawn, with replacement, as there are.

    Returns:
        (low, high), over the resamples where the statistic is defined. None if there are fewer
        than two groups, or if it is defined in less than DEFINED_SHARE of the resamples.

    Source:
        Davison and Hinkley (1997), Bootstrap Methods and their Application, sections 3.8 and 5.3.
    """
    _, group_of = np.unique(np.asarray(groups), return_inverse=True)
    members = np.split(np.argsort(group_of, kind="stable"), np.cumsum(np.bincount(group_of))[:-1])
    if len(members) < 2:
        return None
    draws = (rng.integers(len(members), size=len(members)) for _ in range(n_resamples))
    values = [statistic(np.concatenate([members[g] for g in draw])) for draw in draws]
    return percentile_interval(np.array([np.nan if value is None else value for value in values]))


def weight_bootstrap(
    statistic: Callable[[Floats], float | None],
    groups: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    n_resamples: int = 2000,
) -> Interval:
    """`cluster_bootstrap` for a statistic of how often each statement was drawn, without gathering statements.

    Args:
        statistic: Its value where statement i counts weights[i] times, weights of shape (n_statements,); None
            where undefined.
        groups: The group of each statement, shape (n_statements,): any labels that sort.
        rng: Where the randomness comes from; the same draws as `cluster_bootstrap` makes of it.
        n_resamples: How many times as many groups are drawn, with replacement, as there are.

    Returns:
        (low, high), as `cluster_bootstrap` has it.

    Source:
        Davison and Hinkley (1997), sections 3.8 and 5.3.
    """
    names, group_of = np.unique(np.asarray(groups), return_inverse=True)
    n_groups = len(names)
    if n_groups < 2:
        return None
    draws = (rng.integers(n_groups, size=n_groups) for _ in range(n_resamples))
    times = (np.bincount(draw, minlength=n_groups).astype(np.float64) for draw in draws)
    values = [statistic(drawn[group_of]) for drawn in times]
    return percentile_interval(np.array([np.nan if value is None else value for value in values]))


def table_bootstrap(
    statistic: Callable[[Floats], Floats],
    tables: Floats,
    *,
    rng: np.random.Generator,
    n_resamples: int = 2000,
) -> Interval:
    """95 % percentile interval of a statistic of 2x2 tables, from resampling whole groups.

    Args:
        statistic: One of `airjudge.agreement.tables`, or any function of arrays (..., n_columns) that gives
            (...), NaN where undefined.
        tables: One row of counts for each group, shape (n_groups, n_columns); see `grouped_tables`.
        rng: Where the randomness comes from.
        n_resamples: How many times as many groups are drawn, with replacement, as there are.

    Returns:
        (low, high), as `cluster_bootstrap` has it. If the judges never disagree every resample says so
        too, and the interval is the point 1: it then shows the sample, not what larger ones may hold.

    Source:
        Davison and Hinkley (1997), sections 3.8 and 5.3.
    """
    if len(tables) < 2:
        return None
    return percentile_interval(statistic(resampled_sums(tables, rng=rng, n_resamples=n_resamples)))


def resampled_sums(rows: Floats, *, rng: np.random.Generator, n_resamples: int = 2000) -> Floats:
    """Sums of as many rows as there are, drawn with replacement, so many times.

    Equal rows are exchangeable, so how often each kind of row is drawn is multinomial: the same bootstrap, at a
    cost that grows with the kinds of rows alone, as long as they are few. The order of rows does not show in it.

    Args:
        rows: One row for each group, shape (n_groups, n_columns).
        rng: Where the randomness comes from.
        n_resamples: How many sums.

    Returns:
        Shape (n_resamples, n_columns); zeros if there is no row.
    """
    if len(rows) == 0:
        return np.zeros((n_resamples, rows.shape[1]))
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    n_rows = len(rows)
    if len(kinds) > max(_MANY_KINDS, n_rows // 16):
        ordered = np.repeat(kinds, counts, axis=0)
        draws = (rng.integers(n_rows, size=n_rows) for _ in range(n_resamples))
        return np.stack([np.bincount(draw, minlength=n_rows) @ ordered for draw in draws])
    chunk = max(1, _CELLS_AT_ONCE // len(kinds))
    sizes = (min(chunk, n_resamples - start) for start in range(0, n_resamples, chunk))
    return np.concatenate([rng.multinomial(n_rows, counts / n_rows, size=size) @ kinds for size in sizes])


def percentile_interval(values: Floats) -> Interval:
    """Middle 95 % of the resamples that have a value; None if fewer than DEFINED_SHARE of them do."""
    has_value = ~np.isnan(values)
    if not has_value.any() or has_value.mean() < DEFINED_SHARE:
        return None
    low, high = np.quantile(values[has_value], (0.025, 0.975))
    return float(low), float(high)


def sign_flip_test(differences: Floats, *, rng: np.random.Generator, n_permutations: int = 10_000) -> float | None:
    """Two-sided permutation test of paired differences, one for each group: p of a sum so far from 0.

    If two judges are exchangeable within a group, its difference is as likely with the other sign. Beside McNemar's
    test it keeps what McNemar's ignores: that statements of one sample err together. The difference of a group is
    then how many statements only the first judge rules true, less how many only the second.

    Args:
        differences: One for each group, shape (n_groups,).
        rng: Where the randomness comes from; not used if there are few groups.
        n_permutations: How many draws of signs, where there are more than 14 differences other than 0.

    Returns:
        In (0, 1]: exact over all signs for up to 14 differences other than 0, else (1 + as extreme) /
        (1 + n_permutations), which never understates. None if every difference is 0: nothing to test.

    Raises:
        ValueError: If a difference is NaN or infinite, or the array is not one-dimensional.

    Source:
        Fisher (1935), The Design of Experiments, section 21; Phipson and Smyth (2010) for the +1.
        doi:10.2202/1544-6115.1585
    """
    check_finite(differences)
    if differences.ndim != 1:
        msg = f"differences must have the shape (n_groups,): got {differences.shape}"
        raise ValueError(msg)
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    if counts.sum() == 0:
        return None
    # Sums of the same numbers in another order may differ in their last digits: those are ties.
    limit = abs(float(differences.sum())) - 1e-9 * float(np.abs(differences).sum())
    if counts.sum() <= _ENUMERATED:
        signs = np.array(list(product((-1.0, 1.0), repeat=int(counts.sum()))))
        return float(np.mean(np.abs(signs @ np.repeat(sizes, counts)) >= limit))
    extreme = int((np.abs(_sums_under_random_signs(sizes, counts, rng=rng, n=n_permutations)) >= limit).sum())
    return (1 + extreme) / (1 + n_permutations)


def _sums_under_random_signs(sizes: Floats, counts: Indices, *, rng: np.random.Generator, n: int) -> Floats:
    """Sums of sizes, each as often as it is counted, with a fair sign each time; shape (n,)."""
    if len(sizes) > _MANY_KINDS:
        values = np.repeat(sizes, counts)
        signs = (rng.integers(0, 2, size=len(values), dtype=np.bool_) for _ in range(n))
        return np.array([2 * float(values[plus].sum()) for plus in signs]) - float(values.sum())
    chunk = max(1, _CELLS_AT_ONCE // len(sizes))
    shapes = ((min(chunk, n - start), len(sizes)) for start in range(0, n, chunk))
    # Of m equal sizes the number with a plus is binomial, so their sum is size · (2 plus - m).
    return np.concatenate([(2 * rng.binomial(counts, 0.5, size=shape) - counts) @ sizes for shape in shapes])
