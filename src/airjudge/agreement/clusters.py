"""Sums over groups, the units of independence, and what they say about a mean."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from airjudge.agreement.arrays import Floats


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean over statements or samples, its standard error over groups, and how many groups there are."""

    mean: float
    error: float
    n_groups: int

    def p_above(self, limit: float) -> float:
        """One-sided p that the mean is above a limit, by t with n_groups - 1 degrees of freedom.

        Without any spread it is a fact rather than a test: 0 if the mean is above, else 1.
        """
        if self.error == 0:
            return 0.0 if self.mean > limit else 1.0
        return float(stdtr(self.n_groups - 1, (limit - self.mean) / self.error))

    def p_below(self, limit: float) -> float:
        """One-sided p that the mean is below a limit; as `p_above`."""
        return ClusteredMean(-self.mean, self.error, self.n_groups).p_above(-limit)

    def interval(self, level: float) -> tuple[float, float]:
        """Interval of that level, in (0, 1), by t with n_groups - 1 degrees of freedom."""
        half = t_quantile((1 + level) / 2, self.n_groups - 1) * self.error
        return self.mean - half, self.mean + half


def t_quantile(share: float, degrees: int) -> float:
    """Value below which that share, in (0, 1), of Student's t with so many degrees of freedom lies."""
    return float(stdtrit(degrees, share))


def clustered_mean(values: Floats, groups: npt.ArrayLike) -> ClusteredMean | None:
    """Mean of values, each counting once, with the standard error of a ratio of sums over groups.

    If every value is its own group it is the ordinary standard error of a mean.

    Args:
        values: Shape (n,).
        groups: The group of each, same shape: any labels that sort.

    Returns:
        None with fewer than two groups.

    Raises:
        ValueError: If there are not as many groups as values.

    Source:
        Cochran (1977), Sampling Techniques, chapter 9A (ratio to size), without finite population correction.
    """
    sums = sums_by_group(np.stack([values, np.ones_like(values)], axis=1), groups)
    n_groups, n = len(sums), len(values)
    if n_groups < 2:
        return None
    mean = float(sums[:, 0].sum()) / n
    residuals = sums[:, 0] - mean * sums[:, 1]
    error = float(np.sqrt(n_groups / (n_groups - 1) * float(residuals @ residuals))) / n
    return ClusteredMean(mean, error, n_groups)


def sums_by_group(columns: Floats, groups: npt.ArrayLike) -> Floats:
    """Sums of rows over groups, shape (n_groups, n_columns), in the groups' sorted order.

    Args:
        columns: One row for each statement or sample, shape (n, n_columns).
        groups: The group of each, shape (n,): any labels that sort.

    Raises:
        ValueError: If there are not as many groups as rows.
    """
    names, group_of = np.unique(one_group_each(groups, len(columns)), return_inverse=True)
    sums = [np.bincount(group_of, weights=column, minlength=len(names)) for column in columns.T]
    return np.asarray(np.stack(sums, axis=1), dtype=np.float64)


def one_group_each(groups: npt.ArrayLike, n: int) -> npt.NDArray[np.generic]:
    """Groups as an array of shape (n,).

    Raises:
        ValueError: If there are not n of them.
    """
    labels = np.asarray(groups)
    if labels.shape != (n,):
        msg = f"each of the {n} needs one group: got groups of shape {labels.shape}"
        raise ValueError(msg)
    return labels
