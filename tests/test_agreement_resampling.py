from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from airjudge.agreement import (
    Bools,
    Floats,
    Indices,
    ac1_of,
    agreement_of,
    auc,
    balanced_accuracy,
    balanced_accuracy_of,
    cluster_bootstrap,
    cohen_kappa,
    f1,
    f1_of,
    grouped_tables,
    gwet_ac1,
    kappa_of,
    mcnemar_exact,
    prevalence_of,
    rate_of,
    raw_agreement,
    resampled_sums,
    resampling,
    sensitivity_of,
    sensitivity_specificity,
    sign_flip_test,
    specificity_of,
    sums_by_group,
    table,
    table_bootstrap,
)
from tests.marks import bools, of_table

DIFFERENCES = st.lists(st.integers(-3, 3), min_size=2, max_size=7)


def drawn(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def judged(n_groups: int, *, size: int = 4, seed: int = 1) -> tuple[Bools, Bools, Indices]:
    """Two judges over groups of statements whose disagreements come in clusters."""
    rng = drawn(seed)
    groups = np.repeat(np.arange(n_groups), size)
    a = rng.random(len(groups)) < 0.6
    flips = rng.random(len(groups)) < np.repeat(rng.beta(0.5, 2, n_groups), size)
    return a, a ^ flips, groups


def test_a_table_counts_both_ones_alone_and_neither() -> None:
    a, b = of_table(4, 3, 2, 1)
    assert table(a, b).tolist() == [4, 3, 2, 1]
    assert agreement_of(table(a, b)) == 0.5
    assert prevalence_of(table(a, b)) == 0.7
    assert rate_of(table(a, b)) == 0.6


def test_tables_of_groups_stand_in_their_order_and_add_up() -> None:
    a, b = bools("xx.x."), bools("x..xx")
    tables = grouped_tables(a, b, ["q", "p", "q", "p", "p"])
    assert tables.tolist() == [[1, 1, 1, 0], [1, 0, 0, 1]]
    assert tables.sum(axis=0).tolist() == table(a, b).tolist()


def test_every_statement_needs_a_group() -> None:
    with pytest.raises(ValueError, match="needs one group"):
        grouped_tables(bools("xx"), bools("xx"), ["a"])
    with pytest.raises(ValueError, match="needs one group"):
        sums_by_group(np.ones((2, 1)), "ab")


def sensitivity(labels: Bools, predictions: Bools) -> float | None:
    return sensitivity_specificity(labels, predictions)[0]


def specificity(labels: Bools, predictions: Bools) -> float | None:
    return sensitivity_specificity(labels, predictions)[1]


@pytest.mark.parametrize(
    ("of_counts", "of_verdicts"),
    [
        (agreement_of, raw_agreement),
        (kappa_of, cohen_kappa),
        (ac1_of, gwet_ac1),
        (sensitivity_of, sensitivity),
        (specificity_of, specificity),
        (balanced_accuracy_of, balanced_accuracy),
        (f1_of, f1),
    ],
)
def test_many_tables_at_once_give_what_each_alone_gives(
    of_counts: Callable[[Floats], Floats], of_verdicts: Callable[[Bools, Bools], float | None]
) -> None:
    tables = list(product(range(3), repeat=4))
    expected = [of_verdicts(*of_table(*one)) for one in tables]
    values = of_counts(np.array(tables, dtype=np.float64))
    assert [None if np.isnan(value) else value for value in values] == expected
    assert None in expected


def test_the_bootstrap_finds_the_spread_of_a_mean() -> None:
    # The mean of 400 draws with standard deviation 1 has standard error .05, so its 95 %
    # interval is about ±.098 wide; 2000 resamples find the ends to a few thousandths.
    values = drawn(1).normal(size=400)

    def mean(chosen: Indices) -> float:
        return float(values[chosen].mean())

    interval = cluster_bootstrap(mean, np.arange(400), rng=drawn(2))
    assert interval is not None
    half = 1.96 * values.std() / 20
    assert interval == pytest.approx((values.mean() - half, values.mean() + half), abs=0.015)


def test_statements_of_one_group_are_drawn_together() -> None:
    # Ten copies of each of 40 values: as groups they carry no more than 40 values do.
    values = drawn(1).normal(size=40)
    groups = [f"g{n}" for n in range(40)]

    def mean_of_copies(chosen: Indices) -> float:
        return float(np.repeat(values, 10)[chosen].mean())

    def mean(chosen: Indices) -> float:
        return float(values[chosen].mean())

    copied = cluster_bootstrap(mean_of_copies, np.repeat(groups, 10), rng=drawn(3))
    single = cluster_bootstrap(mean, groups, rng=drawn(3))
    assert copied == pytest.approx(single)


def test_every_resample_holds_whole_groups() -> None:
    groups = np.array([2, 0, 1, 0, 2, 2])

    def whole(chosen: Indices) -> float:
        times = np.bincount(chosen, minlength=6)
        assert all(len(set(times[groups == g])) == 1 for g in range(3))
        return 0.0

    assert cluster_bootstrap(whole, groups, rng=drawn(), n_resamples=50) == (0.0, 0.0)


def test_an_interval_needs_two_groups() -> None:
    assert cluster_bootstrap(lambda _: 1.0, [], rng=drawn()) is None
    assert cluster_bootstrap(lambda _: 1.0, ["a", "a"], rng=drawn()) is None
    assert table_bootstrap(agreement_of, np.zeros((0, 4)), rng=drawn()) is None
    assert table_bootstrap(agreement_of, np.ones((1, 4)), rng=drawn()) is None


def test_undefined_resamples_are_left_out_while_they_are_few() -> None:
    # With one true statement among n groups a resample lacks it with probability (1 - 1/n)^n,
    # about .37: too often. With ten among twenty it is (1/2)^20.
    scores = np.linspace(0, 1, 20)

    def area(labels: Bools) -> tuple[float, float] | None:
        def statistic(chosen: Indices) -> float | None:
            return auc(labels[chosen], scores[chosen])

        return cluster_bootstrap(statistic, np.arange(20), rng=drawn(), n_resamples=300)

    assert area(bools("x" + "." * 19)) is None
    assert area(bools("x." * 10)) is not None


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.arange(10.0)

    def mean(chosen: Indices) -> float:
        return float(values[chosen].mean())

    first, second = (cluster_bootstrap(mean, values, rng=drawn(7)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("of_counts", [agreement_of, kappa_of, ac1_of, sensitivity_of, f1_of])
def test_the_fast_bootstrap_agrees_with_the_general_one(of_counts: Callable[[Floats], Floats]) -> None:
    # Other draws of the same distribution: with 4000 resamples a 2.5 % quantile of spread s is known to about
    # s · sqrt(.025 · .975 / 4000) / .058 = .042 s; kappa's s is some .06 here. Four such errors, of two intervals.
    a, b, groups = judged(60)

    def statistic(chosen: Indices) -> float | None:
        return float(of_counts(table(a[chosen], b[chosen])))

    slow = cluster_bootstrap(statistic, groups, rng=drawn(2), n_resamples=4000)
    fast = table_bootstrap(of_counts, grouped_tables(a, b, groups), rng=drawn(3), n_resamples=4000)
    assert fast is not None
    assert fast == pytest.approx(slow, abs=0.015)


@pytest.mark.parametrize("many_kinds", [2000, 0])
def test_drawing_kinds_of_groups_is_drawing_groups(many_kinds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of n rows drawn with replacement a sum has mean n · mean and variance n · variance (population).
    monkeypatch.setattr(resampling, "_MANY_KINDS", many_kinds)
    rows = np.array([[1.0, 0], [1, 0], [0, 2], [3, 1], [0, 2]])
    sums = resampled_sums(rows, rng=drawn(4), n_resamples=20_000)
    assert sums.shape == (20_000, 2)
    assert sums.mean(axis=0) == pytest.approx(rows.sum(axis=0), rel=0.01)
    assert np.cov(sums.T) == pytest.approx(5 * np.cov(rows.T, ddof=0), abs=0.25)
    assert np.isin(sums[:, 1], np.arange(11)).all()


def test_the_order_of_groups_does_not_show_in_an_interval() -> None:
    a, b, groups = judged(40)
    tables = grouped_tables(a, b, groups)
    assert table_bootstrap(kappa_of, tables, rng=drawn(5)) == table_bootstrap(kappa_of, tables[::-1], rng=drawn(5))


def test_a_hundred_thousand_groups_are_resampled_in_little_memory() -> None:
    # As verdicts they would be 2000 · 400,000 positions, 6 GB; the shape and the spread are what is checked.
    a, b, groups = judged(100_000)
    interval = table_bootstrap(agreement_of, grouped_tables(a, b, groups), rng=drawn(6))
    assert interval is not None
    mean = raw_agreement(a, b)
    assert mean is not None
    assert interval[0] < mean < interval[1]
    assert interval[1] - interval[0] < 0.005


def test_a_statistic_undefined_in_too_many_resamples_has_no_interval() -> None:
    # Twenty groups, one of which disagrees: of kappa's resamples (1 - 1/20)^20 = 36 % hold constant judges.
    tables = np.array([[1.0, 0, 0, 0]] * 19 + [[0, 1, 1, 0]])
    assert table_bootstrap(agreement_of, tables, rng=drawn()) is not None
    assert table_bootstrap(kappa_of, tables, rng=drawn()) is None


def test_two_judges_who_never_differ_have_a_point_for_an_interval() -> None:
    assert table_bootstrap(agreement_of, np.array([[1.0, 0, 0, 0], [0, 0, 0, 1]]), rng=drawn()) == (1, 1)


def test_a_difference_of_two_judges_accuracies_is_resampled_in_pairs() -> None:
    # One row holds both judges' tables against the labels; equal judges differ by exactly nothing.
    labels, judge, groups = judged(30)
    tables = grouped_tables(labels, judge, groups)

    def difference(rows: Floats) -> Floats:
        return balanced_accuracy_of(rows[..., :4]) - balanced_accuracy_of(rows[..., 4:])

    assert table_bootstrap(difference, np.hstack([tables, tables]), rng=drawn()) == (0, 0)


def test_signs_are_enumerated_for_few_groups() -> None:
    # |sum| of 3, 1, -1 is 3. Of the 8 signs: 5, 3, 3, 1 and their mirrors; 6 of 8 are at least 3.
    assert sign_flip_test(np.array([3.0, 1, -1]), rng=drawn()) == 0.75
    # Five differences of one sign: only all plus and all minus are as extreme.
    assert sign_flip_test(np.ones(5), rng=drawn()) == 2 / 32


def test_groups_without_a_difference_do_not_matter() -> None:
    assert sign_flip_test(np.array([0.0, 3, 0, 1, -1, 0]), rng=drawn()) == 0.75
    assert sign_flip_test(np.zeros(4), rng=drawn()) is None
    assert sign_flip_test(np.array([]), rng=drawn()) is None
    assert sign_flip_test(np.array([2.0]), rng=drawn()) == 1


@settings(max_examples=40, deadline=None)
@given(DIFFERENCES)
def test_the_exact_test_is_scipys(differences: list[int]) -> None:
    values = np.array(differences, dtype=np.float64)
    p = sign_flip_test(values, rng=drawn())
    if not values.any():
        assert p is None
        return
    oracle = stats.permutation_test(
        (values,), lambda x: abs(x.sum()), permutation_type="samples", alternative="greater", n_resamples=np.inf,
        vectorized=False,
    )  # fmt: skip
    assert p == pytest.approx(oracle.pvalue)
    assert p == sign_flip_test(-values, rng=drawn())


def test_with_statements_as_groups_the_test_is_mcnemars() -> None:
    # Every difference is +1 or -1: the number of pluses is binomial, which is McNemar's distribution.
    assert sign_flip_test(np.repeat([1.0, -1], [9, 2]), rng=drawn()) == pytest.approx(mcnemar_exact(9, 2))
    # 35 differences are drawn, not enumerated; 100,000 draws find a p near .04 to about .0013 (two errors).
    p = sign_flip_test(np.repeat([1.0, -1], [24, 11]), rng=drawn(8), n_permutations=100_000)
    assert p == pytest.approx(mcnemar_exact(24, 11), abs=0.003)


def test_statements_that_differ_together_are_less_evidence() -> None:
    # Twelve statements, all for the first judge: alone p = 2/2^12; from three samples 2/2^3.
    assert mcnemar_exact(12, 0) == 2 / 2**12
    assert sign_flip_test(np.array([4.0, 4, 4]), rng=drawn()) == 2 / 2**3


def test_as_many_sizes_of_differences_as_groups_are_drawn_like_few(monkeypatch: pytest.MonkeyPatch) -> None:
    # The normal limit: p of |z| = sum / root of the sum of squares.
    values = drawn(9).normal(0.1, 1, size=400)
    expected = 2 * stats.norm.sf(abs(values.sum()) / np.sqrt((values**2).sum()))
    for many_kinds in (2000, 0):
        monkeypatch.setattr(resampling, "_MANY_KINDS", many_kinds)
        assert sign_flip_test(values, rng=drawn(10)) == pytest.approx(expected, abs=0.015)


def test_a_drawn_p_is_never_zero() -> None:
    assert sign_flip_test(np.ones(200), rng=drawn(), n_permutations=999) == 1 / 1000


def test_sums_that_differ_by_rounding_alone_are_ties() -> None:
    # .1 + .2 + .3 is not .3 + .2 + .1 in floats; all plus and all minus are still the two most extreme.
    assert sign_flip_test(np.array([0.1, 0.2, 0.3]), rng=drawn()) == 0.25


def test_differences_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN or infinite"):
        sign_flip_test(np.array([1.0, np.nan]), rng=drawn())
    with pytest.raises(ValueError, match="shape"):
        sign_flip_test(np.ones((2, 2)), rng=drawn())
