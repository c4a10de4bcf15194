"""The journal's tables, and the transactions that change them.

SQLite in WAL mode, synchronous FULL: a transaction is on the disk before its commit returns. One
process writes (`lock`), from one thread at a time; `reading` reads beside it.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from pydantic import JsonValue

from airjudge.errors import InputError, StorageFailed
from airjudge.journal.failpoints import failpoint
from airjudge.schema import Claims, Echoes, Made, ScoredSample, Verdict

JOURNAL: Final = "journal.sqlite"
JOURNAL_FILES: Final = (JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm")
VERSION: Final = 5

_TABLES: Final = """
CREATE TABLE header (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE starts (
    number INTEGER PRIMARY KEY, runner TEXT NOT NULL, started TEXT NOT NULL,
    seconds REAL NOT NULL, usage TEXT NOT NULL, ended TEXT
);
CREATE TABLE samples (
    place INTEGER PRIMARY KEY, id TEXT NOT NULL, content BLOB, taken INTEGER NOT NULL, status TEXT NOT NULL,
    score REAL, error_kind TEXT, error_message TEXT, cluster TEXT, empty_contexts INTEGER NOT NULL,
    metadata TEXT NOT NULL, reason TEXT, suspicions TEXT NOT NULL, chunks TEXT
);
CREATE INDEX samples_by_id ON samples (id);
CREATE INDEX samples_by_content ON samples (content);
CREATE TABLE verdicts (
    place INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL,
    attributed INTEGER, probability REAL, reason TEXT, support TEXT, n_parts INTEGER,
    PRIMARY KEY (place, number)
) WITHOUT ROWID;
CREATE TABLE made (place INTEGER PRIMARY KEY, statements TEXT NOT NULL, claims TEXT NOT NULL);
CREATE TABLE echoes (place INTEGER PRIMARY KEY, account TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A finished sample on its way to the journal.

    `content` is a digest of what a judge is shown of it, None if it never became a sample; `taken` says
    that verdicts of another run stand in it.
    """

    place: int
    scored: ScoredSample
    content: bytes | None = None
    taken: bool = False


@dataclass(slots=True)
class Group:
    """What one transaction brings: verdicts by place and number, finished samples, made statements by place.

    The account of a single call stands beside the verdicts of its reply: there is no telling one without the other.
    """

    verdicts: dict[tuple[int, int], Verdict] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    made: dict[int, Made] = field(default_factory=dict)
    echoes: dict[int, Echoes] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count what is to be written."""
        return len(self.made) + len(self.echoes) + len(self.verdicts) + len(self.rows)


class Store:
    """The journal of a folder, open for writing; a context manager."""

    def __init__(self, folder: Path) -> None:
        """Open the journal, and make its tables where there are none.

        Raises:
            StorageFailed: If it cannot be opened or is damaged.
            InputError: If another version of airjudge made it.
        """
        self.path = folder / JOURNAL
        with storage(self.path):
            self._database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
            try:
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = FULL")
                self._make_tables()
                self._inode = self.path.stat().st_ino
            except BaseException:
                self._database.close()
                raise

    def __enter__(self) -> Self:
        """Give the open journal."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it; the last connection folds the WAL into the file."""
        try:
            self._database.close()
        except sqlite3.Error:
            return  # what was committed stands in the WAL, where the next start finds it

    def _make_tables(self) -> None:
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version == 0:
            with self.transaction():
                for statement in _TABLES.split(";"):
                    self._database.execute(statement)
                self._database.execute(f"PRAGMA user_version = {VERSION}")
        elif version != VERSION:
            msg = f"{self.path} was made by another version of airjudge (format {version}, not {VERSION})"
            raise InputError(msg, "Choose another folder with --out, or use the version that made it.")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All that the block changes, or nothing; on the disk when the block has ended.

        Raises:
            StorageFailed: If it could not be committed.
        """
        with storage(self.path):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                failpoint("before_commit")
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
        failpoint("after_commit")

    def put_header(self, values: Mapping[str, JsonValue]) -> None:
        """Write values of the header, in one transaction."""
        with self.transaction() as database:
            _put_header(database, values)

    def begin(self, runner: str, started: str) -> int:
        """Note a start and give its number; one that never told its end was killed."""
        with self.transaction() as database:
            database.execute("UPDATE starts SET ended = 'killed' WHERE ended IS NULL")
            cursor = database.execute(
                "INSERT INTO starts (runner, started, seconds, usage) VALUES (?, ?, 0, '{}')", (runner, started)
            )
        return int(cursor.lastrowid or 0)

    def end(self, number: int, ended: str, spent: tuple[float, str], *, header: Mapping[str, JsonValue]) -> None:
        """Note how a start ended, what it cost (seconds, and usage as JSON), and values of the header with it."""
        with self.transaction() as database:
            _put_header(database, header)
            database.execute(
                "UPDATE starts SET ended = ?, seconds = ?, usage = ? WHERE number = ?", (ended, *spent, number)
            )
            self._check_place()

    def forget_failures(self) -> int:
        """Make the failed samples unfinished again, with the verdicts that they have; give their number."""
        with self.transaction() as database:
            failed = "(SELECT place FROM samples WHERE status = 'failed')"
            database.execute(f"DELETE FROM verdicts WHERE attributed IS NULL AND place IN {failed}")  # noqa: S608
            n_failed = database.execute("DELETE FROM samples WHERE status = 'failed'").rowcount
            database.execute("DELETE FROM header WHERE key = 'finished'")
        return n_failed

    def commit(self, group: Group, *, start: int, spent: tuple[float, str]) -> None:
        """Write a group, and what its start spent so far: seconds, and usage as JSON.

        Raises:
            StorageFailed: If it could not be committed; nothing of it is in the journal then.
        """
        with self.transaction() as database:
            database.executemany(
                "INSERT OR REPLACE INTO made VALUES (?, ?, ?)",
                [_made_row(place, one) for place, one in group.made.items()],
            )
            database.executemany(
                "INSERT OR REPLACE INTO echoes VALUES (?, ?)",
                [(place, one.model_dump_json()) for place, one in group.echoes.items()],
            )
            database.executemany(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [_verdict_row(place, number, one) for (place, number), one in group.verdicts.items()],
            )
            database.executemany(
                "INSERT OR REPLACE INTO samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [_sample_row(row) for row in group.rows],
            )
            database.execute("UPDATE starts SET seconds = ?, usage = ? WHERE number = ?", (*spent, start))
            self._check_place()

    def _check_place(self) -> None:
        """Refuse to go on writing into a file that its folder no longer holds.

        SQLite would not notice: the file lives on without a name until it is closed.
        """
        try:
            there = self.path.stat().st_ino == self._inode
        except OSError:
            there = False
        if not there:
            msg = f"{self.path} was removed while the run went on"
            raise StorageFailed(msg, "Give the same command again; it starts anew.")


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """Turn what SQLite and the disk refuse into an error of ours.

    Raises:
        StorageFailed: With the database's own words.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        msg = f"{path}: {error}"
        raise StorageFailed(msg) from error
    except OSError as error:
        msg = f"{path}: {error.strerror or error}"
        raise StorageFailed(msg) from error


def _put_header(database: sqlite3.Connection, values: Mapping[str, JsonValue]) -> None:
    rows = [(key, json.dumps(value)) for key, value in values.items()]
    database.executemany("INSERT OR REPLACE INTO header VALUES (?, ?)", rows)


def _verdict_row(place: int, number: int, verdict: Verdict) -> tuple[str | int | float | None, ...]:
    text, reason = storable(verdict.text), verdict.reason and storable(verdict.reason)
    support = None if verdict.support is None else json.dumps([one.model_dump() for one in verdict.support])
    said = (storable(verdict.id), text, verdict.attributed, verdict.probability, reason, support, verdict.n_parts)
    return (place, number, *said)


def _made_row(place: int, made: Made) -> tuple[int, str, str]:
    statements = [(storable(one.id), storable(one.text)) for one in made.statements]
    return place, json.dumps(statements), (made.claims or Claims()).model_dump_json()


def _sample_row(row: Row) -> tuple[str | int | float | bytes | None, ...]:
    scored, error = row.scored, row.scored.error
    return (
        row.place,
        storable(scored.id),
        row.content,
        row.taken,
        scored.status,
        scored.score,
        error.kind if error else None,
        storable(error.message) if error else None,
        scored.group and storable(scored.group),
        scored.empty_contexts,
        json.dumps(dict(scored.metadata)),
        None if scored.reason is None else storable(scored.reason),
        json.dumps([one.model_dump() for one in scored.suspicions]),
        scored.chunks.model_dump_json() if scored.chunks else None,
    )


def storable(text: str) -> str:
    """A text as UTF-8 can hold it: a judge may write half a surrogate pair, which is no character."""
    return text.encode("utf-8", errors="replace").decode("utf-8")
