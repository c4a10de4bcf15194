"""A judge against people: how it errs, its recall without those errors, whether it may stand in for one of them."""

import json

import numpy as np
import pytest

from airjudge.compare import CompareSettings, compare_runs
from airjudge.compare.records import AgainstPeople, Comparison
from airjudge.labels import Labels
from airjudge.run import OpenedRun
from tests.comparing import labelled, opened


def against(run: OpenedRun, labels: Labels, **settings: object) -> AgainstPeople:
    found = compare_runs([run], labels, settings=CompareSettings.model_validate(settings))
    assert found.judges[0].people is not None
    return found.judges[0].people


def test_figures_against_labels_match_hand_computation() -> None:
    # People: 6 yes, 4 no. The judge: 5 of 6 right, 3 of 4 right. Balanced accuracy (5/6 + 3/4) / 2;
    # F1 = 2*5 / (2*5 + 1 + 1); kappa: p_o .8, says yes 6 times: p_e = .36 + .16 = .52, (.8 - .52) / .48.
    run = opened("a", {"q1": "xxxxx.", "q2": "...x"})
    found = against(run, labelled({"q1": "xxxxxx", "q2": "...."})).all
    assert (found.n, found.n_groups, found.n_positive, found.accuracy) == (10, 2, 6, 0.8)
    assert found.sensitivity == pytest.approx(5 / 6)
    assert found.specificity == pytest.approx(3 / 4)
    assert found.balanced_accuracy == pytest.approx((5 / 6 + 3 / 4) / 2)
    assert found.f1 == pytest.approx(10 / 12)
    assert found.kappa == pytest.approx(0.28 / 0.48)
    assert (found.n_auc, found.auc) == (0, None)


def test_auc_is_over_the_statements_with_a_probability() -> None:
    # Yes: .9, .4; no: .5. Of the two pairs one is in order.
    run = opened("a", {"q1": "x.x", "q2": "x"}, probabilities={"q1": (0.9, 0.4, 0.5), "q2": (None,)})
    found = against(run, labelled({"q1": "xx.", "q2": "x"})).all
    assert (found.n_auc, found.auc) == (3, 0.5)


def test_people_are_the_judge_labels_of_pairs_and_of_alpha() -> None:
    found = compare_runs([opened("a", {"q1": "xx", "q2": "x."})], labelled({"q1": "x.", "q2": " ."}))
    run, people = found.judges
    assert (people.name, people.kind, people.signature, people.usage) == ("labels", "labels", None, None)
    assert (people.n, people.statements.n_unlabelled, people.samples.n_unlabelled, people.samples.n_scored) == (
        3,
        1,
        1,
        1,
    )
    assert (people.mean, people.micro_mean) == (0.5, 0.5)  # of q1 alone: q2 is not labelled in full
    [pair] = found.pairs
    assert (pair.a, pair.b, pair.n, pair.table) == (run.name, "labels", 3, ((1, 0), (1, 1)))


def test_partly_supported_statements_are_reported_with_and_without() -> None:
    run = opened("a", {"q1": "xx", "q2": "x."})
    found = against(run, labelled({"q1": "x.", "q2": ".."}, partial={"q1": ".x", "q2": ".."}))
    assert (found.all.n, found.n_partial) == (4, 1)
    assert found.without_partial is not None
    assert (found.without_partial.n, found.without_partial.specificity) == (3, 0.5)
    assert against(run, labelled({"q1": "x.", "q2": ".."})).without_partial is None


def test_micro_recall_is_corrected_by_the_rates_on_labelled_samples() -> None:
    # Labelled: sensitivity 3/4, specificity 3/4. Apparent over all 16: the judge says yes to 4 of 8 labelled, 6 of 8
    # others: 10/16. (10/16 + 3/4 - 1) / (3/4 + 3/4 - 1) = .375 / .5 = .75.
    run = opened("a", {"q1": "xx.x", "q2": "x...", "q3": "xxx.", "q4": "xxx."})
    found = against(run, labelled({"q1": "xxxx", "q2": "...."}), labels_random=True).corrected
    assert found is not None
    micro = found.micro
    assert (micro.raw, micro.value) == pytest.approx((10 / 16, 0.75))
    assert (micro.n_labelled, micro.n_other, micro.n_groups) == (8, 8, 2)
    # Macro: people's mean of the labelled is .5, the judge's .5; the others' .75. With whatever power l in [0, 1] it is
    # l * .75 + .5 - l * .5.
    macro = found.macro
    assert macro.raw == pytest.approx((0.75 + 0.25 + 0.75 + 0.75) / 4)
    assert macro.value is not None
    assert 0.5 <= macro.value <= 0.75
    assert (macro.n_labelled, macro.n_other) == (2, 2)


