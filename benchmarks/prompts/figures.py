"""Figures of one variant against human labels, each with a bootstrap interval over groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
N_RESAMPLES = 1000
NAMES = ("auc", "bacc", "kappa", "best", "yes")


@dataclass(frozen=True)
class Judged:
    """One set's log-odds and labels, shape (n_statements,); ``groups`` is the bootstrap unit."""

    logits: Floats
    labels: Bools
    groups: npt.NDArray[np.int64]


def ranks(values: Floats) -> Floats:
    """Ranks from 1, ties sharing their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place], dtype=np.float64)


def area_under_roc(logits: Floats, labels: Bools) -> float:
    """Chance that a positive outranks a negative, a tie counting half (Mann-Whitney U).

    Both labels must occur; so for every figure here.
    """
    n_pos, n_neg = int(labels.sum()), int((~labels).sum())
    return float((ranks(logits)[labels].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg))


def balanced_accuracy(logits: Floats, labels: Bools, cut: float = 0.0) -> float:
    """Mean of the accuracies on each label; log-odds at the cut count as yes."""
    yes = logits >= cut
    return float((yes[labels].mean() + (~yes[~labels]).mean()) / 2)


def best_balanced_accuracy(logits: Floats, labels: Bools) -> float:
    """Balanced accuracy at the threshold best for these very labels: an upper bound, no estimate."""
    cuts = np.unique(logits)
    yes_pos = np.searchsorted(np.sort(logits[labels]), cuts)
    yes_neg = np.searchsorted(np.sort(logits[~labels]), cuts)
    gain = yes_neg / int((~labels).sum()) - yes_pos / int(labels.sum())
    return float(0.5 + gain.max() / 2)


def kappa(logits: Floats, labels: Bools) -> float:
    """Cohen's kappa of the verdicts at log-odds 0 with the labels."""
    yes = logits >= 0
    observed = float(np.mean(yes == labels))
    p, q = float(yes.mean()), float(labels.mean())
    expected = p * q + (1 - p) * (1 - q)
    return (observed - expected) / (1 - expected)


def figures(judged: Judged) -> Floats:
    """The figures called ``NAMES``, in that order."""
    x, y = judged.logits, judged.labels
    best = best_balanced_accuracy(x, y)
    return np.array([area_under_roc(x, y), balanced_accuracy(x, y), kappa(x, y), best, float((x >= 0).mean())])


def resampled(judged: Judged, rng: np.random.Generator) -> Floats:
    """Figures of ``N_RESAMPLES`` draws of whole groups, shape (N_RESAMPLES, len(NAMES)).

    A draw without both labels is drawn again, since the figures are undefined on it.
    """
    members = [np.flatnonzero(judged.groups == g) for g in np.unique(judged.groups)]
    rows: list[Floats] = []
    while len(rows) < N_RESAMPLES:
        drawn = np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))])
        part = Judged(judged.logits[drawn], judged.labels[drawn], judged.groups[drawn])
        if 0 < part.labels.sum() < part.labels.size:
            rows.append(figures(part))
    return np.array(rows)


def row(name: str, value: Floats, draws: Floats) -> str:
    """One line of the table: each figure and its 95 % interval."""
    low, high = np.percentile(draws, [2.5, 97.5], axis=0)
    cells = [f"{v:.3f} [{a:.3f}, {b:.3f}]" for v, a, b in zip(value, low, high, strict=True)]
    return f"| {name} | " + " | ".join(cells) + " |"


def table(variant: str, sets: Mapping[str, Judged], seed: int) -> list[str]:
    """Markdown rows for one variant: one a set, and the mean over sets."""
    values, draws, lines = [], [], []
    for name, judged in sets.items():
        values.append(figures(judged))
        draws.append(resampled(judged, np.random.default_rng(seed)))
        lines.append(row(f"{variant} | {name} | {judged.labels.size}", values[-1], draws[-1]))
    n = sum(judged.labels.size for judged in sets.values())
    mean, spread = np.mean(values, axis=0), np.mean(draws, axis=0)
    return [*lines, row(f"{variant} | mean | {n}", mean, spread)]


def header() -> Sequence[str]:
    """The table's first two lines."""
    cells = ("variant", "set", "n", *NAMES)
    return ("| " + " | ".join(cells) + " |", "|" + " --- |" * len(cells))
