"""Score a data set into a folder: begin or go on, ask, export; and note how it ended."""

import asyncio
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from airjudge.datasets import Source, open_source
from airjudge.errors import AirjudgeError, BudgetSpent, RunInterrupted
from airjudge.journal import Reader, Row, Store, Writer, failpoint
from airjudge.metrics import Metric
from airjudge.run.asking import Asking
from airjudge.run.export import export_all, exports_stand
from airjudge.run.folder import Ended, RunHeader, is_written, opened_folder, state_of, versions, write_state
from airjudge.run.fork import Fork, opened_fork
from airjudge.run.identity import (
    DATA,
    check_run,
    held_identity,
    identity_of_input,
    identity_of_judge,
    refuse_another,
)
from airjudge.run.interrupts import Interrupts, interrupts
from airjudge.run.places import Places
from airjudge.run.settings import RunSettings
from airjudge.schema import RunCounts

_log: Final = logging.getLogger("airjudge.run")

OnCounts = Callable[[RunCounts], None]


NOTHING: Final[Mapping[str, JsonValue]] = MappingProxyType({})


def uncounted(_: RunCounts) -> None:
    """Let a run go on without telling how far it is."""


async def score_dataset(
    data: Source | Path | str,
    metric: Metric,
    out: Path,
    *,
    settings: RunSettings | None = None,
    on_counts: OnCounts = uncounted,
) -> RunHeader:
    """Score each sample of an input and write the results into a folder, or go on where such a run stopped.

    Ctrl-C or SIGTERM once lets what is in flight end, for at most the time of one request; twice aborts.

    Raises:
        ValueError: If statements are to be taken from a run and made too.
        InputError: If the input cannot be read, or the folder holds something else than this run.
        JudgeError: If the judge cannot be used.
        StorageFailed: If the disk is full or the folder went away.
        RunInterrupted: If somebody asked it to stop. After all of these the same call goes on.
    """
    settings = settings or RunSettings()
    source = open_source([str(data)], required=metric.required) if isinstance(data, Path | str) else data
    if settings.statements_from is not None and metric.statements != "given":
        msg = f"statements are taken from a run, or made ({metric.statements}): not both"
        raise ValueError(msg)
    check_run(source, out, settings)
    with interrupts() as stop, ExitStack() as held:
        try:
            async with metric.judge:
                run = held.enter_context(_begun(source, metric, out, settings=settings))
                if not run.start:  # it is finished already
                    return run.told()
                await run.ask(stop, on_counts)
            with stop.writing():
                return run.finish()
        except (asyncio.CancelledError, KeyboardInterrupt) as error:
            if not stop.received:
                raise
            msg = f"interrupted: what is done is kept in {out}"
            raise RunInterrupted(msg) from error


@dataclass(slots=True)
class _Run:
    """A run that goes on: what it reads and writes, and how far it is."""

    source: Source
    metric: Metric
    out: Path
    settings: RunSettings
    store: Store
    journal: Reader
    fork: Fork | None
    stated: Reader | None
    start: int = 0
    clock: float = field(default_factory=time.monotonic)
    n_samples: int = 0
    n_restored: int = 0
    n_total: int | None = None
    n_statements: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    begun: dict[int, int] = field(default_factory=dict)
    """Statements with a verdict of samples that are not finished, by place."""

    def spent(self) -> tuple[float, str]:
        """Seconds since the start, and its usage as JSON."""
        return time.monotonic() - self.clock, self.metric.judge.usage.model_dump_json()

    async def ask(self, stop: Interrupts, on_counts: OnCounts) -> None:
        """Ask for all that the journal does not hold.

        Raises:
            RunInterrupted: If somebody asked to stop.
        """
        done = Places(self.journal.places())
        limit = self.settings.limit
        entries = takewhile(lambda entry: limit is None or entry.place < limit, self.source.entries(done.__contains__))
        self._restore()
        self.metric.judge.count_earlier(state_of(self.journal).usage)
        self.n_total = self.source.count() if limit is None else min(limit, self.source.count())
        _log.info("asking", extra={"event": {"n_restored": self.n_restored, "start": self.start}})
        on_counts(self._counts())

        def on_row(row: Row) -> None:
            self._count(row)
            on_counts(self._counts())

        def on_verdicts(place: int, n_ruled: int) -> None:
            self.n_statements += n_ruled - self.begun.get(place, 0)
            self.begun[place] = n_ruled
            on_counts(self._counts())

        async with Writer(self.store, start=self.start, spent=self.spent) as writer:
            asking = Asking(
                self.source,
                self.metric,
                self.settings,
                self.journal,
                self.fork,
                self.stated,
                writer,
                on_row,
                on_verdicts,
            )
            with stop.asking(drain_s=self.metric.judge.settings.timeout_s):
                await asking.ask_all(entries, stop)
        if stop.received:
            msg = f"interrupted: {self.n_samples} samples are done and kept in {self.out}"
            raise RunInterrupted(msg)

    def finish(self) -> RunHeader:
        """Write the exports, and note that the run is finished.

        Raises:
            StorageFailed: If they cannot be written.
        """
        _log.info("exporting", extra={"event": {"n_samples": self.n_samples}})
        finished = export_all(self.out, self.journal)
        self.end("finished", {"finished": finished})
        _log.info("finished", extra={"event": {"n_samples": self.n_samples, "failures": dict(self.failures)}})
        return self.header()

    def end(self, ended: Ended, header: Mapping[str, JsonValue] = NOTHING) -> None:
        """Note how this start ended, in the journal, and then in `run.json`."""
        servers: list[JsonValue] = [one.model_dump(mode="json") for one in self.metric.judge.servers]
        self.store.end(self.start, ended, self.spent(), header={"servers": servers, **header})
        failpoint("after_finish")
        write_state(self.out, state_of(self.journal))

    def told(self) -> RunHeader:
        """The state of a run that an earlier start finished, and `run.json` as it tells it.

        That start may have been killed right before it wrote the file.
        """
        header = self.header()
        if not is_written(self.out, header):
            write_state(self.out, header)
        return header

    def header(self) -> RunHeader:
        """The state of the finished run.

        Raises:
            TypeError: If it is not finished.
        """
        state = state_of(self.journal)
        if not isinstance(state, RunHeader):
            msg = "the run is not finished"
            raise TypeError(msg)
        return state

    def _restore(self) -> None:
        """Count what earlier starts finished."""
        self.n_samples, self.n_statements, failures = self.journal.totals()
        self.n_restored = self.n_samples
        self.failures.update(failures)

    def _count(self, row: Row) -> None:
        self.n_samples += 1
        self.n_statements += len(row.scored.statements) - self.begun.pop(row.place, 0)
        if row.scored.error is not None:
            self.failures[row.scored.error.kind] += 1

    def _counts(self) -> RunCounts:
        return RunCounts(
            n_samples=self.n_samples,
            n_restored=self.n_restored,
            n_total=self.n_total,
            n_statements=self.n_statements,
            failures=dict(self.failures),
            usage=self.metric.judge.usage,
            seconds=time.monotonic() - self.clock,
        )


