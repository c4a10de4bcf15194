"""A run's folder: its files, the state that `run.json` tells, and its records read back."""

import platform
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import reduce
from importlib.metadata import version
from operator import add
from pathlib import Path
from typing import Final, Literal

from pydantic import JsonValue

from airjudge.calibration import Calibration
from airjudge.errors import InputError
from airjudge.journal import JOURNAL_FILES, Reader, Store, locked, made_folder, sync_folder, written_whole
from airjudge.schema import Cost, Price, Record, ScoredSample, ServerUse, Signature, Summary, Usage
from airjudge.scoring import THRESHOLD
from airjudge.version import __version__

RUN: Final = "run.json"
SAMPLES: Final = "samples.jsonl"
SAMPLES_TABLE: Final = "samples.parquet"
STATEMENTS_TABLE: Final = "statements.parquet"
SUMMARY: Final = "summary.json"
EXPORTS: Final = (SAMPLES, SAMPLES_TABLE, STATEMENTS_TABLE, SUMMARY)

Ended = Literal["finished", "interrupted", "failed"]


class Start(Record):
    """One start of a run: when, for how long, at what cost, and how it ended.

    One that is `killed` never told its end; its cost is that of its last commit.
    """

    runner: str
    started: datetime
    seconds: float
    usage: Usage
    ended: Ended | Literal["running", "killed"]


class RunState(Record):
    """All that makes and made a run's scores; the content of `run.json`.

    `usage` and `seconds` are summed over all starts; `n_taken_over` counts samples with verdicts of the
    run that this one was forked from; `servers` are the accounts of the last start that has ended; `exports`
    are SHA-256 hashes by file name; `cost` is that of `usage`, at the price told last, None if none was. `inputs`
    are absolute paths that the data lay at, for those who show their texts: nothing is read from there unless
    its hash is still `data_sha256`. `statements_by` is the signature of the judge that wrote the statements as claims,
    in this run or in the one that they were taken from; None if no judge wrote them.
    """

    state: Ended | Literal["running"]
    data: str
    data_sha256: str
    mapping: Mapping[str, str]
    signature: Signature
    settings: Mapping[str, JsonValue]
    versions: Mapping[str, str]
    usage: Usage
    started: datetime
    seconds: float
    starts: tuple[Start, ...]
    n_taken_over: int
    servers: tuple[ServerUse, ...] = ()
    inputs: tuple[str, ...] = ()
    statements_by: str | None = None
    exports: Mapping[str, str] = {}
    cost: Cost | None = None
    summary: Summary | None = None

    @property
    def calibration(self) -> Calibration | None:
        """The calibration that made its probabilities and verdicts; None where they are the judge's own."""
        return _calibration_in(self.settings)

    @property
    def threshold(self) -> float:
        """The probability from which on its statements are attributed."""
        return self.calibration.threshold if self.calibration else THRESHOLD


class RunHeader(RunState):
    """The state of a finished run."""

    summary: Summary


def versions() -> dict[str, str]:
    """Versions of what reads the data and writes the results."""
    return {
        "airjudge": __version__,
        "python": platform.python_version(),
        "pyarrow": version("pyarrow"),
        "sqlite": sqlite3.sqlite_version,
    }


def read_scored(out: Path) -> Iterator[ScoredSample]:
    """Records of a run, in input order, one by one; of an unfinished run those that are done.

    Raises:
        InputError: If the folder holds no run.
        StorageFailed: If its journal cannot be read.
    """
    with Reader(out) as journal:
        for _, scored in journal.scored():
            yield scored


def state_of(journal: Reader) -> RunState:
    """What the journal tells about its run; a RunHeader if the run is finished.

    Raises:
        InputError: If no start got as far as being noted: it was killed while it made the journal.
    """
    header = journal.header()
    rows = journal.starts() if header else []
    if not rows:
        msg = f"the run in {journal.path.parent} ended before it began"
        raise InputError(msg, "Give the command that began it again.")
    finished = header.pop("finished", None)
    starts = tuple(Start.model_validate({**one._asdict(), "ended": one.ended or "running"}) for one in rows)
    usage = reduce(add, (one.usage for one in starts))
    fields: dict[str, object] = {
        **{name: header[name] for name in ("data", "data_sha256", "mapping", "signature", "settings", "versions")},
        "state": starts[-1].ended,
        "usage": usage,
        "cost": _cost(header["settings"], usage),
        "started": starts[0].started,
        "seconds": sum(one.seconds for one in starts),
        "starts": starts,
        "n_taken_over": journal.n_taken(),
        "servers": header.get("servers", []),
        "inputs": header.get("inputs", []),
        "statements_by": header.get("statements_by"),
    }
    if isinstance(finished, dict):
        return RunHeader.model_validate(fields | finished)
    return RunState.model_validate(fields)


def _cost(settings: JsonValue, usage: Usage) -> Cost | None:
    """What a usage costs at the price in a run's settings."""
    told = settings.get("price") if isinstance(settings, dict) else None
    return Price.model_validate(told).cost(usage) if told else None


def sliced_by(journal: Reader) -> list[str]:
    """The columns that the run's summary is sliced by."""
    settings = journal.header().get("settings")
    by = settings.get("by") if isinstance(settings, dict) else None
    return [str(column) for column in by] if isinstance(by, list) else []


def band_of(journal: Reader) -> tuple[float, float] | None:
    """The probabilities of verdicts that the run's calibration leaves to people; None if none are."""
    settings = journal.header().get("settings")
    calibration = _calibration_in(settings) if isinstance(settings, dict) else None
    return calibration.abstain if calibration else None


def _calibration_in(settings: Mapping[str, JsonValue]) -> Calibration | None:
    told = settings.get("calibration")
    return None if told is None else Calibration.model_validate(told)


def write_state(out: Path, state: RunState) -> None:
    """Write `run.json`, whole.

    Raises:
        StorageFailed: If it cannot be written.
    """
    with written_whole(out / RUN) as file:
        file.write(_as_file(state))


def is_written(out: Path, state: RunState) -> bool:
    """Say whether `run.json` tells this state."""
    try:
        return (out / RUN).read_bytes() == _as_file(state)
    except OSError:
        return False


def _as_file(state: RunState) -> bytes:
    return state.model_dump_json(indent=2).encode() + b"\n"


@contextmanager
def opened_folder(out: Path, *, overwrite: bool) -> Iterator[Store]:
    """The journal of a folder that is made if need be, and held against other runs.

    Raises:
        RunLocked: If another process writes into it.
        InputError: If it cannot be made or written.
    """
    with ExitStack() as held:
        try:
            made_folder(out)
            held.enter_context(locked(out))
            # The journal goes last: what is left of a folder half emptied is a run that can be gone on with.
            for name in (*EXPORTS, RUN, *JOURNAL_FILES) if overwrite else ():
                (out / name).unlink(missing_ok=True)
        except OSError as error:
            msg = f"cannot write to {out}: {error.strerror or error}"
            raise InputError(msg, "Choose another folder with --out.") from error
        store = held.enter_context(Store(out))
        sync_folder(out)
        yield store
