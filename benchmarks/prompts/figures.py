"""Figures of one variant against human labels: Markdown lines, one a set."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from airjudge.agreement import Bools, Floats, Indices, auc, balanced_accuracy, cluster_bootstrap, cohen_kappa

Statistic = Callable[[Bools, Floats], float | None]
Resampled = Callable[[Indices], float | None]


@dataclass(frozen=True)
class Judged:
    """One set's log-odds and labels, shape (n_statements,); ``groups`` is the bootstrap unit."""

    logits: Floats
    labels: Bools
    groups: Sequence[str]


def best_balanced_accuracy(labels: Bools, logits: Floats) -> float | None:
    """Balanced accuracy at the threshold best for these very labels: an upper bound, no estimate."""
    found = [balanced_accuracy(labels, logits >= cut) for cut in np.unique(logits)]
    return max((one for one in found if one is not None), default=None)


# Log-odds of 0 are p(1) = .5 and count as yes.
WITH_INTERVAL: dict[str, Statistic] = {
    "auc": auc,
    "bacc": lambda labels, logits: balanced_accuracy(labels, logits >= 0),
    "kappa": lambda labels, logits: cohen_kappa(labels, logits >= 0),
}
WITHOUT_INTERVAL: dict[str, Statistic] = {
    "best": best_balanced_accuracy,
    "yes": lambda _, logits: float((logits >= 0).mean()),
}


def table(variant: str, sets: Mapping[str, Judged], seed: int) -> list[str]:
    """Markdown rows for one variant: one a set, and the mean over sets if there are several."""
    lines, values = [], []
    for name, judged in sets.items():
        values.append([one(judged.labels, judged.logits) for one in (WITH_INTERVAL | WITHOUT_INTERVAL).values()])
        bounds = [interval(over(one, judged), judged.groups, seed) for one in WITH_INTERVAL.values()]
        padded = [*bounds, *([""] * len(WITHOUT_INTERVAL))]
        cells = [shown(value) + bound for value, bound in zip(values[-1], padded, strict=True)]
        lines.append(row(variant, name, judged.labels.size, *cells))
    if len(sets) > 1:
        n = sum(judged.labels.size for judged in sets.values())
        lines.append(row(variant, "mean", n, *(shown(mean(column)) for column in zip(*values, strict=True))))
    return lines


def over(statistic: Statistic, judged: Judged) -> Resampled:
    """A figure over the statements at given positions."""
    return lambda at: statistic(judged.labels[at], judged.logits[at])


def differences(title: str, sets: Mapping[str, tuple[Judged, Judged]], seed: int) -> list[str]:
    """Markdown rows of how far the first of two variants is ahead of the second on the same statements."""
    lines = []
    for name, (ours, other) in sets.items():
        gains = [gain(one, ours, other) for one in WITH_INTERVAL.values()]
        everything = np.arange(ours.labels.size)
        cells = [shown(one(everything), sign="+") + interval(one, ours.groups, seed) for one in gains]
        lines.append(row(title, name, ours.labels.size, *cells, *([""] * len(WITHOUT_INTERVAL))))
    return lines


def gain(statistic: Statistic, ours: Judged, other: Judged) -> Resampled:
    """The paired difference of a figure, over the statements at given positions."""

    def ahead(at: Indices) -> float | None:
        a, b = over(statistic, ours)(at), over(statistic, other)(at)
        return None if a is None or b is None else a - b

    return ahead


def interval(statistic: Resampled, groups: Sequence[str], seed: int) -> str:
    """The 95 % interval over groups, as it stands behind its figure; empty where it is undefined."""
    bounds = cluster_bootstrap(statistic, groups, rng=np.random.default_rng(seed))
    return f" [{bounds[0]:.3f}, {bounds[1]:.3f}]" if bounds else ""


def mean(column: Sequence[float | None]) -> float | None:
    """The mean over sets, undefined as soon as one set's figure is."""
    known = [one for one in column if one is not None]
    return float(np.mean(known)) if len(known) == len(column) else None


def shown(figure: float | None, sign: str = "") -> str:
    """A figure of a cell, with a plus if ``sign`` is one; a dash where it is undefined."""
    return "–" if figure is None else f"{figure:{sign}.3f}"


def row(*cells: object) -> str:
    """One line of a Markdown table."""
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def header() -> tuple[str, str]:
    """The table's first two lines."""
    cells = ("variant", "set", "n", *WITH_INTERVAL, *WITHOUT_INTERVAL)
    return row(*cells), "|" + " --- |" * len(cells)
