"""How far a judge rules as people labelled."""

import numpy as np
import numpy.typing as npt

from airjudge.agreement.arrays import Bools, Floats, check_shapes, defined
from airjudge.agreement.resampling import Interval, weight_bootstrap
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
    _check_scores(labels, scores)
    return _AreaUnderCurve(labels, scores)(np.ones(labels.size))


def auc_bootstrap(
    labels: Bools, scores: Floats, *, groups: npt.ArrayLike, rng: np.random.Generator, n_resamples: int = 2000
) -> Interval:
    """95 % percentile interval of `auc`, from resampling whole groups: as `cluster_bootstrap`, sorting once.

    Args:
        labels: What people decided, shape (n_statements,).
        scores: The judge's probabilities, same shape.
        groups: The group of each statement, same shape: any labels that sort.
        rng: Where the randomness comes from.
        n_resamples: How many times as many groups are drawn, with replacement, as there are.

    Returns:
        (low, high). None if there are fewer than two groups, or if more than a tenth of the resamples hold one
        class only.

    Raises:
        ValueError: If the shapes differ or are not one-dimensional, or a score is NaN.

    Source:
        Davison and Hinkley (1997), sections 3.8 and 5.3.
    """
    _check_scores(labels, scores)
    return weight_bootstrap(_AreaUnderCurve(labels, scores), groups, rng=rng, n_resamples=n_resamples)


class _AreaUnderCurve:
    """The area as a function of how often each statement counts."""

    def __init__(self, labels: Bools, scores: Floats) -> None:
        levels, level_of = np.unique(scores, return_inverse=True)
        self.n_levels = len(levels)
        self.true, self.false = np.flatnonzero(labels), np.flatnonzero(~labels)
        self.level_of_true, self.level_of_false = level_of[self.true], level_of[self.false]

    def __call__(self, weights: Floats) -> float | None:
        """None if either class has no weight."""
        true = np.bincount(self.level_of_true, weights=weights[self.true], minlength=self.n_levels)
        false = np.bincount(self.level_of_false, weights=weights[self.false], minlength=self.n_levels)
        n_pairs = float(true.sum()) * float(false.sum())
        if n_pairs == 0:
            return None
        return float(true @ (np.cumsum(false) - false / 2)) / n_pairs


def _check_scores(labels: Bools, scores: Floats) -> None:
    check_shapes(labels, scores)
    if np.isnan(scores).any():
        msg = "a score is NaN: leave out statements without probability"
        raise ValueError(msg)
