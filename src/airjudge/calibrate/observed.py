"""What a run and labels tell together: a probability and a label for each statement, and what is left out."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass

import numpy as np

from airjudge.calibration import LabelsUsed
from airjudge.calibration.fitting import Bools, Floats
from airjudge.labels import Label, Labels
from airjudge.run import OpenedRun
from airjudge.schema import Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """The statements of a run that have both a probability and a label, in the run's order.

    `groups` are their units of independence; `used` counts them, and what is left out.
    """

    probabilities: Floats
    labels: Bools
    groups: tuple[str, ...]
    used: LabelsUsed


def observe(run: OpenedRun, labels: Labels, *, file: str) -> Observed:
    """Bring a run's verdicts and labels together.

    Args:
        run: Its verdicts.
        labels: Those of people, or of a judge that is taken for the truth.
        file: The name that the labels are known by.
    """
    n_found, left_out = 0, Counter[str]()
    kept: list[tuple[float, bool, str]] = []
    named: list[tuple[str, str, bool]] = []
    for sample in run.samples:
        for verdict, label in zip(sample.statements, labels.on(sample), strict=True):
            n_found += label is not None
            told = _told(verdict, label)
            if isinstance(told, str):
                left_out[told] += 1
            else:
                kept.append((*told, labels.group_of(sample)))
                named.append((sample.id, verdict.id, told[1]))
    truth = np.array([label for _, label, _ in kept], dtype=np.bool_)
    groups = tuple(group for _, _, group in kept)
    used = LabelsUsed(
        file=file,
        sha256=hashlib.sha256(json.dumps(sorted(named)).encode()).hexdigest(),
        n_statements=len(kept),
        n_positive=int(truth.sum()),
        n_groups=len(set(groups)),
        n_unlabelled=left_out["unlabelled"],
        n_undecided=left_out["undecided"],
        n_without_probability=left_out["without_probability"],
        n_failed=left_out["failed"],
        n_unused_labels=_n_labels(labels) - n_found,
    )
    return Observed(np.array([p for p, _, _ in kept], dtype=np.float64), truth, groups, used)


def _told(verdict: Verdict, label: Label | None) -> tuple[float, bool] | str:
    """A probability and a label, or why there are not both."""
    if label is None:
        return "unlabelled"
    if label.attributed is None:
        return "undecided"
    if verdict.attributed is None:
        return "failed"
    if verdict.probability is None:
        return "without_probability"
    return verdict.probability, label.attributed


def _n_labels(labels: Labels) -> int:
    return sum(len(one) for one in labels.by_sample.values())
