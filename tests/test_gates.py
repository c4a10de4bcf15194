"""Gates say which number was held against which limit; what is undefined does not pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge.gates import FailUnder, MaxFailed, check_all, parse_max_failed
from airjudge.schema import Summary


def summary(
    mean: float | None = 0.8, ci95: tuple[float, float] | None = (0.7, 0.9), *, n: int = 10, n_failed: int = 0
) -> Summary:
    return Summary(
        n=n,
        n_scored=n - n_failed,
        n_undefined=0,
        n_failed=n_failed,
        mean=mean,
        ci95=ci95,
        micro_mean=mean,
        micro_ci95=ci95,
        bounds=None,
        n_statements=n,
        n_verdicts=n,
        n_unjudged=0,
        sample_coverage=None,
        statement_coverage=None,
        n_empty_contexts=0,
        failures={},
    )


def test_the_mean_is_held_against_the_limit() -> None:
    passed, failed = FailUnder(0.8).check(summary()), FailUnder(0.81).check(summary())
    assert (passed.name, passed.passed, passed.value, passed.limit) == ("fail_under_mean", True, 0.8, 0.8)
    assert (failed.passed, failed.reason) == (False, "mean recall is 0.8, under 0.81")


def test_the_lower_end_is_held_against_the_limit_and_the_mean_stands_beside_it() -> None:
    passed, failed = FailUnder(0.7, "low").check(summary()), FailUnder(0.75, "low").check(summary())
    assert (passed.name, passed.passed, passed.value) == ("fail_under_low", True, 0.7)
    assert failed.reason == "the lower end of the 95 % interval of recall is 0.7 (mean 0.8), under 0.75"


def test_a_mean_that_misses_its_limit_by_rounding_alone_reaches_it() -> None:
    # .1 + .7 is 0.7999999999999999 in floats.
    assert FailUnder(0.8).check(summary(0.1 + 0.7)).passed


def test_numbers_that_differ_in_the_fourth_digit_are_told_apart() -> None:
    assert "0.79996, under 0.8" in FailUnder(0.8).check(summary(0.79996)).reason


def test_an_undefined_recall_fails_and_says_why() -> None:
    for gate in (FailUnder(0.0), FailUnder(0.0, "low")):
        found = gate.check(summary(None, None))
        assert (found.passed, found.value) == (False, None)
        assert "no sample was scored" in found.reason


def test_an_undefined_interval_fails_the_lower_end_and_not_the_mean() -> None:
    assert FailUnder(0.5).check(summary(0.8, None)).passed
    found = FailUnder(0.5, "low").check(summary(0.8, None))
    assert (found.passed, found.value) == (False, None)
    assert "two groups" in found.reason


@pytest.mark.parametrize("limit", [-0.1, 1.1, 80.0, float("nan"), float("inf")])
def test_a_limit_that_is_no_recall_is_refused(limit: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        FailUnder(limit)


@pytest.mark.parametrize(
    ("text", "n_failed", "passed"),
    [
        ("0", 0, True),
        ("0", 1, False),
        ("3", 3, True),
        ("3", 4, False),
        ("0%", 0, True),
        ("0%", 1, False),
        # 7 of 1000 are 0.7 %; in floats .7 * 1000 / 100 is less than 7.
        ("0.7%", 7, True),
        ("0.7%", 8, False),
        (" 1 % ", 10, True),
        ("100%", 1000, True),
    ],
)
def test_failed_samples_are_held_against_a_number_or_a_share_of_all(text: str, n_failed: int, passed: bool) -> None:
    assert parse_max_failed(text).check(summary(n=1000, n_failed=n_failed)).passed is passed


def test_the_reason_has_both_numbers() -> None:
    found = parse_max_failed("1.5%").check(summary(n=50, n_failed=2))
    assert (found.name, found.limit, found.value) == ("max_failed_percent", 1.5, 4.0)
    assert found.reason == "2 of 50 samples failed (4 %), more than 1.5 %"
    found = parse_max_failed("1").check(summary(n=50, n_failed=2))
    assert (found.name, found.limit, found.value) == ("max_failed", 1.0, 2.0)
    assert found.reason == "2 of 50 samples failed, more than 1"
    assert parse_max_failed("100").check(summary(n=500, n_failed=2)).reason.endswith("not more than 100")


def test_a_share_of_no_samples_fails() -> None:
    found = parse_max_failed("100%").check(summary(None, None, n=0))
    assert (found.passed, found.value) == (False, None)


@pytest.mark.parametrize("text", ["", "%", "many", "-1", "1.5", "101%", "-1%", "nan", "nan%", "inf", "1%%", "1 5"])
def test_what_is_neither_a_number_nor_a_share_is_refused_with_what_was_given(text: str) -> None:
    with pytest.raises(ValueError, match="got") as caught:
        parse_max_failed(text)
    assert repr(text) in str(caught.value)


@given(st.integers(0, 50), st.integers(1, 50), st.integers(0, 1000))
def test_a_share_allows_what_the_number_it_stands_for_allows(n_failed: int, extra: int, permille: int) -> None:
    n = n_failed + extra
    by_share = parse_max_failed(f"{permille / 10}%").check(summary(n=n, n_failed=n_failed)).passed
    assert by_share is (1000 * n_failed <= permille * n)


def test_each_gate_is_checked() -> None:
    found = check_all([FailUnder(0.9), MaxFailed(parse_max_failed("0").limit, percent=False)], summary())
    assert [(one.name, one.passed) for one in found] == [("fail_under_mean", False), ("max_failed", True)]
