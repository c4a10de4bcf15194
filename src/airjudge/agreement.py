"""How far two judges, or a judge and people, rule alike; and how sure that number is."""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

DEFINED_SHARE: Final = 0.9
"""An interval needs at least this share of its resamples to have a value."""


def cohen_kappa(a: Bools, b: Bools) -> float | None:
    """Cohen's kappa of two judges over the same statements.

    Args:
        a: Verdicts of the first judge, shape (n_statements,).
        b: Verdicts of the second judge, same shape, same statement order.

    Returns:
        Dimensionless, in [-1, 1]: 1 is full agreement, 0 is chance. None if
        chance agreement is 1 (both judges constant and equal) or n is 0.

    Raises:
        ValueError: If the shapes differ or are not one-dimensional.

    Source:
        Cohen (1960). doi:10.1177/001316446002000104
    """
    _check_shapes(a, b)
    if a.size == 0:
        return None
    observed = float(np.mean(a == b))
    p, q = float(a.mean()), float(b.mean())
    expected = p * q + (1 - p) * (1 - q)
    return None if expected == 1 else (observed - expected) / (1 - expected)


def balanced_accuracy(labels: Bools, predictions: Bools) -> float | None:
    """Mean of the share of true statements ruled true and of false ones ruled false.

    Args:
        labels: What people decided, shape (n_statements,).
        predictions: What the judge ruled, same shape, same statement order.

    Returns:
        In [0, 1]; a constant judge gets 0.5. None if the labels hold one class only.

    Raises:
        ValueError: If the shapes differ or are not one-dimensional.

    Source:
        Brodersen et al. (2010). doi:10.1109/ICPR.2010.764
    """
    _check_shapes(labels, predictions)
    if labels.all() or not labels.any():
        return None
    sensitivity = float(predictions[labels].mean())
    specificity = 1 - float(predictions[~labels].mean())
    return (sensitivity + specificity) / 2


def auc(labels: Bools, scores: Floats) -> float | None:
    """Area under the ROC curve: how often a true statement scores above a false one.

    Args:
        labels: What people decided, shape (n_statements,).
        scores: The judge's probabilities, same shape; only their order matters, ties count half.

    Returns:
        In [0, 1], 0.5 is chance. None if the labels hold one class only.

    Raises:
        ValueError: If the shapes differ or are not one-dimensional, or a score is NaN.

    Source:
        Hanley and McNeil (1982). doi:10.1148/radiology.143.1.7063747
    """
    _check_shapes(labels, scores)
    if np.isnan(scores).any():
        msg = "a score is NaN: leave out statements without probability"
        raise ValueError(msg)
    n_true, n_false = int(labels.sum()), int((~labels).sum())
    if n_true == 0 or n_false == 0:
        return None
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    wins = float(mean_ranks[place][labels].sum()) - n_true * (n_true + 1) / 2
    return wins / (n_true * n_false)


def cluster_bootstrap(
    statistic: Callable[[Indices], float | None],
    groups: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    n_resamples: int = 2000,
) -> tuple[float, float] | None:
    """95 % percentile interval of a statistic, from resampling whole groups.

    Statements of one document err together; drawing groups keeps that, and drawing statements
    would make the interval too narrow.

    Args:
        statistic: Its value over the statements at these positions; None where undefined.
        groups: The group of each statement, shape (n_statements,): any labels that sort.
        rng: Where the randomness comes from.
        n_resamples: How many times as many groups are drawn, with replacement, as there are.

    Returns:
        (low, high), over the resamples where the statistic is defined. None if there are fewer
        than two groups, or if it is defined in less than DEFINED_SHARE of the resamples.

    Source:
        Davison and Hinkley (1997), Bootstrap Methods and their Application, sections 3.8 and 5.3.
    """
    _, group_of = np.unique(np.asarray(groups), return_inverse=True)
    members = np.split(np.argsort(group_of, kind="stable"), np.cumsum(np.bincount(group_of))[:-1])
    if len(members) < 2:
        return None
    draws = (rng.integers(len(members), size=len(members)) for _ in range(n_resamples))
    values = [statistic(np.concatenate([members[g] for g in draw])) for draw in draws]
    defined = [value for value in values if value is not None]
    if len(defined) < DEFINED_SHARE * n_resamples or not defined:
        return None
    low, high = np.quantile(defined, (0.025, 0.975))
    return float(low), float(high)


def _check_shapes(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> None:
    """Refuse arrays that do not speak of the same statements."""
    if a.shape != b.shape or a.ndim != 1:
        msg = f"verdict arrays must share one shape (n,): got {a.shape} and {b.shape}"
        raise ValueError(msg)
