import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge.schema import Prior, Verdict
from airjudge.scoring import context_recall, mean_probability, recall_bounds, verdict_probability, without_prior

ATTRIBUTED = {"x": True, ".": False, "?": None}
LOGPROBS = st.floats(min_value=-700, max_value=0)


def verdicts(marks: str) -> list[Verdict]:
    return [Verdict(id=str(n), text="t", attributed=ATTRIBUTED[mark]) for n, mark in enumerate(marks, 1)]


def test_recall_is_the_share_of_attributed_statements() -> None:
    assert context_recall(verdicts("x.x.")) == 0.5
    assert context_recall(verdicts("xxx")) == 1.0
    assert context_recall(verdicts(".")) == 0.0


def test_recall_of_no_statement_is_undefined() -> None:
    assert context_recall([]) is None


def test_recall_refuses_a_statement_without_verdict() -> None:
    with pytest.raises(ValueError, match="missing: 2"):
        context_recall(verdicts("x?."))


@given(st.text(alphabet="x."))
def test_recall_does_not_depend_on_statement_order(marks: str) -> None:
    assert context_recall(verdicts(marks)) == context_recall(verdicts(marks[::-1]))


@given(st.text(alphabet="x.", min_size=1))
def test_one_more_attributed_statement_never_lowers_recall(marks: str) -> None:
    before, after = context_recall(verdicts(marks)), context_recall(verdicts(f"{marks}x"))
    assert before is not None
    assert after is not None
    assert 0 <= before <= after <= 1


def test_bounds_count_the_unjudged_as_missed_and_as_attributed() -> None:
    # One attributed, one missed, two unjudged of four: between 1/4 and 3/4.
    assert recall_bounds(verdicts("x.??")) == (0.25, 0.75)


def test_bounds_of_no_statement_are_the_whole_range() -> None:
    assert recall_bounds([]) == (0.0, 1.0)


@given(st.text(alphabet="x.?", min_size=1), st.data())
def test_bounds_hold_whatever_the_missing_verdicts_turn_out_to_be(marks: str, data: st.DataObject) -> None:
    completed = "".join(data.draw(st.sampled_from("x.")) if mark == "?" else mark for mark in marks)
    low, high = recall_bounds(verdicts(marks))
    recall = context_recall(verdicts(completed))
    assert recall is not None
    assert low <= recall <= high


def test_probability_sums_over_the_tokenisations_of_each_label() -> None:
    # p(1) = .3 + .3, p(0) = .2, and .2 for a token that is neither: .6 / (.6 + .2) = .75.
    alternatives = [(b"1", math.log(0.3)), (b" 1", math.log(0.3)), (b"0", math.log(0.2)), (b"10", math.log(0.2))]
    assert verdict_probability(alternatives) == pytest.approx(0.75)


def test_probability_takes_other_labels() -> None:
    alternatives = [(b" yes", math.log(0.1)), (b"no", math.log(0.3)), ("是".encode(), math.log(0.6))]
    assert verdict_probability(alternatives, positive="yes", negative="no") == pytest.approx(0.25)
    assert verdict_probability(alternatives, positive="是", negative="no") == pytest.approx(2 / 3)


def test_a_label_that_is_not_there_counts_as_zero() -> None:
    assert verdict_probability([(b"1", -0.5)]) == 1.0
    assert verdict_probability([(b"0", -0.5), (b"1", -math.inf)]) == 0.0


def test_probability_is_undefined_without_either_label() -> None:
    assert verdict_probability([]) is None
    assert verdict_probability([(b"maybe", -0.1), (b"\xff\xfe", -0.2), (b"1 ", -0.3)]) is None
    assert verdict_probability([(b"1", -math.inf), (b"0", math.nan)]) is None


def test_probability_survives_masses_that_underflow() -> None:
    # exp(-9999) is 0 in floating point; the ratio of the two masses is e : 1 all the same.
    assert verdict_probability([(b"1", -9998.0), (b"0", -9999.0)]) == pytest.approx(math.e / (math.e + 1))


@given(st.lists(st.tuples(st.sampled_from([b"1", b" 1", b"0", b" 0", b"x"]), LOGPROBS)))
def test_probabilities_of_the_two_labels_are_complements(alternatives: list[tuple[bytes, float]]) -> None:
    yes = verdict_probability(alternatives)
    no = verdict_probability(alternatives, positive="0", negative="1")
    if yes is None or no is None:
        assert yes == no
    else:
        assert yes + no == pytest.approx(1)


@given(LOGPROBS, LOGPROBS, st.floats(min_value=-50, max_value=50))
def test_probability_does_not_depend_on_what_the_mask_left_out(yes: float, no: float, shift: float) -> None:
    masked = verdict_probability([(b"1", yes + shift), (b"0", no + shift)])
    assert masked == pytest.approx(verdict_probability([(b"1", yes), (b"0", no)]))


def test_mean_probability_is_taken_in_logit_space() -> None:
    # logit(.9) = ln 9 and logit(.5) = 0: their mean is ln 3, which is the probability 3/4.
    assert mean_probability([0.9, 0.5]) == pytest.approx(0.75)
    assert mean_probability([0.9, 0.1]) == pytest.approx(0.5)


def test_a_certain_phrasing_does_not_outvote_all_others() -> None:
    # Clipped to 1e-6, the certain one pulls with a logit of about 13.8, not infinity.
    assert mean_probability([1.0, 0.0]) == pytest.approx(0.5)
    assert mean_probability([1.0, 0.0, 0.0]) < 0.5


@pytest.mark.parametrize("probabilities", [[], [1.1], [-0.1, 0.5], [math.nan]])
def test_mean_probability_refuses_what_is_none(probabilities: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one probability"):
        mean_probability(probabilities)


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=1))
def test_mean_probability_lies_between_the_least_and_the_greatest(probabilities: list[float]) -> None:
    mean = mean_probability(probabilities)
    assert min(probabilities) - 2e-6 <= mean <= max(probabilities) + 2e-6


def test_what_is_said_without_contexts_is_taken_off_in_log_odds() -> None:
    # logit(.5) = 0 and logit(.8) = ln 4; half of ln 4 - ln 2 = ln 2 / 2 is taken off: p = 1 / (1 + sqrt 2).
    prior = Prior(weight=0.5, log_odds=math.log(2))
    assert without_prior(0.5, 0.8, prior) == pytest.approx(1 / (1 + math.sqrt(2)))


@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999))
def test_the_mean_prior_takes_nothing_off_and_a_more_plausible_statement_loses(p: float, alone: float) -> None:
    prior = Prior(weight=0.8, log_odds=-1.0)
    usual = 1 / (1 + math.e)  # logit -1
    assert without_prior(p, usual, prior) == pytest.approx(p)
    assert (without_prior(p, alone, prior) < p) == (math.log(alone / (1 - alone)) > -1) or alone == pytest.approx(usual)
