"""Samples that share their first context stand together, within a window, and none is lost."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge.errors import DatasetError
from airjudge.judge.flow import first_context_of, together
from airjudge.schema import Sample


def context(entry: tuple[int, str | None]) -> str | None:
    return entry[1]


def test_samples_with_the_same_first_context_stand_together_in_input_order() -> None:
    entries = [(0, "a"), (1, "b"), (2, "a"), (3, None), (4, "b"), (5, "a"), (6, None)]
    assert [place for place, _ in together(entries, first_context=context)] == [0, 2, 5, 1, 4, 3, 6]


@given(st.lists(st.sampled_from(["a", "b", "c", None])), st.integers(1, 8))
def test_every_entry_comes_once_and_none_moves_by_more_than_the_window(contexts: list[str | None], window: int) -> None:
    found = list(together(list(enumerate(contexts)), first_context=context, window=window))
    assert sorted(found, key=lambda one: one[0]) == list(enumerate(contexts))
    assert all(abs(at - place) < window for at, (place, _) in enumerate(found))


def test_no_more_than_a_window_is_read_before_the_first_is_given() -> None:
    n_read = 0

    def read() -> Iterator[tuple[int, str | None]]:
        nonlocal n_read
        for n in range(1000):
            n_read += 1
            yield n, None

    next(together(read(), first_context=context, window=10))
    assert n_read == 10


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        list(together([(0, "a")], first_context=context, window=0))


def test_what_is_no_sample_or_has_no_context_shares_nothing() -> None:
    sample = Sample(id="1", user_input="q", reference="r", retrieved_contexts=("first", "second"))
    assert first_context_of(sample) == "first"
    assert first_context_of(sample.model_copy(update={"retrieved_contexts": ()})) is None
    assert first_context_of(DatasetError("f", 1, "bad")) is None
