"""A run of verdicts that came from elsewhere: written at once, and like any other to whoever reads it."""

import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from airjudge.datasets import Entry, Source
from airjudge.errors import AirjudgeError, DatasetError, DuplicateId
from airjudge.journal import Group, Reader, Row, Store
from airjudge.run.asking import content_digest, refused
from airjudge.run.export import export_all
from airjudge.run.folder import Ended, RunHeader, opened_folder, state_of, versions, write_state
from airjudge.run.identity import DATA, Identity, check_fresh, identity_of_judge, refuse_held
from airjudge.schema import Sample, ScoredSample, Signature, Usage

NO_USAGE: Final = Usage()
_BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the records of a run come from; the time that their judge took is not known.

    `data` and its hash are those of the data set, or of the file of verdicts where there is nothing else;
    `inputs` says where the data set lies. `settings` are told in `run.json`; `usage` is what the judge reported.
    """

    data: str
    data_sha256: str
    signature: Signature
    settings: Mapping[str, JsonValue]
    mapping: Mapping[str, str]
    inputs: Sequence[str] = ()
    usage: Usage = NO_USAGE

    def identity(self) -> Identity:
        """What two imports of the same verdicts share."""
        judge = identity_of_judge(self.signature.model_dump(), "none", evidence=False)
        return {DATA: self.data_sha256, "settings": dict(self.settings), **judge}


def write_records(rows: Iterable[Row], out: Path, origin: Origin, *, overwrite: bool) -> RunHeader:
    """Write records into a folder, in the order of their places, as a finished run.

    Raises:
        InputError: If the folder holds a run and is not to be overwritten.
        RunLocked: If another process writes into it.
        StorageFailed: If the disk is full or the folder went away.
    """
    if not overwrite:
        check_fresh(out, origin.identity())
    with opened_folder(out, overwrite=overwrite) as store, Reader(out) as journal:
        refuse_held(out, journal, origin.identity())  # again, now that nobody else can write into it
        store.put_header(_header(origin))
        with _started(store, journal, out, usage=origin.usage) as start:
            left = iter(rows)
            while batch := list(islice(left, _BATCH)):
                store.commit(_group(batch), start=start, spent=(0.0, origin.usage.model_dump_json()))
            finished = export_all(out, journal)
            store.put_header({"finished": finished})
        state = state_of(journal)
        write_state(out, state)
    return RunHeader.model_validate(state.model_dump())


def numbered_samples(source: Source) -> Iterator[tuple[Entry, Sample | ScoredSample]]:
    """Entries of a source in order: a sample, or the record of a line that is none or has a known id."""
    seen: set[str] = set()
    for entry in source.entries(lambda _: False):
        value = entry.value
        if isinstance(value, Sample) and value.id in seen:
            value = DuplicateId(entry.path, entry.line, f"an earlier sample has the id {value.id[:60]!r}")
        if isinstance(value, DatasetError):
            yield entry, refused(source, value)
        else:
            seen.add(value.id)
            yield entry, value


def row_of(place: int, sample: Sample, scored: ScoredSample) -> Row:
    """The row of a sample's record."""
    return Row(place, scored, content_digest(sample))


def _header(origin: Origin) -> dict[str, JsonValue]:
    return {
        "identity": origin.identity(),
        "signature": origin.signature.model_dump(),
        "data": origin.data,
        "data_sha256": origin.data_sha256,
        "mapping": dict(origin.mapping),
        "settings": dict(origin.settings),
        "versions": dict(versions()),
        "servers": [],
        "inputs": list(origin.inputs),
    }


def _group(rows: Iterable[Row]) -> Group:
    group = Group(rows=list(rows))
    for row in group.rows:
        group.verdicts.update({(row.place, number): one for number, one in enumerate(row.scored.statements)})
    return group


@contextmanager
def _started(store: Store, journal: Reader, out: Path, *, usage: Usage) -> Iterator[int]:
    """Note a start, and how it ended."""
    start = store.begin(f"{socket.gethostname()}:{os.getpid()}", datetime.now(UTC).isoformat())
    spent = 0.0, usage.model_dump_json()
    try:
        yield start
    except BaseException as error:
        ended: Ended = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        with suppress(AirjudgeError):  # what ended the run may keep this from being noted too
            store.end(start, ended, spent, header={})
            write_state(out, state_of(journal))
        raise
    store.end(start, "finished", spent, header={})
