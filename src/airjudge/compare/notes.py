"""What a reader of a comparison must know besides its figures, in sentences."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from airjudge.compare.frame import by_id
from airjudge.compare.judges import People
from airjudge.compare.people import FEWEST_GROUPS
from airjudge.compare.records import JudgeFigures
from airjudge.compare.refusals import names_of
from airjudge.compare.repeats import is_repeat
from airjudge.compare.settings import CompareSettings
from airjudge.labels import Labels
from airjudge.run import OpenedRun, open_state, repeats_in


def notes_on(
    runs: Sequence[OpenedRun],
    labels: Labels | None,
    people: People | None,
    *,
    figures: Sequence[JudgeFigures],
    settings: CompareSettings,
) -> tuple[str, ...]:
    """All sentences, in the order of a reader's concern."""
    named = dict(zip(names_of(runs), runs, strict=True))
    return (
        *_on_grades(named),
        *_on_data(named),
        *_on_claims(named),
        *_on_runs(named),
        *(_on_labels(labels, people) if labels and people else ()),
        *(_on_calibrations(named) if labels else ()),
        *_on_corrections(figures, settings),
    )


def _on_grades(named: dict[str, OpenedRun]) -> Iterator[str]:
    """A grade of a response and a share of statements share their range and nothing else."""
    graded = [name for name, run in named.items() if run.state.signature.is_graded]
    others = [name for name in named if name not in graded]
    if graded and others:
        yield (
            f"the scores of {', '.join(graded)} and of {', '.join(others)} are not the same quantity: grades of the "
            "response as a whole (method opik), and shares of what is to be found that the contexts hold. Order and "
            "correlation can be compared; a difference of means, its tests and a common gate say nothing"
        )
    elif graded:
        yield "the scores are grades of responses (method opik) and no recall, which other methods give"


def _on_data(named: dict[str, OpenedRun]) -> Iterator[str]:
    """Equal statements may have been judged against other contexts; recorded verdicts do not tell."""
    judged = {name: run for name, run in named.items() if run.state.signature.server not in {"recorded", "batch"}}
    for (a, run_a), (b, run_b) in combinations(judged.items(), 2):
        if run_a.state.data_sha256 != run_b.state.data_sha256:
            yield (
                f"{a} and {b} were made from different data: where the contexts differ, so may the verdicts, "
                "and that is no disagreement of the judges"
            )


def _on_claims(named: dict[str, OpenedRun]) -> Iterator[str]:
    """Who wrote the statements, where a judge did: they are no sentences, and one judge may rule on its own."""
    writers = dict.fromkeys(run.state.statements_by for run in named.values())
    for writer in filter(None, writers):
        names = [name for name, run in named.items() if run.state.statements_by == writer]
        yield f"the statements of {', '.join(names)} are claims that a judge wrote out of the references: {writer}"


def _on_runs(named: dict[str, OpenedRun]) -> Iterator[str]:
    for name, run in named.items():
        if run.state.state != "finished":
            yield f"{name} is not finished ({run.state.state}): what it lacks is counted as missing"
        n_repeated = by_id(run.samples)[1]
        if n_repeated:
            yield f"{n_repeated} records of {name} have the id of an earlier one, and are left out"
        n_foreign = sum(not is_repeat(open_state(folder), run.state) for folder in repeats_in(run.folder))
        if n_foreign:
            yield f"{n_foreign} repeats of {name} are of another judge or of other data, and are left out"


def _on_labels(labels: Labels, people: People) -> Iterator[str]:
    yield f"the labels are those of {labels.name}"
    n_labels, n_found = sum(map(len, labels.by_sample.values())), sum(one is not None for one in people.labels)
    if people.labels and n_found < n_labels:
        yield f"{n_labels - n_found} of {n_labels} labels are on no statement of these runs"
    n_open = sum(one is not None and one.attributed is None for one in people.labels)
    if n_open:
        yield f"{n_open} labels are undecided, and count as none"


def _on_calibrations(named: dict[str, OpenedRun]) -> Iterator[str]:
    for name, run in named.items():
        if run.state.calibration is not None:
            yield f"{name} is calibrated: held against the labels that it was calibrated on, it looks better than it is"


def _on_corrections(figures: Sequence[JudgeFigures], settings: CompareSettings) -> Iterator[str]:
    judged = [one for one in figures if one.people is not None]
    for one in judged:
        corrected = one.people.corrected if one.people else None
        if corrected and corrected.macro.n_groups < FEWEST_GROUPS:
            yield (
                f"{one.name}: only {corrected.macro.n_groups} groups are labelled in full, fewer than {FEWEST_GROUPS}: "
                "its corrected recall is a guess, and so is the interval"
            )
    if judged and not settings.labels_random:
        yield (
            "recall is not corrected for the judges' errors: that takes labels of samples drawn at random from the "
            "runs, and not used to calibrate (--labels-random)"
        )
