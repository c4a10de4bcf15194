"""Titled tables, as text for a terminal and as Markdown; texts of the data are printed, never read as markup."""

import html
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from airjudge.cli.render import printable

_WIDTH_OF_FILES: Final = 180
"""Columns of a table that is not printed on a terminal."""
_PADDING: Final = 3
_INTERVAL: Final = re.compile(r" (\(-?[0-9.]+ to -?[0-9.]+\))$")
_MARKDOWN: Final = str.maketrans({character: f"\\{character}" for character in "\\`*_[]|~#$"})


@dataclass(frozen=True, slots=True)
class Section:
    """A title, a table (none without rows), and sentences below it; columns but the first `n_texts` are numbers."""

    title: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()
    n_texts: int = 1


def print_sections(sections: Iterable[Section]) -> None:
    """Print sections on stdout, as wide as the terminal."""
    console = Console() if sys.stdout.isatty() else Console(width=_WIDTH_OF_FILES)
    for one in sections:
        console.print(Text(one.title, style="bold"))
        if one.rows:
            console.print(_table(one, console.width))
        for line in one.lines:
            console.print(Text(f"  {printable(line)}"))
        console.print()


def _table(section: Section, width: int) -> Table:
    """A table; one that is too wide has its intervals on lines of their own."""
    columns = zip(section.header, *section.rows, strict=True)
    wide = sum(max(map(len, column)) + _PADDING for column in columns) > width
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(section.header):
        if number < section.n_texts:
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, justify="right")
    for row in section.rows:
        table.add_row(*(Text(_folded(cell) if wide else printable(cell)) for cell in row))
    return table


def _folded(cell: str) -> str:
    """A number above its interval; any other text as it is."""
    return _INTERVAL.sub(r"\n\1", printable(cell))


def markdown_of(sections: Iterable[Section]) -> str:
    """Sections as Markdown, in which no text of the data has a meaning."""
    return "\n".join(line for one in sections for line in _markdown_lines(one))


def _markdown_lines(section: Section) -> Iterable[str]:
    yield from (f"## {_escaped(section.title)}", "")
    if section.rows:
        yield _markdown_row(section.header)
        numbers = len(section.header) - section.n_texts
        yield "|" + " --- |" * section.n_texts + " ---: |" * numbers
        yield from map(_markdown_row, section.rows)
        yield ""
    if section.lines:
        yield from (f"- {_escaped(line)}" for line in section.lines)
        yield ""


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, cells)) + " |"


def _escaped(text: str) -> str:
    """A text of which neither Markdown nor HTML reads anything as markup; one line."""
    return html.escape(printable(text), quote=False).translate(_MARKDOWN)
