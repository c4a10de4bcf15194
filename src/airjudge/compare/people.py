"""A judge held against people: how it errs, what its recall is without its errors, whether it may stand in for one."""

from typing import Final

import numpy as np
import numpy.typing as npt

from airjudge import agreement
from airjudge.agreement import balanced_accuracy_of, f1_of, kappa_of, sensitivity_of, specificity_of
from airjudge.compare.frame import Bools, Floats, Frame, Indices
from airjudge.compare.judges import Judge, People
from airjudge.compare.records import (
    Accuracy,
    AgainstPeople,
    AnnotatorTest,
    CorrectedRecall,
    Corrections,
    Interval,
)
from airjudge.compare.settings import CompareSettings
from airjudge.compare.tabled import seeded, tabled

FEWEST_GROUPS: Final = 30
"""Fewer labelled groups than that make every corrected figure a guess."""
FEWEST_ANNOTATORS: Final = 3

ASSUMPTIONS: Final = (
    "each column of votes is one person all over the data; where it is whoever voted first, the test says less",
    "groups of statements are independent: where the data name none, samples are taken for that",
    "the annotators are like those who might have labelled, and may be wrong themselves",
)

_AUC_WORK: Final = 20_000_000
"""Statements that all resamples of an AUC read together."""


def against_people(judge: Judge, people: People, *, frame: Frame, settings: CompareSettings) -> AgainstPeople:
    """Hold a judge against the labels."""
    partial = people.partial
    every = np.ones(frame.n_statements, dtype=np.bool_)
    n_partial = int((partial & _ruled(judge) & _ruled(people.judge)).sum())
    return AgainstPeople(
        all=accuracy(judge, people.judge, every, frame=frame),
        n_partial=n_partial,
        without_partial=accuracy(judge, people.judge, ~partial, frame=frame) if n_partial else None,
        corrected=_corrections(judge, people.judge, frame) if settings.labels_random else None,
        annotators=_annotator_test(judge, people, frame=frame, epsilon=settings.epsilon),
    )


def accuracy(judge: Judge, people: Judge, where: Bools, *, frame: Frame) -> Accuracy:
    """How a judge rules on labelled statements, of those that `where` marks."""
    places = np.flatnonzero(_ruled(judge) & _ruled(people) & where)
    labels, predictions = (one.rulings.verdicts[places] == 1 for one in (people, judge))
    groups = frame.group_of[frame.sample_of[places]]
    found = tabled(labels, predictions, groups)
    known = ~np.isnan(judge.rulings.probabilities[places])
    probabilities = judge.rulings.probabilities[places][known]
    return Accuracy(
        n=len(places),
        n_groups=len(found.by_group),
        n_positive=int(labels.sum()),
        accuracy=found.value(agreement.agreement_of),
        sensitivity=found.value(sensitivity_of),
        sensitivity_ci95=found.interval(sensitivity_of),
        specificity=found.value(specificity_of),
        specificity_ci95=found.interval(specificity_of),
        balanced_accuracy=found.value(balanced_accuracy_of),
        balanced_accuracy_ci95=found.interval(balanced_accuracy_of),
        f1=found.value(f1_of),
        f1_ci95=found.interval(f1_of),
        kappa=found.value(kappa_of),
        kappa_ci95=found.interval(kappa_of),
        n_auc=int(known.sum()),
        auc=agreement.auc(labels[known], probabilities),
        auc_ci95=_auc_interval(labels[known], probabilities, groups[known]),
    )


def _ruled(judge: Judge) -> Bools:
    return ~np.isnan(judge.rulings.verdicts)


def _auc_interval(labels: Bools, probabilities: Floats, groups: Indices) -> Interval:
    """Each resample reads all statements, so of many statements fewer resamples are drawn: their interval is narrow."""
    n_resamples = int(np.clip(_AUC_WORK // max(1, len(labels)), 200, 2000))
    return agreement.auc_bootstrap(labels, probabilities, groups=groups, rng=seeded(), n_resamples=n_resamples)


def _corrections(judge: Judge, people: Judge, frame: Frame) -> Corrections:
    """Recall freed of the judge's errors; only samples that people labelled in full count as labelled."""
    ruled = np.flatnonzero(_ruled(judge))
    whole = ~np.isnan(people.rulings.scores)
    labels = np.where(whole[frame.sample_of], people.rulings.verdicts, np.nan)[ruled]
    groups = frame.group_of[frame.sample_of[ruled]]
    micro = agreement.rogan_gladen(judge.rulings.verdicts[ruled] == 1, labels, groups=groups, rng=seeded())
    scored = np.flatnonzero(~np.isnan(judge.rulings.scores))
    scores = judge.rulings.scores[scored]
    macro = agreement.ppi_mean(scores, people.rulings.scores[scored], groups=frame.group_of[scored])
    return Corrections(micro=_told(micro), macro=_told(macro))


def _told(corrected: agreement.Corrected) -> CorrectedRecall:
    return CorrectedRecall(
        raw=corrected.raw,
        value=corrected.value,
        ci95=corrected.ci95,
        n_labelled=corrected.n_labelled,
        n_other=corrected.n - corrected.n_labelled,
        n_groups=corrected.n_labelled_groups,
    )


def _annotator_test(judge: Judge, people: People, *, frame: Frame, epsilon: float) -> AnnotatorTest | None:
    """None where the labels do not hold the votes of three people."""
    votes = _votes(people)
    if len(votes) < FEWEST_ANNOTATORS:
        return None
    places = np.flatnonzero(_ruled(judge) & ~np.isnan(votes).all(axis=0))
    verdicts = judge.rulings.verdicts[places] == 1
    groups = frame.group_of[frame.sample_of[places]]
    found = agreement.alternative_annotator_test(votes[:, places], verdicts, epsilon=epsilon, groups=groups)
    return AnnotatorTest(
        epsilon=epsilon,
        n=len(places),
        n_annotators=len(votes),
        n_tested=found.n_tested,
        winning_rate=found.winning_rate,
        advantage=found.advantage,
        passed=found.passes,
        assumptions=ASSUMPTIONS,
    )


def _votes(people: People) -> Floats:
    """Votes by annotator and statement, NaN for none; an annotator who never voted is left out."""
    width = max((len(one.votes) for one in people.labels if one), default=0)
    votes: npt.NDArray[np.float64] = np.full((width, len(people.labels)), np.nan)
    for place, label in enumerate(people.labels):
        for person, vote in enumerate(label.votes if label else ()):
            if vote is not None:
                votes[person, place] = vote
    return votes[~np.isnan(votes).all(axis=1)]
