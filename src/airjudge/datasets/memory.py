"""Sources over what a program holds: rows as dictionaries, data frames, Arrow tables."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Protocol, runtime_checkable

import pyarrow as pa

from airjudge.datasets.columns import REQUIRED, Columns, paths_of
from airjudge.datasets.lines import PEEKED
from airjudge.datasets.refusal import Fields, Refused
from airjudge.datasets.rows import Row, RowSource, Source, every
from airjudge.datasets.tables import batch_rows, schema_columns
from airjudge.datasets.values import plain_fields
from airjudge.errors import InputError

NAME = "rows"
"""What stands for the file in the entries of rows that came from none."""


@runtime_checkable
class ArrowStream(Protocol):
    """What pandas, polars, duckdb and pyarrow offer: the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule with an Arrow C stream."""


def source_of(
    data: Iterable[Mapping[str, object]] | ArrowStream,
    *,
    mapping: Mapping[str, str] | None = None,
    required: Sequence[str] = REQUIRED,
) -> Source:
    """A source over rows in memory.

    A list, or whatever else can be iterated again, is read where it is, and must not change meanwhile. An
    iterator is read to its end at once and kept as a list. An object with the Arrow PyCapsule interface is
    taken over as an Arrow table, without a copy where its own memory is Arrow's.

    Args:
        data: Dictionaries, one a sample, or a table: a pandas or polars frame, a duckdb relation.
        mapping: The column of a field, where its name does not tell.
        required: The fields that the metric reads.

    Raises:
        InputError: If there is no row, or the columns cannot be told.
        ValueError: If it is one dictionary, or a text: open_source reads files.
    """
    rows: _Dictionaries | _ArrowRows
    if isinstance(data, ArrowStream):
        rows = _ArrowRows(_table_of(data))
    elif isinstance(data, str | bytes | Mapping):
        msg = f"a data set is an iterable of dictionaries or an Arrow table, not a {type(data).__name__}"
        raise ValueError(msg)  # noqa: TRY004 - a caller's misuse is ValueError
    else:
        rows = _Dictionaries(list(data) if isinstance(data, Iterator) else data)
    return RowSource(NAME, (rows,), mapping=mapping or {}, required=required)


class _Dictionaries:
    """Rows that are dictionaries."""

    name = NAME

    def __init__(self, rows: Iterable[Mapping[str, object]]) -> None:
        self._rows = rows

    def columns(self) -> Columns | None:
        n_rows, paths = 0, dict[str, None]()
        for row in islice(self.rows(every), PEEKED):
            n_rows += 1
            try:
                paths.update(dict.fromkeys(paths_of(row.read())))
            except (Refused, RecursionError):
                continue
        if not n_rows:
            raise _no_rows()
        return tuple(paths) or None

    def rows(self, wanted: Callable[[], bool]) -> Iterator[Row]:
        for number, row in enumerate(self._rows, start=1):
            if wanted():
                yield Row(number, partial(_fields, row))

    def digest(self) -> str:
        return _digest(self.rows)


class _ArrowRows:
    """Rows of a table in memory."""

    name = NAME

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def columns(self) -> Columns:
        if not self._table.num_rows:
            raise _no_rows()
        return schema_columns(self._table.schema, NAME)

    def rows(self, wanted: Callable[[], bool]) -> Iterator[Row]:
        number = 0
        for batch in self._table.to_batches():
            yield from batch_rows(batch, wanted, before=number)
            number += batch.num_rows

    def digest(self) -> str:
        return _digest(self.rows)


def _table_of(data: ArrowStream) -> pa.Table:
    try:
        return pa.RecordBatchReader.from_stream(data).read_all()
    except pa.ArrowInvalid as exc:
        msg = f"the Arrow stream of a {type(data).__name__} has no rows of columns: {exc}"
        raise InputError(msg, "Give a table: a data frame, a relation, a record batch reader.") from exc


def _fields(row: object) -> Fields:
    if not isinstance(row, Mapping):
        msg = f"not a dictionary but a {type(row).__name__}"
        raise Refused(msg)
    return plain_fields(row)


def _digest(rows: Callable[[Callable[[], bool]], Iterator[Row]]) -> str:
    """SHA-256 over each row as canonical JSON: the same for the same rows as dictionaries and as a table."""
    digest = hashlib.sha256()
    for row in rows(every):
        try:
            written = json.dumps(row.read(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        except (Refused, RecursionError) as exc:
            written = f"refused: {exc}"
        digest.update(written.encode() + b"\n")
    return digest.hexdigest()


def _no_rows() -> InputError:
    return InputError("there are no rows", "Check what was passed as the data set.")
