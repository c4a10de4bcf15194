from collections.abc import Callable

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from airjudge.agreement import Floats, clustered_mean, equivalence, paired_difference, pearson, spearman

SCORES = st.lists(st.tuples(*[st.sampled_from([0.0, 0.25, 0.5, 1.0])] * 2), min_size=2, max_size=30)


def scores(n: int = 60, *, seed: int = 1) -> tuple[Floats, Floats]:
    """Two judges' recalls of the same samples, the second some .03 lower."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 6, n) / 5
    return x, np.clip(x - 0.03 + 0.1 * rng.normal(size=n), 0, 1)


def test_the_mean_difference_counts_each_sample_once() -> None:
    # Group a holds three samples, b one: (.2 + .2 + .2 - .2) / 4.
    x, y = np.array([0.5, 0.6, 0.7, 0.5]), np.array([0.3, 0.4, 0.5, 0.7])
    difference = paired_difference(x, y, ["a", "a", "a", "b"], rng=np.random.default_rng(0))
    assert difference.mean == pytest.approx(0.1)
    assert (difference.n, difference.n_groups) == (4, 2)


def test_its_interval_is_the_bootstraps() -> None:
    # Of 60 differences with standard error s the percentile interval is about ±1.96 s.
    x, y = scores()
    difference = paired_difference(x, y, np.arange(60), rng=np.random.default_rng(2))
    oracle = stats.bootstrap((x - y,), np.mean, method="percentile", rng=np.random.default_rng(3)).confidence_interval
    assert difference.ci95 == pytest.approx((oracle.low, oracle.high), abs=0.004)


def test_equal_scores_differ_by_nothing() -> None:
    x, _ = scores()
    difference = paired_difference(x, x, np.arange(60), rng=np.random.default_rng(0))
    assert (difference.mean, difference.ci95) == (0, (0, 0))


def test_a_difference_over_fewer_than_two_groups_has_no_interval() -> None:
    rng = np.random.default_rng(0)
    nothing = paired_difference(np.array([]), np.array([]), [], rng=rng)
    assert (nothing.mean, nothing.ci95, nothing.n, nothing.n_groups) == (None, None, 0, 0)
    one = paired_difference(np.array([1.0, 0.5]), np.array([0.5, 0.5]), ["a", "a"], rng=rng)
    assert (one.mean, one.ci95, one.n, one.n_groups) == (0.25, None, 2, 1)


@pytest.mark.parametrize("margin", [0.02, 0.05, 0.1])
def test_equivalence_is_the_paired_test_of_statsmodels(margin: float) -> None:
    x, y = scores()
    test = equivalence(x, y, np.arange(60), margin=margin)
    p, (_, lower, _), (_, upper, _) = ttost_paired(x, y, -margin, margin)
    assert (test.p_lower, test.p_upper, test.p) == pytest.approx((lower, upper, p))
    assert test.equivalent == (p < 0.05)


def test_the_interval_says_what_the_test_says() -> None:
    x, y = scores()
    for margin in np.linspace(0.005, 0.1, 40):
        test = equivalence(x, y, np.arange(60), margin=float(margin))
        assert test.ci90 is not None
        assert test.equivalent == (-margin < test.ci90[0] and test.ci90[1] < margin)


def test_the_standard_error_over_groups_is_the_sandwich_of_statsmodels() -> None:
    # A regression on a constant with covariance clustered by group, corrected by G / (G - 1) alone.
    rng = np.random.default_rng(5)
    groups = rng.integers(0, 12, 80)
    values = rng.normal(size=12)[groups] + rng.normal(size=80)
    estimate = clustered_mean(values, groups)
    model = sm.OLS(values, np.ones(80)).fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False})
    assert estimate is not None
    assert estimate.mean == pytest.approx(model.params[0])
    assert estimate.error == pytest.approx(model.bse[0] * np.sqrt(12 / 11))


def test_copies_of_samples_in_a_group_change_no_p() -> None:
    x, y = scores(20)
    alone = equivalence(x, y, np.arange(20), margin=0.05)
    copied = equivalence(np.repeat(x, 3), np.repeat(y, 3), np.repeat(np.arange(20), 3), margin=0.05)
    assert copied.p == pytest.approx(alone.p)
    assert (copied.n, copied.n_groups) == (60, 20)


def test_equal_scores_are_equivalent_and_a_constant_gap_beyond_the_margin_is_not() -> None:
    x = np.array([0.5, 0.25, 1.0])
    same = equivalence(x, x, np.arange(3), margin=0.01)
    assert (same.p, same.equivalent, same.ci90) == (0, True, (0, 0))
    apart = equivalence(x, x - 0.25, np.arange(3), margin=0.25)
    assert (apart.p_lower, apart.p_upper, apart.equivalent) == (0, 1, False)


def test_equivalence_over_fewer_than_two_groups_is_undefined() -> None:
    one = equivalence(np.array([1.0, 0.5]), np.array([0.5, 0.5]), ["a", "a"], margin=0.1)
    assert (one.mean, one.p, one.equivalent, one.ci90, one.n_groups) == (0.25, None, None, None, 1)
    none = equivalence(np.array([]), np.array([]), [], margin=0.1)
    assert (none.mean, none.p, none.equivalent, none.n, none.n_groups) == (None, None, None, 0, 0)


@pytest.mark.parametrize("margin", [0.0, -0.1, float("nan")])
def test_a_margin_that_nothing_fits_in_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="margin"):
        equivalence(np.ones(3), np.ones(3), np.arange(3), margin=margin)


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_correlations_are_scipys(pairs: list[tuple[float, float]]) -> None:
    x, y = np.array(pairs).T
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert (pearson(x, y), spearman(x, y)) == (None, None)
        return
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == spearman(x, y**3)
    assert pearson(x, y) == pearson(y, x)


def test_correlations_of_fewer_than_two_samples_are_undefined() -> None:
    for measure in (pearson, spearman):
        assert measure(np.array([]), np.array([])) is None
        assert measure(np.array([0.5]), np.array([0.5])) is None
        assert measure(np.array([0.1, 0.2]), np.array([0.1, 0.3])) == pytest.approx(1)


def test_a_judge_that_gives_every_sample_nearly_the_same_score_gets_no_correlation_out_of_rounding() -> None:
    # .1 + .2 and .3 differ by one digit of rounding: that is a constant judge.
    for measure in (pearson, spearman):
        assert measure(np.array([0.1 + 0.2, 0.3, 0.3]), np.array([0.0, 0.5, 1.0])) is None


@pytest.mark.parametrize("measure", [pearson, spearman, lambda x, y: equivalence(x, y, np.arange(len(x)), margin=0.1)])
def test_scores_that_are_missing_or_of_other_samples_are_refused(measure: Callable[[Floats, Floats], object]) -> None:
    with pytest.raises(ValueError, match="NaN or infinite"):
        measure(np.array([0.5, np.nan]), np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="must share one shape"):
        measure(np.array([0.5]), np.array([0.5, 0.5]))
