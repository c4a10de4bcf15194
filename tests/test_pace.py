"""Rates and the time left come from counts and a clock that is passed in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge.cli.pace import Pace, Reading, counts_line, duration
from airjudge.schema import RunCounts, Usage


def seen(*marks: tuple[float, int], n_total: int | None = None) -> Reading:
    """Read the pace after counts at moments; a sample has two statements."""
    pace = Pace(window_s=30)
    for now, n in marks:
        pace.saw(RunCounts(n_samples=n, n_statements=2 * n, n_total=n_total), now)
    return pace.reading()


def test_before_time_has_passed_nothing_is_known() -> None:
    assert Pace().reading() == Reading()
    assert seen((5.0, 100), n_total=200) == Reading()


def test_rates_are_over_the_last_half_minute_and_over_all() -> None:
    # 100 samples in the first 100 s, then 10 a second: 300 in the last 30 s, 400 in 130 s, of two statements each.
    found = seen(*((float(t), t) for t in range(101)), *((100.0 + t, 100 + 10 * t) for t in range(1, 31)))
    assert found.samples_recent == pytest.approx(10)
    assert found.statements_recent == pytest.approx(20)
    assert found.statements_overall == pytest.approx(2 * 400 / 130)


def test_the_time_left_follows_the_recent_rate() -> None:
    # 10 samples a second, 500 left.
    assert seen((0.0, 0), (10.0, 100), n_total=600).eta_s == pytest.approx(50)


def test_without_a_total_or_a_rate_the_time_left_is_unknown() -> None:
    assert seen((0.0, 0), (10.0, 100)).eta_s is None
    assert seen((0.0, 50), (10.0, 50), n_total=100).eta_s is None
    # It ran for ten seconds, and then stood still for longer than the window.
    assert seen((0.0, 0), (10.0, 100), (50.0, 100), (90.0, 100), n_total=200).eta_s is None


def test_what_an_earlier_start_finished_is_not_taken_for_speed() -> None:
    # 900 samples were there at the first look; ten more in ten seconds.
    found = seen((0.0, 900), (10.0, 910), n_total=1010)
    assert (found.samples_recent, found.statements_overall, found.eta_s) == (1.0, 2.0, 100.0)


def test_a_finished_run_has_no_time_left() -> None:
    assert seen((0.0, 0), (1.0, 10), n_total=10).eta_s == 0
    assert seen((0.0, 0), (1.0, 12), n_total=10).eta_s == 0


def test_a_clock_that_jumps_back_stands_still_and_goes_on() -> None:
    # 10 s and 100 samples, an hour back, then 10 s and 100 samples more.
    found = seen((5000.0, 0), (5010.0, 100), (1400.0, 100), (1410.0, 200), n_total=300)
    assert found.samples_recent == pytest.approx(10)
    assert found.eta_s == pytest.approx(10)


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 1000)), max_size=20), st.none() | st.integers(0, 1000))
def test_nothing_is_ever_negative(marks: list[tuple[float, int]], n_total: int | None) -> None:
    found = seen(*marks, n_total=n_total)
    values = (found.samples_recent, found.statements_recent, found.statements_overall, found.eta_s)
    assert all(value is None or value >= 0 for value in values)


def test_the_history_stays_short() -> None:
    pace = Pace(window_s=30)
    for n in range(10_000):
        pace.saw(RunCounts(n_samples=n), n * 0.25)
    assert len(pace._marks) <= 30 / 0.25 + 2


def test_a_line_says_how_far_a_run_is() -> None:
    counts = RunCounts(
        n_samples=12345,
        n_restored=10000,
        n_total=50000,
        n_statements=30000,
        failures={"bad_line": 1, "timeout": 12},
        usage=Usage(requests=4000, prompt_tokens=12_345_678, cached_tokens=6_172_839, completion_tokens=4000),
        seconds=100.0,
    )
    reading = Reading(statements_recent=81.25, statements_overall=70.0, samples_recent=20.0, eta_s=5025.4)
    assert counts_line(counts, reading) == (
        "12,345 of 50,000 samples (10,000 from an earlier start), 30,000 statements, "
        "81.2/s now, 70/s since the start, 12.3 M prompt tokens (50% cached), "
        "13 failed (timeout 12, bad_line 1), 1:23:45 left"
    )
    assert counts_line(RunCounts(n_samples=3, n_statements=4), Reading()) == "3 samples, 4 statements"


def test_days_are_told_in_days() -> None:
    assert duration(2 * 86400 + 3661) == "2 days, 1:01:01"
