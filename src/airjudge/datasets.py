"""Read samples from JSON Lines: what does not describe a sample becomes an error record, never a crash."""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from io import BufferedReader
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from pydantic import JsonValue, ValidationError

from airjudge.errors import DatasetError, DuplicateId, InputError
from airjudge.schema import Sample, Statement

Fields = dict[str, JsonValue]

_OTHER_FORMATS: Final = (".arrow", ".csv", ".gz", ".parquet", ".tsv", ".xls", ".xlsx", ".zip", ".zst")
_FOREIGN_NAMES: Final = {
    "user_input": ("question", "query", "input"),
    "reference": ("ground_truth", "ground_truths", "expected_output", "answer"),
    "retrieved_contexts": ("contexts", "context", "documents"),
}
_BOM: Final = b"\xef\xbb\xbf"
_SPREAD_OUT: Final = re.compile(rb'\s*(?:\[\s*\{?\s*\n|\{\s*\n\s*")')
_WRITER: Final = "Check the step that wrote it: there has to be one JSON object per line."
_MAX_DEPTH: Final = 100
_OURS: Final = frozenset({"id", "user_input", "reference", "retrieved_contexts", "statements", "group"})


class _Refused(Exception):
    """A line does not describe a sample; the message is the reason."""


def read_samples(path: Path) -> Iterator[Sample | DatasetError]:
    """Samples of a JSON Lines file in its order, with an error record for every bad line.

    The file is streamed. Blank lines are skipped, but counted: a sample without id is called
    `line-N` after its line in the file, from 1. Columns that we do not know become metadata.

    Returns:
        An iterator; a DuplicateId stands for the second sample with one id. It raises InputError
        at its end if the file held nothing but blank lines.

    Raises:
        InputError: At once, if the path is not a file of JSON lines that can be read.
    """
    _check_path(path)
    return _read_lines(path)


class Entry(NamedTuple):
    """What stands at a place of the input: a sample, or the record of why there is none.

    `place` counts from 0 over the whole input; `line` from 1 within its file.
    """

    place: int
    path: str
    line: int
    value: Sample | DatasetError


class Source(Protocol):
    """An input that can be read more than once."""

    @property
    def name(self) -> str:
        """The file's name, or how many files there are."""
        ...

    @property
    def mapping(self) -> Mapping[str, str]:
        """The column that each field of ours is read from."""
        ...

    def digest(self) -> str:
        """SHA-256 over all bytes, in hex."""
        ...

    def entries(self, skip: Callable[[int], bool]) -> Iterator[Entry]:
        """Entries in order; those at places to skip are counted, not parsed and not given."""
        ...


@dataclass(frozen=True)
class _JsonLines:
    """One file of JSON lines."""

    path: Path
    name: str
    mapping: Mapping[str, str]

    def digest(self) -> str:
        return file_digest(self.path)

    def entries(self, skip: Callable[[int], bool]) -> Iterator[Entry]:
        place = -1
        for place, (number, offset, line) in enumerate(_lines_with_text(self.path)):
            if not skip(place):
                value = _read_line(self.path, number, line, offset=offset)
                yield Entry(place, str(self.path), number, value)
        if place < 0:
            msg = f"{self.path} holds blank lines only"
            raise InputError(msg, _WRITER)


def open_source(paths: Sequence[str], *, mapping: Mapping[str, str] | None = None) -> Source:
    """The input in a file of JSON lines.

    Raises:
        InputError: At once, if it cannot be read.
    """
    (path,) = map(Path, paths)
    _check_path(path)
    return _JsonLines(path, path.name, mapping or {})


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex.

    Raises:
        InputError: If it cannot be read.
    """
    with _reading(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def demo_samples() -> tuple[Sample, ...]:
    """Samples that ship with the package; `metadata` holds the `expected` recall of each.

    Raises:
        DatasetError: If the installed file was changed and a line is broken.
    """
    with as_file(files("airjudge") / "demo.jsonl") as path:
        return tuple(_sample_or_raise(entry) for entry in read_samples(path))


def _sample_or_raise(entry: Sample | DatasetError) -> Sample:
    """Raise an error record."""
    if isinstance(entry, DatasetError):
        raise entry
    return entry


def _check_path(path: Path) -> None:
    """Refuse what cannot be a file of JSON lines, with the next step."""
    if path.suffix.lower() in _OTHER_FORMATS:
        msg = f"{path}: only JSON Lines files are read, not {path.suffix}"
        raise InputError(msg, "Write one JSON object per line: user_input, reference, retrieved_contexts.")
    with _reading(path) as file:
        start = file.read(64)
    _check_start(path, start)


def _check_start(path: Path, start: bytes) -> None:
    """Refuse a file whose first bytes show that no line of it can be a sample."""
    if not start:
        msg = f"{path} is empty"
        raise InputError(msg, _WRITER)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        msg = f"{path} is UTF-16"
        raise InputError(msg, "Save it as UTF-8, for example: iconv -f UTF-16 -t UTF-8 OLD > NEW")
    if _SPREAD_OUT.match(start.removeprefix(_BOM)):
        msg = f"{path} is one JSON document over many lines"
        raise InputError(msg, "Write one object per line, for example: jq -c '.[]' OLD > NEW")


@contextmanager
def _reading(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file; what keeps it from being read becomes an InputError."""
    try:
        if path.is_fifo() or path.is_char_device():  # opening a pipe would wait for its other end
            msg = f"{path} is not a regular file"
            raise InputError(msg, "It is read more than once: save the stream to a file, and name that.")
        with path.open("rb") as file:
            yield file
    except OSError as exc:
        raise _unreadable(path, exc) from exc


