"""JSON Lines, read in bytes: text mode would end lines at other characters too."""

import io
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Final

from airjudge.datasets.columns import Columns, paths_of
from airjudge.datasets.files import BOM, WRITER, Input, check_encoding, reading_plain
from airjudge.datasets.parsing import parse_line
from airjudge.datasets.refusal import Fields, Refused
from airjudge.datasets.rows import Row, every
from airjudge.errors import InputError

PEEKED: Final = 1000
"""Lines whose keys tell the columns."""
MAX_LINE_BYTES: Final = 2**26
_SPREAD_OUT: Final = re.compile(rb'\s*(?:\[\s*\{|\[\s*\n|\{\s*\n\s*")')


class JsonLines:
    """A file with one JSON object a line."""

    def __init__(self, source: Input) -> None:
        """Read `source`, which may be compressed."""
        self.name, self._source = source.name, source

    def columns(self) -> Columns | None:
        """Paths that the first lines have between them; None if none of them is a JSON object."""
        with reading_plain(self._source) as file:
            start = file.peek(64)[:64]
        check_encoding(self._source, start)
        if _SPREAD_OUT.match(start.removeprefix(BOM)):
            msg = f"{self.name} is one JSON document, not one object per line"
            raise InputError(msg, "Write one object per line, for example: jq -c '.[]' OLD > NEW")
        n_lines, paths = 0, dict[str, None]()
        for row in islice(self.rows(every), PEEKED):
            n_lines += 1
            try:
                paths.update(dict.fromkeys(paths_of(row.read())))
            except (Refused, RecursionError):
                continue  # a record of its own when its turn comes
        if not n_lines:
            msg = f"{self.name} holds blank lines only"
            raise InputError(msg, WRITER)
        return tuple(paths) or None

    def rows(self, wanted: Callable[[], bool]) -> Iterator[Row]:
        """Each wanted line that is not blank."""
        with reading_plain(self._source) as file:
            number, offset = 0, len(file.read(3)) if file.peek(3).startswith(BOM) else 0
            while line := file.readline(MAX_LINE_BYTES):
                number += 1
                start, offset = offset, offset + len(line)
                too_long = len(line) == MAX_LINE_BYTES and line[-1:] != b"\n"
                offset += _skip_line(file) if too_long else 0
                if not line.isspace() and wanted():
                    yield Row(number, _refuse_length if too_long else partial(parse_line, line, start))

    def digest(self) -> str:
        """SHA-256 of the file's bytes."""
        return self._source.digest()


def _skip_line(file: io.BufferedReader) -> int:
    """Read to the end of a line that is too long; how many bytes that was."""
    n_bytes = 0
    while raw := file.readline(MAX_LINE_BYTES):
        n_bytes += len(raw)
        if raw.endswith(b"\n"):
            break
    return n_bytes


def _refuse_length() -> Fields:
    msg = f"longer than {MAX_LINE_BYTES // 2**20} MiB"
    raise Refused(msg)
