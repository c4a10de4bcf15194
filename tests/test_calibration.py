"""Calibration against independent oracles; nothing is fitted to what it is measured on."""

import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss

from airjudge.calibration import Calibration, IsotonicMap, LabelsUsed, LogisticMap, ThresholdRule, abstains
from airjudge.calibration.fitting import (
    Recipe,
    band_of_rate,
    best_threshold,
    fit,
    fit_isotonic,
    fit_logistic,
    mapped,
    odds_of,
)
from airjudge.calibration.folds import cross_validated, out_of_fold
from airjudge.calibration.reliability import Bools, Floats, brier_parts, calibration_error, log_loss, reliability
from airjudge.schema import Signature, Verdict

SIGNATURE = Signature(
    judge="stub", weights="unverified", method="pointwise", prompt="p", statements="given",
    decoding="temperature=0,threshold=0.5", enforcement="outlines", server="vllm-0", airjudge="0",
)  # fmt: skip
USED = LabelsUsed(
    file="labels.jsonl", sha256="0", n_statements=2, n_positive=1, n_groups=2, n_unlabelled=0, n_undecided=0,
    n_without_probability=0, n_failed=0, n_unused_labels=0,
)  # fmt: skip
HALVING = LogisticMap(slope=0.5, intercept=-0.25)


def calibration(
    threshold: float = 0.4, probability_map: LogisticMap | IsotonicMap = HALVING, **fields: object
) -> Calibration:
    told: dict[str, object] = {
        "signature": SIGNATURE, "probability_map": probability_map, "threshold": threshold, "by": "prevalence",
        "labels": USED, "data_sha256": "0", "cross_validated": None,
        "created": datetime(2026, 1, 1, tzinfo=UTC), "airjudge": "0",
    }  # fmt: skip
    return Calibration.model_validate(told | fields)


def bools(text: str) -> Bools:
    """Labels by their marks."""
    return np.array([mark == "1" for mark in text])


def drawn(n: int, seed: int, *, step: float = 1 / 16) -> tuple[Floats, Bools]:
    """Log-odds in steps, as bfloat16 gives them, and labels that follow them loosely."""
    rng = np.random.default_rng(seed)
    odds = np.round(rng.normal(0.5, 2, n) / step) * step
    return odds, rng.random(n) < 1 / (1 + np.exp(-(0.6 * odds - 0.7)))


def probabilities_of(odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-odds)), dtype=np.float64)


# Maps


@pytest.mark.parametrize("seed", range(5))
def test_the_logistic_map_is_the_unpenalised_regression_on_platts_targets(seed: int) -> None:
    odds, labels = drawn(80, seed)
    # A soft target t is a 1 of weight t and a 0 of weight 1 - t.
    n_true, n_false = labels.sum(), (~labels).sum()
    targets = np.where(labels, (n_true + 1) / (n_true + 2), 1 / (n_false + 2))
    oracle = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(
        np.concatenate([odds, odds])[:, None], [1] * 80 + [0] * 80, sample_weight=np.concatenate([targets, 1 - targets])
    )
    found = fit_logistic(odds, labels)
    assert found.slope == pytest.approx(oracle.coef_[0, 0], abs=1e-4)
    assert found.intercept == pytest.approx(oracle.intercept_[0], abs=1e-4)


def test_a_judge_that_ranks_backwards_gets_slope_0_and_the_level_of_the_targets() -> None:
    # Two of each class: targets 3/4 and 1/4, whose mean is 1/2.
    found = fit_logistic(np.array([-2.0, -1.0, 1.0, 2.0]), bools("1100"))
    assert found == LogisticMap(slope=0, intercept=0)


def test_constant_probabilities_get_slope_0() -> None:
    # Targets 4/5 three times and 1/3 once: mean 41/60.
    found = fit_logistic(np.full(4, 1.5), bools("1110"))
    assert found.slope == 0
    assert found(0.9) == pytest.approx(41 / 60)


