"""Durable results: what was committed survives the end of the process, and of the machine."""

from airjudge.journal.failpoints import failpoint
from airjudge.journal.files import file_hash, made_folder, sync_folder, written_whole
from airjudge.journal.lock import locked, refuse_if_locked
from airjudge.journal.reading import Reader
from airjudge.journal.store import JOURNAL, JOURNAL_FILES, Group, Row, Store
from airjudge.journal.writer import Writer

__all__ = [
    "JOURNAL",
    "JOURNAL_FILES",
    "Group",
    "Reader",
    "Row",
    "Store",
    "Writer",
    "failpoint",
    "file_hash",
    "locked",
    "made_folder",
    "refuse_if_locked",
    "sync_folder",
    "written_whole",
]
