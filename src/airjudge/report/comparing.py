"""What a report compares: several runs, a run and people, or nothing."""

from collections.abc import Sequence
from dataclasses import replace

from airjudge.compare import CompareSettings, Comparison, compare_runs
from airjudge.compare.refusals import names_of
from airjudge.errors import StatementsDiffer
from airjudge.labels import Labels
from airjudge.run import OpenedRun, repeats_in


def named(runs: Sequence[OpenedRun]) -> list[OpenedRun]:
    """The runs by the names that a comparison gives them, each of which is one run's alone."""
    return [replace(run, name=name) for run, name in zip(runs, names_of(runs), strict=True)]


def comparison_of(
    runs: Sequence[OpenedRun], labels: Labels | None, *, settings: CompareSettings | None = None
) -> Comparison | None:
    """All figures of runs and labels; of runs with other statements those of sample scores.

    Returns:
        None for one run without labels that was not repeated: there is nothing to hold it against.

    Raises:
        InputError: If a run is given twice, or the labels or a column are foreign to the runs.
    """
    if len(runs) == 1 and labels is None and not repeats_in(runs[0].folder):
        return None
    settings = settings or CompareSettings()
    try:
        return compare_runs(runs, labels, settings=settings)
    except StatementsDiffer:
        return compare_runs(runs, labels, settings=settings.model_copy(update={"scores_only": True}))