@contextmanager
def _begun(source: Source, metric: Metric, out: Path, *, settings: RunSettings) -> Iterator[_Run]:
    """A run in its folder, with this start noted; how the block ends is noted too.

    A run that is finished already is given as it is.

    Raises:
        RunDiffers: If the folder holds another one.
    """
    signature = metric.judge.signature(metric.statements).model_dump()
    judge = identity_of_judge(signature, metric.reasons, evidence=metric.evidence)
    wanted = identity_of_input(source, settings) | judge
    with ExitStack() as held:
        store = held.enter_context(opened_folder(out, overwrite=settings.overwrite))
        journal = held.enter_context(Reader(out))
        refuse_another(out, held_identity(journal), wanted, source=source)
        fork = held.enter_context(opened_fork(settings.fork, metric, wanted)) if settings.fork else None
        if settings.retry_failed:
            store.forget_failures()
        stated = held.enter_context(Reader(settings.statements_from)) if settings.statements_from else None
        run = _Run(source, metric, out, settings, store, journal, fork, stated)
        if not exports_stand(out, journal, by=settings.by):
            told = _told(source, metric, settings) | {
                "data_sha256": wanted[DATA],
                "statements_by": _writer(metric, stated),
            }
            store.put_header({"identity": wanted, "signature": signature, **told})
            held.enter_context(_started(run))
        yield run


@contextmanager
def _started(run: _Run) -> Iterator[None]:
    """Note a start, and how it ended if it did not finish."""
    runner = f"{socket.gethostname()}:{os.getpid()}"
    run.start = run.store.begin(runner, datetime.now(UTC).isoformat())
    write_state(run.out, state_of(run.journal))
    try:
        yield
    except BaseException as error:
        asked = isinstance(error, RunInterrupted | BudgetSpent | KeyboardInterrupt | asyncio.CancelledError)
        _log.info("stopped", extra={"event": {"kind": getattr(error, "kind", type(error).__name__)}})
        with suppress(AirjudgeError):  # what ended the run may keep this from being noted too
            run.end("interrupted" if asked else "failed")
        raise


def _told(source: Source, metric: Metric, settings: RunSettings) -> dict[str, JsonValue]:
    """What `run.json` tells of a run besides its signature; the cache salt is a secret and stays out."""
    asked = metric.judge.settings.model_dump(mode="json", exclude={"cache_salt"})
    chosen = settings.model_dump(mode="json", exclude={"overwrite", "retry_failed"})
    return {
        "data": source.name,
        "inputs": [str(path) for path in source.paths],
        "mapping": dict(source.mapping),
        "settings": {**asked, **_beside(metric), **chosen},
        "versions": dict(versions()),
    }


def _writer(metric: Metric, stated: Reader | None) -> str | None:
    """The signature of the judge that wrote the statements as claims: this one, or that of the run they come from."""
    if stated is not None:
        return state_of(stated).statements_by
    return str(metric.judge.signature("claims")) if metric.statements == "claims" else None


def _beside(metric: Metric) -> dict[str, JsonValue]:
    return {"statements": metric.statements, "reasons": metric.reasons, "evidence": metric.evidence}