def test_a_sample_that_people_labelled_in_part_does_not_count_as_labelled() -> None:
    run = opened("a", {"q1": "xx", "q2": "x.", "q3": ".."})
    found = against(run, labelled({"q1": "xx", "q2": "x ", "q3": ".."}), labels_random=True).corrected
    assert found is not None
    assert (found.micro.n_labelled, found.macro.n_labelled) == (4, 2)


def test_recall_is_corrected_only_if_labels_are_said_to_be_random_and_few_groups_are_warned_of() -> None:
    run, labels = opened("a", {"q1": "xx", "q2": "x."}), labelled({"q1": "x.", "q2": "x."})
    assert against(run, labels).corrected is None
    found = compare_runs([run], labels, settings=CompareSettings(labels_random=True))
    assert any("only 2 groups are labelled in full, fewer than 30" in note for note in found.notes)
    assert not any("--labels-random" in note for note in found.notes)


def test_corrected_recall_covers_the_truth_where_the_judge_does_not() -> None:
    # A judge that says yes to all true statements and to 3 of 10 false ones; 200 samples of 5 statements, half of them
    # true; 60 samples labelled. Its own recall is about .65, the truth .5.
    rng = np.random.default_rng(4)
    truth = {f"q{n}": "".join(rng.choice(["x", "."], size=5)) for n in range(200)}
    marks = {
        name: "".join("x" if mark == "x" or rng.random() < 0.3 else "." for mark in said)
        for name, said in truth.items()
    }
    labels = labelled(dict(list(truth.items())[:60]))
    found = against(opened("a", marks), labels, labels_random=True).corrected
    assert found is not None
    true_recall = float(np.mean([said.count("x") / 5 for said in truth.values()]))
    for one in (found.micro, found.macro):
        assert one.raw is not None
        assert one.ci95 is not None
        assert one.raw - true_recall > 0.1
        assert one.ci95[0] < true_recall < one.ci95[1]


def test_the_annotator_test_needs_three_annotators_and_states_what_it_assumes() -> None:
    # Three annotators who agree on 80 statements of 40 samples, and a judge who rules as they do: never farther off.
    truth = {f"q{n}": "x." for n in range(40)}
    votes = dict.fromkeys(truth, ("xxx", "..."))
    found = against(opened("a", truth), labelled(truth, votes=votes)).annotators
    assert found is not None
    assert (found.n, found.n_annotators, found.n_tested, found.winning_rate, found.passed) == (80, 3, 3, 1, True)
    assert any("groups of statements are independent" in one for one in found.assumptions)
    two = dict.fromkeys(truth, ("xx", ".."))
    assert against(opened("a", truth), labelled(truth, votes=two)).annotators is None


def test_groups_of_the_labels_are_those_of_runs_that_know_none() -> None:
    run = opened("a", {"q1": "xx", "q2": "x."})
    found = compare_runs([run], labelled({"q1": "x.", "q2": "x."}, groups={"q1": "g", "q2": "g"}))
    assert found.n_groups == 1


@pytest.mark.parametrize("said", ["xx", ".."])
def test_labels_of_one_class_leave_figures_undefined(said: str) -> None:
    found = compare_runs(
        [opened("a", {"q1": "x.", "q2": "x."}, probabilities={"q1": (0.9, 0.1), "q2": (0.8, 0.3)})],
        labelled({"q1": said, "q2": said}),
        settings=CompareSettings(labels_random=True),
    )
    people = found.judges[0].people
    assert people is not None
    assert (people.all.balanced_accuracy, people.all.auc) == (None, None)
    assert "NaN" not in found.model_dump_json()
    assert Comparison.model_validate(json.loads(found.model_dump_json())) == found
