"""Score a data set into a folder that survives whatever happens to the machine."""

from airjudge.run.export import (
    BOOTSTRAP_SEED,
    Format,
    Table,
    export_abstained,
    export_table,
    remake_exports,
    summed_up,
)
from airjudge.run.folder import RUN, RunHeader, RunState, read_scored
from airjudge.run.identity import check_run
from airjudge.run.reading import OpenedRun, open_run, open_state
from airjudge.run.records import Origin, numbered_samples, row_of, write_records
from airjudge.run.repeating import check_repeated, repeat_folders, repeats_in, score_repeatedly
from airjudge.run.scoring import score_dataset
from airjudge.run.settings import RunSettings
from airjudge.run.verify import Verified, verify_run

__all__ = [
    "BOOTSTRAP_SEED",
    "RUN",
    "Format",
    "OpenedRun",
    "Origin",
    "RunHeader",
    "RunSettings",
    "RunState",
    "Table",
    "Verified",
    "check_repeated",
    "check_run",
    "export_abstained",
    "export_table",
    "numbered_samples",
    "open_run",
    "open_state",
    "read_scored",
    "remake_exports",
    "repeat_folders",
    "repeats_in",
    "row_of",
    "score_dataset",
    "score_repeatedly",
    "summed_up",
    "verify_run",
    "write_records",
]
