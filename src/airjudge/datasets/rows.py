"""Rows of an input in order, whatever they were stored as; one source of samples over all its files."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from airjudge.datasets.columns import REQUIRED, Columns, check_carried, decide_mapping, read_fields
from airjudge.datasets.refusal import Fields, Refused, short
from airjudge.datasets.samples import build_sample
from airjudge.errors import DatasetError, DuplicateId, InputError
from airjudge.schema import Sample


class Entry(NamedTuple):
    """A sample of an input, or what is wrong with its row.

    `place` counts from 0 over the whole input, without blank lines. `line` counts from 1 within the file
    `path`: it is the line of JSON Lines, blank ones counted, and the row of a table.
    """

    place: int
    path: str
    line: int
    value: Sample | DatasetError


class Source(Protocol):
    """An input that can be read more than once."""

    @property
    def name(self) -> str:
        """What people call it: the name of the file, or how many there are."""

    @property
    def mapping(self) -> Mapping[str, str]:
        """The column that each of our fields is read from."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Absolute paths under which it can be opened again; none of what a program holds in memory."""

    def check_carried(self, names: Sequence[str]) -> None:
        """Refuse columns to carry into the records that there are not: an InputError that lists those there are."""

    def digest(self) -> str:
        """SHA-256 over all bytes in order, in hex; it changes when the input changes."""

    def count(self) -> int:
        """How many rows there are, counted without being parsed."""

    def row_name(self, path: str, line: int) -> str:
        """What a row without an id is called."""

    def entries(self, skip: Callable[[int], bool]) -> Iterator[Entry]:
        """Entries in input order; a row whose place `skip` accepts is counted, not parsed, not given."""


class Row(NamedTuple):
    """One row that has not been parsed yet; `read` may raise Refused or RecursionError.

    `editor_line` is where an editor finds a row that does not stand in a line of its own number, 0 otherwise.
    """

    line: int
    read: Callable[[], Fields]
    editor_line: int = 0


def duplicate_id(path: str, line: int, *, name: str, first: tuple[str, int]) -> DuplicateId:
    """The record of a sample whose id is that of an earlier one, at `first` (path and line)."""
    where = f"line {first[1]}" if first[0] == path else f"{first[0]}:{first[1]}"
    return DuplicateId(path, line, f"the id {short(name)} is already that of {where}")


def every() -> bool:
    """Want every row."""
    return True


class RowFile(Protocol):
    """Rows that can be read more than once; what keeps them from being read is an InputError."""

    name: str

    def columns(self) -> Columns | None:
        """The columns, from the schema or the first rows; None if no row tells them."""

    def rows(self, wanted: Callable[[], bool]) -> Iterator[Row]:
        """Rows in order, without blank lines: `wanted` is asked once for each, and says whether to give it."""

    def digest(self) -> str:
        """SHA-256 over the bytes, in hex."""


class RowSource:
    """A Source over files of rows."""

    def __init__(
        self,
        name: str,
        files: Sequence[RowFile],
        *,
        mapping: Mapping[str, str],
        required: Sequence[str] = REQUIRED,
        paths: tuple[Path, ...] = (),
    ) -> None:
        """Read `files` one after the other.

        Args:
            name: What people call them together.
            files: At least one.
            mapping: What the user decided about columns; the rest is decided by their names.
            required: The fields that the metric reads.
            paths: Where they lie, absolute, if they are files on a disk.

        Raises:
            InputError: If a file cannot be read, or its columns cannot be told.
        """
        self.name, self.paths, self._files = name, paths, files
        self._known = {file.name: file.columns() for file in files}
        self.mapping: Mapping[str, str] = decide_mapping(self._known, mapping, required)
        # A column that appears later than in the first rows is an optional field still.
        self._columns = {field: field for field in read_fields(required)} | dict(self.mapping)
        self._required = frozenset(required)

    def check_carried(self, names: Sequence[str]) -> None:
        """Refuse columns to carry into the records that neither a schema nor the first rows hold.

        Raises:
            InputError: With the columns that there are.
        """
        check_carried(names, self._known, self.mapping)

    def digest(self) -> str:
        """SHA-256 of one file's bytes; of several, over their digests, so that their limits count."""
        digests = [file.digest() for file in self._files]
        return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()

    def count(self) -> int:
        """How many rows there are, counted without being parsed."""
        n_rows = 0

        def counted() -> bool:
            nonlocal n_rows
            n_rows += 1
            return False

        for file in self._files:
            for _ in file.rows(counted):
                pass
        return n_rows

    def row_name(self, path: str, line: int) -> str:
        """`line-N`, and behind its file where there are several."""
        return f"line-{line}" if len(self._files) == 1 else f"{path}:line-{line}"

    def entries(self, skip: Callable[[int], bool]) -> Iterator[Entry]:
        """Entries in input order; a row whose place `skip` accepts is counted, not parsed, not given.

        Raises:
            InputError: If a file breaks off or was taken away meanwhile, or there is no row at all.
        """
        place = -1

        def wanted() -> bool:
            nonlocal place
            place += 1
            return not skip(place)

        for file in self._files:
            for row in file.rows(wanted):
                yield Entry(place, file.name, row.line, self._value(file.name, row))
        if place < 0:
            msg = f"{self.name} holds no rows"
            raise InputError(msg, "Check the step that wrote it.")

    def _value(self, path: str, row: Row) -> Sample | DatasetError:
        try:
            return build_sample(
                row.read(), self._columns, default_id=self.row_name(path, row.line), required=self._required
            )
        except Refused as exc:
            reason = str(exc)
        except RecursionError:
            reason = "nested too deeply"
        where = f" (line {row.editor_line} of the file)" if row.editor_line else ""
        return DatasetError(path, row.line, reason + where)
