"""Parquet, Arrow IPC files and streams, and the folders that Hugging Face `save_to_disk` writes."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from airjudge.datasets.columns import Columns
from airjudge.datasets.files import Input, reading, unreadable
from airjudge.datasets.refusal import Fields, Refused, short
from airjudge.datasets.rows import Row
from airjudge.datasets.values import plain_fields
from airjudge.errors import InputError

_BATCH_ROWS: Final = 256
_MAX_DEPTH: Final = 4
_STATE: Final = "state.json"
_SPLITS: Final = "dataset_dict.json"


class Batches(NamedTuple):
    """A table that is being read: its schema, and its rows a batch at a time."""

    schema: pa.Schema
    batches: Iterable[pa.RecordBatch]


Opening = Callable[[Path], AbstractContextManager[Batches]]


class Table:
    """A table in one file or in parts that belong together; rows are counted over all of them."""

    def __init__(self, name: str, parts: Sequence[Input], *, opening: Opening) -> None:
        """Read `parts` in order, each as `opening` does."""
        self.name, self._parts, self._opening = name, parts, opening

    def columns(self) -> Columns:
        """The columns of the first part's schema, and what lies in those that are objects."""
        with self._reading(self._parts[0]) as table:
            return schema_columns(table.schema, self.name)

    def rows(self, wanted: Callable[[], bool]) -> Iterator[Row]:
        """Each wanted row, counted from 1."""
        number = 0
        for part in self._parts:
            with self._reading(part) as table:
                for batch in table.batches:
                    yield from batch_rows(batch, wanted, before=number)
                    number += batch.num_rows

    def digest(self) -> str:
        """SHA-256 of the file's bytes; of several parts, over their digests."""
        digests = [part.digest() for part in self._parts]
        return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()

    @contextmanager
    def _reading(self, part: Input) -> Iterator[Batches]:
        try:
            with reading(part), self._opening(part.path) as table:
                yield table
        except OSError as exc:
            raise unreadable(part.name, exc) from exc
        except pa.ArrowException as exc:
            reason = str(exc).strip().partition("\n")[0] or "it is broken"
            msg = f"{part.name} cannot be read: {reason}"
            raise InputError(msg, "Check the step that wrote it; it may have been cut short.") from exc


@contextmanager
def parquet(path: Path) -> Iterator[Batches]:
    """Open a Parquet file."""
    with pq.ParquetFile(path) as file:
        yield Batches(file.schema_arrow, file.iter_batches(batch_size=_BATCH_ROWS))


@contextmanager
def arrow_file(path: Path) -> Iterator[Batches]:
    """Open an Arrow IPC file, which is what Feather is too."""
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as file:
        yield Batches(file.schema, map(file.get_batch, range(file.num_record_batches)))


@contextmanager
def arrow_stream(path: Path) -> Iterator[Batches]:
    """Open an Arrow IPC stream."""
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_stream(mapped) as stream:
        yield Batches(stream.schema, stream)


def saved_folder(source: Input) -> Table:
    """The data set in a folder that Hugging Face `save_to_disk` wrote.

    Raises:
        InputError: If the folder is none, or holds several splits of which one must be named.
    """
    folder = source.path
    if (folder / _SPLITS).is_file():
        splits = _json(folder / _SPLITS, source.name).get("splits")
        names = [str(one) for one in splits] if isinstance(splits, list) and splits else ["SPLIT"]
        msg = f"{source.name} holds splits: {', '.join(names)}"
        raise InputError(msg, f"Name one of them: {source.name.rstrip('/')}/{names[0]}")
    if not (folder / _STATE).is_file():
        raise unreadable(source.name, IsADirectoryError())
    state = _json(folder / _STATE, source.name)
    files = state.get("_data_files")
    names = [str(one.get("filename")) for one in files if isinstance(one, dict)] if isinstance(files, list) else []
    if not names or state.get("_indices_files"):
        msg = f"{source.name}: {_STATE} names no data files, or an order of rows beside them"
        raise InputError(msg, "Save it anew: dataset.flatten_indices().save_to_disk(...)")
    parts = [Input(str(Path(source.name) / name), folder / Path(name).name) for name in names]
    return Table(source.name, parts, opening=arrow_stream)


def schema_columns(schema: pa.Schema, name: str) -> Columns:
    """Paths of a schema's columns and of what lies in those that are objects.

    Raises:
        InputError: If two columns have one name.
    """
    twice = [one for one in schema.names if schema.names.count(one) > 1]
    if twice:
        msg = f"{name} has two columns called {short(twice[0])}"
        raise InputError(msg, "Give every column a name of its own.")
    return tuple(_paths(schema, "", depth=_MAX_DEPTH))


def batch_rows(batch: pa.RecordBatch, wanted: Callable[[], bool], *, before: int) -> Iterator[Row]:
    """Each wanted row of a batch, which follows on `before` rows."""
    for place in range(batch.num_rows):
        if wanted():
            yield Row(before + place + 1, partial(_read_row, batch, place))


def _read_row(batch: pa.RecordBatch, place: int) -> Fields:
    try:
        (values,) = batch.slice(place, 1).to_pylist()
    except (pa.ArrowException, ValueError, OverflowError) as exc:  # not UTF-8, or a time beyond Python's
        msg = f"holds a value that cannot be read: {exc}"
        raise Refused(msg) from exc
    return plain_fields(values)


def _paths(fields: Iterable[pa.Field], prefix: str, *, depth: int) -> Iterator[str]:
    for field in fields:
        yield prefix + field.name
        if pa.types.is_struct(field.type) and depth > 1:
            yield from _paths(field.type, f"{prefix}{field.name}.", depth=depth - 1)


def _json(path: Path, name: str) -> Fields:
    try:
        value = json.loads(path.read_bytes())
    except OSError as exc:
        raise unreadable(str(path), exc) from exc
    except ValueError as exc:
        msg = f"{name}: {path.name} is not JSON"
        raise InputError(msg, "Save the data set anew with save_to_disk.") from exc
    return value if isinstance(value, dict) else {}
