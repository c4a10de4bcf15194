"""A summary cut by a metadata column: every sample in one slice, values as text, a bounded number of them."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from airjudge.schema import SampleError, ScoredSample, Slice, Verdict
from airjudge.summary import MAX_VALUES, summarise


def scored(marks: str, group: str | None = None, **metadata: JsonValue) -> ScoredSample:
    verdicts = tuple(Verdict(id=str(n), text="t", attributed=mark == "x") for n, mark in enumerate(marks, 1))
    score = marks.count("x") / len(marks)
    return ScoredSample(id="s", score=score, status="scored", statements=verdicts, group=group, metadata=metadata)


def failed(**metadata: JsonValue) -> ScoredSample:
    error = SampleError(kind="timeout", message="m")
    return ScoredSample(id="f", score=None, status="failed", error=error, metadata=metadata)


def slices(samples: Iterable[ScoredSample], *by: str) -> tuple[Slice, ...]:
    return summarise(samples, rng=np.random.default_rng(0), by=by).slices


def test_a_slice_has_the_means_and_counts_of_its_own_samples() -> None:
    undefined = ScoredSample(id="u", score=None, status="undefined", metadata={"lang": "de"})
    found = slices([scored("x", lang="de"), scored("x...", lang="de"), failed(lang="de"), undefined], "lang")
    # Macro (1 + .25) / 2, micro 2 of 5; two samples drawn twice give means from .25 to 1.
    [german] = found
    assert (german.column, german.value) == ("lang", "de")
    assert (german.n, german.n_scored, german.n_failed, german.n_undefined) == (4, 2, 1, 1)
    assert (german.mean, german.micro_mean, german.n_statements) == (0.625, 0.4, 5)
    assert german.ci95 == (0.25, 1.0)


def test_slices_stand_in_the_order_of_the_columns_asked_then_largest_first() -> None:
    samples = [scored("x", lang=lang, tier=1) for lang in ("fr", "de", "de", "el")]
    found = slices(samples, "tier", "lang", "tier")
    assert [(one.column, one.value) for one in found] == [
        ("tier", "1"), ("lang", "de"), ("lang", "el"), ("lang", "fr"),
    ]  # fmt: skip


def test_a_missing_value_is_a_slice_of_its_own_and_comes_last() -> None:
    samples = [scored("x"), scored("x", lang=None), scored("."), scored("x", lang=float("nan")), scored("x", lang="de")]
    found = slices(samples, "lang")
    assert [(one.value, one.n) for one in found] == [("de", 1), ("(none)", 4)]


def test_a_value_that_reads_like_our_label_is_kept_apart() -> None:
    found = slices([scored("x", lang="(none)"), scored("."), scored(".")], "lang")
    assert [(one.value, one.n, one.mean) for one in found] == [("(none)", 1, 1.0), ("(none)", 2, 0.0)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("de", "de"),
        ("", ""),
        ("\ud800", "\\ud800"),
        (True, "true"),
        (3, "3"),
        (0.5, "0.5"),
        (["b", "é"], '["b", "é"]'),
        ({"b": 1, "a": 2}, '{"a": 2, "b": 1}'),
    ],
)
def test_values_of_any_type_become_text(value: JsonValue, text: str) -> None:
    assert [one.value for one in slices([scored("x", column=value)], "column")] == [text]


def test_values_beyond_fifty_are_put_together() -> None:
    samples = [scored("x", number=n) for n in range(MAX_VALUES)] + [scored(".", number=n) for n in range(60)]
    found = slices(samples, "number")
    # The first fifty values are met twice, the last ten once each: they share one slice.
    assert len(found) == MAX_VALUES + 1
    assert [(one.n, one.mean) for one in found[:-1]] == [(2, 0.5)] * MAX_VALUES
    assert (found[-1].value, found[-1].n, found[-1].mean) == ("(other)", 10, 0.0)


def test_a_slice_with_one_group_has_no_interval() -> None:
    samples = [scored("x", "g", lang="de"), scored(".", "g", lang="de"), scored("x", "h", lang="fr")]
    assert [one.ci95 for one in slices(samples, "lang")] == [None, None]


def test_the_group_itself_can_be_sliced_by() -> None:
    found = slices([scored("x", "g"), scored(".", "h"), scored(".")], "group")
    assert [(one.value, one.mean) for one in found] == [("g", 1.0), ("h", 0.0), ("(none)", 0.0)]


def test_asking_for_slices_moves_no_other_number() -> None:
    samples = [scored("x" * (n % 3) + ".", lang="de" if n % 2 else "fr", tier=n % 5) for n in range(40)]
    whole = summarise(samples, rng=np.random.default_rng(1))
    cut = summarise(samples, rng=np.random.default_rng(1), by=["tier", "lang"])
    assert cut.model_copy(update={"slices": ()}) == whole
    by_language = summarise(samples, rng=np.random.default_rng(1), by=["lang"]).slices
    assert tuple(one for one in cut.slices if one.column == "lang") == by_language


@given(st.lists(st.tuples(st.sampled_from(["x", ".", "?"]), st.sampled_from([None, "de", "fr", 1, True]))))
def test_every_sample_is_in_exactly_one_slice(drawn: list[tuple[str, JsonValue]]) -> None:
    samples = [failed(column=value) if mark == "?" else scored(mark, column=value) for mark, value in drawn]
    found = slices(samples, "column")
    assert sum(one.n for one in found) == len(samples)
    assert all(one.n == one.n_scored + one.n_failed + one.n_undefined for one in found)
