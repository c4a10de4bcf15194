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

_N_RESAMPLES: Final = 2000
_CELLS_AT_ONCE: Final = 4_000_000
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
    """Calibrate each statement by the statements of other groups, over several divisions into folds.

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
    for _ in range(N_REPEATS):
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
    sums = _sums(raw, labels), _sums(told, labels)
    drawn = _resampled(np.concatenate(sums, axis=1), groups, rng=rng)
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
    """What the resampled figures are made of, by statement, as means over divisions: shape (n_statements, 5)."""
    hits = (told.attributed & labels).mean(axis=0)
    rejections = (~told.attributed & ~labels).mean(axis=0)
    errors = ((told.probabilities - labels) ** 2).mean(axis=0)
    return np.column_stack([labels, ~labels, hits, rejections, errors]).astype(np.float64)


def _resampled(sums: Floats, groups: npt.ArrayLike, *, rng: np.random.Generator) -> Floats:
    """Sums over as many groups as there are, drawn with replacement; shape (n_resamples, n_columns).

    How often each group is drawn is multinomial, so a resample costs one product, whatever the number of statements.
    """
    _, group_of = np.unique(np.asarray(groups), return_inverse=True)
    n_groups = int(group_of.max()) + 1
    by_group = np.stack([np.bincount(group_of, weights=column) for column in sums.T], axis=1)
    chunk = max(1, _CELLS_AT_ONCE // n_groups)
    shares = np.full(n_groups, 1 / n_groups)
    starts = range(0, _N_RESAMPLES, chunk)
    drawn = [rng.multinomial(n_groups, shares, size=min(chunk, _N_RESAMPLES - one)) @ by_group for one in starts]
    return np.asarray(np.concatenate(drawn), dtype=np.float64)


def _balanced_accuracies(drawn: Floats) -> Floats:
    """Balanced accuracy of each resample; NaN where it holds one class."""
    n_true, n_false, hits, rejections, _ = drawn.T
    whole = np.where((n_true > 0) & (n_false > 0), 1.0, np.nan)
    return whole * (hits / np.maximum(n_true, 1) + rejections / np.maximum(n_false, 1)) / 2


def _briers(drawn: Floats) -> Floats:
    return np.asarray(drawn[:, 4] / (drawn[:, 0] + drawn[:, 1]), dtype=np.float64)


def _gain(before: float, after: float, drawn: Floats, *, figure: Callable[[Floats], Floats]) -> Gain:
    """A figure's gain, with intervals from the same resamples for both sides."""
    resampled = figure(drawn[:, :_N_SUMS]), figure(drawn[:, _N_SUMS:])
    return Gain(
        before_ci95=_interval(resampled[0]),
        after_ci95=_interval(resampled[1]),
        gain=after - before,
        gain_ci95=_interval(resampled[1] - resampled[0]),
    )


def _interval(values: Floats) -> tuple[float, float] | None:
    """Middle 95 % of the resamples that have a value; None if a tenth of them has none."""
    defined = values[~np.isnan(values)]
    if defined.size < agreement.DEFINED_SHARE * values.size:
        return None
    low, high = np.quantile(defined, (0.025, 0.975))
    return float(low), float(high)


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
