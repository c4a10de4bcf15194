"""What a run costs the client as the work grows: statements a sample, length of contexts, number of samples.

    python -m benchmarks.scaling.run              # some ten minutes beside a stub judge
    python -m benchmarks.scaling.run --smoke      # the smallest sizes alone
    python -m benchmarks.scaling.run --table      # what was measured last

The judge is the stub of the tests, in a process of its own, so that what is measured is ours. Each size is one run
with journal and exports, several times in turn with the others; the least processor time counts, since noise only
adds. The exponent is the slope of a least-squares line through log(cost) over log(size): 1 is linear growth. Texts are
made of a fixed generator; requests and prompt bytes do not depend on the machine.
"""

import argparse
import asyncio
import json
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

import numpy as np
from pydantic import JsonValue

from airjudge.datasets import open_source
from airjudge.metrics import ContextRecall
from airjudge.run import RunSettings, score_dataset
from airjudge.schema import Record
from benchmarks.efficiency.run import Target, stub
from benchmarks.peers.run import machine

RESULTS: Final = Path(__file__).parents[1] / "results" / "scaling.json"
PLOT: Final = Path(__file__).with_name("scaling.svg")

Axis = Literal["statements", "context_words", "samples"]
SIZES: Final[Mapping[Axis, tuple[int, ...]]] = {
    "statements": (1, 4, 16, 64),
    "context_words": (256, 1024, 4096, 16384),
    "samples": (10, 100, 1000, 10000),
}
UNITS: Final[Mapping[Axis, str]] = {
    "statements": "statements a sample",
    "context_words": "words of contexts a sample",
    "samples": "samples",
}
N_SAMPLES: Final = 20
"""Samples of a run whose statements or contexts grow."""
WORDS: Final = ("ferry", "harbour", "winter", "engine", "captain", "island", "letter", "garden", "bridge", "market")


class Point(Record):
    """What one run costs: its size, the least processor time of its repeats, and its requests."""

    size: int
    client_s: float
    requests: int


class Curve(Record):
    """How the cost grows along one axis; the exponent is that of `client_s` over the upper half of the sizes too."""

    axis: Axis
    points: tuple[Point, ...]
    exponent: float
    last_exponent: float


class Measured(Record):
    """What the results file holds."""

    date: str
    machine: Mapping[str, JsonValue]
    repeats: int
    curves: tuple[Curve, ...]


