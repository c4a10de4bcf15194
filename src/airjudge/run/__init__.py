"""Score a data set into a folder that survives whatever happens to the machine."""

from airjudge.run.export import Format, Table, export_abstained, export_table, remake_exports
from airjudge.run.folder import RUN, RunHeader, RunState, read_scored
from airjudge.run.identity import check_run
from airjudge.run.reading import OpenedRun, open_run
from airjudge.run.records import Origin, numbered_samples, row_of, write_records
from airjudge.run.scoring import score_dataset
from airjudge.run.settings import RunSettings
from airjudge.run.verify import Verified, verify_run

__all__ = [
    "RUN",
    "Format",
    "OpenedRun",
    "Origin",
    "RunHeader",
    "RunSettings",
    "RunState",
    "Table",
    "Verified",
    "check_run",
    "export_abstained",
    "export_table",
    "numbered_samples",
    "open_run",
    "read_scored",
    "remake_exports",
    "row_of",
    "score_dataset",
    "verify_run",
    "write_records",
]
