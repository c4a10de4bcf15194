"""How far a judge rules as people labelled."""

import numpy as np

from airjudge.agreement.arrays import Bools, Floats, check_shapes, defined
from airjudge.agreement.tables import balanced_accuracy_of, f1_of, sensitivity_of, specificity_of, table


def sensitivity_specificity(labels: Bools, predictions: Bools) -> tuple[float | None, float | None]:
    """Share of true statements ruled true, and share of false ones ruled false.

    Args:
        labels: What people decided, shape (n_statements,).
        predictions: What the judge ruled, same shape, same statement order.

    Returns:
        Both in [0, 1]; None for the one whose class the labels do not hold.

    Raises:
        ValueError: If the shapes differ or are not one-dimensional.

    Source:
        Yerushalmy (1947). doi:10.2307/4586294
    """
    counts = table(labels, predictions)
    return defined(sensitivity_of(counts)), defined(specificity_of(counts))


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
    return defined(balanced_accuracy_of(table(labels, predictions)))


def f1(labels: Bools, predictions: Bools) -> float | None:
    """F1 of the class *attributed*: the harmonic mean of precision and sensitivity.

    Args:
        labels: What people decided, shape (n_statements,).
        predictions: What the judge ruled, same shape, same statement order.

    Returns:
        In [0, 1]; 0 if no statement is both labelled and ruled true. None if none is either.

    Raises:
        ValueError: If the shapes differ or are not one-dimensional.

    Source:
        Van Rijsbergen (1979), Information Retrieval, chapter 7.
    """
    return defined(f1_of(table(labels, predictions)))


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
    check_shapes(labels, scores)
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
