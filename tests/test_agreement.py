import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge.agreement import Indices, auc, balanced_accuracy, cluster_bootstrap, cohen_kappa

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)
SCORED = st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])), min_size=1, max_size=30)


def bools(marks: str) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.array([mark == "x" for mark in marks], dtype=bool)


def test_kappa_matches_hand_computation() -> None:
    # Ten statements, 8 agreements (6 yes, 2 no): p_o = 0.8. Each judge says
    # yes 7 times: p_e = 0.49 + 0.09 = 0.58. kappa = 0.22 / 0.42.
    assert cohen_kappa(bools("xxxxxxx..."), bools("xxxxxx.x..")) == pytest.approx(0.22 / 0.42)


def test_kappa_matches_a_textbook_table() -> None:
    # 50 proposals, 20 yes-yes, 15 no-no, 5 and 10 mixed: p_o = .7, p_e = .5, kappa = .4
    # (the example of the Wikipedia article "Cohen's kappa").
    a = bools("x" * 20 + "x" * 5 + "." * 10 + "." * 15)
    b = bools("x" * 20 + "." * 5 + "x" * 10 + "." * 15)
    assert cohen_kappa(a, b) == pytest.approx(0.4)


def test_kappa_is_undefined_where_chance_alone_agrees() -> None:
    assert cohen_kappa(bools("xxx"), bools("xxx")) is None
    assert cohen_kappa(bools(""), bools("")) is None
    assert cohen_kappa(bools("xxx"), bools("...")) == 0


@given(PAIRS)
def test_kappa_is_symmetric_and_at_most_one(pairs: list[tuple[bool, bool]]) -> None:
    a, b = np.array(pairs, dtype=bool).T
    kappa = cohen_kappa(a, b)
    assert kappa == cohen_kappa(b, a)
    assert kappa is None or -1 - 1e-12 <= kappa <= 1 + 1e-12


def test_balanced_accuracy_averages_both_classes() -> None:
    # 3 of 4 true statements found, 1 of 2 false ones: (.75 + .5) / 2.
    assert balanced_accuracy(bools("xxxx.."), bools("xxx.x.")) == pytest.approx(0.625)


def test_a_constant_judge_has_balanced_accuracy_one_half() -> None:
    assert balanced_accuracy(bools("xxxxxx."), bools("xxxxxxx")) == 0.5


@pytest.mark.parametrize("labels", ["xxx", "...", ""])
def test_one_class_alone_leaves_auc_and_balanced_accuracy_undefined(labels: str) -> None:
    assert balanced_accuracy(bools(labels), bools("x" * len(labels))) is None
    assert auc(bools(labels), np.linspace(0, 1, len(labels))) is None


def test_auc_matches_hand_computation() -> None:
    # True: .9, .5, .4; false: .5, .1. Of six pairs the true one is above in .9/.5, .9/.1, .5/.1,
    # .4/.1, level in .5/.5, below in .4/.5: 4.5 / 6.
    scores = np.array([0.9, 0.5, 0.4, 0.5, 0.1])
    assert auc(bools("xxx.."), scores) == pytest.approx(4.5 / 6)


def test_auc_matches_a_textbook_example() -> None:
    # Hanley and McNeil (1982), table I: 58 normal and 51 abnormal CT images, five rating
    # categories, area .893.
    normal, abnormal = [33, 6, 6, 11, 2], [3, 2, 2, 11, 33]
    scores = np.repeat(np.tile(np.arange(1.0, 6.0), 2), normal + abnormal)
    labels = np.repeat([False, True], [58, 51])
    assert auc(labels, scores) == pytest.approx(0.893, abs=0.0005)


def test_auc_refuses_nan() -> None:
    with pytest.raises(ValueError, match="NaN"):
        auc(bools("x."), np.array([0.5, np.nan]))


