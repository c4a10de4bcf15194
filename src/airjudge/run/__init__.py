"""Score a data set into a folder that survives whatever happens to the machine."""

from airjudge.run.export import Format, Table, export_abstained, export_table, remake_exports
from airjudge.run.folder import RUN, RunHeader, RunState, read_scored
from airjudge.run.identity import check_run
from airjudge.run.reading import OpenedRun, open_run
from airjudge.run.scoring import score_dataset
from airjudge.run.settings import RunSettings
from airjudge.run.verify import Verified, verify_run

__all__ = [
    "RUN",
    "Format",
    "OpenedRun",
    "RunHeader",
    "RunSettings",
    "RunState",
    "Table",
    "Verified",
    "check_run",
    "export_abstained",
    "export_table",
    "open_run",
    "read_scored",
    "remake_exports",
    "score_dataset",
    "verify_run",
]
