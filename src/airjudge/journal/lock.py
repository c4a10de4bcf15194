"""One writer a folder: a lock that the kernel takes back when its process ends, however it ends."""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from airjudge.errors import RunLocked

LOCK: Final = "run.lock"
_TRIES: Final = 5
_PAUSE_S: Final = 0.02


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for the block; its lock file says who does.

    The file stays: to remove it would let a third process lock a name that a second one still waits for.

    Raises:
        RunLocked: If another process holds it, by its name.
        OSError: If the folder cannot be written.
    """
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _take(descriptor, folder)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, _holder().encode(), 0)
        yield
    finally:
        os.close(descriptor)  # which unlocks


def refuse_if_locked(folder: Path) -> None:
    """Refuse a folder that another process holds now.

    Raises:
        RunLocked: By its name.
    """
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        _take(descriptor, folder)
    finally:
        os.close(descriptor)


def _take(descriptor: int, folder: Path) -> None:
    """Lock, a few times if need be: somebody who only looks whether it is free holds it for a moment."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return
    msg = f"{folder} is being written by another run: {_told(os.pread(descriptor, 4096, 0))}"
    raise RunLocked(msg)


def _holder() -> str:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "started": started})


def _told(content: bytes) -> str:
    """Name a lock's holder from its file, which may have been read before it was written."""
    try:
        holder = json.loads(content)
        return f"process {holder['pid']} on {holder['host']}, started {holder['started']}"
    except (ValueError, KeyError, TypeError):
        return "its name is not written yet"
