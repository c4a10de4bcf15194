"""CSV, Parquet, Arrow and saved data sets: the same rows give the same samples, whatever held them."""

import csv
import datetime as dt
import io
import json
import tracemalloc
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airjudge.datasets import open_source
from airjudge.errors import DatasetError, InputError
from airjudge.schema import Sample
from tests.inputs import GOOD, entries_of, good, never, samples_of, write_lines

Rows = Sequence[dict[str, object]]
HEADER = "question,contexts,ground_truth\n"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": TEXT,
            "user_input": TEXT,
            "reference": TEXT,
            "retrieved_contexts": st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=3),
            "statements": st.none() | st.lists(TEXT, max_size=3),
            "note": TEXT,
        }
    ),
    min_size=1,
    max_size=5,
)


def write_csv(path: Path, rows: Rows, *, delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        for row in rows:
            writer.writerow({k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()})
    return path


def table(rows: Rows) -> pa.Table:
    texts = pa.list_(pa.string())
    types = {"retrieved_contexts": texts, "statements": texts}
    columns = list(rows[0])
    schema = pa.schema([(name, types.get(name, pa.string())) for name in columns])
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def write_parquet(path: Path, rows: Rows) -> Path:
    pyarrow.parquet.write_table(table(rows), path)
    return path


def write_arrow_file(path: Path, rows: Rows) -> Path:
    pyarrow.feather.write_feather(table(rows), path)
    return path


def write_arrow_stream(path: Path, rows: Rows) -> Path:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table(rows).schema) as writer:
        writer.write_table(table(rows), max_chunksize=2)
    return path


def save_to_disk(folder: Path, rows: Rows, *, n_files: int = 1) -> Path:
    """Write the files that Hugging Face writes: Arrow streams, and a state that names them."""
    folder.mkdir(parents=True)
    names = [f"data-{n:05}-of-{n_files:05}.arrow" for n in range(n_files)]
    for n, name in enumerate(names):
        write_arrow_stream(folder / name, rows[n::n_files])
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text("{}")
    return folder


WRITERS: dict[str, Callable[[Path, Rows], Path]] = {
    "data.parquet": write_parquet,
    "data.feather": write_arrow_file,
    "data.arrow": write_arrow_stream,
    "data.csv": write_csv,
    "data.tsv": lambda path, rows: write_csv(path, rows, delimiter="\t"),
    "semicolons.csv": lambda path, rows: write_csv(path, rows, delimiter=";"),
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS)
def test_the_same_rows_give_the_same_samples_in_every_format(tmp_path: Path, rows: Rows) -> None:
    expected = samples_of(write_lines(tmp_path, *rows))
    assert [one.id for one in expected] == [row["id"] for row in rows]
    for name, write in WRITERS.items():
        assert samples_of(write(tmp_path / name, rows)) == expected, name
        assert samples_of(write(tmp_path / "no-suffix", rows)) == expected, name


@pytest.mark.parametrize("name", WRITERS)
def test_rows_without_id_are_numbered_and_skipped_ones_are_counted(tmp_path: Path, name: str) -> None:
    rows = [good(note=str(n)) for n in range(600)]
    source = open_source([str(WRITERS[name](tmp_path / name, rows))])
    entries = list(source.entries(lambda place: place != 577))
    assert [(one.place, one.line) for one in entries] == [(577, 578)]
    assert isinstance(entries[0].value, Sample)
    assert (entries[0].value.id, entries[0].value.metadata["note"]) == ("line-578", "577")
    assert source.count() == 600


@pytest.mark.parametrize("name", ["data.parquet", "data.feather", "data.arrow"])
def test_a_table_that_was_cut_short_is_an_input_error(tmp_path: Path, name: str) -> None:
    path = WRITERS[name](tmp_path / name, [good(note="x" * 1000)] * 9)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(InputError, match="cannot be read"):
        entries_of(path)


def test_a_table_without_rows_is_an_input_error_unless_another_has_some(tmp_path: Path) -> None:
    full = write_parquet(tmp_path / "full.parquet", [GOOD])
    empty = tmp_path / "empty.parquet"
    pyarrow.parquet.write_table(table([GOOD]).slice(0, 0), empty)
    with pytest.raises(InputError, match="holds no rows"):
        entries_of(empty)
    assert len(samples_of(empty, full)) == 1


