"""Make a calibration of a judge from one of its runs and labels, and say what it is worth."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from airjudge.calibrate.observed import Observed, observe
from airjudge.calibration import Calibration, CrossValidated, LabelsUsed
from airjudge.calibration.fitting import Fitted, Recipe, band_of_rate, fit, mapped, odds_of
from airjudge.calibration.folds import cross_validated
from airjudge.errors import InputError
from airjudge.labels import Labels
from airjudge.run import OpenedRun
from airjudge.version import __version__

SEED: Final = 20_261_130
"""Folds and intervals are the same for the same labels."""

LEAST_GROUPS: Final = 30
LEAST_OF_A_CLASS: Final = 10
LEAST_FOR_ISOTONIC: Final = 1000


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a calibration is made: `band`, or the share of statements that one may hold, is of mapped probabilities."""

    recipe: Recipe = field(default_factory=Recipe)
    band: tuple[float, float] | None = None
    rate: float | None = None


def calibrate_run(run: OpenedRun, labels: Labels, *, file: str, wanted: Wanted | None = None) -> Calibration:
    """Fit a calibration to a run's probabilities and labels.

    Args:
        run: Of the judge that is to be calibrated, without a calibration.
        labels: On its statements.
        file: The name of the file that they came from.
        wanted: Map, threshold and band.

    Raises:
        InputError: If the run is calibrated already, or its labelled statements cannot be fitted to.
    """
    wanted = wanted or Wanted()
    _refuse_calibrated(run)
    observed = observe(run, labels, file=file)
    _refuse_unfit(run, observed.used)
    fitted = fit(observed.probabilities, observed.labels, wanted.recipe)
    worth = cross_validated(observed.probabilities, observed.labels, observed.groups, recipe=wanted.recipe, seed=SEED)
    band = _band(observed, fitted, wanted)
    return Calibration(
        signature=run.state.signature,
        probability_map=fitted.probability_map,
        threshold=fitted.threshold,
        by=wanted.recipe.by,
        abstain=band,
        labels=observed.used,
        data_sha256=run.state.data_sha256,
        cross_validated=worth,
        warnings=(*_of_labels(observed.used, wanted), *_of_worth(fitted, worth), *_of_band(fitted, band)),
        created=datetime.now(UTC),
        airjudge=__version__,
    )


def _refuse_calibrated(run: OpenedRun) -> None:
    if run.state.calibration is not None:
        msg = f"the probabilities in {run.folder} are calibrated already, by {run.state.calibration.name}"
        fork = run.state.settings.get("fork")
        named = str(fork) if fork else "the run without --calibration"
        raise InputError(msg, f"Calibrate {named}: a calibration is fitted to the judge's own probabilities.")


def _refuse_unfit(run: OpenedRun, used: LabelsUsed) -> None:
    """Refuse labelled statements that nothing can be fitted to, and say what is missing."""
    if used.n_statements == 0:
        if used.n_without_probability:
            msg = f"no labelled verdict in {run.folder} has a probability"
            raise InputError(
                msg, "A judge whose server gives no logprobs, or verdicts without any, cannot be calibrated."
            )
        msg = f"no statement in {run.folder} has a label in {used.file}"
        raise InputError(msg, "Labels name a sample by its id, and a statement by its id, its text or both.")
    if used.n_positive in {0, used.n_statements}:
        value = int(used.n_positive > 0)
        msg = f"all {used.n_statements} labels are {value}"
        raise InputError(msg, f"A calibration needs statements labelled {1 - value} too.")


def _band(observed: Observed, fitted: Fitted, wanted: Wanted) -> tuple[float, float] | None:
    """The band that was asked for.

    Raises:
        InputError: If a share was asked for that not even the nearest statements keep to.
    """
    if wanted.rate is None:
        return wanted.band
    calibrated = mapped(fitted.probability_map, odds_of(observed.probabilities))
    band = band_of_rate(calibrated, fitted.threshold, rate=wanted.rate)
    if band is None:
        msg = f"no band holds at most {wanted.rate:.3g} of the {observed.used.n_statements} labelled statements"
        raise InputError(msg, "Raise --abstain-rate, or name the band: --abstain LOW HIGH")
    return band


def _of_labels(used: LabelsUsed, wanted: Wanted) -> Iterator[str]:
    """What is doubtful because of too few labels."""
    if used.n_groups < LEAST_GROUPS:
        yield f"only {used.n_groups} groups are labelled: below {LEAST_GROUPS} the figures and the fit are mostly luck"
    for name, n in (("1", used.n_positive), ("0", used.n_statements - used.n_positive)):
        if n < LEAST_OF_A_CLASS:
            yield f"only {n} statements are labelled {name}: below {LEAST_OF_A_CLASS} the threshold is mostly luck"
    if wanted.recipe.kind == "isotonic" and used.n_statements < LEAST_FOR_ISOTONIC:
        yield f"an isotonic map from {used.n_statements} labels fits their noise: use the logistic one below about 1000"


def _of_worth(fitted: Fitted, worth: CrossValidated | None) -> Iterator[str]:
    """What is doubtful because of the figures on held-out statements."""
    if fitted.probability_map(0.0) == fitted.probability_map(1.0):
        yield "the judge's probabilities do not rise with the labels: each statement is given the same one"
    if worth is None:
        yield "nothing could be held out (one group, or a class in one group alone): the calibration is untested"
        return
    if worth.brier.gain >= 0:
        yield "on held-out statements the calibrated probabilities are no better than the raw ones (Brier score)"
    if worth.balanced_accuracy.gain <= 0:
        yield "on held-out statements the calibrated verdicts are no better than the raw ones (balanced accuracy)"


def _of_band(fitted: Fitted, band: tuple[float, float] | None) -> Iterator[str]:
    if band is not None and not band[0] <= fitted.threshold <= band[1]:
        yield f"the abstain band does not hold the threshold {fitted.threshold:.3f}, where verdicts are least sure"
