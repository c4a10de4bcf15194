from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from airjudge.agreement import (
    Bools,
    Floats,
    Indices,
    auc,
    auc_bootstrap,
    balanced_accuracy,
    cluster_bootstrap,
    f1,
    sensitivity_specificity,
)
from tests.marks import bools

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)
SCORED = st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])), min_size=1, max_size=30)


def test_sensitivity_and_specificity_match_hand_computation() -> None:
    # 3 of 4 true statements ruled true, 1 of 2 false ones ruled false.
    assert sensitivity_specificity(bools("xxxx.."), bools("xxx.x.")) == (0.75, 0.5)


def test_a_class_without_labels_has_no_rate() -> None:
    assert sensitivity_specificity(bools("xx"), bools("x.")) == (0.5, None)
    assert sensitivity_specificity(bools(".."), bools("x.")) == (None, 0.5)
    assert sensitivity_specificity(bools(""), bools("")) == (None, None)


def test_balanced_accuracy_averages_both_classes() -> None:
    # 3 of 4 true statements found, 1 of 2 false ones: (.75 + .5) / 2.
    assert balanced_accuracy(bools("xxxx.."), bools("xxx.x.")) == pytest.approx(0.625)


def test_a_constant_judge_has_balanced_accuracy_one_half() -> None:
    assert balanced_accuracy(bools("xxxxxx."), bools("xxxxxxx")) == 0.5


@pytest.mark.parametrize("labels", ["xxx", "...", "x", ""])
def test_one_class_alone_leaves_auc_and_balanced_accuracy_undefined(labels: str) -> None:
    assert balanced_accuracy(bools(labels), bools("x" * len(labels))) is None
    assert auc(bools(labels), np.linspace(0, 1, len(labels))) is None


def test_f1_matches_hand_computation() -> None:
    # 3 true positives, 1 false negative, 1 false positive: 6 / (6 + 2).
    assert f1(bools("xxxx.."), bools("xxx.x.")) == 0.75


def test_f1_is_zero_without_a_hit_and_undefined_without_anything_true() -> None:
    assert f1(bools("x."), bools(".x")) == 0
    assert f1(bools("x."), bools("..")) == 0
    assert f1(bools(".."), bools("..")) is None
    assert f1(bools(""), bools("")) is None
    assert f1(bools("x"), bools("x")) == 1


@settings(max_examples=40, deadline=None)
@given(PAIRS)
def test_rates_are_scikit_learns(pairs: list[tuple[bool, bool]]) -> None:
    labels, predictions = np.array(pairs, dtype=bool).T
    sensitivity, specificity = sensitivity_specificity(labels, predictions)
    if labels.any():
        assert sensitivity == pytest.approx(sklearn.metrics.recall_score(labels, predictions))
    if not labels.all():
        assert specificity == pytest.approx(sklearn.metrics.recall_score(~labels, ~predictions))
    if labels.any() and not labels.all():
        assert balanced_accuracy(labels, predictions) == pytest.approx(
            sklearn.metrics.balanced_accuracy_score(labels, predictions)
        )
    if labels.any() or predictions.any():
        assert f1(labels, predictions) == pytest.approx(sklearn.metrics.f1_score(labels, predictions))


@settings(max_examples=40, deadline=None)
@given(PAIRS)
def test_balanced_accuracy_does_not_care_which_class_is_true(pairs: list[tuple[bool, bool]]) -> None:
    labels, predictions = np.array(pairs, dtype=bool).T
    assert balanced_accuracy(labels, predictions) == balanced_accuracy(~labels, ~predictions)


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


@settings(max_examples=40, deadline=None)
@given(SCORED)
def test_auc_is_scikit_learns(scored: list[tuple[bool, float]]) -> None:
    labels, scores = np.array([s[0] for s in scored]), np.array([s[1] for s in scored])
    area = auc(labels, scores)
    if len(set(labels.tolist())) == 2:
        assert area == pytest.approx(sklearn.metrics.roc_auc_score(labels, scores))
    else:
        assert area is None


@settings(max_examples=40, deadline=None)
@given(SCORED)
def test_auc_depends_on_order_alone(scored: list[tuple[bool, float]]) -> None:
    labels, scores = np.array([s[0] for s in scored]), np.array([s[1] for s in scored])
    assert auc(labels, scores) == auc(labels, np.exp(3 * scores))


@settings(max_examples=40, deadline=None)
@given(SCORED)
def test_the_other_class_has_the_mirrored_area(scored: list[tuple[bool, float]]) -> None:
    labels, scores = np.array([s[0] for s in scored]), np.array([s[1] for s in scored])
    area = auc(labels, scores)
    assert auc(~labels, scores) == (None if area is None else pytest.approx(1 - area))


def test_auc_refuses_nan() -> None:
    with pytest.raises(ValueError, match="NaN"):
        auc(bools("x."), np.array([0.5, np.nan]))
    with pytest.raises(ValueError, match="NaN"):
        auc_bootstrap(bools("x."), np.array([0.5, np.nan]), groups=[0, 1], rng=np.random.default_rng(0))


def test_the_interval_of_auc_is_that_of_resampled_statements() -> None:
    # The same draws of groups, once as weights and once as gathered statements.
    rng = np.random.default_rng(1)
    labels, groups = rng.random(120) < 0.5, rng.integers(30, size=120)
    scores: Floats = np.round(rng.random(120) + np.where(labels, 0.3, 0.0), 1)

    def gathered(chosen: Indices) -> float | None:
        return auc(labels[chosen], scores[chosen])

    slow = cluster_bootstrap(gathered, groups, rng=np.random.default_rng(2), n_resamples=200)
    fast = auc_bootstrap(labels, scores, groups=groups, rng=np.random.default_rng(2), n_resamples=200)
    assert fast is not None
    assert fast == pytest.approx(slow)


def test_the_interval_of_auc_needs_two_groups_and_both_classes() -> None:
    scores = np.linspace(0, 1, 6)
    assert auc_bootstrap(bools("x.x.x."), scores, groups=["a"] * 6, rng=np.random.default_rng(0)) is None
    assert auc_bootstrap(bools("xxxxxx"), scores, groups=range(6), rng=np.random.default_rng(0)) is None


@pytest.mark.parametrize("measure", [sensitivity_specificity, balanced_accuracy, f1])
def test_arrays_about_different_statements_are_refused(measure: Callable[[Bools, Bools], Any]) -> None:
    with pytest.raises(ValueError, match="must share one shape"):
        measure(bools("x."), bools("x.."))
    with pytest.raises(ValueError, match="must share one shape"):
        measure(np.ones((2, 2), dtype=bool), np.ones((2, 2), dtype=bool))
