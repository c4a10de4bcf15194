import math
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airjudge.schema import Rates, SampleError, ScoredSample, Summary, Usage, Verdict
from airjudge.scoring import recall_bounds
from airjudge.summary import rates, summarise
from airjudge.tally import N_RESAMPLES

ATTRIBUTED = {"x": True, ".": False, "?": None}


def verdicts(marks: str) -> tuple[Verdict, ...]:
    return tuple(Verdict(id=str(n), text="t", attributed=ATTRIBUTED[m]) for n, m in enumerate(marks, 1))


def scored(name: str, marks: str, group: str | None = None) -> ScoredSample:
    score = marks.count("x") / len(marks)
    return ScoredSample(id=name, score=score, status="scored", statements=verdicts(marks), group=group)


def failed(name: str, marks: str, kind: str = "timeout") -> ScoredSample:
    error = SampleError(kind=kind, message="m")
    return ScoredSample(id=name, score=None, status="failed", error=error, statements=verdicts(marks))


def undefined(name: str) -> ScoredSample:
    return ScoredSample(id=name, score=None, status="undefined")


def summary(samples: Iterable[ScoredSample], seed: int = 0) -> Summary:
    return summarise(samples, rng=np.random.default_rng(seed))


def test_macro_mean_is_over_samples_and_micro_mean_over_statements() -> None:
    # Scores 1/1 and 1/4: macro (1 + .25) / 2 = .625, micro 2 / 5 = .4.
    found = summary([scored("a", "x"), scored("b", "x...")])
    assert found.mean == pytest.approx(0.625)
    assert found.micro_mean == pytest.approx(0.4)
    assert (found.n, found.n_scored, found.n_statements) == (2, 2, 5)


def test_every_sample_is_counted_under_its_status() -> None:
    samples = [scored("a", "x"), undefined("b"), failed("c", "?"), failed("d", "", "bad_line"), failed("e", "?x")]
    found = summary(samples)
    assert (found.n, found.n_scored, found.n_undefined, found.n_failed) == (5, 1, 1, 3)
    assert found.failures == {"bad_line": 1, "timeout": 2}


def test_bounds_say_what_the_failed_samples_could_still_do_to_the_mean() -> None:
    # Scored 1. Failed: one attributed and one unjudged, in [1/2, 1]; one that never had a
    # statement, in [0, 1]. Low (1 + .5 + 0) / 3, high (1 + 1 + 1) / 3. The undefined one stays out.
    found = summary([scored("a", "x"), failed("b", "x?"), failed("c", ""), undefined("d")])
    assert found.bounds == pytest.approx((0.5, 1.0))
    assert found.mean == 1.0


def test_without_failures_the_bounds_are_the_mean() -> None:
    found = summary([scored("a", "x."), scored("b", "x..")])
    assert found.bounds == pytest.approx((found.mean, found.mean))


def test_nothing_scored_is_undefined_not_zero() -> None:
    empty = summary([])
    assert (empty.mean, empty.micro_mean, empty.ci95, empty.micro_ci95, empty.bounds) == (None,) * 5
    assert summary([undefined("a")]).bounds is None
    assert summary([failed("a", "")]).bounds == (0.0, 1.0)
    assert summary([failed("a", "x?")]).mean is None


def test_verdicts_in_a_band_give_the_range_of_recall_if_all_are_missed_or_attributed() -> None:
    def sample(*probabilities: float | None) -> ScoredSample:
        told = tuple(
            Verdict(id=str(n), text="t", attributed=one is not None and one >= 0.5, probability=one)
            for n, one in enumerate(probabilities)
        )
        return ScoredSample(
            id="s", score=sum(bool(v.attributed) for v in told) / len(told), status="scored", statements=told
        )

    # In .4 to .6: .55 of the first, .45 and .6 of the second, none of the third; a failed one has no score.
    samples = [sample(0.9, 0.55), sample(0.1, 0.45, 0.6, None), sample(0.2), failed("f", "x?")]
    found = summarise(samples, rng=np.random.default_rng(0), band=(0.4, 0.6))
    assert found.abstained is not None
    assert (found.abstained.n_statements, found.abstained.n_samples) == (3, 2)
    # Samples: 1/2 to 1, 0 to 2/4, 0. Statements: 1 to 4 of 7.
    assert found.abstained.bounds == pytest.approx((1 / 6, 1.5 / 3))
    assert found.abstained.micro_bounds == pytest.approx((1 / 7, 4 / 7))
    assert found == summarise(samples, rng=np.random.default_rng(0)).model_copy(update={"abstained": found.abstained})
    nothing = summarise([undefined("u")], rng=np.random.default_rng(0), band=(0.4, 0.6)).abstained
    assert nothing is not None
    assert (nothing.bounds, nothing.micro_bounds) == (None, None)