def _unreadable(path: Path, exc: OSError) -> InputError:
    """Say why a path cannot be read, and what to do."""
    if isinstance(exc, FileNotFoundError):
        return InputError(f"{path} does not exist", f"Check the path; it was looked for in {Path.cwd()}")
    if isinstance(exc, IsADirectoryError):
        return InputError(f"{path} is a folder", "Name one file in it.")
    if isinstance(exc, PermissionError):
        return InputError(f"{path} may not be read by this user", "Change its permissions, or copy it.")
    return InputError(f"{path} cannot be read: {exc.strerror or exc}", "Check the path and the disk.")


def _read_lines(path: Path) -> Iterator[Sample | DatasetError]:
    """Read line by line, in bytes: text mode would end lines at other characters too."""
    first_lines: dict[bytes, int] = {}
    any_sample = False
    for number, offset, line in _lines_with_text(path):
        any_sample = True
        entry = _read_line(path, number, line, offset=offset)
        yield _unless_known(entry, first_lines, path=path, number=number)
    if not any_sample:
        msg = f"{path} holds blank lines only"
        raise InputError(msg, _WRITER)


def _lines_with_text(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Number (from 1), offset in the file and bytes of each line that is not blank."""
    offset = 0
    with _reading(path) as file:
        for number, raw in enumerate(file, start=1):
            line = raw.removeprefix(_BOM) if number == 1 else raw
            offset += len(raw)
            if line.strip():
                yield number, offset - len(line), line


def _unless_known(
    entry: Sample | DatasetError, first_lines: dict[bytes, int], *, path: Path, number: int
) -> Sample | DatasetError:
    """The entry itself, or a DuplicateId if an earlier sample has its id.

    `first_lines` keeps a digest for each id, so that long ids do not fill the memory.
    """
    if isinstance(entry, DatasetError):
        return entry
    key = hashlib.blake2b(entry.id.encode(), digest_size=16).digest()
    first = first_lines.setdefault(key, number)
    if first != number:
        return DuplicateId(str(path), number, f"the id {_short(entry.id)} is already that of line {first}")
    return entry


def _read_line(path: Path, number: int, line: bytes, *, offset: int) -> Sample | DatasetError:
    """Turn one line into a sample or the record of what is wrong with it.

    `offset` is where the line starts in the file, in bytes.
    """
    try:
        return _sample(_parse(line, offset), number)
    except _Refused as exc:
        return DatasetError(str(path), number, str(exc))
    except RecursionError:
        return DatasetError(str(path), number, "nested too deeply")


def _parse(line: bytes, offset: int) -> Fields:
    """Decode and parse one line, stricter than `json` is by default."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as exc:
        msg = f"not UTF-8: byte {offset + exc.start} of the file is 0x{line[exc.start]:02x}"
        raise _Refused(msg) from exc
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as exc:
        msg = f"not JSON: {exc.msg} at column {exc.colno}"
        raise _Refused(msg) from exc
    except ValueError as exc:  # Python reads no integer of more than 4300 digits
        msg = "not usable JSON: a number has too many digits"
        raise _Refused(msg) from exc
    if not isinstance(value, dict):
        msg = f"not a JSON object but {_describe(value)}"
        raise _Refused(msg)
    _check_values(value)
    return value


def _object(pairs: list[tuple[str, JsonValue]]) -> Fields:
    """Build an object; JSON leaves open which of two equal keys counts, so neither does."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        msg = f"the field {_short(twice)} occurs twice in one object"
        raise _Refused(msg)
    return fields


def _refuse_constant(name: str) -> float:
    """Refuse NaN and Infinity, which `json` reads although they are not JSON."""
    msg = f"{name} is not JSON; write null for what is undefined"
    raise _Refused(msg)


def _finite(digits: str) -> float:
    """Read a number; one that overflows could not be written out as JSON again."""
    number = float(digits)
    if math.isinf(number):
        msg = f"the number {_short(digits)} is too large"
        raise _Refused(msg)
    return number


def _check_values(fields: Fields) -> None:
    """Refuse values that no later file or request could hold."""
    for name, value in fields.items():
        if _depth(value) > _MAX_DEPTH:
            msg = f"{_short(name)} is nested more than {_MAX_DEPTH} deep"
            raise _Refused(msg)
        try:
            json.dumps([name, value], ensure_ascii=False).encode()
        except UnicodeEncodeError as exc:
            msg = f"{_short(name)} holds half a surrogate pair, which is no character"
            raise _Refused(msg) from exc


def _depth(value: JsonValue) -> int:
    """How many lists and objects lie inside each other, counted without recursion."""
    depth, level = 0, [value]
    while level := [inner for outer in level for inner in _children(outer)]:
        depth += 1
    return depth


def _children(value: JsonValue) -> list[JsonValue]:
    """Values directly inside a list or an object."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _sample(fields: Fields, number: int) -> Sample:
    """Build a sample from the fields of line `number`; an optional field may be null."""
    user_input, reference = _text(fields, "user_input"), _text(fields, "reference")
    contexts = _contexts(fields)
    identifier = _label(fields.get("id"), "id")
    if not isinstance(fields.get("lang", ""), str | None):
        msg = f"lang must be a language tag like en, not {_describe(fields['lang'])}"
        raise _Refused(msg)
    try:
        return Sample(
            id=f"line-{number}" if identifier is None else identifier,
            user_input=user_input,
            reference=reference,
            retrieved_contexts=contexts,
            statements=_statements(fields.get("statements")),
            group=_label(fields.get("group"), "group"),
            metadata={name: value for name, value in fields.items() if name not in _OURS},
        )
    except ValidationError as exc:
        msg = f"{exc.errors()[0]['loc']}: {exc.errors()[0]['msg']}"
        raise _Refused(msg) from exc


def _text(fields: Fields, name: str) -> str:
    """A field that has to hold text."""
    value = _required(fields, name)
    if not isinstance(value, str):
        msg = f"{name} must be a string, not {_describe(value)}"
        raise _Refused(msg)
    if not value.strip():
        msg = f"{name} is blank"
        raise _Refused(msg)
    return value


def _contexts(fields: Fields) -> tuple[str, ...]:
    """Retrieved contexts, in order; none at all, and blank ones, are for the judge to score."""
    value = _required(fields, "retrieved_contexts")
    if not isinstance(value, list):
        msg = f"retrieved_contexts must be a list of strings, not {_describe(value)}"
        raise _Refused(msg)
    for place, context in enumerate(value, start=1):
        if not isinstance(context, str):
            msg = f"retrieved_contexts must hold strings, but number {place} is {_describe(context)}"
            raise _Refused(msg)
    return tuple(context for context in value if isinstance(context, str))


def _required(fields: Fields, name: str) -> JsonValue:
    """The value of a field that has to be there, under its name of ours."""
    if name in fields:
        return fields[name]
    foreign = next((other for other in _FOREIGN_NAMES[name] if other in fields), None)
    advice = f"; rename {foreign}: the fields are user_input, reference and retrieved_contexts" if foreign else ""
    msg = f"{name} is missing{advice}"
    raise _Refused(msg)


def _label(value: JsonValue, name: str) -> str | None:
    """An id or a group as text; None if there is none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        msg = f"{name} must be a string or a whole number, not {_describe(value)}"
        raise _Refused(msg)
    if not str(value).strip():
        msg = f"{name} is blank"
        raise _Refused(msg)
    return str(value)


def _statements(value: JsonValue) -> tuple[Statement, ...] | None:
    """Given statements, as strings or as objects with `text`; other keys are left to others."""
    if value is None:
        return None
    if not isinstance(value, list):
        msg = f"statements must be a list, not {_describe(value)}"
        raise _Refused(msg)
    statements = tuple(_statement(entry, place) for place, entry in enumerate(value, start=1))
    seen: set[str] = set()
    for statement in statements:
        if statement.id in seen:
            msg = f"two statements have the id {_short(statement.id)}"
            raise _Refused(msg)
        seen.add(statement.id)
    return statements


def _statement(entry: JsonValue, place: int) -> Statement:
    """One given statement; without id it is called by its place, from 1."""
    fields: Fields = {"text": entry} if isinstance(entry, str) else entry if isinstance(entry, dict) else {}
    text = fields.get("text")
    if not isinstance(text, str):
        msg = f"statement {place} must be a string or an object with text, not {_describe(entry)}"
        raise _Refused(msg)
    if not text.strip():
        msg = f"statement {place} is blank"
        raise _Refused(msg)
    identifier = _label(fields.get("id"), f"the id of statement {place}")
    return Statement(id=str(place) if identifier is None else identifier, text=text.strip())


def _describe(value: JsonValue) -> str:
    """A value's JSON type and how it starts."""
    if value is None:
        return "null"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return f"{kinds.get(type(value), 'an object')}: {_short(value)}"


def _short(value: JsonValue) -> str:
    """A value as JSON, cut to what fits a line; what a terminal might act on is escaped."""
    written = json.dumps(value, ensure_ascii=False)
    cut = written if len(written) <= 60 else f"{written[:57]}..."
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in cut)
