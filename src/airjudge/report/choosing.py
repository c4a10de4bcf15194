"""Which samples a report holds: the worst, the failed, those that judges differ on, and some drawn at random."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airjudge.report.joining import JoinedSample


@dataclass(frozen=True, slots=True)
class Chosen:
    """The samples of a report, the worst first, with why each is in it; `n_left_out` are the others."""

    samples: tuple[JoinedSample, ...]
    why: dict[int, str]
    n_left_out: int


def chosen(samples: Sequence[JoinedSample], n_each: int, *, rng: np.random.Generator) -> Chosen:
    """Choose up to `n_each` samples for each reason; a sample is in a report once, for the first that holds.

    The reasons: `worst` by recall, where several judges gave one by the lowest; `differ`, with the widest gap
    between judges, or a judge and people; `failed` or `undefined`; `drawn` at random from the rest.
    """
    why: dict[int, str] = {}
    missed = sorted((one for one in samples if one.lowest is not None and one.lowest < 1), key=_by_recall)
    differing = sorted((one for one in samples if one.gap > 0), key=lambda one: (-one.gap, one.number))
    without = [one for one in samples if one.lowest is None]
    for reason, found in (("worst", missed), ("differ", differing), ("none", without)):
        for one in found[:n_each]:
            why.setdefault(one.number, one.known.status if reason == "none" else reason)
    rest = [one for one in samples if one.number not in why]
    drawn = sorted(rng.choice(len(rest), size=min(n_each, len(rest)), replace=False)) if rest else []
    why.update({rest[place].number: "drawn" for place in drawn})
    inside = sorted((one for one in samples if one.number in why), key=_by_recall)
    return Chosen(tuple(inside), why, len(samples) - len(inside))


def _by_recall(sample: JoinedSample) -> tuple[bool, float, int, int]:
    """Lowest recall first, then most statements missed, then in order; without recall last."""
    lowest = sample.lowest
    n_missed = sum(verdict.attributed is False for verdict in sample.known.statements)
    return lowest is None, 0.0 if lowest is None else lowest, -n_missed, sample.number
