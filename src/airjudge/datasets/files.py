"""Bytes of an input, decompressed where they are compressed; what keeps them from being read is an InputError."""

import filecmp
import hashlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from airjudge.errors import InputError

WRITER: Final = "Check the step that wrote it: there has to be one JSON object per line."
BOM: Final = b"\xef\xbb\xbf"
_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_CHUNK_BYTES: Final = 2**20
_BUFFER_BYTES: Final = 2**18
_PLAIN_BUFFER_BYTES: Final = 2**16  # what stands in it is lost when a compressed file turns out to be cut
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
STANDARD_INPUT: Final = "-"


class Input(NamedTuple):
    """A file by the name that it was given; where its bytes lie is another place for standard input."""

    name: str
    path: Path

    def digest(self) -> str:
        """SHA-256 of the bytes as they lie, in hex."""
        with reading(self) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def reading(source: Input) -> Iterator[io.BufferedReader]:
    """Open a regular file as it lies; what keeps it from being read becomes an InputError."""
    try:
        if source.path.is_fifo() or source.path.is_char_device():  # opening a pipe would wait for its other end
            msg = f"{source.name} is not a regular file"
            raise InputError(msg, "It is read more than once: save it to a file and name that, or pipe it to -")
        buffered: io.BufferedReader = io.BufferedReader(io.FileIO(source.path), _BUFFER_BYTES)
        with buffered as file:
            yield file
    except OSError as exc:
        raise unreadable(source.name, exc) from exc


@contextmanager
def reading_plain(source: Input) -> Iterator[io.BufferedReader]:
    """Open a regular file and decompress it on the way, if its first bytes say that it is compressed."""
    with reading(source) as file:
        compression = compression_of(file.peek(4))
        if compression is None:
            yield file
            return
        with pa.input_stream(file, compression=compression) as plain:
            yield io.BufferedReader(plain, _PLAIN_BUFFER_BYTES)


def compression_of(start: bytes) -> str | None:
    """How a file is compressed, by its first bytes; None if it is not."""
    return next((name for magic, name in _COMPRESSED.items() if start.startswith(magic)), None)


def check_encoding(source: Input, start: bytes) -> None:
    """Refuse a text whose first bytes show that it is no UTF-8."""
    if not start:
        msg = f"{source.name} is empty"
        raise InputError(msg, WRITER)
    if start.startswith(_UTF_16):
        msg = f"{source.name} is UTF-16"
        raise InputError(msg, "Save it as UTF-8, for example: iconv -f UTF-16 -t UTF-8 OLD > NEW")


def unreadable(name: str, exc: OSError) -> InputError:
    """Say why a path cannot be read, and what to do."""
    if isinstance(exc, FileNotFoundError):
        return InputError(f"{name} does not exist", f"Check the path; it was looked for in {Path.cwd()}")
    if isinstance(exc, IsADirectoryError):
        return InputError(f"{name} is a folder", "Name a file in it, or a pattern: 'FOLDER/*.parquet'")
    if isinstance(exc, PermissionError):
        return InputError(f"{name} may not be read by this user", "Change its permissions, or copy it.")
    return InputError(f"{name} cannot be read: {exc.strerror or exc}", "Check the path, the file and the disk.")


def spool_standard_input(target: Path, *, overwrite: bool = False) -> Input:
    """Save standard input to a file, for a data set is read more than once.

    The file appears whole. If standard input holds nothing and the file is there, the file is taken: so
    a run that was begun with a pipe can be continued without it. A file that holds other data may be the
    only copy of what a run was made from, so it is replaced only with `overwrite`.

    Raises:
        InputError: If standard input is a terminal, the file holds other data or cannot be written.
    """
    if sys.stdin.isatty():
        msg = "standard input is a terminal"
        raise InputError(msg, "Pipe a data set in, or name a file.")
    unfinished = target.with_name(f"{target.name}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished.touch(0o600)  # it holds private data, and may lie in a folder of others
        with unfinished.open("wb") as file:
            while chunk := sys.stdin.buffer.read(_CHUNK_BYTES):
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
            n_bytes = file.tell()
        if target.exists() and (n_bytes == 0 or not overwrite):
            is_other = n_bytes > 0 and not filecmp.cmp(unfinished, target, shallow=False)
            unfinished.unlink()
        else:
            is_other = False
            unfinished.replace(target)
    except OSError as exc:
        msg = f"standard input cannot be saved to {target}: {exc.strerror or exc}"
        raise InputError(msg, "It is read more than once: save it to a file and name that.") from exc
    if is_other:
        msg = f"standard input is not what the run in {target.parent} was begun with, which {target} holds"
        raise InputError(msg, "Choose another folder with --out, or replace the run with --overwrite.")
    return Input(STANDARD_INPUT, target)