def test_samples_with_empty_contexts_are_counted() -> None:
    zero = ScoredSample(id="a", score=0.0, status="scored", statements=verdicts("."), empty_contexts=True)
    assert summary([zero, scored("b", "x")]).n_empty_contexts == 1


def test_an_empty_retrieval_scored_without_statements_enters_the_macro_mean() -> None:
    zeros = [ScoredSample(id=name, score=0.0, status="scored", empty_contexts=True) for name in "ab"]
    found = summary([*zeros, scored("c", "x"), scored("d", "x")])
    assert found.mean == 0.5
    assert found.micro_mean == 1.0
    assert found.micro_ci95 == (1.0, 1.0)  # over the resamples that drew a statement at all


def test_an_interval_needs_two_groups() -> None:
    one_group = summary([scored("a", "x", "g"), scored("b", ".", "g")])
    assert (one_group.ci95, one_group.micro_ci95) == (None, None)
    assert summary([scored("a", "x"), failed("b", "?")]).ci95 is None
    assert summary([scored("a", "x"), scored("b", ".")]).ci95 == (0.0, 1.0)


def test_a_sample_s_id_is_not_taken_for_a_group_of_that_name() -> None:
    assert summary([scored("a", "x"), scored("b", ".", "a")]).ci95 is not None


def test_the_interval_matches_the_binomial_it_resamples() -> None:
    # 300 of 400 samples score 1: the resampled mean is a binomial share with standard deviation
    # sqrt(.75 * .25 / 400) = .02165, so the interval is .75 ± .0424.
    found = summary([scored(str(n), "x" if n % 4 else ".") for n in range(400)])
    assert found.ci95 == pytest.approx((0.7076, 0.7924), abs=0.005)
    assert found.micro_ci95 == pytest.approx(found.ci95)


