"""Data sets that a program holds: dictionaries and whatever speaks Arrow."""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from airjudge.datasets import open_source, source_of
from airjudge.errors import DatasetError, InputError
from airjudge.schema import Sample
from tests.inputs import GOOD, good, never, samples_of, write_lines

ROWS = [good(id="a"), good(id="b", retrieved_contexts=[])]


class Frame:
    """A data frame as far as Arrow's PyCapsule interface goes: pandas, polars and duckdb offer the same method."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def samples(source: object) -> list[Sample]:
    found = [entry.value for entry in source_of(source).entries(never)]  # type: ignore[arg-type]
    assert all(isinstance(value, Sample) for value in found), found
    return [value for value in found if isinstance(value, Sample)]


def test_dictionaries_give_the_same_samples_as_a_file_of_them(tmp_path: Path) -> None:
    expected = samples_of(write_lines(tmp_path, *ROWS))
    assert samples(ROWS) == expected
    assert samples(tuple(ROWS)) == expected
    assert samples(row for row in ROWS) == expected
    assert samples(Frame(pa.Table.from_pylist(ROWS))) == expected
    assert samples(pa.Table.from_pylist(ROWS).to_reader()) == expected


def test_a_source_is_read_more_than_once_even_from_an_iterator() -> None:
    def rows() -> Iterator[dict[str, object]]:
        yield from ROWS

    data: Any
    for data in (ROWS, rows(), pa.Table.from_pylist(ROWS).to_reader()):
        source = source_of(data)
        assert [len(list(source.entries(never))) for _ in range(2)] == [2, 2]
        assert source.count() == 2
        assert [one.place for one in source.entries(lambda place: place == 0)] == [1]


def test_the_digest_is_that_of_the_content_and_not_of_its_shape() -> None:
    shuffled = [dict(reversed(row.items())) for row in ROWS]
    digests = {source_of(one).digest() for one in (ROWS, shuffled, iter(ROWS), pa.Table.from_pylist(ROWS))}
    assert len(digests) == 1
    assert source_of(ROWS[::-1]).digest() not in digests
    assert source_of([*ROWS, GOOD]).digest() not in digests


def test_values_of_numpy_and_python_become_what_json_has() -> None:
    row = {
        "question": np.str_("Q"),
        "ground_truth": "R.",
        "contexts": np.array(["a", "b"], dtype=object),
        "id": np.int64(7),
        "score": np.float32("nan"),
        "day": dt.date(2026, 11, 30),
        "pair": (1, 2),
    }
    (sample,) = samples([row])
    assert (sample.id, sample.retrieved_contexts) == ("7", ("a", "b"))
    assert sample.metadata == {"score": None, "day": "2026-11-30", "pair": [1, 2]}
    assert json.loads(sample.model_dump_json())["user_input"] == "Q"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (5, "not a dictionary but a int"),
        (good(model=object()), '"model" holds a object, which JSON does not have'),
        (good(score=float("inf")), '"score" is infinite, which JSON does not have'),
        ({1: 2}, "a column is called by a int, not by a string"),
        (good(reference="\ud800"), '"reference" holds half a surrogate pair, which is no character'),
        (good(retrieved_contexts=np.array("one")), "must be a list of strings, not a string"),
    ],
)
def test_a_row_that_is_no_sample_is_a_record(row: object, reason: str) -> None:
    first, second = source_of([row, GOOD]).entries(never)  # type: ignore[list-item]
    assert isinstance(first.value, DatasetError)
    assert reason in first.value.reason
    assert str(first.value).startswith("rows:1: ")
    assert isinstance(second.value, Sample)


def test_a_row_that_holds_itself_is_a_record() -> None:
    row = good()
    row["self"] = row
    first, _ = source_of([row, GOOD]).entries(never)
    assert isinstance(first.value, DatasetError)
    assert first.value.reason == "nested too deeply"
    assert source_of([row, GOOD]).digest()


def test_no_rows_and_no_columns_are_input_errors() -> None:
    empty: tuple[Any, ...] = ([], iter([]), pa.table({"user_input": pa.array([], pa.string())}))
    for data in empty:
        with pytest.raises(InputError, match="there are no rows"):
            source_of(data)
    with pytest.raises(InputError, match="rows: no column for reference; its columns are: user_input, contexts, a"):
        source_of([{"user_input": "Q", "contexts": [], "a": 1}])
    with pytest.raises(InputError, match="no rows of columns"):
        source_of(pa.chunked_array([[1]]))


def test_one_dictionary_or_a_path_is_a_mistake_of_the_caller() -> None:
    for data in (GOOD, "data.jsonl"):
        with pytest.raises(ValueError, match="iterable of dictionaries"):
            source_of(data)  # type: ignore[arg-type]


def test_a_mapping_settles_columns_here_too(tmp_path: Path) -> None:
    row = good(answer="A.")
    (entry,) = source_of([row], mapping={"reference": "answer"}).entries(never)
    assert isinstance(entry.value, Sample)
    assert entry.value.reference == "A."
    assert (
        open_source([str(write_lines(tmp_path, row))], mapping={"reference": "answer"}).mapping["reference"] == "answer"
    )
