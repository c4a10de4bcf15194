"""Files that appear whole or not at all: a temporary name, synced, renamed, the folder synced."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from airjudge.errors import StorageFailed
from airjudge.journal.failpoints import failpoint

TEMPORARY = ".partial"
"""Ends the name of a file that is being written."""


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes its name when the block ends well; else nothing of it is left.

    Raises:
        StorageFailed: If it cannot be written.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        failpoint("before_rename")
        temporary.replace(path)
        failpoint("after_rename")
        sync_folder(path.parent)
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror or error}"
        raise StorageFailed(msg) from error
    finally:
        _forget(temporary)


def _forget(temporary: Path) -> None:
    """Remove what a failed write left; where even that fails, the next write replaces it."""
    try:
        temporary.unlink(missing_ok=True)
    except OSError:
        return


def made_folder(path: Path) -> None:
    """Make a folder that is there after a power cut too, with those above it.

    Raises:
        OSError: If it cannot be made, or is a file.
    """
    if not path.is_dir():
        if path.parent != path:
            made_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Bring a folder's names to the disk.

    Raises:
        OSError: If the disk refuses.
    """
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def file_hash(path: Path) -> str | None:
    """SHA-256 of a file's bytes in hex; None if it is not there.

    Raises:
        StorageFailed: If it is there and cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None
    except OSError as error:
        msg = f"cannot read {path}: {error.strerror or error}"
        raise StorageFailed(msg) from error
