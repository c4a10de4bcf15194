from typing import Any

import numpy as np
import ppi_py
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from airjudge.agreement import Bools, Floats, Indices, PredictionPowered, RoganGladen, ppi_mean, rogan_gladen
from tests.marks import bools, of_table

LABELLED = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30)


def drawn(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def correct(predictions: Bools, labels: Floats, groups: Any = None, *, seed: int = 0) -> RoganGladen:
    """Rogan-Gladen with every statement its own group unless told otherwise."""
    units = np.arange(len(labels)) if groups is None else groups
    return rogan_gladen(predictions, labels, groups=units, rng=drawn(seed), n_resamples=400)


def part_labelled() -> tuple[Bools, Floats]:
    """40 labelled statements (sensitivity 27/30, specificity 8/10), and 60 others, 33 of them ruled true."""
    labels, predictions = of_table(27, 3, 2, 8)
    return (
        np.concatenate([predictions, np.repeat([True, False], [33, 27])]),
        np.concatenate([labels.astype(np.float64), np.full(60, np.nan)]),
    )


def test_rogan_gladen_matches_a_published_example() -> None:
    # The example of epi.prev in the R package epiR: 23 of 150 positive, sensitivity .96, specificity .89:
    # (.15333 + .89 - 1) / (.96 + .89 - 1) = .0510, published as 5.1 in 100. Here 2500 labels for each rate, and so
    # many others that the apparent share is 23/150 over all.
    labels, predictions = of_table(2400, 100, 275, 2225)
    n = 150_000
    others = np.arange(n - 5000) < 23_000 - 2675
    corrected = correct(
        np.concatenate([predictions, others]), np.concatenate([labels.astype(float), np.full(n - 5000, np.nan)])
    )
    assert corrected.raw == pytest.approx(23 / 150)
    assert (corrected.sensitivity, corrected.specificity) == (0.96, 0.89)
    assert corrected.value == pytest.approx(0.051, abs=0.0005)


def test_rogan_gladen_matches_hand_computation_and_says_what_it_stands_on() -> None:
    # Apparent (29 + 33) / 100 = .62; (.62 + .8 - 1) / (.9 + .8 - 1) = .42 / .7 = .6.
    corrected = correct(*part_labelled())
    assert corrected.value == pytest.approx(0.6)
    assert corrected.raw == 0.62
    assert (corrected.n, corrected.n_labelled, corrected.n_labelled_groups) == (100, 40, 40)
    assert corrected.ci95 is not None
    assert 0 <= corrected.ci95[0] < 0.6 < corrected.ci95[1] <= 1


@settings(max_examples=50, deadline=None)
@given(LABELLED)
def test_with_every_statement_labelled_it_is_the_share_of_true_labels(pairs: list[tuple[bool, bool]]) -> None:
    labels, predictions = np.array(pairs, dtype=bool).T
    corrected = correct(predictions, labels.astype(np.float64))
    if corrected.value is not None:
        assert corrected.value == pytest.approx(labels.mean())


@settings(max_examples=50, deadline=None)
@given(LABELLED)
def test_naming_the_classes_the_other_way_mirrors_the_value(pairs: list[tuple[bool, bool]]) -> None:
    labels, predictions = np.array(pairs, dtype=bool).T
    known = np.where(np.arange(len(labels)) % 3 < 2, labels, np.nan)
    value, mirrored = correct(predictions, known).value, correct(~predictions, 1 - known).value
    assert mirrored == (None if value is None else pytest.approx(1 - value, abs=1e-9))


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ((9, 1, 0, 0), "no statement is labelled false"),
        ((0, 0, 1, 9), "no statement is labelled true"),
        ((5, 5, 5, 5), "a coin"),
        ((2, 8, 8, 2), "worse than a coin"),
        ((5, 0, 5, 0), "always true"),
        ((0, 0, 0, 0), "nothing is labelled"),
    ],
)
def test_a_judge_whose_errors_are_unknown_or_a_coins_is_not_corrected(table: tuple[int, ...], why: str) -> None:
    labels, predictions = of_table(*table)
    corrected = correct(
        np.concatenate([predictions, bools("xx.")]), np.concatenate([labels.astype(float), np.full(3, np.nan)])
    )
    assert (corrected.value, corrected.ci95) == (None, None), why
    assert corrected.raw is not None
    assert corrected.n_labelled == sum(table)


def test_without_statements_nothing_is_corrected() -> None:
    corrected = correct(bools(""), np.array([]))
    assert (corrected.value, corrected.ci95, corrected.raw, corrected.n) == (None, None, None, 0)


def test_a_value_outside_the_possible_is_cut() -> None:
    # Apparent share 1/100, but one in five false statements is ruled true: below 0.
    labels, predictions = of_table(10, 0, 2, 8)
    few = np.concatenate([predictions, np.zeros(1178, dtype=bool)])
    corrected = correct(few, np.concatenate([labels.astype(float), np.full(1178, np.nan)]))
    assert corrected.value == 0
    assert corrected.ci95 is not None
    assert corrected.ci95[0] == 0


