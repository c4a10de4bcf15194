"""Read a journal: beside its writer, or long after."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import JsonValue

from airjudge.errors import InputError, StorageFailed
from airjudge.journal.store import JOURNAL, VERSION, storable, storage
from airjudge.schema import Chunks, Claims, Echoes, Made, SampleError, ScoredSample, Statement, Support, Usage, Verdict

_VERDICT = "number, id, text, attributed, probability, reason, support, n_parts"


class StartRow(NamedTuple):
    """One start of a run, as the journal holds it; `ended` is None while it goes on, or if it was killed last."""

    runner: str
    started: str
    seconds: float
    usage: Usage
    ended: str | None


class Totals(NamedTuple):
    """What the finished samples of a journal add up to."""

    n_samples: int
    n_statements: int
    failures: dict[str, int]


class Reader:
    """The journal of a folder, open for reading; a context manager."""

    def __init__(self, folder: Path) -> None:
        """Open it.

        Raises:
            InputError: If the folder holds no journal of this version of airjudge.
            StorageFailed: If it cannot be read.
        """
        self.path = folder / JOURNAL
        if not self.path.is_file():
            msg = f"{folder} holds no run: there is no {JOURNAL} in it"
            raise InputError(msg, "Name the folder that --out named.")
        with storage(self.path):
            self._database = _connected(self.path)
        ((version,),) = self.rows("PRAGMA user_version")
        self.is_empty = version == 0
        if version not in {0, VERSION}:
            self._database.close()
            msg = f"{self.path} was made by another version of airjudge (format {version}, not {VERSION})"
            raise InputError(msg, "Use the version that made it.")

    def __enter__(self) -> Self:
        """Give the open journal."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._database.close()

    def rows(self, query: str, *values: str | int | bytes) -> Iterator[tuple[object, ...]]:
        """Rows of a query, as SQLite gives them."""
        with storage(self.path):
            yield from self._database.execute(query, values)

    def header(self) -> dict[str, JsonValue]:
        """All values of the header; none where no start got as far as writing it."""
        if self.is_empty:
            return {}
        return {str(key): json.loads(str(value)) for key, value in self.rows("SELECT key, value FROM header")}

    def starts(self) -> list[StartRow]:
        """All starts, in order."""
        rows = self.rows("SELECT runner, started, seconds, usage, ended FROM starts ORDER BY number")
        return [
            StartRow(str(runner), str(started), _real(seconds), Usage.model_validate_json(str(usage)), _text(ended))
            for runner, started, seconds, usage, ended in rows
        ]

    def places(self) -> Iterator[int]:
        """Places of the finished samples, ascending."""
        return (_whole(place) for (place,) in self.rows("SELECT place FROM samples ORDER BY place"))

    def ids(self) -> Iterator[tuple[int, str]]:
        """Places of the finished samples, ascending, with their ids."""
        return ((_whole(place), str(name)) for place, name in self.rows("SELECT place, id FROM samples ORDER BY place"))

    def totals(self) -> Totals:
        """What the finished samples add up to."""
        ((n_samples,),) = self.rows("SELECT count(*) FROM samples")
        ((n_statements,),) = self.rows("SELECT count(*) FROM verdicts WHERE place IN (SELECT place FROM samples)")
        failures = self.rows("SELECT error_kind, count(*) FROM samples WHERE status = 'failed' GROUP BY error_kind")
        by_kind = {str(kind): _whole(count) for kind, count in failures}
        return Totals(_whole(n_samples), _whole(n_statements), by_kind)

    def n_taken(self) -> int:
        """Number of finished samples with verdicts of another run."""
        ((count,),) = self.rows("SELECT count(*) FROM samples WHERE taken")
        return _whole(count)

    def has_id_before(self, name: str, place: int) -> bool:
        """Say whether a finished sample before a place has this id."""
        query = "SELECT 1 FROM samples WHERE id = ? AND place < ? LIMIT 1"
        return any(True for _ in self.rows(query, storable(name), place))

    def verdicts(self, place: int) -> dict[int, Verdict]:
        """Verdicts on the sample at a place, by the number of the statement; failed questions are left out."""
        query = f"SELECT {_VERDICT} FROM verdicts WHERE place = ? AND attributed IS NOT NULL"  # noqa: S608
        return {_whole(row[0]): _verdict(row) for row in self.rows(query, place)}

    def place_of(self, content: bytes) -> int | None:
        """The place of a finished sample with this content: that with most verdicts; None if there is none."""
        query = """
            SELECT place FROM (SELECT place FROM samples WHERE content = ? LIMIT 8) AS held ORDER BY
            (SELECT count(attributed) FROM verdicts WHERE verdicts.place = held.place) DESC LIMIT 1
        """
        return next((_whole(place) for (place,) in self.rows(query, content)), None)

    def made(self, place: int) -> Made | None:
        """The statements that a judge made of the sample at a place; None if none did, or has not yet."""
        rows = self.rows("SELECT statements, claims FROM made WHERE place = ?", place)
        for statements, claims in rows:
            listed = tuple(Statement(id=name, text=text) for name, text in json.loads(str(statements)))
            return Made(statements=listed, claims=_claims(claims))
        return None

    def echoes(self, place: int) -> Echoes | None:
        """The account of the single call on the sample at a place; None if none was made, or not yet."""
        rows = self.rows("SELECT account FROM echoes WHERE place = ?", place)
        return next((_echoes(account) for (account,) in rows), None)

    def statements_at(self, place: int) -> tuple[Statement, ...]:
        """The statements of the finished sample at a place."""
        rows = self.rows("SELECT id, text FROM verdicts WHERE place = ? ORDER BY number", place)
        return tuple(Statement(id=str(own), text=str(text)) for own, text in rows)

    def statements_of(self, name: str) -> tuple[Statement, ...] | None:
        """The statements of the first finished sample with an id; None if there is none, or it failed without any."""
        query = "SELECT place, status FROM samples WHERE id = ? ORDER BY place LIMIT 1"
        for place, status in self.rows(query, storable(name)):
            found = self.statements_at(_whole(place))
            return found if found or status == "undefined" else None
        return None

    def statements_digest(self) -> str:
        """SHA-256, in hex, over the statements of all finished samples and whose they are."""
        digest = hashlib.sha256()
        query = "SELECT s.id, v.id, v.text FROM verdicts v JOIN samples s USING (place) ORDER BY place, number"
        for row in self.rows(query):
            digest.update(json.dumps(row).encode() + b"\n")
        return digest.hexdigest()

    def scored(self) -> Iterator[tuple[int, ScoredSample]]:
        """Places and records of the finished samples, in input order, as they stood when the first was read."""
        query = f"SELECT place, {_VERDICT} FROM verdicts ORDER BY place, number"  # noqa: S608
        by_place = groupby(self.rows(query), key=itemgetter(0))
        place, verdicts = next(by_place, (None, iter(())))
        samples = """
            SELECT samples.*, made.claims, echoes.account FROM samples LEFT JOIN made USING (place)
            LEFT JOIN echoes USING (place) ORDER BY place
        """
        for row in self.rows(samples):
            while place is not None and _whole(place) < _whole(row[0]):  # verdicts of an unfinished sample
                place, verdicts = next(by_place, (None, iter(())))
            own = verdicts if place == row[0] else iter(())
            try:
                scored = _scored(row, tuple(_verdict(one[1:]) for one in own))
            except ValueError as error:
                msg = f"{self.path}: the record at place {row[0]} is not one of ours"
                raise StorageFailed(msg, "The journal was changed by something else than airjudge.") from error
            yield _whole(row[0]), scored

    def damage(self) -> list[str]:
        """What SQLite's own check finds wrong; nothing for a sound journal."""
        found = [str(line) for (line,) in self.rows("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found


def _connected(path: Path) -> sqlite3.Connection:
    """Connect for reading; in a folder that cannot be written, to what is folded into the file.

    A WAL is read through a file beside it, which SQLite has to make if it is not there.
    """
    address = f"{path.absolute().as_uri()}?mode=ro"
    database = sqlite3.connect(address, uri=True, isolation_level=None, timeout=30)
    try:
        database.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        database.close()
        if not isinstance(error, sqlite3.OperationalError) or path.with_name(f"{path.name}-wal").exists():
            raise
        return sqlite3.connect(f"{address}&immutable=1", uri=True, isolation_level=None)
    return database


def _scored(row: tuple[object, ...], verdicts: tuple[Verdict, ...]) -> ScoredSample:
    _, name, _, _, status, score, kind, message, group, empty_contexts, metadata, *beside = row
    reason, marks, chunks, claims, account = beside
    return ScoredSample.model_validate(
        {
            "id": name,
            "score": score,
            "status": status,
            "error": None if kind is None else SampleError(kind=str(kind), message=str(message)),
            "statements": verdicts,
            "group": group,
            "empty_contexts": bool(empty_contexts),
            "claims": _claims(claims),
            "echoes": _echoes(account),
            "chunks": None if chunks is None else Chunks.model_validate_json(str(chunks)),
            "metadata": json.loads(str(metadata)),
            "reason": _text(reason),
            "suspicions": json.loads(str(marks)),
        }
    )


def _claims(text: object) -> Claims | None:
    return None if text is None else Claims.model_validate_json(str(text))


def _echoes(text: object) -> Echoes | None:
    return None if text is None else Echoes.model_validate_json(str(text))


def _verdict(row: tuple[object, ...]) -> Verdict:
    _, name, text, attributed, probability, reason, support, n_parts = row
    return Verdict(
        id=str(name),
        text=str(text),
        attributed=None if attributed is None else bool(attributed),
        probability=None if probability is None else _real(probability),
        reason=_text(reason),
        support=None if support is None else tuple(map(Support.model_validate, json.loads(str(support)))),
        n_parts=None if n_parts is None else int(str(n_parts)),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _whole(value: object) -> int:
    """A whole number that SQLite gave.

    Raises:
        TypeError: If it is none: the journal's tables are not ours.
    """
    if not isinstance(value, int):
        msg = f"not a whole number: {value!r}"
        raise TypeError(msg)
    return value


def _real(value: object) -> float:
    """A number that SQLite gave, as `_whole`."""
    if not isinstance(value, int | float):
        msg = f"not a number: {value!r}"
        raise TypeError(msg)
    return float(value)
