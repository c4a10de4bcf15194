"""Ask for what a run's journal does not hold yet: many samples in flight, each verdict committed as it comes."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from airjudge.datasets import SPECIAL, Entry, Source
from airjudge.errors import DatasetError, DuplicateId, EvaluationError, InputError, StatementsMissing
from airjudge.journal import Reader, Row, Writer
from airjudge.judge import Numbered, first_context_of, fitting, together
from airjudge.metrics import Metric
from airjudge.run.fork import Fork
from airjudge.run.interrupts import Interrupts
from airjudge.run.settings import RunSettings
from airjudge.schema import Echoes, Made, Sample, SampleError, ScoredSample

_log: Final = logging.getLogger("airjudge.run")
_OURS: Final = {"user_input", "reference", "retrieved_contexts"}


@dataclass(frozen=True, slots=True)
class Asking:
    """What one start asks.

    `fork` is the run that verdicts may be taken over from, `stated` the journal of the run whose
    statements are judged.

    `on_row` is told of each sample once it is committed; `on_verdicts` of a place and of how many statements
    of its sample have a verdict by now.
    """

    source: Source
    metric: Metric
    settings: RunSettings
    journal: Reader
    fork: Fork | None
    stated: Reader | None
    writer: Writer
    on_row: Callable[[Row], None]
    on_verdicts: Callable[[int, int], None]
    _open_ids: set[str] = field(default_factory=set, init=False)

    async def ask_all(self, entries: Iterator[Entry], stop: Interrupts) -> None:
        """Score entries in their order, with as many open as requests may be in flight.

        More samples than that would let the statements of one wait behind the first ones of others, until
        its prefix has left the server's cache. When somebody asks to stop, no other entry is begun.

        Raises:
            InputError: At a line that is no sample, where such a line stops the run; what was in flight
                is done then.
        """
        free = asyncio.Semaphore(self.metric.judge.max_in_flight)
        refused: DatasetError | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                for entry, value in self._ordered(entries):
                    await free.acquire()
                    await self.writer.room()
                    if isinstance(value, DatasetError) and self.settings.bad_lines == "stop":
                        refused = value
                    if stop.received or refused:
                        break
                    tasks.create_task(self._one(entry, value, free))
        except ExceptionGroup as failures:
            first = failures.exceptions[0]
            raise first from first.__cause__
        if refused is not None:
            msg = str(refused)
            raise InputError(msg, f"{refused.hint} With --bad-lines record it is a record, and the others go on.")

    def _ordered(self, entries: Iterator[Entry]) -> Iterator[tuple[Entry, Sample | DatasetError]]:
        """Entries as they are asked about: those with the same first context stand together.

        Which of two samples has an id first is settled before, in the order of the input.
        """
        known = ((entry, self._unless_known(entry)) for entry in entries)
        return together(known, first_context=lambda one: first_context_of(one[1]))

    def _unless_known(self, entry: Entry) -> Sample | DatasetError:
        """The entry's sample, or a DuplicateId if an earlier one has its id.

        An earlier sample is about to be asked about, or has its row in the journal: memory holds no id for long.
        """
        value = entry.value
        if isinstance(value, DatasetError):
            return value
        if value.id in self._open_ids or self.journal.has_id_before(value.id, entry.place):
            return DuplicateId(entry.path, entry.line, f"an earlier sample has the id {value.id[:60]!r}")
        self._open_ids.add(value.id)
        return value

    async def _one(self, entry: Entry, value: Sample | DatasetError, free: asyncio.Semaphore) -> None:
        """Score one entry, let the next one begin, and wait until the journal has it."""
        try:
            row = await self._row(entry, value)
        finally:
            free.release()
        await self.writer.put_row(row)
        if isinstance(value, Sample):
            self._open_ids.discard(value.id)
        if row.scored.error is not None:
            event = {"place": row.place, "kind": row.scored.error.kind}
            _log.info("sample_failed", extra={"event": event})
        self.on_row(row)

    async def _row(self, entry: Entry, value: Sample | DatasetError) -> Row:
        if isinstance(value, DatasetError):
            return Row(entry.place, refused(self.source, value))
        content = content_digest(value)
        like = self._place_in_fork(value, content)
        made = await self._made(entry.place, value, like)
        known, echoes = self.journal.verdicts(entry.place), self.journal.echoes(entry.place)
        is_begun = bool(known) or echoes is not None
        taken, account = ({}, None) if is_begun else self._taken_over(made, like)
        told = {**known, **taken}

        def put(new: Numbered, /, echoes: Echoes | None = None) -> None:
            told.update(new)
            self.on_verdicts(entry.place, len(told))
            self.writer.put_verdicts(entry.place, new, echoes)
            if echoes is not None:
                _log.info("single_call_aligned", extra={"event": {"place": entry.place, **echoes.model_dump()}})

        put(taken, account)
        if isinstance(made, Made):
            made = made.model_copy(update={"echoes": echoes or account})
        scored = await self.metric.score_sample(
            value, made=made, zero_if_empty=self.settings.zero_if_empty, known=dict(told), on_verdicts=put
        )
        put({number: one for number, one in enumerate(scored.statements) if told.get(number) != one})
        kept = {name: one for name, one in columns(value).items() if name in self.settings.carried}
        return Row(entry.place, scored.model_copy(update={"metadata": kept}), content, taken=bool(taken))

    async def _made(self, place: int, sample: Sample, like: int | None) -> Made | EvaluationError:
        """The statements of a sample; those that a judge has to make are asked for once, and committed then."""
        if self.stated is not None:
            found = self.stated.statements_of(sample.id)
            return StatementsMissing() if found is None else Made(statements=found)
        if self.metric.statements != "claims":
            return await self.metric.make(sample)
        if held := self.journal.made(place):
            return held
        taken = None if self.fork is None or like is None else self.fork.journal.made(like)
        made = taken or await self.metric.make(sample)
        if isinstance(made, Made) and made.claims is not None:
            await self.writer.put_made(place, made)
            event = {"place": place, **made.claims.model_dump()}
            _log.info("claims_made", extra={"event": event})
        return made

    def _place_in_fork(self, sample: Sample, content: bytes) -> int | None:
        """Where the other run has a sample with the same content, if it was shown to its judge."""
        if self.fork is None or not any(text.strip() for text in sample.retrieved_contexts):
            return None
        return self.fork.journal.place_of(content)

    def _taken_over(self, made: Made | EvaluationError, like: int | None) -> tuple[Numbered, Echoes | None]:
        """Verdicts of the other run on a sample, those on statements that this run has too.

        Those of a single call come with its account, which is of all its statements: where they are others here,
        the call is made again.
        """
        if self.fork is None or like is None or not isinstance(made, Made):
            return {}, None
        echoes = self.fork.journal.echoes(like)
        if echoes is not None and self.fork.journal.statements_at(like) != made.statements:
            return {}, None
        return fitting(self.fork.verdicts(like), made.statements), echoes


def refused(source: Source, error: DatasetError) -> ScoredSample:
    """The record of a line that does not describe a sample."""
    name = source.row_name(error.path, error.line)
    return ScoredSample(id=name, score=None, status="failed", error=SampleError(kind=error.kind, message=str(error)))


def content_digest(sample: Sample) -> bytes:
    """Name what a metric reads of a sample: two samples with one name get the same verdicts on a statement."""
    shown = (sample.user_input, sample.reference, list(sample.retrieved_contexts))
    special = sample.model_dump(mode="json", include=set(SPECIAL), exclude_none=True)
    told = [*shown, special] if special else shown
    return hashlib.sha256(json.dumps(told).encode()).digest()[:16]


def columns(sample: Sample) -> dict[str, JsonValue]:
    """Columns of the input by the names that `keep` may give."""
    return {**sample.model_dump(mode="json", include=_OURS), **sample.metadata}
