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
class Sums:
    """Rows of so many numbers, to be added up: single ones counted by kind, groups in columns of their sums."""

    width: int
    singles: "Counter[tuple[float, ...]]" = field(default_factory=Counter)
    place: dict[str, int] = field(default_factory=dict)
    columns: "list[array[float]]" = field(init=False)

    def __post_init__(self) -> None:
        """Begin with no group."""
        self.columns = [array("d") for _ in range(self.width)]

    def add(self, row: tuple[float, ...], group: str | None) -> None:
        """Count a sample's row: under its kind, or in the sums of its group."""
        if group is None:
            self.singles[row] += 1
            return
        place = self.place.setdefault(group, len(self.place))
        for column, value in zip(self.columns, row, strict=True):
            if place == len(column):
                column.append(0.0)
            column[place] += value

    def totals(self) -> tuple[float, ...]:
        """The sum of each number, the nearest float to the exact one, so that the order of samples does not show."""
        return tuple(
            exact_sum(((single[at], count) for single, count in self.singles.items()), column)
            for at, column in enumerate(self.columns)
        )

    def drawn(self, rng: np.random.Generator) -> Floats | None:
        """Sums of `N_RESAMPLES` resamples of whole groups, shape (N_RESAMPLES, width).

        Args:
            rng: Where the bootstrap's randomness comes from.

        Returns:
            None with fewer than two groups; a sample without group is its own.
        """
        n_groups = self.singles.total() + len(self.place)
        if n_groups < 2:
            return None
        # Groups with equal sums are exchangeable: how often each kind of group is drawn is
        # multinomial. That is the same bootstrap, at a cost that grows with the kinds alone.
        kinds, counts = self._kinds()
        chunk = max(1, _CELLS_AT_ONCE // len(kinds))
        return np.concatenate(
            [
                rng.multinomial(n_groups, counts / n_groups, size=min(chunk, N_RESAMPLES - start)) @ kinds
                for start in range(0, N_RESAMPLES, chunk)
            ]
        )

    def _kinds(self) -> tuple[Floats, Floats]:
        """Distinct groups, shape (n_kinds, width), in lexicographic order, and how many there are of each."""
        rows = np.concatenate(
            [
                np.array(list(self.singles), dtype=np.float64).reshape(-1, self.width),
                np.array(self.columns, dtype=np.float64).T.reshape(-1, self.width),
            ]
        )
        weights = np.concatenate([np.array(list(self.singles.values()), dtype=np.float64), np.ones(len(self.place))])
        kinds, inverse = np.unique(rows, axis=0, return_inverse=True)
        return kinds, np.asarray(np.bincount(inverse.reshape(-1), weights=weights), dtype=np.float64)


@dataclass(slots=True)
class Recalls:
    """Scored samples: rows of (score, 1, attributed, statements)."""

    sums: Sums = field(default_factory=lambda: Sums(4))

    def add(self, sample: ScoredSample, score: float) -> None:
        """Count a scored sample: under its kind, or in the sums of its group."""
        attributed, n_statements = sum(v.attributed is True for v in sample.statements), len(sample.statements)
        self.sums.add((score, 1.0, attributed, n_statements), sample.group)

    def totals(self) -> tuple[float, int, int, int]:
        """Sum of scores, scored samples, attributed statements and statements."""
        score, n_scored, attributed, n_statements = self.sums.totals()
        return score, int(n_scored), int(attributed), int(n_statements)

    def intervals(self, rng: np.random.Generator) -> tuple[Interval, Interval]:
        """Percentile intervals of the macro and of the micro mean, from resampling whole groups.

        Args:
            rng: Where the bootstrap's randomness comes from.

        Returns:
            None for both with fewer than two groups; a sample without group is its own.
        """
        drawn = self.sums.drawn(rng)
        if drawn is None:
            return None, None
        return interval_of(drawn[:, 0], drawn[:, 1]), interval_of(drawn[:, 2], drawn[:, 3])


def exact_sum(counted: Iterable[tuple[float, int]], others: Iterable[float] = ()) -> float:
    """The float nearest to the exact sum of values, each so many times, and of other values once."""
    repeated = chain.from_iterable(repeat(value, count) for value, count in counted)
    return math.fsum(chain(repeated, others))


def interval_of(numerators: Floats, denominators: Floats) -> Interval:
    """Middle 95 % of the ratios, over the resamples that hold something to divide by."""
    filled = denominators > 0
    if not filled.any():
        return None
    low, high = np.quantile(numerators[filled] / denominators[filled], (0.025, 0.975))
    return float(low), float(high)