def test_labels_that_are_parted_by_the_judge_leave_the_slope_finite() -> None:
    found = fit_logistic(np.array([-2.0, -1.0, 1.0, 2.0]), bools("0011"))
    assert 0 < found.slope < 2


@pytest.mark.parametrize("seed", range(5))
def test_the_isotonic_map_is_scikit_learns(seed: int) -> None:
    odds, labels = drawn(60, seed, step=0.25)
    oracle = IsotonicRegression(out_of_bounds="clip").fit(odds, labels)
    grid = np.linspace(-9, 9, 400)
    found = fit_isotonic(odds, labels)
    assert [found(p) for p in probabilities_of(grid)] == pytest.approx(oracle.predict(grid))


@pytest.mark.parametrize("recipe", [Recipe("logistic"), Recipe("isotonic")])
def test_a_map_is_the_same_one_by_one_and_at_once(recipe: Recipe) -> None:
    odds, labels = drawn(70, 1)
    p = probabilities_of(odds)
    found = fit(p, labels, recipe).probability_map
    assert [found(float(one)) for one in p] == pytest.approx(mapped(found, odds_of(p)), abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.sampled_from(["logistic", "isotonic"]))
def test_a_map_never_turns_the_order_of_two_statements(values: list[float], kind: str) -> None:
    odds, labels = drawn(50, 3)
    found = (fit_logistic if kind == "logistic" else fit_isotonic)(odds, labels)
    made = [found(one) for one in sorted(values)]
    assert made == sorted(made)
    assert all(0 <= one <= 1 for one in made)


@pytest.mark.parametrize(
    "fields",
    [
        {"odds": [0, 1], "values": [0.5]},
        {"odds": [1, 0], "values": [0.1, 0.2]},
        {"odds": [0, 1], "values": [0.2, 0.1]},
        {"odds": [], "values": []},
        {"odds": [0, math.inf], "values": [0.1, 0.2]},
    ],
)
def test_an_isotonic_map_that_is_none_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        IsotonicMap.model_validate(fields)


def test_a_logistic_map_never_falls() -> None:
    with pytest.raises(ValidationError):
        LogisticMap(slope=-0.1, intercept=0)


# Thresholds


def test_prevalence_is_matched_midway_between_two_statements() -> None:
    # Two of five are supported, so the two most probable are attributed: the cut lies between .5 and .7.
    assert best_threshold(np.array([0.1, 0.2, 0.5, 0.7, 0.9]), bools("01001"), by="prevalence") == pytest.approx(0.6)


def test_balanced_accuracy_is_best_midway_between_two_statements() -> None:
    # From .35 on: both supported ones and one of three others, (1 + 2/3) / 2. From .8 on: (1/2 + 1) / 2.
    found = best_threshold(np.array([0.1, 0.3, 0.4, 0.7, 0.9]), bools("00101"), by="balanced_accuracy")
    assert found == pytest.approx(0.35)


def test_of_equal_balanced_accuracies_the_one_nearer_to_the_prevalence_is_taken() -> None:
    # Marks 1 0 1 0 from the least probable on. Cuts: all (bal. acc. 1/2), above .2 (1/4), above .4 (1/2), above .6
    # (1/4), none (1/2). Of the three with 1/2 the one above .4 attributes two of four, as people did.
    assert best_threshold(np.array([0.2, 0.4, 0.6, 0.8]), bools("1010"), by="balanced_accuracy") == pytest.approx(0.5)


@pytest.mark.parametrize("by", ["prevalence", "balanced_accuracy"])
@pytest.mark.parametrize("seed", range(6))
def test_no_other_threshold_is_better_by_its_rule(seed: int, by: ThresholdRule) -> None:
    odds, labels = drawn(40, seed)
    p = probabilities_of(odds)

    def loss(cut: float) -> float:
        attributed = p >= cut
        if by == "prevalence":
            return abs(int(attributed.sum()) - int(labels.sum()))
        return -float(attributed[labels].mean() + (~attributed)[~labels].mean())

    found = best_threshold(p, labels, by=by)
    assert loss(found) == pytest.approx(min(loss(cut) for cut in [0, 2, *np.nextafter(p, 2), *p]))


