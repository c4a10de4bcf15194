"""How far probabilities mean what they say: reliability bins, calibration error, Brier score and its parts."""

from typing import Final

import numpy as np
import numpy.typing as npt

from airjudge.calibration.record import BrierParts
from airjudge.schema import Record
from airjudge.scoring import CLIP

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

N_BINS: Final = 10


class Bin(Record):
    """Statements of like probability: how many, the mean probability, and the share labelled 1."""

    low: float
    high: float
    n: int
    mean_probability: float
    share_positive: float


def reliability(probabilities: Floats, labels: Bools, n_bins: int = N_BINS) -> tuple[Bin, ...]:
    """Bins of a reliability diagram, in rising order, with as equally many statements as ties allow.

    Bins of equal mass rather than equal width: a judge's probabilities crowd at both ends, and an almost empty
    bin says nothing. Equal probabilities are never parted, so there may be fewer bins, or none without statements.

    Args:
        probabilities: Of being attributed, in [0, 1], shape (n_statements,).
        labels: What people decided, same shape, same order.
        n_bins: The most bins.

    Returns:
        `low` and `high` are the least and the greatest probability in a bin.

    Raises:
        ValueError: If the shapes differ, n_bins is not positive, or a probability is none.
    """
    return tuple(
        Bin(
            low=float(probabilities[at].min()),
            high=float(probabilities[at].max()),
            n=at.size,
            mean_probability=float(probabilities[at].mean()),
            share_positive=float(labels[at].mean()),
        )
        for at in _members(probabilities, labels, n_bins)
    )


def calibration_error(probabilities: Floats, labels: Bools, n_bins: int = N_BINS) -> float | None:
    """Expected calibration error: the mean gap between probability and share labelled 1, bins weighed by size.

    Over bins of equal mass, as in `reliability`. It is biased upwards on few statements: even perfect
    probabilities get about sqrt(n_bins / n) * .3. None without statements.

    Source:
        Naeini, Cooper and Hauskrecht (2015), Obtaining Well Calibrated Probabilities Using Bayesian Binning.
    """
    bins = reliability(probabilities, labels, n_bins)
    if not bins:
        return None
    return sum(one.n * abs(one.mean_probability - one.share_positive) for one in bins) / probabilities.size


def brier_parts(probabilities: Floats, labels: Bools, n_bins: int = N_BINS) -> BrierParts | None:
    """Brier score and its parts over bins of equal mass; None without statements."""
    members = _members(probabilities, labels, n_bins)
    if not members:
        return None
    truth, n, prevalence = labels.astype(np.float64), probabilities.size, float(labels.mean())
    sums = np.zeros(4)
    for at in members:
        p, y = probabilities[at], truth[at]
        gap, lift = p.mean() - y.mean(), y.mean() - prevalence
        sums += at.size * np.array([gap**2, lift**2, p.var(), np.mean((p - p.mean()) * (y - y.mean()))])
    parts = [float(one) for one in sums / n]
    return BrierParts(
        score=float(np.mean((probabilities - truth) ** 2)),
        reliability=parts[0],
        resolution=parts[1],
        uncertainty=prevalence * (1 - prevalence),
        within_variance=parts[2],
        within_covariance=parts[3],
    )


def log_loss(probabilities: Floats, labels: Bools) -> float | None:
    """Mean negative log-likelihood, in nats, of probabilities clipped to [CLIP, 1 - CLIP]; None without statements."""
    _check(probabilities, labels)
    if not probabilities.size:
        return None
    p = np.clip(probabilities, CLIP, 1 - CLIP)
    return float(-np.log(np.where(labels, p, 1 - p)).mean())


def _members(probabilities: Floats, labels: Bools, n_bins: int) -> list[npt.NDArray[np.intp]]:
    """Positions of the statements in each bin that has any; edges are quantiles, and belong to the bin below."""
    _check(probabilities, labels)
    if n_bins < 1:
        msg = f"there must be at least one bin: got {n_bins}"
        raise ValueError(msg)
    if not probabilities.size:
        return []
    edges = np.quantile(probabilities, np.linspace(0, 1, n_bins + 1)[1:-1])
    place = np.searchsorted(edges, probabilities)
    return [np.flatnonzero(place == one) for one in np.unique(place)]


def _check(probabilities: Floats, labels: Bools) -> None:
    """Refuse arrays that do not speak of the same statements, and what is no probability."""
    if probabilities.shape != labels.shape or probabilities.ndim != 1:
        msg = f"probabilities and labels must share one shape (n,): got {probabilities.shape} and {labels.shape}"
        raise ValueError(msg)
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        msg = "each probability must lie in [0, 1]: leave out statements without one"
        raise ValueError(msg)