def test_labels_in_one_group_give_no_interval() -> None:
    predictions, labels = part_labelled()
    groups = np.where(np.isnan(labels), np.arange(100), -1)
    corrected = correct(predictions, labels, groups)
    assert corrected.value == pytest.approx(0.6)
    assert (corrected.ci95, corrected.n_labelled_groups) == (None, 1)


def test_a_judge_without_an_error_on_few_labels_may_still_err() -> None:
    labels, predictions = of_table(15, 0, 0, 15)
    apparent = np.repeat([True, False], [700, 300])
    corrected = correct(
        np.concatenate([predictions, apparent]), np.concatenate([labels.astype(float), np.full(1000, np.nan)])
    )
    assert (corrected.sensitivity, corrected.specificity) == (1, 1)
    assert corrected.value == pytest.approx(corrected.raw)
    assert corrected.ci95 is not None
    # The apparent share alone has a standard error of .014; what 15 labels a class leave open is wider.
    assert corrected.ci95[1] - corrected.ci95[0] > 0.1


def test_statements_that_err_together_widen_the_interval() -> None:
    predictions, labels = part_labelled()
    order = np.argsort(predictions + 2 * np.nan_to_num(labels, nan=5), kind="stable")
    groups = np.arange(100) // 5
    alone, together = correct(predictions, labels), correct(predictions[order], labels[order], groups)
    assert alone.value == pytest.approx(together.value)
    assert alone.ci95 is not None
    assert together.ci95 is not None
    assert together.ci95[1] - together.ci95[0] > 1.2 * (alone.ci95[1] - alone.ci95[0])


def simulated(rng: np.random.Generator, n_labelled: int) -> tuple[Bools, Floats, Indices]:
    """150 samples of four statements, 70 % true, a judge with rates .9 and .85, all correlated within a sample."""

    def within(share: float) -> Floats:
        # A beta distribution with intraclass correlation .2: alpha + beta = 1 / .2 - 1.
        return np.repeat(rng.beta(4 * share, 4 * (1 - share), 150), 4)

    groups = np.repeat(np.arange(150), 4)
    truth = rng.random(600) < within(0.7)
    predictions = np.where(truth, rng.random(600) < within(0.9), rng.random(600) > within(0.85))
    return predictions, np.where(groups < n_labelled, truth, np.nan), groups


def test_the_interval_of_rogan_gladen_holds_the_truth_as_often_as_it_says() -> None:
    rng = drawn(11)
    cases = [correct(*simulated(rng, 40)).ci95 for _ in range(200)]
    hits = [interval is not None and interval[0] <= 0.7 <= interval[1] for interval in cases]
    # 200 cases at 95 % have a standard error of 1.5 %.
    assert 0.91 <= np.mean(hits) <= 1


def test_labels_must_be_verdicts_and_of_the_same_statements() -> None:
    with pytest.raises(ValueError, match="label must be"):
        correct(bools("x."), np.array([0.5, 1]))
    with pytest.raises(ValueError, match="must share one shape"):
        correct(bools("x."), np.array([1.0]))
    with pytest.raises(ValueError, match="needs one group"):
        correct(bools("x."), np.array([1.0, 0]), ["a"])


def recalls(n: int = 2000, n_labelled: int = 200, *, seed: int = 1) -> tuple[Floats, Floats]:
    """A judge's recall of samples, and people's of the first, which the judge overstates by some .1."""
    rng = drawn(seed)
    truth = rng.integers(0, 6, n) / 5
    scores = np.clip(truth + 0.1 + 0.15 * rng.normal(size=n), 0, 1)
    return scores, np.where(np.arange(n) < n_labelled, truth, np.nan)


def alone(scores: Floats, labels: Floats, power: float | None = None) -> PredictionPowered:
    return ppi_mean(scores, labels, groups=np.arange(len(scores)), power=power)


@pytest.mark.parametrize("power", [0.0, 0.4, 1.0])
def test_prediction_powered_inference_is_the_authors_own(power: float) -> None:
    scores, labels = recalls()
    y, f, others = labels[:200], scores[:200], scores[200:]
    estimate = alone(scores, labels, power)
    assert estimate.value == pytest.approx(float(ppi_py.ppi_mean_pointestimate(y, f, others, lam=power)[0]))
    assert estimate.ci95 is not None
    low, high = (float(end[0]) for end in ppi_py.ppi_mean_ci(y, f, others, alpha=0.05, lam=power))
    # Theirs is the limit of many labels: a normal quantile, and variances that divide by n.
    few = stats.t.ppf(0.975, 199) / stats.norm.ppf(0.975) * np.sqrt(200 / 199)
    assert estimate.ci95[1] - estimate.ci95[0] == pytest.approx((high - low) * few)
    assert sum(estimate.ci95) == pytest.approx(low + high)


def test_the_tuned_power_is_the_authors_but_for_how_a_variance_is_pooled() -> None:
    scores, labels = recalls()
    estimate = alone(scores, labels)
    theirs = ppi_py.ppi_mean_pointestimate(labels[:200], scores[:200], scores[200:])
    assert estimate.value == pytest.approx(float(theirs[0]), abs=0.001)
    assert estimate.power is not None
    assert 0.8 < estimate.power < 1


