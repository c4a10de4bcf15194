"""Monotone maps from a judge's probability to one that means what it says."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, FiniteFloat, model_validator

from airjudge.schema import Record
from airjudge.scoring import log_odds, logistic

MapKind = Literal["logistic", "isotonic"]
Probability = Annotated[float, Field(ge=0, le=1)]


class LogisticMap(Record):
    """A line in log-odds: log-odds of the mapped probability = slope * log-odds + intercept.

    Source:
        Platt (1999), Probabilistic Outputs for Support Vector Machines.
    """

    kind: Literal["logistic"] = "logistic"
    slope: Annotated[FiniteFloat, Field(ge=0)]
    intercept: FiniteFloat

    def __call__(self, probability: float) -> float:
        """Map one probability."""
        return logistic(self.slope * log_odds(probability) + self.intercept)


class IsotonicMap(Record):
    """Straight lines in log-odds between knots, level beyond the first and the last.

    `odds` are the knots' log-odds, ascending; `values` are the mapped probabilities there, never falling.

    Source:
        Zadrozny and Elkan (2002). doi:10.1145/775047.775151
    """

    kind: Literal["isotonic"] = "isotonic"
    odds: Annotated[tuple[FiniteFloat, ...], Field(min_length=1)]
    values: tuple[Probability, ...]

    @model_validator(mode="after")
    def _is_monotone(self) -> Self:
        if len(self.odds) != len(self.values) or not _rises(self.odds) or list(self.values) != sorted(self.values):
            msg = "an isotonic map needs a value for each knot, knots that rise and values that never fall"
            raise ValueError(msg)
        return self

    def __call__(self, probability: float) -> float:
        """Map one probability."""
        odds = log_odds(probability)
        right = bisect_right(self.odds, odds)
        if right == 0:
            return self.values[0]
        if right == len(self.odds):
            return self.values[-1]
        low, high = self.values[right - 1], self.values[right]
        share = (odds - self.odds[right - 1]) / (self.odds[right] - self.odds[right - 1])
        return min(low + share * (high - low), high)


ProbabilityMap = Annotated[LogisticMap | IsotonicMap, Field(discriminator="kind")]


def _rises(values: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise(values))
