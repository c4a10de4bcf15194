"""Cross-validation over groups: what a calibration is worth on statements that it was not fitted to."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from airjudge import agreement
from airjudge.calibration.fitting import Bools, Floats, Recipe, fit, mapped, odds_of
from airjudge.calibration.record import BrierParts, CrossValidated, Figures, Gain
from airjudge.calibration.reliability import N_BINS, brier_parts, calibration_error, log_loss
from airjudge.scoring import THRESHOLD

Ints = npt.NDArray[np.intp]
T = TypeVar("T")

N_FOLDS: Final = 5
N_REPEATS: Final = 10
"""Divisions of the groups into folds: on 56 statements one division moves balanced accuracy by .02."""
MANY_GROUPS: Final = 1000
"""From so many groups on one division is enough."""

_N_SUMS: Final = 5


@dataclass(frozen=True, slots=True)
class OutOfFold:
    """Calibrated probabilities and verdicts of each statement by a fit without its group.

    Both have the shape (n_repeats, n_statements).
    """

    probabilities: Floats
    attributed: Bools


def out_of_fold(
    probabilities: Floats, labels: Bools, groups: npt.ArrayLike, *, recipe: Recipe, rng: np.random.Generator
) -> OutOfFold | None:
    """Calibrate each statement by the statements of other groups, over one or several divisions into folds.

    Args:
        probabilities: The judge's, in [0, 1], shape (n_statements,).
        labels: What people decided, same shape, same order.
        groups: The group of each statement, any labels that sort; a fold never splits one.
        recipe: What is fitted.
        rng: Divides the groups.

    Returns:
        None if there are fewer than two groups, or if no division leaves both classes to fit to in each fold.

    Raises:
        ValueError: If the shapes differ or a probability is none.
    """
    _, group_of = np.unique(np.asarray(groups), return_inverse=True)
    n_groups = int(group_of.max()) + 1 if group_of.size else 0
    if n_groups < 2:
        return None
    kept = []
    for _ in range(N_REPEATS if n_groups < MANY_GROUPS else 1):
        fold_of = (rng.permutation(n_groups) % min(N_FOLDS, n_groups))[group_of]
        told = _one_division(probabilities, labels, fold_of, recipe=recipe)
        if told is not None:
            kept.append(told)
    if not kept:
        return None
    return OutOfFold(np.stack([p for p, _ in kept]), np.stack([attributed for _, attributed in kept]))


def _one_division(
    probabilities: Floats, labels: Bools, fold_of: Ints, *, recipe: Recipe
) -> tuple[Floats, Bools] | None:
    """Calibrated probabilities and verdicts, fold by fold; None if a fold leaves one class to fit to."""
    odds = odds_of(probabilities)
    calibrated, attributed = np.empty_like(odds), np.empty_like(labels)
    for fold in np.unique(fold_of):
        out = fold_of == fold
        known = labels[~out]
        if known.all() or not known.any():
            return None
        fitted = fit(probabilities[~out], known, recipe)
        calibrated[out] = mapped(fitted.probability_map, odds[out])
        attributed[out] = calibrated[out] >= fitted.threshold
    return calibrated, attributed


def cross_validated(
    probabilities: Floats, labels: Bools, groups: npt.ArrayLike, *, recipe: Recipe, seed: int
) -> CrossValidated | None:
    """Figures before and after calibration, on statements whose group was not fitted to.

    Args:
        probabilities: The judge's, in [0, 1], shape (n_statements,).
        labels: What people decided, same shape, same order.
        groups: The group of each statement, any labels that sort.
        recipe: What is fitted.
        seed: Of the divisions into folds and of the bootstrap; the same seed gives the same figures.

    Returns:
        None where nothing can be held out: see `out_of_fold`.

    Raises:
        ValueError: If the shapes differ or a probability is none.
    """
    rng = np.random.default_rng(seed)
    told = out_of_fold(probabilities, labels, groups, recipe=recipe, rng=rng)
    if told is None:
        return None
    raw = OutOfFold(probabilities[None], (probabilities >= THRESHOLD)[None])
    before, after = _figures(raw, labels), _figures(told, labels)
    sums = np.concatenate([_sums(raw, labels), _sums(told, labels)], axis=1)
    drawn = agreement.resampled_sums(agreement.sums_by_group(sums, groups), rng=rng)
    return CrossValidated(
        n_folds=min(N_FOLDS, np.unique(np.asarray(groups)).size),
        n_repeats=len(told.attributed),
        seed=seed,
        n_bins=N_BINS,
        auc=agreement.auc(labels, probabilities),
        before=before,
        after=after,
        balanced_accuracy=_gain(before.balanced_accuracy, after.balanced_accuracy, drawn, figure=_balanced_accuracies),
        brier=_gain(before.brier.score, after.brier.score, drawn, figure=_briers),
    )


def _figures(told: OutOfFold, labels: Bools) -> Figures:
    """Means of the figures of each division."""
    pairs = zip(told.probabilities, told.attributed, strict=True)
    each = [_figures_of(probabilities, attributed, labels) for probabilities, attributed in pairs]
    return Figures(
        brier=BrierParts(**{name: _mean(getattr(one.brier, name) for one in each) for name in BrierParts.model_fields}),
        **{name: _mean(getattr(one, name) for one in each) for name in Figures.model_fields if name != "brier"},
    )


def _figures_of(probabilities: Floats, attributed: Bools, labels: Bools) -> Figures:
    return Figures(
        balanced_accuracy=_sure(agreement.balanced_accuracy(labels, attributed)),
        share_attributed=float(attributed.mean()),
        ece=_sure(calibration_error(probabilities, labels)),
        brier=_sure(brier_parts(probabilities, labels)),
        log_loss=_sure(log_loss(probabilities, labels)),
    )


def _sums(told: OutOfFold, labels: Bools) -> Floats:
    """What resampled figures are made of: a 2x2 table and the squared error, as means over divisions.

    Shape (n_statements, 5), of which four columns are those of `agreement.tables`.
    """
    attributed = told.attributed.mean(axis=0)
    errors = ((told.probabilities - labels) ** 2).mean(axis=0)
    positive = labels.astype(np.float64)
    negative = 1 - positive
    columns = (positive * attributed, positive * (1 - attributed), negative * attributed, negative * (1 - attributed))
    return np.stack([*columns, errors], axis=1)


def _balanced_accuracies(drawn: Floats) -> Floats:
    return agreement.balanced_accuracy_of(drawn[:, :4])


def _briers(drawn: Floats) -> Floats:
    return np.asarray(drawn[:, 4] / drawn[:, :4].sum(axis=1), dtype=np.float64)


def _gain(before: float, after: float, drawn: Floats, *, figure: Callable[[Floats], Floats]) -> Gain:
    """A figure's gain, with intervals from the same resamples for both sides."""
    resampled = figure(drawn[:, :_N_SUMS]), figure(drawn[:, _N_SUMS:])
    return Gain(
        before_ci95=agreement.percentile_interval(resampled[0]),
        after_ci95=agreement.percentile_interval(resampled[1]),
        gain=after - before,
        gain_ci95=agreement.percentile_interval(resampled[1] - resampled[0]),
    )


def _sure(value: T | None) -> T:
    """A figure of statements of both classes, which is defined.

    Raises:
        ValueError: If it is not.
    """
    if value is None:
        msg = "a figure is undefined: there must be statements of both classes"
        raise ValueError(msg)
    return value


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return math.fsum(found) / len(found)
