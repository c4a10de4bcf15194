"""The 2x2 tables of two judges, from which all statistics of a pair and their intervals come."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from airjudge.agreement import grouped_tables, percentile_interval, resampled_sums
from airjudge.agreement.arrays import defined
from airjudge.compare.frame import Bools, Floats, Indices
from airjudge.compare.records import Interval
from airjudge.run import BOOTSTRAP_SEED

Statistic = Callable[[Floats], Floats]
"""One of `airjudge.agreement.tables`: from tables (..., 4) to values (...), NaN where undefined."""


def seeded() -> np.random.Generator:
    """A generator with the seed of all figures here: the same verdicts give the same intervals."""
    return np.random.default_rng(BOOTSTRAP_SEED)


@dataclass(frozen=True, slots=True)
class Tabled:
    """Tables of two judges: of all statements, of each group, and of resamples of whole groups."""

    whole: Floats
    by_group: Floats
    drawn: Floats

    def value(self, statistic: Statistic) -> float | None:
        """A statistic of all statements."""
        return defined(statistic(self.whole))

    def interval(self, statistic: Statistic) -> Interval:
        """Its 95 % interval; None with fewer than two groups."""
        return percentile_interval(statistic(self.drawn)) if len(self.by_group) > 1 else None


def tabled(a: Bools, b: Bools, groups: Indices) -> Tabled:
    """Tables of two judges over the same statements, whose groups are given by number."""
    by_group = grouped_tables(a, b, groups)
    return Tabled(by_group.sum(axis=0), by_group, resampled_sums(by_group, rng=seeded()))