@pytest.mark.parametrize("kind", ["logistic", "isotonic"])
def test_no_statement_lies_on_the_threshold(kind: str) -> None:
    # Steps of 1/16 make ties: whatever is equal but for the last bits is on one side.
    odds, labels = drawn(300, 5)
    p = probabilities_of(odds)
    shaken = np.nextafter(p, 1)
    fitted = fit(p, labels, Recipe(kind))  # type: ignore[arg-type]
    sides = [[fitted.probability_map(float(one)) >= fitted.threshold for one in values] for values in (p, shaken)]
    assert sides[0] == sides[1]


def test_constant_probabilities_have_thresholds_below_and_above_alone() -> None:
    # Attributing all is wrong on one, attributing none on three.
    assert best_threshold(np.full(4, 0.6), bools("1110"), by="prevalence") == pytest.approx(0.3)
    assert best_threshold(np.full(4, 0.6), bools("1000"), by="prevalence") == pytest.approx(0.8)


@pytest.mark.parametrize("labels", [bools("111"), bools("000")])
def test_labels_of_one_class_are_refused(labels: Bools) -> None:
    with pytest.raises(ValueError, match="both classes"):
        fit(np.array([0.1, 0.5, 0.9]), labels)


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        fit(np.array([0.1, np.nan]), bools("10"))
    with pytest.raises(ValueError, match="one shape"):
        fit(np.array([0.1, 0.2]), bools("100"))


# The abstain band


def test_a_band_by_rate_holds_the_statements_nearest_to_the_threshold() -> None:
    # Log-odds -2, -1/2, 1, 3 around a threshold at 0: half of them is two, and the width is midway from 1 to 2.
    p = probabilities_of(np.array([-2.0, -0.5, 1.0, 3.0]))
    low, high = band_of_rate(p, 0.5, rate=0.5) or (0, 0)
    assert (low, high) == pytest.approx((1 / (1 + math.exp(1.5)), 1 / (1 + math.exp(-1.5))))


def test_statements_that_are_tied_enter_a_band_together_or_not_at_all() -> None:
    p = probabilities_of(np.array([-1.0, 1.0, 1.0, 3.0]))
    assert band_of_rate(p, 0.5, rate=0.5) is None
    assert band_of_rate(p, 0.5, rate=1) == (0, 1)


@given(st.floats(0, 1), st.integers(0, 5))
def test_a_band_never_holds_more_than_its_rate(rate: float, seed: int) -> None:
    p = probabilities_of(drawn(30, seed)[0])
    band = band_of_rate(p, 0.5, rate=rate)
    assert band is None or ((p >= band[0]) & (p <= band[1])).mean() <= rate + 1e-9


def test_a_verdict_is_left_to_people_inside_the_band_ends_included() -> None:
    def verdict(probability: float | None) -> Verdict:
        return Verdict(id="1", text="A.", attributed=True, probability=probability)

    inside = [one for one in (0.29, 0.3, 0.5, 0.6, 0.61) if abstains(verdict(one), (0.3, 0.6))]
    assert inside == [0.3, 0.5, 0.6]
    assert not abstains(verdict(None), (0, 1))
    assert not abstains(verdict(0.5), None)


# Reliability


@pytest.mark.parametrize("seed", range(4))
def test_bins_are_scikit_learns_of_equal_mass(seed: int) -> None:
    odds, labels = drawn(90, seed)
    p = probabilities_of(odds)
    shares, means = calibration_curve(labels, p, n_bins=7, strategy="quantile")
    bins = reliability(p, labels, 7)
    assert [one.share_positive for one in bins] == pytest.approx(shares)
    assert [one.mean_probability for one in bins] == pytest.approx(means)
    assert sum(one.n for one in bins) == 90