def test_groups_are_drawn_whole() -> None:
    # The same 400 samples in 40 groups of ten equal ones: the deviation grows by sqrt(10).
    found = summary([scored(str(n), "x" if n // 10 % 4 else ".", f"g{n // 10}") for n in range(400)])
    assert found.ci95 == pytest.approx((0.616, 0.884), abs=0.03)


def test_the_interval_is_that_of_drawing_groups_one_by_one() -> None:
    rng = np.random.default_rng(5)
    marks = ["".join(rng.choice(["x", "."], size=rng.integers(1, 6))) for _ in range(60)]
    found = summary([scored(str(n), m, f"g{n % 25}") for n, m in enumerate(marks)])
    scores = np.array([m.count("x") / len(m) for m in marks])
    members = [np.arange(60)[np.arange(60) % 25 == g] for g in range(25)]
    draws = [np.concatenate([members[g] for g in rng.integers(25, size=25)]) for _ in range(4000)]
    expected = np.quantile([scores[d].mean() for d in draws], (0.025, 0.975))
    assert found.ci95 == pytest.approx(tuple(expected), abs=0.02)


def test_a_scored_sample_without_score_is_refused() -> None:
    with pytest.raises(ValueError, match="has no score"):
        summary([ScoredSample(id="a", score=None, status="scored")])


def test_the_same_seed_gives_the_same_summary() -> None:
    samples = [scored(str(n), "x" * (n % 3) + ".") for n in range(30)]
    assert summary(samples, seed=3) == summary(samples, seed=3)


MARKS = st.lists(st.text(alphabet="x.?", max_size=6), max_size=12)


@settings(max_examples=60)
@given(MARKS)
def test_the_mean_that_complete_verdicts_would_give_lies_in_the_bounds(marks: list[str]) -> None:
    samples = [failed(str(n), m) if "?" in m or not m else scored(str(n), m) for n, m in enumerate(marks)]
    found = summary(samples)
    assert found.n == found.n_scored + found.n_failed == len(marks)
    if found.bounds is None:
        assert not marks
        return
    for guess in "x.":
        recalls = [Fraction((c := m.replace("?", guess)).count("x"), len(c)) if m else Fraction(1, 2) for m in marks]
        mean = float(sum(recalls) / len(recalls))
        assert found.bounds[0] - 1e-9 <= mean <= found.bounds[1] + 1e-9


@settings(max_examples=60)
@given(MARKS)
def test_order_changes_neither_means_nor_counts(marks: list[str]) -> None:
    samples = [failed(str(n), m) if "?" in m or not m else scored(str(n), m) for n, m in enumerate(marks)]
    before, after = summary(samples), summary(reversed(samples))
    assert (after.n, after.failures, after.micro_mean) == (before.n, before.failures, before.micro_mean)
    assert after.mean == pytest.approx(before.mean)


def test_a_hundred_thousand_samples_take_seconds() -> None:
    def many() -> Iterator[ScoredSample]:
        row = scored("a", "xx.")
        for n in range(100_000):
            yield row.model_copy(update={"id": str(n), "score": (n % 7) / 6})

    started = time.perf_counter()
    found = summary(many())
    assert found.n_scored == 100_000
    assert found.ci95 is not None
    assert time.perf_counter() - started < 30


def plain(samples: list[ScoredSample], seed: int) -> dict[str, object]:
    """The same numbers from one row for every sample or group, the way that is too large for a million."""
    groups: dict[str, list[float]] = {}
    for n, sample in enumerate(one for one in samples if one.status == "scored"):
        sums = groups.setdefault(f"single {n}" if sample.group is None else f"group {sample.group}", [0.0] * 4)
        yes = sum(v.attributed is True for v in sample.statements)
        for place, value in enumerate((sample.score or 0.0, 1, yes, len(sample.statements))):
            sums[place] += value
    rows = np.array(list(groups.values()), dtype=float).reshape(-1, 4)
    known = [one for one in samples if one.status != "undefined"]
    limits = [recall_bounds(one.statements) if one.score is None else (one.score, one.score) for one in known]
    total = [math.fsum(column) for column in rows.T] if len(rows) else [0.0] * 4
    return {
        "mean": total[0] / total[1] if total[1] else None,
        "micro_mean": total[2] / total[3] if total[3] else None,
        "ci95": drawn(rows, seed, 0),
        "micro_ci95": drawn(rows, seed, 2),
        "bounds": tuple(math.fsum(side) / len(known) for side in zip(*limits, strict=True)) if known else None,
    }


def drawn(rows: npt.NDArray[np.float64], seed: int, numerator: int) -> tuple[float, float] | None:
    """The bootstrap before samples were counted by kind: kinds found among all rows, drawn at once."""
    if len(rows) < 2:
        return None
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    totals = np.random.default_rng(seed).multinomial(len(rows), counts / len(rows), size=N_RESAMPLES) @ kinds
    filled = totals[:, numerator + 1] > 0
    if not filled.any():
        return None
    low, high = np.quantile(totals[filled, numerator] / totals[filled, numerator + 1], (0.025, 0.975))
    return float(low), float(high)


@st.composite
def any_samples(draw: st.DrawFn) -> list[ScoredSample]:
    marks = draw(st.lists(st.text(alphabet="x.?", max_size=7), max_size=25))
    groups = st.sampled_from([None, None, "a", "b", "c"])
    return [
        undefined(str(n)) if not m else failed(str(n), m) if "?" in m else scored(str(n), m, draw(groups))
        for n, m in enumerate(marks)
    ]


@settings(max_examples=150)
@given(any_samples(), st.integers(0, 9))
def test_counting_by_kind_changes_no_digit(samples: list[ScoredSample], seed: int) -> None:
    found = summary(samples, seed).model_dump()
    expected = plain(samples, seed)
    # The bounds' sum is rounded twice, once for the scored samples and once with the failed ones.
    bounds, expected_bounds = found["bounds"], expected.pop("bounds")
    assert bounds == expected_bounds or bounds == pytest.approx(expected_bounds, rel=1e-15)
    assert {name: found[name] for name in expected} == expected


def test_memory_does_not_grow_with_samples_that_have_no_group() -> None:
    def peak(n: int) -> int:
        rows = [scored("a", "x"), scored("a", "."), failed("b", "?")]
        tracemalloc.start()
        summary(rows[number % 3].model_copy(update={"id": str(number)}) for number in range(n))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    # One entry for each of 40,000 more samples would be megabytes.
    peak(100)
    assert peak(50_000) - peak(10_000) < 200_000


def test_coverage_tells_samples_that_are_scored_and_statements_that_have_a_verdict() -> None:
    # Two of four samples have a score. Statements: 1 + 2 + 3 known, of which one has no verdict.
    found = summary([scored("a", "x"), scored("b", "x."), failed("c", "x.?"), undefined("d")])
    assert found.sample_coverage == 0.5
    assert found.statement_coverage == pytest.approx(5 / 6)
    assert (found.n_verdicts, found.n_unjudged, found.n_statements) == (5, 1, 3)
    assert (summary([]).sample_coverage, summary([undefined("a")]).statement_coverage) == (None, None)


def test_rates_are_over_all_verdicts_and_the_tokens_that_no_cache_held() -> None:
    # 3 verdicts and 2 samples in 4 s; 1000 prompt tokens of which 200 came from the cache.
    usage = Usage(requests=3, prompt_tokens=1000, cached_tokens=200)
    found = rates(summary([scored("a", "x"), failed("b", "x.?")]), usage, seconds=4.0)
    assert found == Rates(verdicts=0.75, samples=0.5, computed_prompt_tokens=200.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_without_time_there_is_no_rate(seconds: float) -> None:
    assert rates(summary([scored("a", "x")]), Usage(), seconds=seconds) is None
