from typing import Any

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from airjudge.agreement import (
    AltAnnotator,
    Floats,
    alpha_of,
    alpha_parts,
    alternative_annotator_test,
    flip_rate,
    krippendorff_alpha,
    many,
    raw_agreement,
    sums_by_group,
    table_bootstrap,
)
from tests.marks import bools, ratings

ROWS = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.text("x.?", min_size=n, max_size=n), min_size=2, max_size=4).map(lambda rows: ratings(*rows))
)


def test_alpha_matches_a_textbook_computation() -> None:
    # Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, section A: Meg and Owen on ten articles,
    # alpha .095. Of 20 values 14 are 0 and 6 are 1, four articles differ: 1 - 19 · 4 / (14 · 6) = .0952.
    assert krippendorff_alpha(ratings(".x......x.", "xxx..x....")) == pytest.approx(0.095, abs=0.0005)


def test_alpha_with_gaps_matches_hand_computation() -> None:
    # Statement 1 has three verdicts, two true: 2 · 1 / 2 = 1 of disagreement. Statement 2 has two equal ones.
    # Statement 3 has one and does not count. Five verdicts, 2 true, 3 false: 1 - 4 · 1 / (2 · 3) = 1/3.
    assert krippendorff_alpha(ratings("x.x", "x.?", ".??")) == pytest.approx(1 / 3)


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_alpha_is_that_of_the_krippendorff_package(rows: Floats) -> None:
    counts = (~np.isnan(rows)).sum(axis=0) >= 2
    values = rows[:, counts][~np.isnan(rows[:, counts])]
    if len(set(values.tolist())) < 2:
        assert krippendorff_alpha(rows) is None
        return
    expected = krippendorff.alpha(reliability_data=rows, level_of_measurement="nominal")
    assert krippendorff_alpha(rows) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_neither_the_order_of_judges_nor_the_name_of_a_class_moves_alpha(rows: Floats) -> None:
    alpha = krippendorff_alpha(rows)
    assert krippendorff_alpha(rows[::-1]) == alpha
    assert krippendorff_alpha(1 - rows) == (None if alpha is None else pytest.approx(alpha, abs=1e-12))
    assert alpha is None or alpha <= 1


def test_alpha_is_undefined_without_two_classes_among_statements_with_two_verdicts() -> None:
    assert krippendorff_alpha(ratings("xx", "xx")) is None
    assert krippendorff_alpha(ratings("x?", "?.")) is None
    assert krippendorff_alpha(ratings("xx.", "xx?")) is None
    assert krippendorff_alpha(np.zeros((3, 0))) is None
    assert krippendorff_alpha(ratings("x", ".")) == 0
    assert krippendorff_alpha(ratings("x.", "x.")) == 1


def test_alphas_interval_comes_from_sums_over_groups() -> None:
    rows = (np.random.default_rng(1).random((3, 200)) < np.tile([0.8, 0.2], 100)).astype(np.float64)
    parts = sums_by_group(alpha_parts(rows), np.repeat(np.arange(50), 4))
    alpha = krippendorff_alpha(rows)
    assert alpha == pytest.approx(float(alpha_of(parts.sum(axis=0))))
    interval = table_bootstrap(alpha_of, parts, rng=np.random.default_rng(2))
    assert interval is not None
    assert alpha is not None
    assert interval[0] < alpha < interval[1]


@pytest.mark.parametrize("wrong", [np.array([[0.5, 1]]), np.array([[2.0, 1]]), np.array([0.0, 1])])
def test_ratings_other_than_verdicts_are_refused(wrong: Floats) -> None:
    for statistic in (krippendorff_alpha, flip_rate):
        with pytest.raises(ValueError, match="rating"):
            statistic(wrong)


def test_the_flip_rate_is_the_share_of_pairs_that_differ() -> None:
    # Statement 1: three repeats, one differs: 2 of 3 pairs. Statement 2: none of 1. Statement 3: one verdict.
    assert flip_rate(ratings("xx?", "x??", ".xx")) == pytest.approx((2 / 3 + 0) / 2)
    assert flip_rate(ratings("x.", "x.", "x.")) == 0


def test_of_two_repeats_the_flip_rate_is_what_agreement_lacks() -> None:
    agreement = raw_agreement(bools("xx..x"), bools("x..xx"))
    assert agreement is not None
    assert flip_rate(ratings("xx..x", "x..xx")) == pytest.approx(1 - agreement)


def test_without_repeats_there_is_no_flip_rate() -> None:
    assert flip_rate(ratings("x.x")) is None
    assert flip_rate(ratings("x?", "?x")) is None
    assert flip_rate(np.zeros((2, 0))) is None


def naive_test(votes: Floats, judge: list[bool], epsilon: float) -> tuple[list[float], list[float], list[bool]]:
    """The paper's procedure, statement by statement: advantage, p and outcome of each annotator."""
    advantages, p_values = [], []
    for j in range(len(votes)):
        wins: list[int] = []
        losses: list[int] = []
        for i, ruled in enumerate(judge):
            others = [votes[k, i] for k in range(len(votes)) if k != j and not np.isnan(votes[k, i])]
            if np.isnan(votes[j, i]) or not others:
                continue
            of_judge, of_person = (np.mean([vote == one for vote in others]) for one in (ruled, votes[j, i]))
            wins.append(int(of_judge >= of_person))
            losses.append(int(of_person >= of_judge))
        advantages.append(float(np.mean(wins)))
        p_values.append(float(stats.ttest_1samp(np.subtract(losses, wins), epsilon, alternative="less").pvalue))
    return advantages, p_values, [bool(r) for r in multipletests(p_values, alpha=0.05, method="fdr_by")[0]]


