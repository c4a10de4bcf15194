"""From what a user names to a source: patterns, folders, standard input, and formats told by their first bytes."""

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from airjudge.datasets import tables
from airjudge.datasets.cells import Cells
from airjudge.datasets.columns import REQUIRED
from airjudge.datasets.files import (
    BOM,
    STANDARD_INPUT,
    Input,
    compression_of,
    reading,
    reading_plain,
    spool_standard_input,
)
from airjudge.datasets.lines import JsonLines
from airjudge.datasets.rows import RowFile, RowSource, Source
from airjudge.errors import InputError

_JSON_SUFFIXES: Final = (".jsonl", ".ndjson", ".jsonlines", ".json")
_CSV_SUFFIXES: Final = (".csv", ".tsv", ".tab")
_FOREIGN: Final = {
    b"PK\x03\x04": "a ZIP archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"FEA1": "Feather of the first version",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ": "compressed with xz",
    b"Obj\x01": "an Avro file",
    b"ORC": "an ORC file",
}
_HEAD_BYTES: Final = 4096


def open_source(
    paths: Sequence[str],
    *,
    mapping: Mapping[str, str] | None = None,
    required: Sequence[str] = REQUIRED,
    spool: Path | None = None,
    overwrite: bool = False,
) -> Source:
    """A source over files, read one after the other.

    Formats are told by the first bytes, and by the suffix where these do not tell: JSON Lines and CSV
    (also compressed with gzip or zstd), Parquet, Arrow and Feather, a folder of `save_to_disk`.

    Args:
        paths: Files, folders and patterns like `part-*.parquet`; `-` is standard input.
        mapping: The column of a field, where its name does not tell; see `parse_mapping`.
        required: The fields that the metric reads; by default those of context recall by a judge.
        spool: Where standard input is saved, which is read more than once. Needed for `-` alone.
        overwrite: Whether other data that `spool` holds are replaced, or an error.

    Raises:
        InputError: At once, if a path cannot be read, or its columns cannot be told.
    """
    inputs = list(_inputs(paths, spool, overwrite=overwrite))
    _check_distinct(inputs)
    name = _shown(inputs[0].name) if len(inputs) == 1 else f"{len(inputs)} files"
    places = tuple(one.path.absolute() for one in inputs)
    files = [row_file(one) for one in inputs]
    return RowSource(name, files, mapping=mapping or {}, required=required, paths=places)


def _inputs(paths: Sequence[str], spool: Path | None, *, overwrite: bool) -> Iterator[Input]:
    if not paths:
        msg = "no data set is named"
        raise InputError(msg, "Name a file, a pattern, or - for standard input.")
    for path in paths:
        if path == STANDARD_INPUT:
            if spool is None:
                msg = "standard input is read more than once, and there is no place to save it"
                raise InputError(msg, "Save it to a file and name that.")
            yield spool_standard_input(spool, overwrite=overwrite)
        elif any(mark in path for mark in "*?[") and not Path(path).exists():
            yield from (Input(one, Path(one)) for one in _matches(path))
        else:
            yield Input(path, Path(path))


def _matches(pattern: str) -> list[str]:
    """Files that a pattern stands for, in the order of their names."""
    found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - pathlib takes no absolute pattern
    if not found:
        msg = f"no file matches {pattern}"
        raise InputError(msg, f"Check the pattern; it was looked for in {Path.cwd()}")
    return found


def _check_distinct(inputs: Iterable[Input]) -> None:
    """Refuse a file that is named twice: each of its samples would count double."""
    seen: dict[Path, str] = {}
    for one in inputs:
        place = one.path.resolve()
        if place in seen:
            msg = f"{one.name} is named twice" if one.name == seen[place] else f"{one.name} is {seen[place]} again"
            raise InputError(msg, "Name every file once.")
        seen[place] = one.name


def _shown(name: str) -> str:
    return "standard input" if name == STANDARD_INPUT else Path(name).name or name


def row_file(source: Input) -> RowFile:
    """What reads a file, by its first bytes.

    Raises:
        InputError: If it cannot be read, or is of a format that is not read.
    """
    if source.path.is_dir():
        return tables.saved_folder(source)
    with reading(source) as file:
        start = file.peek(_HEAD_BYTES)[:_HEAD_BYTES]
    for magic, what in _FOREIGN.items():
        if start.startswith(magic) and not _has_suffix(source, _JSON_SUFFIXES + _CSV_SUFFIXES):
            msg = f"{source.name} is {what}, which is not read"
            raise InputError(msg, "Save it as JSON Lines, CSV or Parquet.")
    if start.startswith(b"PAR1"):
        return tables.Table(source.name, (source,), opening=tables.parquet)
    if start.startswith(b"ARROW1"):
        return tables.Table(source.name, (source,), opening=tables.arrow_file)
    if start.startswith(b"\xff\xff\xff\xff"):
        return tables.Table(source.name, (source,), opening=tables.arrow_stream)
    return _text_file(source, start)


def _text_file(source: Input, start: bytes) -> RowFile:
    """What reads a text: a line that opens an object is JSON whatever the file is called."""
    if compression_of(start) is not None:
        with reading_plain(source) as file:
            start = file.peek(_HEAD_BYTES)[:_HEAD_BYTES]
        if start.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
            msg = f"{source.name} is a compressed table, which cannot be read from its middle"
            raise InputError(msg, "Decompress it: Parquet and Arrow compress within the file.")
    text = start.removeprefix(BOM).lstrip()
    if text.startswith(b"{") or _has_suffix(source, _JSON_SUFFIXES):
        return JsonLines(source)
    if _has_suffix(source, _CSV_SUFFIXES) or _looks_like_cells(text):
        return Cells(source)
    return JsonLines(source)


def _looks_like_cells(text: bytes) -> bool:
    """Whether a text of unknown kind may begin with a header: names with commas or tabs between them."""
    first = text.partition(b"\n")[0]
    return any(mark in first for mark in b",\t;") and not first.startswith((b"[", b'"{')) and b"\0" not in first


def _has_suffix(source: Input, suffixes: tuple[str, ...]) -> bool:
    """Whether a file's name ends so, or does before the suffix of its compression."""
    name = source.name.lower().removesuffix(".gz").removesuffix(".zst")
    return name.endswith(suffixes)
