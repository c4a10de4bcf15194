"""Servers that run on this machine: one private file each, believed only while its process lives."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from pydantic import Field, ValidationError

from airjudge.errors import ServerFailed
from airjudge.profiles import load_profile
from airjudge.schema import Record
from airjudge.weights import cache_dir

CLOCK_TOLERANCE_S = 2.0
"""A process's start time is computed from the boot time, which moves when the clock is set."""


class Server(Record):
    """A running vLLM, and what a client needs to ask it.

    `model` is the name to ask for, `profile` the judge's id, `digest` that of its weights, `pid`
    the process that holds all the others. `note` says what is odd about how it runs, if anything.
    """

    base_url: str
    model: str
    api_key: str = Field(repr=False)
    profile: str
    digest: str
    pid: int
    log: Path
    note: str = ""


class _Entry(Record):
    """A server with its process's start time, in seconds since 1970: pids are used again."""

    server: Server
    started: float


def running(profile_name: str) -> Server | None:
    """The server that `airjudge serve` runs for a judge on this machine; None if there is none.

    Raises:
        ProfileError: If there is no such profile.
    """
    judge = load_profile(profile_name).id
    return next((server for server in _all_running() if server.profile == judge), None)


def running_model(name: str) -> Server | None:
    """The server that `airjudge serve` runs on this machine under a model's name; None if there is none."""
    return next((server for server in _all_running() if server.model == name), None)


def _all_running() -> Iterator[Server]:
    found = (_read(path) for path in sorted((cache_dir() / "servers").glob("*.json")))
    return (server for server in found if server is not None)


@contextmanager
def registered(server: Server) -> Iterator[None]:
    """Let other processes of this user find a server, for as long as the block runs."""
    path = private_folder("servers") / f"{server.pid}.json"
    entry = _Entry(server=server, started=psutil.Process(server.pid).create_time())
    unfinished = path.with_suffix(".partial")
    unfinished.unlink(missing_ok=True)
    with private_file(unfinished) as handle:
        os.write(handle, entry.model_dump_json().encode())
    unfinished.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def private_file(path: Path) -> Iterator[int]:
    """Make a new file that only its owner can read, open for writing; gives the descriptor."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield handle
    finally:
        os.close(handle)


def private_folder(name: str) -> Path:
    """A folder in the cache that only its owner can enter."""
    folder = cache_dir() / name
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error
    return folder


def _unwritable(path: Path, error: OSError) -> ServerFailed:
    msg = f"cannot write {path}: {error.strerror}"
    return ServerFailed(msg, "Put the cache elsewhere: AIRJUDGE_CACHE=/path/with/space")


def _read(path: Path) -> Server | None:
    """The server of an entry; an entry whose process is gone is removed, a foreign one passed over."""
    try:
        if path.stat().st_uid != os.getuid():
            return None
        entry = _Entry.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None  # its server ended just now
    except (OSError, ValidationError):
        return None
    if _lives(entry):
        return entry.server
    path.unlink(missing_ok=True)
    return None


def _lives(entry: _Entry) -> bool:
    try:
        process = psutil.Process(entry.server.pid)
        same = abs(process.create_time() - entry.started) < CLOCK_TOLERANCE_S
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