def panel(n: int = 120, *, seed: int = 3) -> tuple[Floats, Any]:
    """Four annotators, one of them poor, some votes missing, and a judge that errs less than they do."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.5
    accuracies = np.array([[0.85], [0.85], [0.8], [0.6]])
    votes = np.where(rng.random((4, n)) < accuracies, truth, ~truth).astype(np.float64)
    votes[rng.random(votes.shape) < 0.1] = np.nan
    return votes, np.where(rng.random(n) < 0.82, truth, ~truth)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.2])
def test_the_alternative_annotator_test_is_the_papers_procedure(epsilon: float) -> None:
    votes, judge = panel()
    advantages, p_values, won = naive_test(votes, judge.tolist(), epsilon)
    test = alternative_annotator_test(votes, judge, epsilon=epsilon)
    assert [one.advantage for one in test.annotators] == pytest.approx(advantages)
    assert [one.p for one in test.annotators] == pytest.approx(p_values)
    assert [one.won for one in test.annotators] == won
    assert test.winning_rate == pytest.approx(np.mean(won))
    assert test.advantage == pytest.approx(np.mean(advantages))
    assert test.passes == (np.mean(won) >= 0.5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.001, 0.004, 0.008, 0.012, 0.02, 0.03, 0.04, 0.2, 1.0]), min_size=1, max_size=9))
def test_discoveries_are_those_of_statsmodels(p_values: list[float]) -> None:
    alone = [AltAnnotator(advantage=0.5, n_statements=99, n_groups=99, p=p, won=None) for p in p_values]
    expected = multipletests(p_values, alpha=0.05, method="fdr_by")[0].tolist()
    assert [one.won for one in many._with_discoveries(alone)] == expected


def test_the_alternative_annotator_test_matches_hand_computation() -> None:
    # 36 statements. Annotators 1 and 2 always vote true; annotator 3 votes false on 6. The judge says true always.
    # Against 3 (others: true, true) the judge is ahead on 6 and level on 30: advantage 1, differences six -1 and
    # thirty 0, mean -1/6, s² = (6 - 36/36)/35 = 1/7, t = (-1/6 - .1) / sqrt(1/7/36) = -4.2332, 35 degrees.
    # Against 1 the judge is level throughout (mean 0, no spread, below .1: p = 0); the same against 2.
    votes = ratings("x" * 36, "x" * 36, "." * 6 + "x" * 30)
    test = alternative_annotator_test(votes, bools("x" * 36), epsilon=0.1)
    assert [one.advantage for one in test.annotators] == [1, 1, 1]
    assert [one.p for one in test.annotators] == pytest.approx([0, 0, stats.t.cdf(-4.2332, 35)], rel=1e-3)
    assert (test.winning_rate, test.passes, test.n_tested) == (1, True, 3)


def test_a_judge_that_is_level_wins_nothing_where_its_cost_is_worth_nothing() -> None:
    votes = ratings("x" * 40, "x" * 40, "x" * 40)
    test = alternative_annotator_test(votes, bools("x" * 40), epsilon=0)
    assert [one.p for one in test.annotators] == [1, 1, 1]
    assert (test.winning_rate, test.advantage, test.passes) == (0, 1, False)


def test_annotators_with_few_statements_are_listed_and_not_tested() -> None:
    votes, judge = panel()
    votes[3, 20:] = np.nan
    test = alternative_annotator_test(votes, judge, epsilon=0.2)
    last = test.annotators[3]
    assert (last.p, last.won) == (None, None)
    assert 0 < last.n_statements <= 20
    assert test.n_tested == 3
    assert test.winning_rate == np.mean([one.won for one in test.annotators[:3]])


def test_two_annotators_are_too_few() -> None:
    votes, judge = panel()
    test = alternative_annotator_test(votes[:2], judge, epsilon=0.2)
    assert (test.winning_rate, test.advantage, test.passes, test.n_tested) == (None, None, None, 0)
    assert len(test.annotators) == 2


def test_an_annotator_who_is_alone_on_all_statements_has_nothing_to_be_measured_by() -> None:
    votes = np.full((3, 80), np.nan)
    votes[0, :40], votes[1:, 40:] = 1, 1
    test = alternative_annotator_test(votes, bools("x" * 80), epsilon=0.2)
    assert (test.annotators[0].advantage, test.annotators[0].n_statements) == (None, 0)
    assert test.n_tested == 2
    assert alternative_annotator_test(np.zeros((3, 0)), bools(""), epsilon=0.2).passes is None


def test_copies_of_statements_are_no_more_evidence_when_they_are_one_group() -> None:
    votes, judge = panel(60)
    alone = alternative_annotator_test(votes, judge, epsilon=0.1)
    copied = alternative_annotator_test(
        np.repeat(votes, 5, axis=1), np.repeat(judge, 5), epsilon=0.1, groups=np.repeat(np.arange(60), 5)
    )
    assert [one.p for one in copied.annotators] == pytest.approx([one.p for one in alone.annotators])
    assert [one.n_groups for one in copied.annotators] == [one.n_groups for one in alone.annotators]


@pytest.mark.parametrize(("marks", "epsilon"), [("xx", 0.2), ("xxx", 1.0), ("xxx", -0.1), ("xxx", float("nan"))])
def test_a_test_that_cannot_be_made_is_refused(marks: str, epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        alternative_annotator_test(ratings("x.x", "xxx", "..."), bools(marks), epsilon=epsilon)
    with pytest.raises(ValueError, match="needs one group"):
        alternative_annotator_test(ratings("x.x", "xxx", "..."), bools("x.x"), epsilon=0.2, groups=["a"])