def test_equal_probabilities_are_in_one_bin() -> None:
    [one] = reliability(np.full(6, 0.25), bools("110000"))
    assert (one.low, one.high, one.n, one.mean_probability) == (0.25, 0.25, 6, 0.25)
    assert one.share_positive == pytest.approx(1 / 3)


def test_the_calibration_error_by_hand() -> None:
    # Two bins of two: |.2 - .5| and |.85 - 1|, each half of the statements.
    found = calibration_error(np.array([0.1, 0.3, 0.8, 0.9]), bools("0111"), 2)
    assert found == pytest.approx((0.3 + 0.15) / 2)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40), st.integers(min_value=1, max_value=12)
)
def test_the_parts_add_up_to_the_brier_score(told: list[tuple[float, bool]], n_bins: int) -> None:
    p, labels = np.array([one for one, _ in told]), np.array([label for _, label in told])
    parts = brier_parts(p, labels, n_bins)
    assert parts is not None
    within = parts.within_variance - 2 * parts.within_covariance
    assert parts.score == pytest.approx(parts.reliability - parts.resolution + parts.uncertainty + within, abs=1e-12)


def test_the_parts_by_hand_where_each_bin_holds_one_probability() -> None:
    # Murphy's case: .25 twice (labels 1 0), .75 twice (labels 1 1), prevalence 3/4.
    # reliability ((1/4)^2 + (1/4)^2) / 2, resolution ((1/4)^2 + (1/4)^2) / 2, uncertainty 3/16.
    parts = brier_parts(np.array([0.25, 0.25, 0.75, 0.75]), bools("1011"), 2)
    assert parts is not None
    assert (parts.reliability, parts.resolution, parts.uncertainty) == pytest.approx((1 / 16, 1 / 16, 3 / 16))
    assert (parts.within_variance, parts.within_covariance) == (0, 0)
    assert parts.score == pytest.approx((9 / 16 + 1 / 16 + 1 / 16 + 1 / 16) / 4)


def test_scores_are_scikit_learns() -> None:
    odds, labels = drawn(90, 2)
    p = probabilities_of(odds)
    parts = brier_parts(p, labels)
    assert parts is not None
    assert parts.score == pytest.approx(brier_score_loss(labels, p))
    assert log_loss(p, labels) == pytest.approx(sklearn_log_loss(labels, p))


def test_without_statements_figures_are_undefined() -> None:
    nothing = np.array([]), np.array([], dtype=np.bool_)
    assert reliability(*nothing) == ()
    assert (calibration_error(*nothing), brier_parts(*nothing), log_loss(*nothing)) == (None, None, None)


# Folds


def test_a_statement_is_calibrated_without_any_label_of_its_group() -> None:
    odds, labels = drawn(120, 4)
    p, groups = probabilities_of(odds), np.arange(120) // 4
    other = labels ^ (groups == 7)

    def told(labels: Bools) -> tuple[Floats, Bools]:
        found = out_of_fold(p, labels, groups, recipe=Recipe(), rng=np.random.default_rng(0))
        assert found is not None
        return found.probabilities[:, groups == 7], found.attributed[:, groups == 7]

    for ours, theirs in zip(told(labels), told(other), strict=True):
        assert np.array_equal(ours, theirs)


def test_the_same_seed_gives_the_same_figures_and_another_seed_other_ones() -> None:
    odds, labels = drawn(60, 4)
    p, groups = probabilities_of(odds), [f"g{n // 3}" for n in range(60)]
    first, same, other = (cross_validated(p, labels, groups, recipe=Recipe(), seed=seed) for seed in (1, 1, 2))
    assert first == same
    assert first != other


