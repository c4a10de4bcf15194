"""Recall freed of a judge's errors, by labels of a part of the samples that was drawn at random."""

from typing import Final

import numpy as np
import numpy.typing as npt

from airjudge.agreement.arrays import Bools, Floats, check_finite, check_shapes, divided
from airjudge.agreement.clusters import one_group_each, sums_by_group, t_quantile
from airjudge.agreement.resampling import Interval, percentile_interval, resampled_sums
from airjudge.schema import Record

_ONE_OF_EACH: Final = np.eye(4, 6)
"""A hit, a miss, a false alarm and a correct rejection, in the columns of `_rogan_gladen_columns`."""


class Corrected(Record):
    """A share as labels correct it, beside what the judge alone says.

    `raw` is the judge's over everything; `value` and its interval lie in [0, 1]. `n_labelled` of `n` statements or
    samples, in `n_labelled_groups` groups, carry a label: below some thirty groups the interval is a guess itself.
    """

    value: float | None
    ci95: Interval
    raw: float | None
    n: int
    n_labelled: int
    n_labelled_groups: int


class RoganGladen(Corrected):
    """Micro recall corrected by the judge's sensitivity and specificity, as measured on the labelled statements."""

    sensitivity: float | None
    specificity: float | None


class PredictionPowered(Corrected):
    """Macro recall by prediction-powered inference; `power` is how much the judge's scores were trusted, in [0, 1]."""

    power: float | None


def rogan_gladen(
    predictions: Bools, labels: Floats, *, groups: npt.ArrayLike, rng: np.random.Generator, n_resamples: int = 2000
) -> RoganGladen:
    """Share of statements that are truly attributed, from a judge that errs at a known rate.

    (apparent + specificity - 1) / (sensitivity + specificity - 1): the apparent share over all statements,
    both rates over the labelled ones, whose samples must have been drawn at random and not have been used to
    calibrate the judge.

    The interval is a percentile bootstrap over groups, drawn separately among those with labels and those without, so
    that as many are labelled in each resample. It carries the uncertainty of all three shares, their dependence, and
    that statements of a sample err together; the formulas of Rogan and Gladen and of Lang and Reiczigel carry neither
    of the last two. From the latter it takes one success and one failure for each rate, as four groups of one
    statement among the labelled: a judge that made no error on twenty labels has not been shown to make none.
    In simulations (15 to 150 labelled samples of four statements, alone or correlated by .2, rates .8 to .97) it held
    the truth in 91 to 100 % of cases; without the four in 89 to 96 %, by Lang and Reiczigel's formula with design
    effects in 94 to 100 %, there with intervals up to 1.7 times as wide where many samples were labelled.

    Args:
        predictions: What the judge ruled, shape (n_statements,).
        labels: 1, 0, or NaN where there is no label; same shape, same order.
        groups: The group of each statement, same shape: any labels that sort.
        rng: Where the bootstrap's randomness comes from.
        n_resamples: How many resamples.

    Returns:
        The value cut to [0, 1], as each resample is. `value` is None if a class has no label, or if sensitivity +
        specificity is at most 1: such a judge is no better than a coin. `ci95` is None with fewer than two
        labelled groups, or if that holds in more than a tenth of the resamples.

    Raises:
        ValueError: If the shapes differ, or a label is other than 0, 1 and NaN.

    Source:
        Rogan and Gladen (1978), doi:10.1093/oxfordjournals.aje.a112510; Lang and Reiczigel (2014),
        doi:10.1016/j.prevetmed.2013.09.015; bootstrap by strata: Davison and Hinkley (1997), section 3.2.
    """
    check_shapes(predictions, labels)
    has_label = ~np.isnan(labels)
    if not np.isin(labels[has_label], (0, 1)).all():
        msg = "a label must be 0, 1, or NaN where there is none"
        raise ValueError(msg)
    rows = sums_by_group(_rogan_gladen_columns(predictions, labels), groups)
    labelled = rows[:, :4].sum(axis=1) > 0
    sensitivity, specificity, apparent, value = (_number(part) for part in _rogan_gladen_parts(rows.sum(axis=0)))
    interval = None
    if labelled.sum() >= 2 and value is not None:
        strata = (np.concatenate([rows[labelled], _ONE_OF_EACH]), rows[~labelled])
        drawn = [resampled_sums(stratum, rng=rng, n_resamples=n_resamples) for stratum in strata]
        interval = percentile_interval(_rogan_gladen_parts(drawn[0] + drawn[1])[3])
    return RoganGladen(
        value=value,
        ci95=interval,
        raw=apparent,
        n=len(labels),
        n_labelled=int(has_label.sum()),
        n_labelled_groups=int(labelled.sum()),
        sensitivity=sensitivity,
        specificity=specificity,
    )