def test_values_of_a_table_become_what_json_has(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    columns = {
        "user_input": pa.array([b"Where?"], pa.binary()),
        "reference": pa.array(["Here."], pa.large_string()).dictionary_encode(),
        "retrieved_contexts": pa.array([["a", "b"]], pa.large_list(pa.string())),
        "when": pa.array([dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.50")]),
        "score": pa.array([float("nan")]),
        "image": pa.array([b"\xff\xd8"], pa.binary()),
        "source": pa.array([{"page": 3}]),
    }
    pyarrow.parquet.write_table(pa.table(columns), path)
    (sample,) = samples_of(path)
    assert (sample.user_input, sample.reference, sample.retrieved_contexts) == ("Where?", "Here.", ("a", "b"))
    assert sample.metadata == {
        "when": "2026-11-30T12:00:00+00:00", "price": "1.50", "score": None, "image": None, "source": {"page": 3}
    }  # fmt: skip
    assert Sample.model_validate_json(sample.model_dump_json()) == sample


def test_contexts_may_be_objects_in_a_column_or_json_in_a_text_column(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    base = {"user_input": ["a"], "reference": ["b"]}
    pyarrow.parquet.write_table(pa.table({**base, "documents": [[{"page_content": "x", "metadata": {"p": 1}}]]}), path)
    assert samples_of(path)[0].retrieved_contexts == ("x",)
    pyarrow.parquet.write_table(pa.table({**base, "contexts": ['["x", "y"]']}), path)
    assert samples_of(path)[0].retrieved_contexts == ("x", "y")


def test_a_value_that_cannot_be_read_costs_its_row_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "data.arrow"
    bad = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.array([0, 1, 2], pa.int32()).buffers()[1], pa.py_buffer(b"a\xff")]
    )
    rows = pa.table({"user_input": bad, "reference": ["b", "b"], "retrieved_contexts": [["c"], ["c"]]})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    first, second = entries_of(path)
    assert isinstance(first.value, Sample)
    assert isinstance(second.value, DatasetError)
    assert (second.line, "cannot be read" in second.value.reason) == (2, True)


def test_a_column_that_is_there_twice_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    names = ["user_input", "reference", "retrieved_contexts", "reference"]
    pyarrow.parquet.write_table(pa.table([["a"], ["b"], [["c"]], ["d"]], names=names), path)
    with pytest.raises(InputError, match="two columns called"):
        entries_of(path)
    (tmp_path / "data.csv").write_text("a,b,a\n1,2,3\n")
    with pytest.raises(InputError, match='the header names "a" twice'):
        entries_of(tmp_path / "data.csv")


def test_a_parquet_table_is_read_a_batch_at_a_time(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "data.parquet", [good(note=str(n), text="x" * 10_000) for n in range(3000)])
    entries = open_source([str(path)]).entries(never)
    next(entries)
    tracemalloc.start()
    pa_before = pa.total_allocated_bytes()
    pa_peak = max(pa.total_allocated_bytes() for entry in entries if entry.place % 100 == 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # 30 MB of text; a batch of 256 rows holds 2.6 MB, and Arrow holds a few of them.
    assert peak < 3_000_000
    assert pa_peak - pa_before < 15_000_000


def test_a_folder_of_save_to_disk_is_one_table(tmp_path: Path) -> None:
    rows = [good(note=str(n)) for n in range(7)]
    folder = save_to_disk(tmp_path / "set", rows, n_files=2)
    samples = samples_of(folder)
    assert [one.metadata["note"] for one in samples] == ["0", "2", "4", "6", "1", "3", "5"]
    assert [one.id for one in samples] == [f"line-{n}" for n in range(1, 8)]
    source = open_source([str(folder)])
    digest = source.digest()
    write_arrow_stream(folder / "data-00001-of-00002.arrow", rows)
    assert source.digest() != digest


def test_of_a_folder_with_splits_one_must_be_named(tmp_path: Path) -> None:
    save_to_disk(tmp_path / "set" / "test", [GOOD])
    (tmp_path / "set" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(InputError, match="holds splits: train, test") as caught:
        entries_of(tmp_path / "set")
    assert caught.value.hint == f"Name one of them: {tmp_path}/set/train"
    assert len(samples_of(tmp_path / "set" / "test")) == 1


@pytest.mark.parametrize("state", ["{", "[]", "{}", '{"_data_files": [{"filename": "../../gone.arrow"}]}'])
def test_a_folder_whose_state_is_broken_is_an_input_error(tmp_path: Path, state: str) -> None:
    folder = save_to_disk(tmp_path / "set", [GOOD])
    (folder / "state.json").write_text(state)
    with pytest.raises(InputError) as caught:
        entries_of(folder)
    assert caught.value.hint


def test_a_saved_folder_names_no_file_outside_itself(tmp_path: Path) -> None:
    folder = save_to_disk(tmp_path / "set", [GOOD])
    write_arrow_stream(tmp_path / "outside.arrow", [GOOD])
    (folder / "state.json").write_text('{"_data_files": [{"filename": "../outside.arrow"}]}')
    with pytest.raises(InputError, match="does not exist"):
        entries_of(folder)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        # ragas#191, #413: the cell is one text. ragas#1263: a list as Python or NumPy prints it.
        ("a,one text,b", 'not a string: "one text"; one context is written ["..."], several ["...", "..."]'),
        ("a,\"['x', 'y']\",b", "not a string: \"['x', 'y']\"; it is no JSON list: write it with json.dumps"),
        ("a,['x' 'y'],b", "not a string: \"['x' 'y']\"; it is no JSON list: write it with json.dumps"),
        ("a,,b", "retrieved_contexts (contexts) must be a list of strings, not null"),
        ("a,[1],b", "retrieved_contexts (contexts) must hold strings, but number 1 is a number: 1"),
        ("a,[],", "reference (ground_truth) must be a string, not null"),
        ("a,[]", "2 cells where the header has 3 (line 2 of the file)"),
        ("a,[],b,c", "4 cells where the header has 3 (line 2 of the file)"),
        ('"a"x,[],b', "not CSV: ',' expected after '\"' (line 2 of the file)"),
        ("Stra\udcdfe,[],b", '"question" is not UTF-8: it holds byte 0xdf (line 2 of the file)'),
        ('a,"[""\\ud800""]",b', "it is no JSON list"),
    ],
)  # fmt: skip
def test_a_bad_row_of_a_csv_file_says_why_and_leaves_the_next_alone(tmp_path: Path, row: str, reason: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(f"{HEADER}{row}\na,[],b\n".encode(errors="surrogateescape"))
    bad, following = entries_of(path)
    assert isinstance(bad.value, DatasetError)
    assert reason in bad.value.reason
    assert bad.line == 1
    assert bad.value.reason.endswith(" (line 2 of the file)")
    assert isinstance(following.value, Sample)


def test_a_csv_file_as_a_spreadsheet_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    header, first_row = "question;contexts;ground_truth;id;lang", '"Wo\n""genau""?";"[""Dort, links.""]";Dort.;;'
    path.write_bytes(b"\xef\xbb\xbf" + f"{header}\r\n{first_row}\r\n\r\nWer?;[];Sie.;7;de\r\n".encode())
    first, second = samples_of(path)
    assert (first.user_input, first.retrieved_contexts, first.id) == ('Wo\n"genau"?', ("Dort, links.",), "line-1")
    assert (first.metadata, second.metadata, second.id) == ({"lang": None}, {"lang": "de"}, "7")


def test_a_csv_file_without_a_contexts_column_lists_what_it_has(tmp_path: Path) -> None:
    # ragas#1476: the column is not there, or is called otherwise.
    (tmp_path / "data.csv").write_text("question,answer,ctx\na,b,c\n")
    with pytest.raises(InputError, match="no column for reference; its columns are: question, answer, ctx"):
        entries_of(tmp_path / "data.csv")


def test_a_quote_that_is_never_closed_costs_one_row(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(f'{HEADER}a,[],b\n"a,[],b\n')
    first, second = entries_of(path)
    assert isinstance(first.value, Sample)
    assert isinstance(second.value, DatasetError)
    assert "unexpected end of data" in second.value.reason


def test_a_cell_of_a_megabyte_is_read(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "data.csv", [good(retrieved_contexts=["x" * 2**20])])
    assert len(samples_of(path)[0].retrieved_contexts[0]) == 2**20


def test_a_header_that_is_not_utf_8_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes("Straße,b\n1,2\n".encode("latin-1"))
    with pytest.raises(InputError, match="the header is not UTF-8"):
        entries_of(tmp_path / "data.csv")
    (tmp_path / "data.csv").write_bytes(HEADER.encode("utf-16"))
    with pytest.raises(InputError, match="is UTF-16"):
        entries_of(tmp_path / "data.csv")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60))
def test_whatever_bytes_a_csv_file_holds_rows_are_samples_or_records(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(HEADER.encode() + b"a,[],b\n" + content)
    first, *others = entries_of(path)
    assert isinstance(first.value, Sample)
    assert all(isinstance(one.value, Sample | DatasetError) for one in others)


def test_numpy_arrays_survive_the_way_through_parquet(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    contexts = pa.array([np.array(["a", "b"])], pa.list_(pa.string()))
    pyarrow.parquet.write_table(pa.table({"question": ["q"], "ground_truth": ["r"], "contexts": contexts}), path)
    assert samples_of(path)[0].retrieved_contexts == ("a", "b")


def test_a_compressed_table_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet.gz"
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table([GOOD]), sink)
    path.write_bytes(pa.compress(sink.getvalue(), "gzip", asbytes=True))
    with pytest.raises(InputError, match="compressed table") as caught:
        entries_of(path)
    assert "Decompress" in caught.value.hint
