"""The judges of a comparison: runs, and people as one more."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airjudge.compare.frame import FAILED, MISSING, SCORED, UNDEFINED, Frame, Records, Rulings, rulings_of, units_of
from airjudge.compare.records import PEOPLE, JudgeFigures, JudgeKind, SampleCounts, StatementCounts
from airjudge.labels import Label, Labels
from airjudge.run import OpenedRun, summed_up
from airjudge.schema import SampleError, ScoredSample, Status, Summary, Verdict
from airjudge.scoring import context_recall


@dataclass(frozen=True, slots=True)
class Judge:
    """One judge of a comparison, with its records and what it ruled in the order of the frame."""

    name: str
    kind: JudgeKind
    records: Records
    rulings: Rulings
    summary: Summary
    run: OpenedRun | None = None


def judge_of_run(name: str, run: OpenedRun, records: Records, *, frame: Frame) -> Judge:
    """A run as a judge; its summary is the one that it finished with, or that of what is done."""
    summary = run.state.summary or summed_up(run.samples, by=())
    return Judge(name, "run", records, rulings_of(frame, records), summary, run)


@dataclass(frozen=True, slots=True)
class People:
    """The labels in the order of the frame: a label, or None, for each statement."""

    judge: Judge
    labels: tuple[Label | None, ...]

    @property
    def partial(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which statements are labelled as supported in part."""
        return np.array([one is not None and one.partial for one in self.labels], dtype=np.bool_)


def people_of(labels: Labels, runs: Sequence[Records], *, frame: Frame) -> People:
    """People as a judge: a sample has their score if each of its statements is labelled."""
    records: dict[str, ScoredSample] = {}
    found: list[Label | None] = []
    for number, name in enumerate(frame.ids):
        own = [one[name] for one in runs if name in one]
        sample = _held(own, frame.units[number], name)
        on = labels.on(sample)
        found.extend(on)
        if any(on) or (not on and own[0].status == "undefined"):
            records[name] = _labelled(sample, on, group=own[0].group or labels.groups.get(name))
    judge = Judge(PEOPLE, "labels", records, rulings_of(frame, records), summed_up(records.values(), by=()))
    return People(judge, tuple(found))


def _held(records: Sequence[ScoredSample], units: tuple[tuple[str, str], ...], name: str) -> ScoredSample:
    """A record with these statements."""
    for one in records:
        if units_of(one) == units:
            return one
    verdicts = tuple(Verdict(id=unit, text=text, attributed=None) for unit, text in units)
    return ScoredSample(id=name, score=None, status="failed", statements=verdicts)


def _labelled(sample: ScoredSample, labels: Sequence[Label | None], *, group: str | None) -> ScoredSample:
    verdicts = tuple(
        Verdict(
            id=one.id,
            text=one.text,
            attributed=label.attributed if label else None,
            probability=label.probability if label else None,
            reason=label.reason if label else None,
        )
        for one, label in zip(sample.statements, labels, strict=True)
    )
    if any(one.attributed is None for one in verdicts):
        error = SampleError(kind="unlabelled", message="people did not label each statement")
        return ScoredSample(id=sample.id, score=None, status="failed", error=error, statements=verdicts, group=group)
    score = context_recall(verdicts)
    status: Status = "undefined" if score is None else "scored"
    return ScoredSample(id=sample.id, score=score, status=status, statements=verdicts, group=group)


def figures_of(judge: Judge, frame: Frame) -> JudgeFigures:
    """What a judge ruled by itself; what it was held against comes later."""
    state, summary = judge.run.state if judge.run else None, judge.summary
    ruled = ~np.isnan(judge.rulings.verdicts)
    return JudgeFigures(
        name=judge.name,
        kind=judge.kind,
        signature=str(state.signature) if state else None,
        state=state.state if state else None,
        n=int(ruled.sum()),
        prevalence=float(judge.rulings.verdicts[ruled].mean()) if ruled.any() else None,
        statements=_statement_counts(judge, frame),
        samples=_sample_counts(judge, frame),
        mean=summary.mean,
        ci95=summary.ci95,
        micro_mean=summary.micro_mean,
        micro_ci95=summary.micro_ci95,
        usage=state.usage if state else None,
        seconds=state.seconds if state else None,
    )


def _statement_counts(judge: Judge, frame: Frame) -> StatementCounts:
    n, n_ruled, n_given = (
        frame.n_statements,
        int((~np.isnan(judge.rulings.verdicts)).sum()),
        int(judge.rulings.given.sum()),
    )
    if judge.kind == PEOPLE:
        return StatementCounts(n=n, n_ruled=n_ruled, n_failed=0, n_unlabelled=n - n_ruled, n_missing=0)
    return StatementCounts(n=n, n_ruled=n_ruled, n_failed=n_given - n_ruled, n_unlabelled=0, n_missing=n - n_given)


def _sample_counts(judge: Judge, frame: Frame) -> SampleCounts:
    n_of = {status: int((judge.rulings.status == status).sum()) for status in (SCORED, UNDEFINED, FAILED, MISSING)}
    people = judge.kind == PEOPLE
    return SampleCounts(
        n=len(frame.ids),
        n_scored=n_of[SCORED],
        n_undefined=n_of[UNDEFINED],
        n_failed=0 if people else n_of[FAILED],
        n_unlabelled=n_of[FAILED] + n_of[MISSING] if people else 0,
        n_missing=0 if people else n_of[MISSING],
    )
