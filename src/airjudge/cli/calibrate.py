"""`airjudge calibrate`: a labelled run in, a calibration file and what it is worth out."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airjudge.calibration import Calibration, CrossValidated, Gain, LabelsUsed
    from airjudge.cli.sections import Section


class _By(StrEnum):
    prevalence = "prevalence"
    balanced_accuracy = "balanced_accuracy"


class _Kind(StrEnum):
    logistic = "logistic"
    isotonic = "isotonic"


def calibrate(
    run: Annotated[Path, typer.Argument(help="Folder of a run of the judge, without a calibration.")],
    labels: Annotated[
        Path, typer.Option(metavar="FILE", help="Labels: samples with statements[].label, or a line for each label.")
    ],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = Path("calibration.json"),
    by: Annotated[
        _By, typer.Option(help="The threshold: as many attributed as people found, or the best balanced accuracy.")
    ] = _By.prevalence,
    fit: Annotated[
        _Kind, typer.Option(help="The map: two parameters, or as many as there are labels for (about 1000 or more).")
    ] = _Kind.logistic,
    abstain: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="Leave verdicts whose calibrated probability lies between to people."),
    ] = None,
    abstain_rate: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, metavar="P", help="The same, for that share of the labelled verdicts: the least sure."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the calibration as one JSON object.")] = False,
) -> None:
    """Fit threshold and probabilities of a judge to some dozens of labels, and write them for `score --calibration`.

    The figures are of statements held out: each is calibrated by the labels of other groups.
    """
    from airjudge.calibrate import Wanted, calibrate_run, write_calibration
    from airjudge.calibration.fitting import Recipe
    from airjudge.datasets.labels import read_labels
    from airjudge.run import open_run

    _check_band(abstain, abstain_rate)
    wanted = Wanted(Recipe(fit.value, by.value), band=abstain, rate=abstain_rate)
    made = calibrate_run(open_run(run), read_labels(labels), file=labels.name, wanted=wanted)
    write_calibration(output, made)
    if as_json:
        print(json.dumps({"file": str(output), "name": made.name, **made.model_dump(mode="json")}))
        return
    _print(made)
    print(f"written to {output}; take the run's verdicts over, without asking again:")
    print(f"  airjudge score DATA --out NEW --fork {run} --calibration {output}")


def _check_band(abstain: tuple[float, float] | None, rate: float | None) -> None:
    if abstain is not None and rate is not None:
        msg = "--abstain and --abstain-rate both set the band: give one of them"
        raise typer.BadParameter(msg)
    if abstain is not None and not 0 <= abstain[0] <= abstain[1] <= 1:
        msg = f"LOW and HIGH are probabilities, and LOW is not above HIGH: got {abstain[0]:g} {abstain[1]:g}"
        raise typer.BadParameter(msg, param_hint="--abstain")


def _print(made: "Calibration") -> None:
    from rich.console import Console
    from rich.text import Text

    from airjudge.cli.render import facts_table, printable
    from airjudge.cli.sections import print_sections

    console = Console(soft_wrap=True)
    facts = facts_table()
    for name, value in _facts(made):
        facts.add_row(name, Text(printable(value)))
    console.print(facts)
    if made.cross_validated is not None:
        print_sections([_figures(made.cross_validated, made.labels)])
    for warning in made.warnings:
        console.print(Text(printable(f"warning: {warning}")))


def _facts(made: "Calibration") -> list[tuple[str, str]]:
    rule = {"prevalence": "matches the labels' prevalence", "balanced_accuracy": "best balanced accuracy"}[made.by]
    rows = [
        ("judge", str(made.signature)),
        ("labels", _counts(made.labels)),
        ("map", _map(made)),
        ("threshold", f"{made.threshold:.3f} ({rule})"),
    ]
    if made.abstain is not None:
        rows.append(("left to people", f"{made.abstain[0]:.3f} to {made.abstain[1]:.3f}"))
    return [*rows, ("calibration", made.name)]


def _counts(used: "LabelsUsed") -> str:
    left_out = {
        "without a label": used.n_unlabelled,
        "undecided": used.n_undecided,
        "without a probability": used.n_without_probability,
        "failed": used.n_failed,
        "labels on no statement": used.n_unused_labels,
    }
    told = ", ".join(f"{count} {name}" for name, count in left_out.items() if count)
    base = f"{used.n_statements} statements of {used.n_groups} groups, {used.n_positive} labelled 1 ({used.file})"
    return f"{base}; left out: {told}" if told else base


def _map(made: "Calibration") -> str:
    found = made.probability_map
    if found.kind == "logistic":
        return f"log-odds × {found.slope:.3f} {'+' if found.intercept >= 0 else '-'} {abs(found.intercept):.3f}"
    return f"isotonic, {len(found.odds)} knots"


def _figures(worth: "CrossValidated", used: "LabelsUsed") -> "Section":
    from airjudge.cli.sections import Section

    title = f"held-out statements: {worth.n_folds} folds of groups, divided {_times(worth.n_repeats)}"
    return Section(title, ("", "raw", "calibrated", "difference"), tuple(_rows(worth, used)))


def _rows(worth: "CrossValidated", used: "LabelsUsed") -> "Iterator[tuple[str, ...]]":
    before, after = worth.before, worth.after
    share = f"share attributed (labels {used.n_positive / used.n_statements:.3f})"
    yield "balanced accuracy", *_gain(before.balanced_accuracy, after.balanced_accuracy, worth.balanced_accuracy)
    yield share, *_plain(before.share_attributed, after.share_attributed)
    yield "expected calibration error", *_plain(before.ece, after.ece)
    yield "Brier score", *_gain(before.brier.score, after.brier.score, worth.brier)
    for name in ("reliability", "resolution", "uncertainty", "within_variance", "within_covariance"):
        yield f"  {name.replace('_', ' ')}", *_plain(getattr(before.brier, name), getattr(after.brier, name))
    yield "log loss", *_plain(before.log_loss, after.log_loss)
    if worth.auc is not None:
        yield "AUC", f"{worth.auc:.3f}", "the same", ""


def _plain(before: float, after: float) -> tuple[str, str, str]:
    return f"{before:.3f}", f"{after:.3f}", _signed(after - before)


def _gain(before: float, after: float, gain: "Gain") -> tuple[str, str, str]:
    def shown(value: str, interval: tuple[float, float] | None) -> str:
        return f"{value} ({interval[0]:.3f} to {interval[1]:.3f})" if interval else value

    return (
        shown(f"{before:.3f}", gain.before_ci95),
        shown(f"{after:.3f}", gain.after_ci95),
        shown(_signed(gain.gain), gain.gain_ci95),
    )


def _signed(difference: float) -> str:
    return f"{round(difference, 3) + 0.0:+.3f}"  # + 0.0 makes a plus of minus nothing


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"
