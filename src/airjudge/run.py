"""Score a data set: many samples in flight, results in input order, every sample in the output.

`score_dataset` writes into a folder: `samples.jsonl`, one record a line, and `run.json` with all that
made them. Both are written under a temporary name, synced and renamed, so that what has its final name
is whole. What was scored before a run broke off stays in `samples.partial.jsonl`.
"""

import asyncio
import itertools
import os
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import numpy as np
from pydantic import Field, JsonValue

from airjudge.datasets import file_digest, read_samples
from airjudge.errors import DatasetError, InputError
from airjudge.metrics import ContextRecall
from airjudge.schema import Record, RunCounts, Sample, SampleError, ScoredSample, Signature, Summary, Usage
from airjudge.summary import summarise

SAMPLES, PARTIAL, RUN = "samples.jsonl", "samples.partial.jsonl", "run.json"
BOOTSTRAP_SEED = 20_261_130
"""Intervals are the same for the same scores."""


class RunSettings(Record):
    """How a data set is scored.

    `limit` is the number of samples taken from its start, `by` are the columns that the summary is sliced by.
    """

    zero_if_empty: bool = True
    by: tuple[str, ...] = ()
    overwrite: bool = False
    limit: int | None = Field(default=None, ge=1)


class RunHeader(Record):
    """All that made a run's scores; the content of `run.json`."""

    data: str
    data_sha256: str
    signature: Signature
    settings: dict[str, JsonValue]
    usage: Usage
    started: datetime
    seconds: float
    summary: Summary


async def score_dataset(
    data: Path,
    metric: ContextRecall,
    out: Path,
    *,
    settings: RunSettings | None = None,
    on_counts: Callable[[RunCounts], None] | None = None,
) -> RunHeader:
    """Score each sample of a JSONL file and write the results into a folder.

    Raises:
        InputError: If the file cannot be read, or the folder holds a run already.
        JudgeError: If the judge cannot be used; what was scored before is in `samples.partial.jsonl`.
    """
    settings = settings or RunSettings()
    check_paths(data, out, overwrite=settings.overwrite)
    started, clock = datetime.now(UTC), time.monotonic()
    async with metric.judge:
        partial = _claim(out)
        with partial.open("w", encoding="utf-8") as file:
            scored = _in_order(_limited(read_samples(data), settings.limit), metric, settings)
            counts, failures = RunCounts(), Counter[str]()
            async for sample in scored:
                file.write(sample.model_dump_json() + "\n")
                failures.update([sample.error.kind] if sample.error else [])
                counts = RunCounts(
                    n_samples=counts.n_samples + 1,
                    n_statements=counts.n_statements + len(sample.statements),
                    failures=dict(failures),
                    usage=metric.judge.usage,
                    seconds=time.monotonic() - clock,
                )
                if on_counts:
                    on_counts(counts)
            _sync(file)
        signature = metric.judge.signature(metric.statements)
    partial.replace(out / SAMPLES)
    header = RunHeader(
        data=data.name,
        data_sha256=file_digest(data),
        signature=signature,
        settings=_written(metric, settings),
        usage=metric.judge.usage,
        started=started,
        seconds=time.monotonic() - clock,
        summary=summarise(read_scored(out), rng=np.random.default_rng(BOOTSTRAP_SEED), by=settings.by),
    )
    _write_atomically(out / RUN, header.model_dump_json(indent=2) + "\n")
    return header


def read_scored(out: Path) -> Iterator[ScoredSample]:
    """Read the records of a finished run back, one by one."""
    with (out / SAMPLES).open(encoding="utf-8") as file:
        for line in file:
            yield ScoredSample.model_validate_json(line)


def check_paths(data: Path, out: Path, *, overwrite: bool) -> None:
    """Refuse a file that cannot be read, or a folder whose results a run would replace.

    Raises:
        InputError: With the path and the next step; nothing was written.
    """
    read_samples(data)
    held = [name for name in (RUN, SAMPLES, PARTIAL) if (out / name).exists()]
    if held and not overwrite:
        msg = f"{out} holds a run already ({', '.join(held)})"
        raise InputError(msg, "Choose another folder with --out, or pass --overwrite to replace it.")


def _claim(out: Path) -> Path:
    """Make the folder without results of an earlier run, and name the file that grows in it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in (RUN, SAMPLES, PARTIAL):
            (out / name).unlink(missing_ok=True)
        (out / PARTIAL).touch()
    except OSError as error:
        msg = f"cannot write to {out}: {error.strerror}"
        raise InputError(msg, "Choose another folder with --out.") from error
    return out / PARTIAL


def _limited(entries: Iterator[Sample | DatasetError], limit: int | None) -> Iterator[Sample | DatasetError]:
    return entries if limit is None else itertools.islice(entries, limit)


async def _in_order(
    entries: Iterator[Sample | DatasetError], metric: ContextRecall, settings: RunSettings
) -> AsyncIterator[ScoredSample]:
    """Score samples with as many open as requests may be in flight, and give them in input order.

    More samples than that would let the statements of one wait behind the first ones of others, until
    its prefix has left the server's cache. Finished samples wait for a slow one before them, in a
    window that bounds memory.
    """
    concurrency = metric.judge.settings.concurrency
    places = asyncio.Semaphore(concurrency)
    window: deque[asyncio.Task[ScoredSample]] = deque()

    async def one(entry: Sample | DatasetError) -> ScoredSample:
        if isinstance(entry, DatasetError):
            return _refused(entry)
        async with places:
            scored = await metric.score_sample(entry, zero_if_empty=settings.zero_if_empty)
        kept = {column: entry.metadata[column] for column in settings.by if column in entry.metadata}
        return scored.model_copy(update={"metadata": kept})

    try:
        for entry in entries:
            window.append(asyncio.create_task(one(entry)))
            while window and (window[0].done() or len(window) > 8 * concurrency):
                yield await window.popleft()
        while window:
            yield await window.popleft()
    finally:
        for task in window:
            task.cancel()
        await asyncio.gather(*window, return_exceptions=True)


def _refused(error: DatasetError) -> ScoredSample:
    """The record of a line that does not describe a sample."""
    return ScoredSample(
        id=f"line-{error.line}",
        score=None,
        status="failed",
        error=SampleError(kind=error.kind, message=str(error)),
    )


def _written(metric: ContextRecall, settings: RunSettings) -> dict[str, JsonValue]:
    """The settings that a reader needs to repeat the run; the cache salt is a secret and stays out."""
    asked = metric.judge.settings.model_dump(exclude={"cache_salt"})
    return {**asked, "statements": metric.statements, "reasons": metric.reasons, **settings.model_dump(mode="json")}


def _write_atomically(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".partial")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        _sync(file)
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _sync(file: TextIO) -> None:
    file.flush()
    os.fsync(file.fileno())
