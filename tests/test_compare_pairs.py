"""Two runs held against each other: figures by hand, what is left out is counted, degenerate cases are None."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge.compare import CompareSettings, Comparison, compare_runs
from airjudge.compare.records import Pair
from tests.comparing import Marks, opened


def compared(a: Marks, b: Marks, **settings: object) -> Comparison:
    asked = CompareSettings.model_validate(settings)
    return compare_runs([opened("a", a), opened("b", b)], settings=asked)


def pair(a: Marks, b: Marks, **settings: object) -> Pair:
    [one] = compared(a, b, **settings).pairs
    return one


def test_the_figures_of_a_pair_match_hand_computation() -> None:
    # Ten statements: both yes 4, only a 3, only b 1, both no 2. Agreement 6/10. a says yes 7 times, b 5:
    # p_e = .7*.5 + .3*.5 = .5, kappa = (.6 - .5) / .5 = .2. AC1: pi = (7 + 5) / 20 = .6, p_e = 2*.6*.4 = .48,
    # (.6 - .48) / .52. McNemar: 2 * P(X <= 1 | 4, .5) = 2 * 5/16.
    found = pair({"q1": "xxxxx", "q2": "xx...", "q3": ""}, {"q1": "xxxx.", "q2": "..x..", "q3": ""})
    assert (found.a, found.b, found.n, found.n_samples, found.n_groups, found.n_left_out) == ("a", "b", 10, 2, 2, 0)
    assert found.table == ((2, 1), (3, 4))
    assert found.agreement == pytest.approx(0.6)
    assert (found.prevalence_a, found.prevalence_b) == pytest.approx((0.7, 0.5))
    assert found.kappa == pytest.approx(0.2)
    assert found.ac1 == pytest.approx(0.12 / 0.52)
    assert found.mcnemar_p == pytest.approx(2 * 5 / 16)
    # By sample a has one and one more: the signs (++ and --) of four are as extreme.
    assert found.permutation_p == pytest.approx(0.5)


def test_mean_recall_is_compared_over_the_samples_that_both_scored() -> None:
    # a: 1, 1/2 and a failed one; b: 1/2, 1/2, 1. Over the two that both scored: 3/4 and 1/2.
    found = pair({"q1": "xx", "q2": "x.", "q3": "x?"}, {"q1": "x.", "q2": ".x", "q3": "xx"}).recall
    assert (found.n, found.n_groups) == (2, 2)
    assert (found.mean_a, found.mean_b, found.difference) == pytest.approx((0.75, 0.5, 0.25))
    assert found.pearson is None  # b gives both samples the same score
    assert found.spearman is None


def test_judges_that_rule_alike_are_equivalent_and_leave_nothing_to_test() -> None:
    marks = {"q1": "x.", "q2": "xx", "q3": "..", "q4": "x"}
    found = pair(marks, marks)
    assert (found.agreement, found.kappa, found.ac1) == (1, 1, 1)
    assert (found.mcnemar_p, found.permutation_p) == (None, None)
    assert found.recall.equivalent is True
    assert found.recall.difference == 0
    assert found.recall.pearson == pytest.approx(1)
    assert found.disagreements == ()


def test_groups_are_what_intervals_and_the_permutation_keep_together() -> None:
    # One group: no interval, and one sign to flip, so both signs are as extreme.
    marks_a, marks_b = {"q1": "xx.", "q2": "xxx"}, {"q1": "x..", "q2": "xx."}
    of_one = {"q1": "g", "q2": "g"}
    [found] = compare_runs([opened("a", marks_a, groups=of_one), opened("b", marks_b)]).pairs
    assert (found.n_groups, found.kappa_ci95, found.permutation_p) == (1, None, 1)
    alone = pair(marks_a, marks_b)
    assert alone.n_groups == 2
    assert alone.agreement_ci95 == pytest.approx((2 / 3, 2 / 3))


def test_what_a_judge_did_not_rule_on_is_counted_and_not_compared() -> None:
    found = compared({"q1": "x?", "q2": "xx", "q4": ""}, {"q1": "xx", "q3": "."})
    a, b = found.judges
    assert (found.n_samples, found.n_statements) == (4, 5)
    told = a.statements
    assert (told.n, told.n_ruled, told.n_failed, told.n_unlabelled, told.n_missing) == (5, 3, 1, 0, 1)
    assert (b.statements.n_ruled, b.statements.n_missing) == (3, 2)
    samples = a.samples
    assert (samples.n, samples.n_scored, samples.n_undefined, samples.n_failed, samples.n_missing) == (4, 1, 1, 1, 1)
    [one] = found.pairs
    assert (one.n, one.n_left_out) == (1, 4)


def test_a_failed_sample_without_statements_is_no_difference_of_the_data() -> None:
    failed = opened("a", {"q1": "xx"})
    broken = failed.samples[0].model_copy(update={"statements": (), "status": "failed", "score": None})
    [one] = compare_runs([opened("b", {"q1": "x."}), type(failed)("a", failed.folder, failed.state, (broken,))]).pairs
    assert (one.n, one.n_left_out, one.recall.n) == (0, 2, 0)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param({"q1": "x"}, {"q2": "x"}, id="no statement in common"),
        pytest.param({"q1": "x"}, {"q1": "x"}, id="one statement"),
        pytest.param({"q1": "xx", "q2": "x"}, {"q1": "xx", "q2": "x"}, id="both always say yes"),
        pytest.param({"q1": "xx", "q2": "x"}, {"q1": "..", "q2": "."}, id="constant and opposite"),
        pytest.param({"q1": "", "q2": ""}, {"q1": "", "q2": ""}, id="nothing to rule on"),
        pytest.param({"q1": "?"}, {"q1": "?"}, id="everything failed"),
    ],
)
def test_degenerate_comparisons_are_none_and_never_nan(a: Marks, b: Marks) -> None:
    found = compared(a, b, by=(), fail_under=0.5)
    text = found.model_dump_json()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert Comparison.model_validate_json(text) == found
    [one] = found.pairs
    assert one.kappa in {None, 0}  # constant judges who differ agree as chance would: 0


def test_the_most_confident_disagreements_come_first_and_those_without_probability_last() -> None:
    a = opened("a", {"q": "xx.xx"}, probabilities={"q": (0.6, 0.9, 0.2, None, 0.99)})
    b = opened("b", {"q": "..x.x"}, probabilities={"q": (0.1, 0.3, 0.95, None, 0.99)})
    # The less sure of the two: .6 (a), .7 (b: 1 - .3), .8 (a: 1 - .2), none.
    [found] = compare_runs([a, b]).pairs
    assert found.n_disagreements == 4
    assert [one.statement for one in found.disagreements] == ["3", "2", "1", "4"]
    assert [one.confidence for one in found.disagreements] == [
        pytest.approx(x) if x else x for x in (0.8, 0.7, 0.6, None)
    ]
    assert found.disagreements[0].text == "q says 3."
    [short] = compare_runs([a, b], settings=CompareSettings(max_disagreements=1)).pairs
    assert (short.n_disagreements, len(short.disagreements)) == (4, 1)


def test_slices_take_a_column_from_whichever_run_carries_it() -> None:
    columns = {"q1": {"lang": "de"}, "q2": {"lang": "en"}, "q3": {"lang": "en"}}
    a = opened("a", {"q1": "xx", "q2": "x.", "q3": "xx", "q4": "x"})
    b = opened("b", {"q1": "x.", "q2": "x.", "q3": "xx", "q4": "x"}, columns=columns)
    [found] = compare_runs([a, b], settings=CompareSettings(by=("lang",))).pairs
    told = [(one.value, one.n, one.agreement, one.recall_difference) for one in found.slices]
    assert told == [("en", 4, 1, 0), ("de", 2, 0.5, 0.5), ("(none)", 1, 1, 0)]


def test_alpha_is_over_all_judges_and_counts_statements_that_two_ruled_on() -> None:
    # Krippendorff (2011), nominal, two observers, no missing data, for 4 statements: xx, xx, x., ..
    # o = 2 pairs of 8 values differ; n_true 5, n_false 3: 1 - (8 - 1) * 1 / (5 * 3).
    a, b = opened("a", {"q1": "xx", "q2": "x.", "q3": "x"}), opened("b", {"q1": "xx", "q2": ".."})
    found = compare_runs([a, b])
    assert found.alpha == pytest.approx(1 - 7 / 15)
    assert found.alpha_n == 4


@given(st.lists(st.text(alphabet="xo", min_size=1, max_size=4), min_size=1, max_size=6))
def test_swapping_the_judges_turns_the_table_and_changes_no_agreement(rulings: list[str]) -> None:
    a = {f"q{n}": "x" * len(marks) for n, marks in enumerate(rulings)}
    b = {f"q{n}": marks.replace("o", ".") for n, marks in enumerate(rulings)}
    one, other = pair(a, b), pair(b, a)
    assert (one.table[0][1], one.table[1][0]) == (other.table[1][0], other.table[0][1])
    assert (one.kappa, one.ac1, one.mcnemar_p) == (other.kappa, other.ac1, other.mcnemar_p)
    assert one.recall.difference == -(other.recall.difference or 0)


def test_the_json_of_a_comparison_has_the_shape_that_the_documents_promise() -> None:
    told = json.loads(compared({"q1": "x.", "q2": "xx"}, {"q1": "x.", "q2": ".x"}).model_dump_json())
    assert {"judges", "pairs", "alpha", "notes"} <= set(told)
    assert {"name", "signature", "n", "usage", "seconds"} <= set(told["judges"][0])
    assert {
        "a", "b", "n", "agreement", "kappa", "kappa_ci95", "ac1", "ac1_ci95", "mcnemar_p", "table",
    } <= set(told["pairs"][0])  # fmt: skip
    assert [len(row) for row in told["pairs"][0]["table"]] == [2, 2]


def test_the_same_runs_give_the_same_figures() -> None:
    a, b = {"q1": "x.x", "q2": "xx", "q3": ".x"}, {"q1": "xxx", "q2": "x.", "q3": ".x"}
    assert compared(a, b) == compared(a, b)