def rows(axis: Axis, size: int) -> Iterator[dict[str, JsonValue]]:
    """Samples of one size: three contexts, statements of twelve words; what does not grow is small."""
    n_samples = size if axis == "samples" else N_SAMPLES
    n_statements = size if axis == "statements" else 2
    n_words = size if axis == "context_words" else 120
    drawn = random.Random(7)
    for place in range(n_samples):
        statements = [f"{_text(drawn, 12)} {number}." for number in range(n_statements)]
        yield {
            "id": str(place),
            "user_input": _text(drawn, 8),
            "reference": " ".join(statements),
            "retrieved_contexts": [_sentences(drawn, n_words // 3) for _ in range(3)],
            "statements": [{"id": str(number), "text": text} for number, text in enumerate(statements)],
        }


def _text(drawn: random.Random, n_words: int) -> str:
    return " ".join(f"{drawn.choice(WORDS)}{drawn.randrange(100)}" for _ in range(n_words))


def _sentences(drawn: random.Random, n_words: int) -> str:
    return " ".join(f"{_text(drawn, 16)}." for _ in range(max(1, n_words // 16)))


def exponent(points: Sequence[Point]) -> float:
    """Slope of log(cost) over log(size), by least squares: 1 is linear growth."""
    sizes = [math.log(one.size) for one in points]
    costs = [math.log(one.client_s) for one in points]
    slope, _ = np.polyfit(sizes, costs, 1)
    return float(slope)


async def cost(target: Target, data: Path, place: Path) -> tuple[float, int]:
    """Processor seconds and requests of one run, its proof of enforcement left out."""
    judge = target.judge()
    async with judge:
        before, asked = time.process_time(), judge.usage.requests
        source = open_source([str(data)])
        await score_dataset(source, ContextRecall(judge), place, settings=RunSettings())
        return time.process_time() - before, judge.usage.requests - asked


def curve(target: Target, axis: Axis, sizes: Sequence[int], *, repeats: int) -> Curve:
    """Measure one axis, all sizes in turn, so that drift of the machine meets all of them."""
    found: dict[int, list[tuple[float, int]]] = {size: [] for size in sizes}
    with TemporaryDirectory() as folder:
        for size in sizes:
            lines = (json.dumps(one) + "\n" for one in rows(axis, size))
            (Path(folder) / f"{size}.jsonl").write_text("".join(lines), encoding="utf-8")
        for repeat in range(repeats):
            for size in sizes:
                place = Path(folder) / f"{size}-{repeat}"
                found[size].append(asyncio.run(cost(target, Path(folder) / f"{size}.jsonl", place)))
    points = tuple(
        Point(size=size, client_s=min(one for one, _ in costs), requests=costs[0][1]) for size, costs in found.items()
    )
    return Curve(axis=axis, points=points, exponent=exponent(points), last_exponent=exponent(points[-2:]))


def table(measured: Measured) -> Iterator[str]:
    """The Markdown table."""
    yield "| what grows | sizes | requests | client seconds | exponent | between the last two |"
    yield "|---|---|---|---|---|---|"
    for one in measured.curves:
        sizes, requests, seconds = (
            " · ".join(cells)
            for cells in zip(
                *((f"{at.size:,}", f"{at.requests:,}", f"{at.client_s:.2f}") for at in one.points), strict=True
            )
        )
        told = f"{one.exponent:.2f} | {one.last_exponent:.2f}"
        yield f"| {UNITS[one.axis]} | {sizes} | {requests} | {seconds} | {told} |"


def plot(measured: Measured) -> str:
    """The curves as SVG, both axes logarithmic, each with the line of linear growth through its last point."""
    width, height, edge = 270, 200, 40
    box = f"0 0 {width * len(measured.curves)} {height}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" font-family="sans-serif" font-size="10" fill="none">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for at, one in enumerate(measured.curves):
        parts += _panel(one, left=at * width + edge, box=(width - edge - 30, height - 2 * edge), top=edge)
    return "\n".join([*parts, "</svg>", ""])


def _panel(one: Curve, *, left: int, box: tuple[int, int], top: int) -> Iterator[str]:
    width, height = box
    sizes = [math.log10(point.size) for point in one.points]
    costs = [math.log10(point.client_s) for point in one.points]
    linear = [costs[-1] - (sizes[-1] - size) for size in sizes]
    low, high = min(*costs, *linear), max(costs)

    def places(values: Sequence[float]) -> list[tuple[float, float]]:
        return [
            (
                left + width * (size - sizes[0]) / (sizes[-1] - sizes[0]),
                top + height * (1 - (value - low) / ((high - low) or 1)),
            )
            for size, value in zip(sizes, values, strict=True)
        ]

    yield f'<rect x="{left}" y="{top}" width="{width}" height="{height}" stroke="#999999"/>'
    yield f'<text x="{left}" y="{top - 20}" fill="#111111">{UNITS[one.axis]}: exponent {one.exponent:.2f}</text>'
    for values, style in ((linear, 'stroke="#999999" stroke-dasharray="4 3"'), (costs, 'stroke="#0055aa"')):
        yield f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places(values))}" {style}/>'
    for (x, y), point in zip(places(costs), one.points, strict=True):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#0055aa"/>'
        middle = f'x="{x:.1f}" text-anchor="middle"'
        yield f'<text {middle} y="{top + height + 14}" fill="#111111">{point.size:,}</text>'
        yield f'<text {middle} y="{y - 6:.1f}" fill="#0055aa">{point.client_s:.2g} s</text>'


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--repeats", type=int, default=3, help="runs of each size (%(default)s)")
    made.add_argument("--smoke", action="store_true", help="the two smallest sizes of each axis, once")
    made.add_argument("--results", type=Path, default=RESULTS)
    made.add_argument("--plot", type=Path, default=PLOT)
    made.add_argument("--table", action="store_true", help="print what the results hold; measure nothing")
    return made


def measure(asked: argparse.Namespace) -> Measured:
    """Measure all axes beside one stub."""
    repeats, kept = (1, 2) if asked.smoke else (asked.repeats, None)
    with stub() as target:
        curves = tuple(curve(target, axis, sizes[:kept], repeats=repeats) for axis, sizes in SIZES.items())
    return Measured(date=datetime.now(UTC).date().isoformat(), machine=machine(), repeats=repeats, curves=curves)


def main() -> None:
    """Measure, keep it with its plot, and print the table."""
    asked = parser().parse_args()
    if not asked.table:
        measured = measure(asked)
        asked.results.parent.mkdir(parents=True, exist_ok=True)
        asked.results.write_text(measured.model_dump_json(indent=1) + "\n", encoding="utf-8")
        asked.plot.write_text(plot(measured), encoding="utf-8")
    print("\n".join(table(Measured.model_validate_json(asked.results.read_bytes()))))


if __name__ == "__main__":
    main()
