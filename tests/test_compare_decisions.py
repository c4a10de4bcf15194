"""Whether a decision depends on the judge: a gate, a ranking of systems."""

import pytest

from airjudge.compare import CompareSettings, compare_runs
from airjudge.compare.records import Ranking
from tests.comparing import Marks, labelled, opened

SYSTEMS = {"q1": {"system": "bm25"}, "q2": {"system": "bm25"}, "q3": {"system": "dense"}, "q4": {"system": "dense"}}


def ranked(a: Marks, b: Marks) -> Ranking:
    runs = [opened("a", a, columns=SYSTEMS), opened("b", b)]
    found = compare_runs(runs, settings=CompareSettings(systems="system")).ranking
    assert found is not None
    return found


@pytest.mark.parametrize(("limit", "flips"), [(0.4, False), (0.6, True), (0.9, False)])
def test_a_gate_flips_if_one_judge_passes_and_another_does_not(limit: float, flips: bool) -> None:
    # Mean recall .75, .5 and, by people, .5.
    runs = [opened("a", {"q1": "xx", "q2": "x."}), opened("b", {"q1": "xx", "q2": ".."})]
    found = compare_runs(runs, labelled({"q1": "x.", "q2": "x."}), settings=CompareSettings(fail_under=limit)).gate
    assert found is not None
    assert [one.value for one in found.outcomes] == [0.75, 0.5, 0.5]
    assert found.flips is flips


def test_a_gate_fails_a_judge_that_scored_nothing() -> None:
    runs = [opened("a", {"q1": "x"}), opened("b", {"q1": "?"})]
    found = compare_runs(runs, settings=CompareSettings(fail_under=0)).gate
    assert found is not None
    assert [(one.value, one.passed) for one in found.outcomes] == [(1, True), (None, False)]


def test_systems_that_two_judges_order_otherwise_are_named() -> None:
    # a: bm25 3/4, dense 1/2; b: bm25 1/2, dense 3/4.
    found = ranked({"q1": "xx", "q2": "x.", "q3": "x.", "q4": "x."}, {"q1": "x.", "q2": "x.", "q3": "xx", "q4": "x."})
    assert found.systems == ("bm25", "dense")
    assert [one.means for one in found.judges] == [(0.75, 0.5), (0.5, 0.75)]
    [pair] = found.pairs
    assert (pair.tau, pair.n_samples, pair.flipped) == (-1, 4, (("bm25", "dense"),))
    assert found.flips


def test_a_tie_is_no_flip() -> None:
    found = ranked({"q1": "xx", "q2": "x.", "q3": "x.", "q4": "x."}, {"q1": "x.", "q2": "x.", "q3": "x.", "q4": "x."})
    assert found.pairs[0].flipped == ()
    assert found.pairs[0].tau is None  # b finds both equal
    assert not found.flips


def test_a_ranking_is_compared_on_the_samples_that_both_scored() -> None:
    # Over its own samples b ranks dense first; without q1, which it lacks, so does a.
    found = ranked({"q1": "xx", "q2": "..", "q3": "x."}, {"q2": "..", "q3": "x."})
    assert [one.means for one in found.judges] == [(0.5, 0.5), (0, 0.5)]
    assert [one.n_samples for one in found.judges] == [(2, 1), (1, 1)]
    [pair] = found.pairs
    assert (pair.n_samples, pair.tau, pair.flipped) == (2, 1, ())