def test_a_judge_that_is_too_sure_is_mended_on_held_out_statements() -> None:
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 1, 600)
    labels = rng.random(600) < probabilities_of(odds)
    found = cross_validated(probabilities_of(4 * odds), labels, np.arange(600) // 2, recipe=Recipe(), seed=0)
    assert found is not None
    assert found.after.ece < found.before.ece / 2
    assert found.brier.gain < 0
    assert found.brier.gain_ci95 is not None
    assert found.brier.gain_ci95[1] < 0
    assert found.after.share_attributed == pytest.approx(labels.mean(), abs=0.02)


@pytest.mark.parametrize(("n_groups", "n_repeats"), [(999, 10), (1000, 1)])
def test_many_groups_are_divided_once(n_groups: int, n_repeats: int) -> None:
    odds, labels = drawn(n_groups, 0)
    found = cross_validated(probabilities_of(odds), labels, np.arange(n_groups), recipe=Recipe(), seed=0)
    assert found is not None
    assert found.n_repeats == n_repeats


def test_the_raw_figures_are_those_of_the_judge_itself() -> None:
    odds, labels = drawn(80, 6)
    p = probabilities_of(odds)
    found = cross_validated(p, labels, np.arange(80), recipe=Recipe(), seed=0)
    assert found is not None
    assert found.before.brier == brier_parts(p, labels)
    attributed = p >= 0.5
    sides = attributed[labels].mean(), (~attributed)[~labels].mean()
    assert found.before.balanced_accuracy == pytest.approx(np.mean(sides))


@pytest.mark.parametrize("groups", [np.zeros(6), np.array([0, 0, 0, 1, 1, 1])])
def test_nothing_is_held_out_of_one_group_or_of_a_class_in_one_group(groups: Floats) -> None:
    p = np.array([0.1, 0.2, 0.3, 0.7, 0.8, 0.9])
    assert cross_validated(p, bools("000111"), groups, recipe=Recipe(), seed=0) is None


# What a calibration does


@given(st.floats(0, 1))
def test_a_verdict_is_what_its_calibrated_probability_says(probability: float) -> None:
    made = calibration()
    ruled = made.apply(Verdict(id="1", text="A.", attributed=probability >= 0.5, probability=probability))
    assert ruled.probability == HALVING(probability)
    assert ruled.attributed == (HALVING(probability) >= 0.4)


def test_a_verdict_without_probability_stays_as_it_is() -> None:
    told = Verdict(id="1", text="A.", attributed=True, reason="Said.")
    assert calibration().apply(told) == told


def test_a_reason_goes_where_the_verdict_is_turned() -> None:
    told = Verdict(id="1", text="A.", attributed=True, probability=0.55, reason="Said.")
    assert HALVING(0.55) == pytest.approx(0.4626, abs=1e-4)
    assert calibration(0.4).apply(told).reason == "Said."
    assert calibration(0.5).apply(told).reason is None


def test_a_calibration_is_named_by_what_it_does_alone() -> None:
    made = calibration()
    assert calibration(created=datetime(2027, 1, 1, tzinfo=UTC), data_sha256="1", warnings=("few",)).name == made.name
    others = [calibration(0.41), calibration(abstain=(0.3, 0.5)), calibration(0.4, LogisticMap(slope=1, intercept=0))]
    assert len({made.name, *(one.name for one in others)}) == 4


def test_a_calibration_is_bound_to_all_of_a_signature_but_who_made_the_statements() -> None:
    changed = {name: SIGNATURE.model_copy(update={name: "other"}) for name in Signature.model_fields}
    refused = [name for name, signature in changed.items() if calibration().unlike(signature)]
    assert refused == [name for name in Signature.model_fields if name != "statements"]
    assert calibration().unlike(changed["judge"]) == [("judge", "stub", "other")]


def test_a_calibration_survives_its_file() -> None:
    for made in (calibration(), calibration(0.1, IsotonicMap(odds=(-1, 2), values=(0, 0.1 + 0.2)))):
        assert Calibration.model_validate_json(made.model_dump_json()) == made
        assert Calibration.model_validate(made.model_dump(mode="json")) == made


@pytest.mark.parametrize("band", [(0.6, 0.3), (-0.1, 0.5), (0.5, 1.1)])
def test_a_band_that_is_none_is_refused(band: tuple[float, float]) -> None:
    with pytest.raises(ValidationError):
        calibration(abstain=band)