def ppi_mean(scores: Floats, labels: Floats, *, groups: npt.ArrayLike, power: float | None = None) -> PredictionPowered:
    """Mean recall over samples by prediction-powered inference: the judge's mean, plus its mean error where labelled.

    power · mean of the unlabelled scores + mean of (label - power · score) over the labelled samples, which must have
    been drawn at random. It is unbiased whatever the judge is worth; the better the judge, the narrower the interval.

    Args:
        scores: The judge's recall of each sample, shape (n_samples,).
        labels: People's recall of it, NaN where the sample is not labelled; same shape, same order.
        groups: The group of each sample, same shape: any labels that sort; the sample's id if it has none.
        power: How much the judge is trusted: 1 is plain prediction-powered inference, 0 the mean of the labels.
            None takes that in [0, 1] which makes the interval narrowest (PPI++).

    Returns:
        Value and interval cut to [0, 1]. The variance is that of sums over groups, times G / (G - 1), with
        quantiles of t with G - 1 degrees of freedom, G being the labelled groups: with every sample its own group
        and many labels it is the published interval. `value` is None without labels, `ci95` with fewer than two
        labelled groups. If every sample is labelled it is the mean of the labels.

    Raises:
        ValueError: If the shapes differ, a score or label is infinite, a score NaN, or the power outside [0, 1].

    Source:
        Angelopoulos et al. (2023), doi:10.1126/science.adi6000; PPI++: Angelopoulos, Duchi and Zrnic (2023),
        arXiv:2311.01453.
    """
    check_shapes(scores, labels)
    has_label = ~np.isnan(labels)
    check_finite(scores, labels[has_label])
    if power is not None and not 0 <= power <= 1:
        msg = f"power must be in [0, 1]: got {power}"
        raise ValueError(msg)
    n_labelled_groups = len(np.unique(one_group_each(groups, len(labels))[has_label]))
    value, interval, weight = None, None, None
    if has_label.any():
        influence = sums_by_group(_influence(scores, labels), groups)
        weight = _best_power(influence) if power is None else power
        value = _powered_mean(scores, labels, weight)
        interval = _powered_interval(value, influence @ (1.0, weight), n_labelled_groups)
    return PredictionPowered(
        value=None if value is None else _cut(value),
        ci95=interval,
        raw=float(scores.mean()) if len(scores) else None,
        n=len(labels),
        n_labelled=int(has_label.sum()),
        n_labelled_groups=n_labelled_groups,
        power=weight,
    )


def _rogan_gladen_columns(predictions: Bools, labels: Floats) -> Floats:
    """Of each statement: its place in the table of labels and predictions, ruled true, and 1."""
    true, false = labels == 1, labels == 0
    cells = [true & predictions, true & ~predictions, false & predictions, false & ~predictions]
    return np.stack([*cells, predictions, np.ones_like(predictions)], axis=1).astype(np.float64)


def _rogan_gladen_parts(sums: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Sensitivity, specificity, apparent and corrected share from sums (..., 6); NaN where undefined."""
    tp, fn, fp, tn, ruled_true, n = np.moveaxis(sums, -1, 0)
    sensitivity, specificity, apparent = divided(tp, tp + fn), divided(tn, tn + fp), divided(ruled_true, n)
    youden = sensitivity + specificity - 1
    corrected = divided(apparent + specificity - 1, np.where(youden > 0, youden, 0.0))
    return sensitivity, specificity, apparent, np.clip(corrected, 0, 1)


def _powered_mean(scores: Floats, labels: Floats, power: float) -> float:
    has_label = ~np.isnan(labels)
    if has_label.all():
        return float(labels.mean())
    return power * float(scores[~has_label].mean()) + float((labels - power * scores)[has_label].mean())


def _powered_interval(value: float, influence: Floats, n_labelled_groups: int) -> Interval:
    if n_labelled_groups < 2:
        return None
    variance = float(influence @ influence) * n_labelled_groups / (n_labelled_groups - 1)
    half = t_quantile(0.975, n_labelled_groups - 1) * float(np.sqrt(variance))
    return _cut(value - half), _cut(value + half)


def _influence(scores: Floats, labels: Floats) -> Floats:
    """What each sample moves the estimate by: without the judge, and for each unit of power; shape (n, 2)."""
    has_label = ~np.isnan(labels)
    by_labels, by_judge = np.zeros_like(scores), np.zeros_like(scores)
    n_labelled, n_others = int(has_label.sum()), int((~has_label).sum())
    by_labels[has_label] = (labels[has_label] - labels[has_label].mean()) / n_labelled
    if n_others:
        by_judge[has_label] = -(scores[has_label] - scores[has_label].mean()) / n_labelled
        by_judge[~has_label] = (scores[~has_label] - scores[~has_label].mean()) / n_others
    return np.stack([by_labels, by_judge], axis=1)


def _best_power(influence: Floats) -> float:
    """The power in [0, 1] with the least variance, which is a parabola in it."""
    by_labels, by_judge = influence.T
    curvature = float(by_judge @ by_judge)
    return _cut(-float(by_labels @ by_judge) / curvature) if curvature else 0.0


def _cut(value: float) -> float:
    return float(np.clip(value, 0, 1))


def _number(value: Floats) -> float | None:
    return None if np.isnan(value) else float(value)
