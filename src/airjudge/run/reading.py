"""A run read back whole, for those who look at its verdicts."""

from dataclasses import dataclass
from pathlib import Path

from airjudge.journal import Reader
from airjudge.run.folder import RunState, state_of
from airjudge.schema import ScoredSample


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run with its records, in input order; `name` is that of its folder."""

    name: str
    folder: Path
    state: RunState
    samples: tuple[ScoredSample, ...]


def open_run(folder: Path) -> OpenedRun:
    """Read a run, finished or not: of an unfinished one the samples that are done.

    Raises:
        InputError: If the folder holds no run.
        StorageFailed: If its journal cannot be read.
    """
    with Reader(folder) as journal:
        samples = tuple(scored for _, scored in journal.scored())
        return OpenedRun(folder.resolve().name, folder, state_of(journal), samples)


def open_state(folder: Path) -> RunState:
    """Read what a run tells about itself, and none of its records.

    Raises:
        InputError: If the folder holds no run.
        StorageFailed: If its journal cannot be read.
    """
    with Reader(folder) as journal:
        return state_of(journal)
