"""Many scored samples in a few numbers, with the interval and the bounds that belong to them."""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from airjudge.schema import ScoredSample, Summary
from airjudge.scoring import recall_bounds

N_RESAMPLES: Final = 2000
_CELLS_AT_ONCE: Final = 4_000_000

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class _Tally:
    """Counts of the samples so far; the arrays have one place per group with a scored sample."""

    status: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    n_empty_contexts: int = 0
    low: float = 0.0
    high: float = 0.0
    place: dict[str, int] = field(default_factory=dict)
    scores: "array[float]" = field(default_factory=lambda: array("d"))
    n_scored: "array[float]" = field(default_factory=lambda: array("d"))
    attributed: "array[float]" = field(default_factory=lambda: array("d"))
    n_statements: "array[float]" = field(default_factory=lambda: array("d"))


def summarise(samples: Iterable[ScoredSample], *, rng: np.random.Generator) -> Summary:
    """Mean recall of many samples, its interval, and how many have no score.

    Args:
        samples: Read once; memory grows with the number of groups only.
        rng: Where the bootstrap's randomness comes from.

    Returns:
        `mean` is over scored samples (macro), `micro_mean` over their statements, of which there
        are `n_statements`. `ci95` and `micro_ci95` are percentile intervals from resampling whole
        groups (a sample without group is its own); None with fewer than two groups. `bounds` are
        over scored and failed samples; undefined samples stay out of everything but their count.

    Raises:
        ValueError: If a sample says that it is scored and has no score.
    """
    tally = _Tally()
    for sample in samples:
        _add(tally, sample)
    groups = np.array([tally.scores, tally.n_scored, tally.attributed, tally.n_statements], dtype=np.float64).T
    scores, n_scored, attributed, n_statements = (float(total) for total in groups.sum(axis=0))
    n_bounded = tally.status["scored"] + tally.status["failed"]
    ci95, micro_ci95 = _intervals(groups, rng)
    return Summary(
        n=tally.status.total(),
        n_scored=tally.status["scored"],
        n_undefined=tally.status["undefined"],
        n_failed=tally.status["failed"],
        mean=scores / n_scored if n_scored else None,
        ci95=ci95,
        micro_mean=attributed / n_statements if n_statements else None,
        micro_ci95=micro_ci95,
        bounds=(tally.low / n_bounded, tally.high / n_bounded) if n_bounded else None,
        n_statements=int(n_statements),
        n_empty_contexts=tally.n_empty_contexts,
        failures=dict(sorted(tally.failures.items())),
    )


def _add(tally: _Tally, sample: ScoredSample) -> None:
    """Count one sample."""
    tally.status[sample.status] += 1
    if sample.status == "failed":
        tally.failures[sample.error.kind if sample.error else "unknown"] += 1
        low, high = recall_bounds(sample.statements)
        tally.low, tally.high = tally.low + low, tally.high + high
    elif sample.status == "scored":
        if sample.score is None:
            msg = f"sample {sample.id} is scored, but has no score"
            raise ValueError(msg)
        tally.n_empty_contexts += sample.empty_contexts
        tally.low, tally.high = tally.low + sample.score, tally.high + sample.score
        _add_to_group(tally, sample, sample.score)


def _add_to_group(tally: _Tally, sample: ScoredSample, score: float) -> None:
    """Add a scored sample to the sums of its group."""
    # The two kinds of key must not meet: a sample's id may be the name of another one's group.
    key = f"s{sample.id}" if sample.group is None else f"g{sample.group}"
    place = tally.place.setdefault(key, len(tally.place))
    added = (1.0, sum(v.attributed is True for v in sample.statements), len(sample.statements))
    sums = (tally.n_scored, tally.attributed, tally.n_statements)
    if place == len(tally.scores):
        for column in (tally.scores, *sums):
            column.append(0.0)
    for column, value in zip((tally.scores, *sums), (score, *added), strict=True):
        column[place] += value


def _intervals(
    groups: Floats, rng: np.random.Generator
) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """Intervals of the macro and of the micro mean.

    Args:
        groups: Sum of scores, scored samples, attributed statements and statements of each
            group, shape (n_groups, 4).
        rng: Where the randomness comes from.
    """
    n_groups = len(groups)
    if n_groups < 2:
        return None, None
    # Groups with equal sums are exchangeable: how often each kind of group is drawn is
    # multinomial. That is the same bootstrap, at a cost that grows with the kinds alone.
    kinds, counts = np.unique(groups, axis=0, return_counts=True)
    chunk = max(1, _CELLS_AT_ONCE // len(kinds))
    totals = np.concatenate(
        [
            rng.multinomial(n_groups, counts / n_groups, size=min(chunk, N_RESAMPLES - start)) @ kinds
            for start in range(0, N_RESAMPLES, chunk)
        ]
    )
    return _interval(totals[:, 0], totals[:, 1]), _interval(totals[:, 2], totals[:, 3])


def _interval(numerators: Floats, denominators: Floats) -> tuple[float, float] | None:
    """Middle 95 % of the ratios, over the resamples that hold something to divide by."""
    filled = denominators > 0
    if not filled.any():
        return None
    low, high = np.quantile(numerators[filled] / denominators[filled], (0.025, 0.975))
    return float(low), float(high)
