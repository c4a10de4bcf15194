"""CSV and its kin: comma, semicolon or tab between cells, one header line."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, Never

from airjudge.datasets.columns import Columns
from airjudge.datasets.files import Input, check_encoding, reading_plain
from airjudge.datasets.refusal import Fields, Refused, short
from airjudge.datasets.rows import Row
from airjudge.errors import InputError

if TYPE_CHECKING:
    from _csv import Reader

MAX_CELL: Final = 2**26
"""Characters; a quote that is never closed swallows no more than this."""
_ESCAPED: Final = re.compile("[\udc80-\udcff]")


class Cells:
    """A CSV or TSV file. All values are text, and an empty cell is null."""

    def __init__(self, source: Input) -> None:
        """Read `source`, which may be compressed."""
        self.name, self._source = source.name, source

    def columns(self) -> Columns:
        """The names in the header."""
        with self._reading() as (_, header):
            return tuple(header)

    def rows(self, wanted: Callable[[], bool]) -> Iterator[Row]:
        """Each wanted row below the header, counted from 1; blank lines are none."""
        with self._reading() as (reader, header):
            number = 0
            while True:
                first_line = reader.line_num + 1
                read: Callable[[], Fields]
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as exc:
                    read = partial(_refuse, f"not CSV: {exc}")
                else:
                    if not cells:
                        continue
                    read = partial(_fields, header, cells)
                number += 1
                if wanted():
                    yield Row(number, read, first_line)

    def digest(self) -> str:
        """SHA-256 of the file's bytes."""
        return self._source.digest()

    @contextmanager
    def _reading(self) -> "Iterator[tuple[Reader, list[str]]]":
        csv.field_size_limit(MAX_CELL)
        with reading_plain(self._source) as file:
            check_encoding(self._source, file.peek(4)[:4])
            # A byte that is not UTF-8 becomes half a surrogate pair, and its row is refused, not the file.
            with io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="") as text:
                first = text.readline(MAX_CELL)
                reader = csv.reader(chain((first,), text), delimiter=_delimiter(first), strict=True)
                yield reader, self._header(reader)

    def _header(self, reader: "Reader") -> list[str]:
        try:
            header = next(reader, [])
        except csv.Error as exc:
            msg = f"{self.name}: the header is not CSV: {exc}"
            raise InputError(msg, "Write it with a CSV library.") from exc
        if any(map(_ESCAPED.search, header)):
            msg = f"{self.name}: the header is not UTF-8"
            raise InputError(msg, "Save it as UTF-8, for example: iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW")
        twice = [name for name in header if header.count(name) > 1]
        if twice:
            msg = f"{self.name}: the header names {short(twice[0])} twice"
            raise InputError(msg, "Give every column a name of its own.")
        return header


def _delimiter(header: str) -> str:
    """What stands between the names of the header most often; in a German Excel a semicolon."""
    return max(",;\t", key=header.count)


def _fields(header: Sequence[str], cells: Sequence[str]) -> Fields:
    if len(cells) != len(header):
        _refuse(f"{len(cells)} cells where the header has {len(header)}")
    for name, cell in zip(header, cells, strict=True):
        if found := _ESCAPED.search(cell):
            _refuse(f"{short(name)} is not UTF-8: it holds byte 0x{ord(found[0]) - 0xDC00:02x}")
    return {name: cell or None for name, cell in zip(header, cells, strict=True)}


def _refuse(reason: str) -> Never:
    raise Refused(reason)