def test_the_tuned_power_gives_the_narrowest_interval() -> None:
    scores, labels = recalls()
    widths = {}
    for power in [None, *np.linspace(0, 1, 21)]:
        interval = alone(scores, labels, power).ci95
        assert interval is not None
        widths[power] = interval[1] - interval[0]
    assert widths[None] <= min(widths.values())
    assert widths[None] < 0.75 * widths[0.0]


def test_a_useless_judge_is_given_no_power() -> None:
    scores, labels = recalls()
    estimate = alone(1 - scores, labels)
    assert estimate.power == 0
    assert estimate.value == pytest.approx(np.nanmean(labels))
    constant = alone(np.full(2000, 0.5), labels)
    assert (constant.power, constant.raw) == (0, 0.5)
    assert constant.value == pytest.approx(np.nanmean(labels))


def test_the_judges_bias_is_taken_off() -> None:
    scores, labels = recalls()
    estimate = alone(scores, labels)
    assert estimate.raw is not None
    assert estimate.ci95 is not None
    # The truth is uniform over 0, .2, ..., 1: mean .5. The judge says about .57.
    assert estimate.raw > 0.55
    assert estimate.ci95[0] < 0.5 < estimate.ci95[1]


def test_with_every_sample_labelled_it_is_the_mean_of_labels_and_its_t_interval() -> None:
    scores, labels = recalls(50, 50)
    estimate = alone(scores, labels)
    oracle = stats.ttest_1samp(labels, 0).confidence_interval(0.95)
    assert estimate.value == pytest.approx(labels.mean())
    assert estimate.ci95 == pytest.approx((oracle.low, oracle.high))
    assert (estimate.power, estimate.n_labelled_groups) == (0, 50)


def test_copies_of_samples_in_one_group_are_no_more_evidence() -> None:
    scores, labels = recalls(200, 40)
    estimate = alone(scores, labels)
    copied = ppi_mean(np.repeat(scores, 3), np.repeat(labels, 3), groups=np.repeat(np.arange(200), 3))
    assert copied.value == pytest.approx(estimate.value)
    assert copied.ci95 == pytest.approx(estimate.ci95)
    assert (copied.n, copied.n_labelled, copied.n_labelled_groups) == (600, 120, 40)


def test_its_interval_holds_the_truth_as_often_as_it_says_when_groups_are_partly_labelled() -> None:
    # 60 documents of five samples, recalls alike within a document; in 40 of them two samples are labelled.
    rng, hits = drawn(12), []
    groups = np.repeat(np.arange(60), 5)
    labelled = (groups < 40) & (np.arange(300) % 5 < 2)
    for _ in range(400):
        truth = np.repeat(rng.beta(2, 2, 60), 5) * 0.6 + rng.beta(2, 2, 300) * 0.4
        scores = np.clip(0.2 + 0.7 * truth + 0.1 * rng.normal(size=300), 0, 1)
        interval = ppi_mean(scores, np.where(labelled, truth, np.nan), groups=groups).ci95
        hits.append(interval is not None and interval[0] <= 0.5 <= interval[1])
    # 400 cases at 95 % have a standard error of 1.1 %.
    assert 0.92 <= np.mean(hits) <= 0.98


def test_a_mean_is_cut_to_what_recall_can_be() -> None:
    labels = np.array([1.0, 1, 1, 0.9, np.nan, np.nan])
    estimate = alone(np.array([0.5, 0.5, 0.6, 0.4, 1.0, 1.0]), labels, 1)
    # Mean of the others 1, mean error .475: 1.475.
    assert estimate.value == 1
    assert estimate.ci95 is not None
    assert estimate.ci95[1] == 1


def test_without_labels_there_is_nothing_but_the_judge() -> None:
    estimate = alone(np.array([0.5, 1.0]), np.full(2, np.nan))
    assert (estimate.value, estimate.ci95, estimate.power, estimate.raw) == (None, None, None, 0.75)
    nothing = alone(np.array([]), np.array([]))
    assert (nothing.value, nothing.raw, nothing.n) == (None, None, 0)


def test_labels_in_one_group_have_a_value_and_no_interval() -> None:
    estimate = ppi_mean(np.array([0.5, 1.0, 0.5]), np.array([1.0, 0.5, np.nan]), groups=["a", "a", "b"], power=0)
    assert (estimate.value, estimate.ci95, estimate.n_labelled_groups) == (0.75, None, 1)


def test_scores_and_labels_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN or infinite"):
        alone(np.array([np.nan, 1]), np.array([1.0, np.nan]))
    with pytest.raises(ValueError, match="must share one shape"):
        alone(np.array([0.5, 1]), np.array([1.0]))
    with pytest.raises(ValueError, match="needs one group"):
        ppi_mean(np.array([0.5, 1]), np.array([1.0, 0.5]), groups=["a"])
    for power in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="power"):
            alone(np.array([0.5, 1]), np.array([1.0, 0.5]), power)
