"""The comparison itself: runs and labels in, all figures out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from airjudge import agreement
from airjudge.compare.columns import read_column
from airjudge.compare.decisions import gate_decision, ranking
from airjudge.compare.frame import Frame, Records, by_id, framed, without_statements, without_verdicts
from airjudge.compare.judges import Judge, People, figures_of, judge_of_run, people_of
from airjudge.compare.notes import notes_on
from airjudge.compare.pairs import pair_of
from airjudge.compare.people import against_people
from airjudge.compare.records import Comparison, Interval, JudgeFigures
from airjudge.compare.refusals import check_labels, check_runs, check_statements, names_of, unit_of
from airjudge.compare.repeats import repeats_of
from airjudge.compare.settings import CompareSettings
from airjudge.compare.tabled import seeded
from airjudge.labels import Labels
from airjudge.run import OpenedRun


def compare_runs(
    runs: Sequence[OpenedRun], labels: Labels | None = None, *, settings: CompareSettings | None = None
) -> Comparison:
    """Hold runs against each other and against labels, on the same statements.

    Args:
        runs: At least one; a single one needs labels, or repeats in its folder.
        labels: What people ruled, who become the judge `labels`.
        settings: What is asked beside the figures that every comparison has.

    Raises:
        InputError: If there is nothing to compare, a run is given twice, or a column or all labels are foreign to them.
        StatementsDiffer: If runs do not hold the same statements, unless scores alone are wanted, or one is graded.
        StorageFailed: If a repeat cannot be read.
    """
    settings = settings or CompareSettings()
    check_runs(runs, labels)
    if any(run.state.signature.is_graded for run in runs):  # a grade is of no statement
        settings = settings.model_copy(update={"scores_only": True})
    laid = _laid(runs, labels, settings)
    frame, judges = laid.frame, laid.judges
    columns = [read_column(name, laid.records, frame=frame) for name in dict.fromkeys(settings.by)]
    systems = read_column(settings.systems, laid.records, frame=frame) if settings.systems else None
    alpha, alpha_ci95, alpha_n = _alpha(judges, frame)
    figures = tuple(_figures(judge, laid, settings) for judge in judges)
    return Comparison(
        judges=figures,
        pairs=tuple(pair_of(a, b, frame=frame, settings=settings, columns=columns) for a, b in combinations(judges, 2)),
        alpha=alpha,
        alpha_ci95=alpha_ci95,
        alpha_n=alpha_n,
        n_statements=frame.n_statements,
        n_samples=len(frame.ids),
        n_groups=frame.n_groups,
        scores_only=settings.scores_only,
        n_differing=len(laid.different),
        differing=tuple(laid.different[:5]),
        gate=None if settings.fail_under is None else gate_decision(judges, settings.fail_under),
        ranking=ranking(judges, systems) if systems else None,
        notes=notes_on(runs, labels, laid.people, figures=figures, settings=settings),
    )


@dataclass(frozen=True, slots=True)
class _Laid:
    """Runs and labels side by side; `different` names samples of which runs hold other statements."""

    records: tuple[Records, ...]
    frame: Frame
    people: People | None
    judges: tuple[Judge, ...]
    different: tuple[str, ...]


def _laid(runs: Sequence[OpenedRun], labels: Labels | None, settings: CompareSettings) -> _Laid:
    records = tuple(by_id(run.samples)[0] for run in runs)
    different = check_statements(records, refuse=not settings.scores_only, units=[unit_of(run) for run in runs])
    frame = framed(records, labels)
    people = people_of(labels, records, frame=frame) if labels else None
    if labels and people:
        check_labels(labels, people)
    if settings.scores_only:
        frame = without_statements(frame)
        if people:
            scores = without_verdicts(people.judge.rulings)
            people = replace(people, labels=(), judge=replace(people.judge, rulings=scores))
    judges = [
        judge_of_run(name, run, own, frame=frame) for name, run, own in zip(names_of(runs), runs, records, strict=True)
    ]
    return _Laid(records, frame, people, tuple([*judges, people.judge] if people else judges), different)


def _figures(judge: Judge, laid: _Laid, settings: CompareSettings) -> JudgeFigures:
    """What a judge ruled, and how it does against people and against itself."""
    told = figures_of(judge, laid.frame)
    if judge.run is None:
        return told
    people = laid.people and against_people(judge, laid.people, frame=laid.frame, settings=settings)
    repeats = None if settings.scores_only else repeats_of(judge.run, laid.frame)
    return told.model_copy(update={"people": people, "repeats": repeats})


def _alpha(judges: Sequence[Judge], frame: Frame) -> tuple[float | None, Interval, int]:
    """Krippendorff's alpha of all judges, its interval, and on how many statements at least two ruled."""
    ratings = np.stack([judge.rulings.verdicts for judge in judges])
    parts = agreement.alpha_parts(ratings)
    sums = agreement.sums_by_group(parts, frame.group_of[frame.sample_of])
    interval = agreement.table_bootstrap(agreement.alpha_of, sums, rng=seeded())
    return agreement.krippendorff_alpha(ratings), interval, int((parts[:, 1:].sum(axis=1) > 0).sum())
