"""Across the air gap: questions out as OpenAI batch lines, answers in as a run.

What leaves is a batch file, what stays is its key: the samples, the statements and which line asks about which.
"""

from airjudge.batch.exporting import Exported, Target, export_batch, key_of
from airjudge.batch.importing import BatchReport, import_batch
from airjudge.batch.plan import BatchSettings, OpenedPlan, opened_plan, read_key

__all__ = [
    "BatchReport",
    "BatchSettings",
    "Exported",
    "OpenedPlan",
    "Target",
    "export_batch",
    "import_batch",
    "key_of",
    "opened_plan",
    "read_key",
]
