"""Recalls of many samples added up, in a memory that grows with their kinds and their groups alone.

Samples without a group are exchangeable as soon as their numbers are equal, so they are counted by
kind; a million of them with one statement each are two entries. A real group has sums of its own.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Final

import numpy as np
import numpy.typing as npt

from airjudge.schema import ScoredSample

N_RESAMPLES: Final = 2000
_CELLS_AT_ONCE: Final = 4_000_000

Floats = npt.NDArray[np.float64]
Interval = tuple[float, float] | None


@dataclass(slots=True)
class Recalls:
    """Scored samples: `singles` by (score, attributed, statements), groups in columns of their sums."""

    singles: "Counter[tuple[float, int, int]]" = field(default_factory=Counter)
    place: dict[str, int] = field(default_factory=dict)
    scores: "array[float]" = field(default_factory=lambda: array("d"))
    n_scored: "array[float]" = field(default_factory=lambda: array("d"))
    attributed: "array[float]" = field(default_factory=lambda: array("d"))
    n_statements: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, sample: ScoredSample, score: float) -> None:
        """Count a scored sample: under its kind, or in the sums of its group."""
        attributed, n_statements = sum(v.attributed is True for v in sample.statements), len(sample.statements)
        if sample.group is None:
            self.singles[score, attributed, n_statements] += 1
            return
        place = self.place.setdefault(sample.group, len(self.place))
        columns = (self.scores, self.n_scored, self.attributed, self.n_statements)
        for column, value in zip(columns, (score, 1.0, attributed, n_statements), strict=True):
            if place == len(column):
                column.append(0.0)
            column[place] += value

    def totals(self) -> tuple[float, int, int, int]:
        """Sum of scores, scored samples, attributed statements and statements.

        The sum is the nearest float to the exact one, so the order of samples does not show in it.
        """
        score = exact_sum(((single[0], count) for single, count in self.singles.items()), self.scores)
        attributed = sum(single[1] * count for single, count in self.singles.items()) + sum(self.attributed)
        n_statements = sum(single[2] * count for single, count in self.singles.items()) + sum(self.n_statements)
        return score, self.singles.total() + int(sum(self.n_scored)), int(attributed), int(n_statements)

    def intervals(self, rng: np.random.Generator) -> tuple[Interval, Interval]:
        """Percentile intervals of the macro and of the micro mean, from resampling whole groups.

        Args:
            rng: Where the bootstrap's randomness comes from.

        Returns:
            None for both with fewer than two groups; a sample without group is its own.
        """
        n_groups = self.singles.total() + len(self.place)
        if n_groups < 2:
            return None, None
        # Groups with equal sums are exchangeable: how often each kind of group is drawn is
        # multinomial. That is the same bootstrap, at a cost that grows with the kinds alone.
        kinds, counts = self._kinds()
        chunk = max(1, _CELLS_AT_ONCE // len(kinds))
        drawn = np.concatenate(
            [
                rng.multinomial(n_groups, counts / n_groups, size=min(chunk, N_RESAMPLES - start)) @ kinds
                for start in range(0, N_RESAMPLES, chunk)
            ]
        )
        return _interval(drawn[:, 0], drawn[:, 1]), _interval(drawn[:, 2], drawn[:, 3])

    def _kinds(self) -> tuple[Floats, Floats]:
        """Distinct groups, shape (n_kinds, 4), in lexicographic order, and how many there are of each."""
        singles = [(score, 1.0, float(yes), float(n)) for score, yes, n in self.singles]
        columns = (self.scores, self.n_scored, self.attributed, self.n_statements)
        rows = np.concatenate(
            [np.array(singles, dtype=np.float64).reshape(-1, 4), np.array(columns, dtype=np.float64).T.reshape(-1, 4)]
        )
        weights = np.concatenate([np.array(list(self.singles.values()), dtype=np.float64), np.ones(len(self.place))])
        kinds, inverse = np.unique(rows, axis=0, return_inverse=True)
        return kinds, np.asarray(np.bincount(inverse.reshape(-1), weights=weights), dtype=np.float64)


def exact_sum(counted: Iterable[tuple[float, int]], others: Iterable[float] = ()) -> float:
    """The float nearest to the exact sum of values, each so many times, and of other values once."""
    repeated = chain.from_iterable(repeat(value, count) for value, count in counted)
    return math.fsum(chain(repeated, others))


def _interval(numerators: Floats, denominators: Floats) -> Interval:
    """Middle 95 % of the ratios, over the resamples that hold something to divide by."""
    filled = denominators > 0
    if not filled.any():
        return None
    low, high = np.quantile(numerators[filled] / denominators[filled], (0.025, 0.975))
    return float(low), float(high)
