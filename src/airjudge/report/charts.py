"""Drawings as inline SVG. Widths are in percent, so that text keeps its size on a phone; colours come from the style.

Each is hidden from screen readers, and stands beside a table that says the same.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from airjudge.report.markup import Element, Node, element

LEFT: Final = 9.0
"""Percent of the width that the labels of a vertical axis take."""
RIGHT: Final = 98.0
_TOP, _FOOT = 16, 34
Point = tuple[float, float]
"""x in percent of the width, y in pixels."""
N_BINS: Final = 10


def drawing(height: int, *children: Node | None, kind: str = "") -> Element:
    """An SVG as wide as its place, `height` pixels high."""
    shape = {"class": f"chart {kind}".strip(), "height": str(height), "width": "100%", "aria-hidden": "true"}
    return element("svg", shape, *children)


def scale(value: float, *, low: float = 0.0, high: float = 1.0, start: float = 0.0, end: float = 100.0) -> float:
    """Where a value lies between `start` and `end`, as it lies between `low` and `high`."""
    return start + (end - start) * (value - low) / (high - low)


def percent(value: float) -> str:
    """A coordinate in percent."""
    return f"{value:.2f}%"


def score_bins(scores: Iterable[float]) -> list[int]:
    """Counts of scores: exactly 0, ten equal steps between, exactly 1; 12 numbers.

    A step holds its upper end, the last one does not.
    """
    counts = [0] * (N_BINS + 2)
    for score, count in Counter(scores).items():
        place = 0 if score <= 0 else N_BINS + 1 if score >= 1 else min(N_BINS, math.ceil(round(score * N_BINS, 9)))
        counts[place] += count
    return counts


def histogram(counts: Sequence[int]) -> Element:
    """Bars of `score_bins`; the first and the last stand apart, being exact values."""
    height, most = 190, max(*counts, 1)
    slot = 100.0 / len(counts)
    parts: list[Node] = []
    for place, count in enumerate(counts):
        tall = round((height - _TOP - _FOOT) * count / most, 1)
        y = height - _FOOT - tall
        exact = " exact" if place in {0, len(counts) - 1} else ""
        box = {"x": percent(place * slot + slot * 0.08), "width": percent(slot * 0.84), "class": f"bar{exact}"}
        parts.append(element("rect", {**box, "y": str(y), "height": str(tall), "rx": "2"}))
        if count:
            parts.append(text((place * slot + slot / 2, y - 4), f"{count:,}", kind="count"))
    parts.append(line((0, height - _FOOT), (100, height - _FOOT), kind="axis"))
    ticks = [(slot / 2, "0"), (100 - slot / 2, "1")]
    ticks += [(slot * (1 + N_BINS * at), f"{at:.1f}"[1:]) for at in (0.2, 0.4, 0.6, 0.8)]
    parts += [text((x, height - _FOOT + 15), label, kind="tick") for x, label in ticks]
    parts.append(text((50, height - 3), "recall of a sample", kind="name"))
    return drawing(height, *parts)


def interval(value: float | None, ci95: tuple[float, float] | None, *, height: int = 22) -> Element:
    """A dot for a value in [0, 1] and a line for its interval, on a scale from 0 to 1."""
    middle = height / 2
    parts: list[Node] = [line((1, middle), (99, middle), kind="scale")]
    ends = [scale(at, start=1, end=99) for at in (0.0, 0.5, 1.0)]
    parts += [line((x, middle - 3), (x, middle + 3), kind="scale") for x in ends]
    if ci95 is not None:
        low, high = (scale(end, start=1, end=99) for end in ci95)
        parts.append(line((low, middle), (high, middle), kind="interval"))
    if value is not None:
        parts.append(dot((scale(value, start=1, end=99), middle), 5))
    return drawing(height, *parts, kind="dots")


def stacked(shares: Sequence[tuple[str, int]]) -> Element:
    """One bar of parts, each by the class of its colour and pattern."""
    total, start, parts = max(sum(count for _, count in shares), 1), 0.0, list[Node]()
    for kind, count in shares:
        width = 100.0 * count / total
        parts.append(element("rect", {"x": percent(start), "width": percent(width), "height": "10", "class": kind}))
        start += width
    return drawing(10, *parts, kind="stacked")


def line(start: Point, end: Point, *, kind: str) -> Element:
    """A line between two points."""
    place = {"x1": percent(start[0]), "y1": f"{start[1]:.1f}", "x2": percent(end[0]), "y2": f"{end[1]:.1f}"}
    return element("line", {**place, "class": kind})


def dot(middle: Point, radius: float, *, kind: str = "dot") -> Element:
    """A circle; its radius is in pixels."""
    return element("circle", {"cx": percent(middle[0]), "cy": f"{middle[1]:.1f}", "r": f"{radius:.1f}", "class": kind})


def text(place: Point, label: str, *, kind: str) -> Element:
    """A label; its anchor is a matter of style."""
    return element("text", {"x": percent(place[0]), "y": f"{place[1]:.1f}", "class": kind}, label)
