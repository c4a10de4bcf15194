"""More than two judges at once: people among each other, a judge among people, a judge and itself."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from airjudge.agreement.arrays import Bools, Floats, check_binary, defined, divided
from airjudge.agreement.clusters import clustered_mean, one_group_each
from airjudge.schema import Record

MIN_GROUPS: Final = 30
"""An annotator with fewer independent groups of statements is not tested: the t-test needs about as many."""

_FALSE_DISCOVERIES: Final = 0.05


class AltAnnotator(Record):
    """The judge against one annotator, both measured by the others.

    `advantage` is on which share of `n_statements` the judge is at least as close to the others as the annotator is;
    `p` that of the test, `won` whether it holds among all tests; both None with fewer than MIN_GROUPS groups.
    """

    advantage: float | None
    n_statements: int
    n_groups: int
    p: float | None
    won: bool | None


class AltTest(Record):
    """Whether a judge may stand in for any one of several annotators.

    `winning_rate` is the share of tested annotators whom the judge wins against, `passes` whether that is at least
    half; `advantage` is the mean over tested annotators. None if nobody could be tested.
    """

    epsilon: float
    winning_rate: float | None
    advantage: float | None
    passes: bool | None
    annotators: tuple[AltAnnotator, ...]
    n_tested: int


def krippendorff_alpha(ratings: Floats) -> float | None:
    """Krippendorff's alpha (nominal) of any number of judges, not all of whom rule on every statement.

    Args:
        ratings: 1 attributed, 0 not, NaN no verdict; shape (n_judges, n_statements).

    Returns:
        At most 1, which is full agreement; 0 is chance; below 0 worse than that. Statements with fewer than two
        verdicts do not count. None if no statement has two, or if all that count are alike.

    Raises:
        ValueError: If a rating is other than 0, 1 and NaN, or the shape is not two-dimensional.

    Source:
        Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, section C.
    """
    return defined(alpha_of(alpha_parts(ratings).sum(axis=0)))


def alpha_parts(ratings: Floats) -> Floats:
    """What each statement adds to alpha: its disagreement, its verdicts `true`, its verdicts `false`.

    Returns:
        Shape (n_statements, 3); zeros where fewer than two judges ruled. Sums over statements are what `alpha_of`
        takes, so that `table_bootstrap` finds alpha's interval from sums over groups.

    Raises:
        ValueError: If a rating is other than 0, 1 and NaN, or the shape is not two-dimensional.
    """
    check_binary(ratings)
    n_true, n_false = (ratings == 1).sum(axis=0).astype(np.float64), (ratings == 0).sum(axis=0).astype(np.float64)
    pairable = n_true + n_false >= 2
    n_true, n_false = np.where(pairable, n_true, 0.0), np.where(pairable, n_false, 0.0)
    disagreement = np.where(pairable, n_true * n_false / np.maximum(n_true + n_false - 1, 1), 0.0)
    return np.stack([disagreement, n_true, n_false], axis=1)


def alpha_of(parts: Floats) -> Floats:
    """Alpha from sums of `alpha_parts`, shape (..., 3) to (...); NaN where undefined.

    1 - D_o / D_e, with D_o = 2 disagreement / n and D_e = 2 true·false / (n (n - 1)).
    """
    disagreement, n_true, n_false = np.moveaxis(parts, -1, 0)
    return 1 - divided((n_true + n_false - 1) * disagreement, n_true * n_false)


def flip_rate(verdicts: Floats) -> float | None:
    """How often two repeats of one judge differ on a statement: the mean over statements.

    1 less it is the judge's agreement with itself: the ceiling that its agreement with others is read against.

    Args:
        verdicts: 1 attributed, 0 not, NaN no verdict; shape (n_repeats, n_statements).

    Returns:
        In [0, 1]: of each statement the share of pairs of repeats that differ. Statements with fewer than two
        verdicts do not count; None if there is no other.

    Raises:
        ValueError: If a verdict is other than 0, 1 and NaN, or the shape is not two-dimensional.

    Source:
        1 less the observed agreement of Fleiss (1971). doi:10.1037/h0031619
    """
    check_binary(verdicts)
    n_true, n_false = (verdicts == 1).sum(axis=0), (verdicts == 0).sum(axis=0)
    n = n_true + n_false
    counts = n >= 2
    if not counts.any():
        return None
    pairs = n[counts] * (n[counts] - 1) / 2
    return float(np.mean(n_true[counts] * n_false[counts] / pairs))


def alternative_annotator_test(
    votes: Floats, judge: Bools, *, epsilon: float, groups: npt.ArrayLike | None = None
) -> AltTest:
    """Test whether a judge represents annotators as well as each of them represents the others.

    Each annotator in turn is left out. On every statement with that person's vote and another's, judge and annotator
    are measured by the share of the others who agree; ties count for both. H0: the judge's advantage is at most the
    annotator's less epsilon; one one-sided t-test an annotator, Benjamini and Yekutieli's procedure over annotators
    (false discovery rate 5 %).

    It assumes that annotators are drawn from those who might have labelled, and that rows are single people: where
    row j is "the j-th vote" of whoever voted, annotators are mixtures, and the test says less. The paper takes
    statements for independent; with `groups` the standard error is that of a mean over groups.

    Args:
        votes: 1, 0, or NaN for none; shape (n_annotators, n_statements).
        judge: What the judge ruled, shape (n_statements,).
        epsilon: What the judge's lower cost is worth, in [0, 1): 0.2 beside experts, 0.15 beside trained people,
            0.1 beside crowd workers.
        groups: The group of each statement, shape (n_statements,); None makes each its own, as the paper does.

    Returns:
        The test, annotators in order. Annotators with fewer than MIN_GROUPS groups are listed, not tested; nobody
        is tested where there are fewer than three annotators.

    Raises:
        ValueError: If a vote is other than 0, 1 and NaN, or shapes or epsilon do not fit.

    Source:
        Calderon, Reichart and Dror (2025), The Alternative Annotator Test for LLM-as-a-Judge. arXiv:2501.10970;
        Benjamini and Yekutieli (2001). doi:10.1214/aos/1013699998
    """
    check_binary(votes)
    if judge.shape != votes.shape[1:] or not 0 <= epsilon < 1:
        msg = f"the judge needs a verdict for each of {votes.shape[1]} statements, and epsilon must be in [0, 1)"
        raise ValueError(msg)
    units = np.arange(len(judge)) if groups is None else one_group_each(groups, len(judge))
    alone = [_against(votes, judge, row=row, units=units, epsilon=epsilon) for row in range(len(votes))]
    annotators = _with_discoveries(alone)
    tested = [one for one in annotators if one.won is not None]
    rate = _mean([float(one.won or False) for one in tested])
    return AltTest(
        epsilon=epsilon,
        winning_rate=rate,
        advantage=_mean([one.advantage for one in tested if one.advantage is not None]),
        passes=None if rate is None else rate >= 0.5,
        annotators=annotators,
        n_tested=len(tested),
    )


def _against(votes: Floats, judge: Bools, *, row: int, units: npt.NDArray[np.generic], epsilon: float) -> AltAnnotator:
    """The judge against one annotator, before it is known how many tests there are."""
    others = np.delete(votes, row, axis=0)
    n_true, n_false = (others == 1).sum(axis=0), (others == 0).sum(axis=0)
    counts = ~np.isnan(votes[row]) & (n_true + n_false > 0)
    # Who votes with the majority of the others is closer to them; who votes as the judge does is level with it.
    ahead = ((judge - votes[row]) * np.sign(n_true - n_false))[counts]
    behind = clustered_mean(-ahead, units[counts])
    tested = behind is not None and behind.n_groups >= MIN_GROUPS and len(votes) >= 3
    return AltAnnotator(
        advantage=_mean([float(share) for share in ahead >= 0]),
        n_statements=len(ahead),
        n_groups=len(np.unique(units[counts])),
        p=behind.p_below(epsilon) if behind is not None and tested else None,
        won=None,
    )


def _with_discoveries(annotators: Sequence[AltAnnotator]) -> tuple[AltAnnotator, ...]:
    """Those with a p told whether Benjamini and Yekutieli's procedure rejects its hypothesis."""
    p_values = np.sort([one.p for one in annotators if one.p is not None])
    ranks = np.arange(1, len(p_values) + 1)
    limits = _FALSE_DISCOVERIES * ranks / (len(p_values) * (1 / ranks).sum())
    # All up to the largest that keeps its own limit, even if a smaller one does not.
    largest = max(p_values[p_values <= limits], default=-1.0)
    return tuple(one if one.p is None else one.model_copy(update={"won": bool(one.p <= largest)}) for one in annotators)


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
