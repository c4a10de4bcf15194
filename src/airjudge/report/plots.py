"""Drawings of two judges' scores, and of a judge's probabilities against people's labels."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from airjudge.calibration.reliability import Bin
from airjudge.report.charts import LEFT, RIGHT, Point, dot, drawing, line, scale, text
from airjudge.report.markup import Element, Node

_HEIGHT: Final = 300
_TOP: Final = 14
_FLOOR: Final = _HEIGHT - 44
_LARGEST: Final = 9.0
"""Radius in pixels of the dot that stands for most."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Differences of paired scores: their mean, and the limits that 95 % of them lie within if they are normal.

    Source:
        Bland and Altman (1986). doi:10.1016/S0140-6736(86)90837-8
    """

    n: int
    mean: float
    low: float
    high: float


def spread(pairs: Sequence[tuple[float, float]]) -> Spread | None:
    """The limits of agreement of paired scores; None with fewer than two pairs."""
    if len(pairs) < 2:
        return None
    differences = [a - b for a, b in pairs]
    mean, deviation = statistics.fmean(differences), statistics.stdev(differences)
    return Spread(len(pairs), mean, mean - 1.96 * deviation, mean + 1.96 * deviation)


def bland_altman(pairs: Sequence[tuple[float, float]], found: Spread) -> Element:
    """Difference over mean of paired scores; pairs that would hide each other are one larger dot."""
    at = Counter((round((a + b) / 2, 2), round(a - b, 2)) for a, b in pairs)
    parts: list[Node] = [*_axes("mean of both recalls", "difference", ticks=(-1, -0.5, 0, 0.5, 1), low=-1.0)]
    for value, name, kind in (
        (found.high, "+1.96 SD", "limit"),
        (found.mean, "mean", "mean"),
        (found.low, "−1.96 SD", "limit"),
    ):
        y = _y(max(-1.0, min(1.0, value)), low=-1.0)
        parts.append(line((LEFT, y), (RIGHT, y), kind=kind))
        parts.append(text((_x(0.875), y - 4), f"{name} {value:+.2f}", kind="name"))
    parts += _dots(((x, _y(y, low=-1.0)), count) for (x, y), count in at.items())
    return drawing(_HEIGHT, *parts, kind="square")


def reliability_diagram(bins: Sequence[Bin]) -> Element:
    """The share that people found attributed over the judge's probability; on the diagonal both are the same."""
    parts: list[Node] = [*_axes("probability by the judge", "share by people", ticks=(0, 0.25, 0.5, 0.75, 1), low=0.0)]
    parts.append(line((_x(0), _y(0)), (_x(1), _y(1)), kind="guide"))
    parts += _dots(((one.mean_probability, _y(one.share_positive)), one.n) for one in bins)
    return drawing(_HEIGHT, *parts, kind="square")


def _axes(across: str, upward: str, *, ticks: Sequence[float], low: float) -> Iterable[Node]:
    yield line((LEFT, _FLOOR), (RIGHT, _FLOOR), kind="axis")
    for value in ticks:
        y = _y(value, low=low)
        yield line((LEFT, y), (RIGHT, y), kind="grid")
        yield text((LEFT - 1.2, y + 4), f"{value:g}", kind="end")
    for value in (0, 0.25, 0.5, 0.75, 1):
        yield text((_x(value), _FLOOR + 17), f"{value:g}", kind="tick")
    yield text(((LEFT + RIGHT) / 2, _HEIGHT - 6), across, kind="name")
    yield text((LEFT, _TOP - 4), upward, kind="start")


def _dots(placed: Iterable[tuple[Point, int]]) -> Iterable[Node]:
    """Dots whose areas are as their counts, the largest first, so that none is hidden."""
    points = sorted(placed, key=lambda one: -one[1])
    most = max((count for _, count in points), default=1)
    for (x, y), count in points:
        yield dot((_x(x), y), max(2.5, _LARGEST * math.sqrt(count / most)), kind="point")


def _x(value: float) -> float:
    return scale(value, start=LEFT + 3, end=RIGHT - 3)


def _y(value: float, *, low: float = 0.0) -> float:
    return scale(value, low=low, start=_FLOOR, end=_TOP)
