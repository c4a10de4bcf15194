"""Write a batch file and its key: what leaves the air gap, and what stays."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from airjudge.backends.hosted import hosted_body
from airjudge.batch.plan import BatchSettings, Totals, opened_plan, planned_samples
from airjudge.datasets import Source
from airjudge.errors import InputError
from airjudge.journal import written_whole
from airjudge.schema import Record

MOST_LINES: Final = 50_000
"""Requests that OpenAI takes in one batch file."""
MOST_BYTES: Final = 200_000_000
"""Bytes that it takes."""
URL: Final = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a batch goes: its file, how many lines it holds before another is begun, whether to replace one."""

    path: Path
    most_lines: int = MOST_LINES
    overwrite: bool = False

    @contextmanager
    def opened(self, path: Path) -> Iterator[IO[bytes]]:
        """A file to write, refused where there is one: the key of a batch that is under way must not be lost.

        Raises:
            InputError: If it is there already, or cannot be.
            StorageFailed: If it cannot be written.
        """
        if path.exists() and not self.overwrite:
            msg = f"{path} is there already"
            raise InputError(msg, "Choose another file with -o, or pass --overwrite to replace it.")
        if not path.parent.is_dir():
            msg = f"there is no folder {path.parent}"
            raise InputError(msg, "Make it, or choose another file with -o.")
        with written_whole(path) as file:
            yield file


class Exported(Record):
    """What was written: the batch in one or more files, each within a provider's limits, and the key."""

    files: tuple[str, ...]
    key: str
    n_samples: int
    n_questions: int
    n_failed: int
    n_empty_contexts: int
    n_bytes: int


def key_of(target: Path) -> Path:
    """Where the key of a batch file is."""
    return target.with_name(f"{target.name}.key")


def export_batch(source: Source, target: Target, *, model: str, settings: BatchSettings | None = None) -> Exported:
    """Write the questions of a data set as OpenAI batch lines, which `vllm run-batch` reads too.

    What does not fit one file goes into `FILE-2`, `FILE-3` and so on. An empty retrieval is recall 0 without a
    question, as in a run.

    Raises:
        InputError: If the data set cannot be read, there is nothing to ask, or a file is there already.
        StorageFailed: If a file cannot be written.
    """
    settings = settings or BatchSettings()
    opened = opened_plan(source, model=model, settings=settings)
    n_samples = n_failed = n_empty = 0
    key_path = key_of(target.path)
    with _Parts(target) as parts, target.opened(key_path) as key:
        key.write(_line(opened.plan))
        for planned, questions in planned_samples(source, settings):
            key.write(_line(planned))
            for name, question in questions:
                body = hosted_body(question, model=model, form=settings.form)
                parts.add({"custom_id": name, "method": "POST", "url": URL, "body": body})
            n_samples += 1
            n_failed += planned.scored.status == "failed"
            n_empty += planned.scored.empty_contexts
        if not parts.n_lines:
            msg = f"{source.name} holds nothing to ask: {n_failed} lines are no samples, {n_empty} have no contexts"
            raise InputError(msg, "See what it holds: airjudge check DATA")
        key.write(_line(Totals(n_samples=n_samples, n_questions=parts.n_lines)))
    return Exported(
        files=tuple(map(str, parts.paths)),
        key=str(key_path),
        n_samples=n_samples,
        n_questions=parts.n_lines,
        n_failed=n_failed,
        n_empty_contexts=n_empty,
        n_bytes=parts.n_bytes,
    )


class _Parts:
    """The files of a batch; a context manager. They appear together, when the block has ended well."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._files = ExitStack()
        self._file: IO[bytes] | None = None
        self._lines_here = self._bytes_here = 0
        self.paths: list[Path] = []
        self.n_lines = self.n_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.__exit__(kind, error, trace)

    def add(self, request: object) -> None:
        """Write a line, into the next file where this one is full."""
        # Escaped to ASCII: what splits lines at other characters than \n cannot split these.
        line = json.dumps(request, separators=(",", ":")).encode() + b"\n"
        full = self._lines_here >= self._target.most_lines or self._bytes_here + len(line) > MOST_BYTES
        if self._file is None or full:
            self._file = self._next()
        self._file.write(line)
        self._lines_here, self._bytes_here = self._lines_here + 1, self._bytes_here + len(line)
        self.n_lines, self.n_bytes = self.n_lines + 1, self.n_bytes + len(line)

    def _next(self) -> IO[bytes]:
        number = len(self.paths) + 1
        first = self._target.path
        path = first if number == 1 else first.with_stem(f"{first.stem}-{number}")
        self._lines_here = self._bytes_here = 0
        file = self._files.enter_context(self._target.opened(path))
        self.paths.append(path)
        return file


def _line(record: Record) -> bytes:
    return record.model_dump_json().encode() + b"\n"
