"""The judges of a comparison: runs, and people as one more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from airjudge.compare.frame import (
    FAILED,
    MISSING,
    SCORED,
    STATUS,
    UNDEFINED,
    Bools,
    Frame,
    Records,
    Rulings,
    Unit,
    or_nan,
    rulings_of,
    units_of,
)
from airjudge.compare.records import PEOPLE, JudgeFigures, JudgeKind, SampleCounts, StatementCounts
from airjudge.labels import Label, Labels
from airjudge.run import OpenedRun, summed_up
from airjudge.schema import SampleError, ScoredSample, Status, Summary, Verdict
from airjudge.scoring import context_recall

_RULED: Final = {ruled: Verdict(id="", text="", attributed=ruled) for ruled in (True, False, None)}
_UNLABELLED: Final = SampleError(kind="unlabelled", message="people did not label each statement")


@dataclass(frozen=True, slots=True)
class Judge:
    """One judge of a comparison, with what it ruled in the order of the frame; people have no records."""

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
    def partial(self) -> Bools:
        """Which statements are labelled as supported in part."""
        return np.array([one is not None and one.partial for one in self.labels], dtype=np.bool_)


def people_of(labels: Labels, runs: Sequence[Records], *, frame: Frame) -> People:
    """People as a judge: a sample has their score if each of its statements is labelled."""
    found: list[Label | None] = []
    records: dict[str, ScoredSample] = {}
    for number, name in enumerate(frame.ids):
        own = [one[name] for one in runs if name in one]
        on = labels.on(_held(own, frame.units[number], name))
        found.extend(on)
        if any(on) or (not on and own[0].status == "undefined"):
            group = next((one.group for one in own if one.group), None) or labels.groups.get(name)
            records[name] = _labelled(name, on, group=group)
    judge = Judge(PEOPLE, "labels", {}, _rulings(frame, found, records), summed_up(records.values(), by=()))
    return People(judge, tuple(found))


def _held(records: Sequence[ScoredSample], units: Sequence[Unit], name: str) -> ScoredSample:
    """A record with these statements."""
    for one in records:
        if units_of(one) == units:
            return one
    verdicts = tuple(Verdict(id=unit, text=text, attributed=None) for unit, text in units)
    return ScoredSample(id=name, score=None, status="failed", statements=verdicts)


def _labelled(name: str, labels: Sequence[Label | None], *, group: str | None) -> ScoredSample:
    """What a summary needs of a labelled sample; its verdicts are without id and text, of which there are many."""
    verdicts = tuple(_RULED[label.attributed if label else None] for label in labels)
    if any(one is _RULED[None] for one in verdicts):
        return ScoredSample(id=name, score=None, status="failed", error=_UNLABELLED, statements=verdicts, group=group)
    score = context_recall(verdicts)
    status: Status = "undefined" if score is None else "scored"
    return ScoredSample(id=name, score=score, status=status, statements=verdicts, group=group)


def _rulings(frame: Frame, labels: Sequence[Label | None], records: Records) -> Rulings:
    """Labels as arrays; every statement was put to people, as it were."""
    by_sample = (records.get(name) for name in frame.ids)
    told = [(or_nan(one.score), STATUS[one.status]) if one else (np.nan, MISSING) for one in by_sample]
    return Rulings(
        verdicts=np.array([or_nan(one.attributed if one else None) for one in labels], dtype=np.float64),
        probabilities=np.array([or_nan(one.probability if one else None) for one in labels], dtype=np.float64),
        given=np.ones(len(labels), dtype=np.bool_),
        scores=np.array([score for score, _ in told], dtype=np.float64),
        status=np.array([status for _, status in told], dtype=np.int8),
    )


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
        cost=state.cost if state else None,
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
