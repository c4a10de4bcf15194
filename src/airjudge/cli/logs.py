"""Structured logs: the events of the `airjudge` loggers as JSON lines, without texts of the data.

A module tells an event by its name, with what machines read beside it:

    _log.info("sample_failed", extra={"event": {"place": 3, "kind": "timeout"}, "data": {"message": "..."}})

`event` holds numbers and names of ours. What may quote the data stands under `data`, which is dropped
unless it was asked for.
"""

import json
import logging
import math
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from airjudge.errors import AirjudgeError, InputError
from airjudge.version import __version__


@contextmanager
def logging_to(path: Path | None, *, with_data: bool = False) -> Iterator[None]:
    """Append the events of a command to a file while the block runs; without a path there is no log.

    Raises:
        InputError: If the file cannot be opened. A disk that fills later costs lines of the log alone.
    """
    # Without any handler Python prints the names of warnings on stderr.
    handler = logging.NullHandler() if path is None else JsonLines(path, with_data=with_data)
    logger = logging.getLogger("airjudge")
    level = logger.level
    logger.addHandler(handler)
    if path is not None:
        logger.setLevel(logging.INFO)
    logger.info("started", extra={"event": {"version": __version__, "pid": os.getpid()}})
    try:
        with _ending_told(logger):
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        handler.close()


@contextmanager
def _ending_told(logger: logging.Logger) -> Iterator[None]:
    """Log how a command broke off; one that ends by itself logs what it has done."""
    try:
        yield
    except AirjudgeError as error:
        logger.exception("broken_off", extra={"event": {"kind": error.kind}, "data": {"message": str(error)}})
        raise
    except KeyboardInterrupt:
        logger.warning("interrupted")
        raise


class JsonLines(logging.Handler):
    """Write each event as one line: ts, level, logger, event, fields, and data where they are wanted.

    A line is one write, so that several processes can share a file. What cannot be written is
    counted and said once; logging never ends a run.
    """

    def __init__(self, path: Path, *, with_data: bool = False) -> None:
        """Open the file to append to it.

        Raises:
            InputError: If it cannot be opened.
        """
        super().__init__()
        self._path, self._with_data = path, with_data
        self._n_lost, self._torn = 0, False
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            msg = f"cannot write the log {path}: {error.strerror}"
            raise InputError(msg, "Name another file with --log.") from error

    def emit(self, record: logging.LogRecord) -> None:
        """Write one event."""
        line = self.line(record).encode("utf-8", "backslashreplace") + b"\n"
        try:
            self._write(b"\n" + line if self._torn else line)
        except OSError as error:
            if not self._n_lost:
                print(f"warning: the log {self._path} cannot be written: {error.strerror}", file=sys.stderr)
            self._n_lost += 1

    def line(self, record: logging.LogRecord) -> str:
        """An event as JSON."""
        event: dict[str, JsonValue] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            "fields": _plain(getattr(record, "event", {})),
        }
        if self._with_data and hasattr(record, "data"):
            event["data"] = _plain(record.data)
        if record.exc_info and record.exc_info[1]:
            event["exception"] = _where(record.exc_info[1])
        return json.dumps(event, ensure_ascii=False)

    def close(self) -> None:
        """Close the file, and say how much of the log is missing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            if self._n_lost:
                print(f"warning: {self._n_lost} events are missing in the log {self._path}", file=sys.stderr)
        super().close()

    def _write(self, line: bytes) -> None:
        n_written = os.write(self._file, line)
        # A full disk takes a part of a line; the next one starts on a line of its own.
        self._torn = n_written < len(line)
        self._n_lost += self._torn


def _where(error: BaseException) -> JsonValue:
    """An exception's type and the places it came through; its message may quote the data."""
    places = [f"{Path(one.filename).name}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)]
    return {"type": type(error).__name__, "places": [*places]}


def _plain(value: object) -> JsonValue:
    """A value as JSON can hold it: what is not finite becomes null, what it does not know becomes text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return str(value)