@given(SCORED)
def test_auc_is_the_share_of_ordered_pairs(scored: list[tuple[bool, float]]) -> None:
    labels, scores = np.array([s[0] for s in scored]), np.array([s[1] for s in scored])
    wins = [(t > f) + (t == f) / 2 for t in scores[labels] for f in scores[~labels]]
    area = auc(labels, scores)
    assert area == (pytest.approx(np.mean(wins)) if wins else None)


@given(SCORED)
def test_auc_depends_on_order_alone(scored: list[tuple[bool, float]]) -> None:
    labels, scores = np.array([s[0] for s in scored]), np.array([s[1] for s in scored])
    assert auc(labels, scores) == auc(labels, np.exp(3 * scores))


@pytest.mark.parametrize("measure", [cohen_kappa, balanced_accuracy])
def test_arrays_about_different_statements_are_refused(measure: type) -> None:
    with pytest.raises(ValueError, match="must share one shape"):
        measure(bools("x."), bools("x.."))
    with pytest.raises(ValueError, match="must share one shape"):
        measure(np.ones((2, 2), dtype=bool), np.ones((2, 2), dtype=bool))


def test_the_bootstrap_finds_the_spread_of_a_mean() -> None:
    # The mean of 400 draws with standard deviation 1 has standard error .05, so its 95 %
    # interval is about ±.098 wide; 2000 resamples find the ends to a few thousandths.
    values = np.random.default_rng(1).normal(size=400)

    def mean(chosen: Indices) -> float:
        return float(values[chosen].mean())

    interval = cluster_bootstrap(mean, np.arange(400), rng=np.random.default_rng(2))
    assert interval is not None
    half = 1.96 * values.std() / 20
    assert interval == pytest.approx((values.mean() - half, values.mean() + half), abs=0.015)


def test_statements_of_one_group_are_drawn_together() -> None:
    # Ten copies of each of 40 values: as groups they carry no more than 40 values do.
    values = np.random.default_rng(1).normal(size=40)
    groups = [f"g{n}" for n in range(40)]

    def mean_of_copies(chosen: Indices) -> float:
        return float(np.repeat(values, 10)[chosen].mean())

    def mean(chosen: Indices) -> float:
        return float(values[chosen].mean())

    copied = cluster_bootstrap(mean_of_copies, np.repeat(groups, 10), rng=np.random.default_rng(3))
    single = cluster_bootstrap(mean, groups, rng=np.random.default_rng(3))
    assert copied == pytest.approx(single)


def test_every_resample_holds_whole_groups() -> None:
    groups = np.array([2, 0, 1, 0, 2, 2])

    def whole(chosen: Indices) -> float:
        times = np.bincount(chosen, minlength=6)
        assert all(len(set(times[groups == g])) == 1 for g in range(3))
        return 0.0

    assert cluster_bootstrap(whole, groups, rng=np.random.default_rng(0), n_resamples=50) == (0.0, 0.0)


def test_an_interval_needs_two_groups() -> None:
    assert cluster_bootstrap(lambda _: 1.0, [], rng=np.random.default_rng(0)) is None
    assert cluster_bootstrap(lambda _: 1.0, ["a", "a"], rng=np.random.default_rng(0)) is None


def test_undefined_resamples_are_left_out_while_they_are_few() -> None:
    # With one true statement among n groups a resample lacks it with probability (1 - 1/n)^n,
    # about .37: too often. With ten among twenty it is (1/2)^20.
    scores = np.linspace(0, 1, 20)

    def area(labels: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> tuple[float, float] | None:
        def statistic(chosen: Indices) -> float | None:
            return auc(labels[chosen], scores[chosen])

        return cluster_bootstrap(statistic, np.arange(20), rng=np.random.default_rng(0), n_resamples=300)

    assert area(bools("x" + "." * 19)) is None
    assert area(bools("x." * 10)) is not None


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.arange(10.0)

    def mean(chosen: Indices) -> float:
        return float(values[chosen].mean())

    first, second = (cluster_bootstrap(mean, values, rng=np.random.default_rng(7)) for _ in range(2))
    assert first == second
