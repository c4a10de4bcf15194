"""Group commit: what arrives is written together, by a thread of its own, so that no question waits for a disk."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, Self

from airjudge.errors import AirjudgeError, StorageFailed
from airjudge.journal.store import Group, Row, Store
from airjudge.schema import Echoes, Made, Verdict

GROUP_SIZE: Final = 32
GROUP_SECONDS: Final = 0.05
"""A group is committed when it has that many verdicts and samples, or its oldest one has waited that long."""
_ROOM: Final = 64 * GROUP_SIZE

_BUGS: Final = (ArithmeticError, TypeError, ValueError, sqlite3.Error)
"""What else could end a commit; it must not end the thread alone, for the run would wait for it."""

Spent = Callable[[], tuple[float, str]]
"""What a start has cost so far: seconds, and usage as JSON."""


class Writer:
    """Takes verdicts and finished samples inside an event loop, and commits them; an async context manager.

    What was put before the block ends is committed before it has ended, also where it ends by an error.
    """

    def __init__(self, store: Store, *, start: int, spent: Spent) -> None:
        """Write into `store` for the start with this number; `spent` is asked at each commit."""
        self._store, self._start, self._spent = store, start, spent
        self._changed = threading.Condition()
        self._pending, self._since = Group(), 0.0
        self._waiting: list[asyncio.Future[None]] = []
        self._closing = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)

    async def __aenter__(self) -> Self:
        """Start the thread."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Commit what is pending and end the thread, also while the task is being cancelled.

        Raises:
            StorageFailed: If what was pending could not be committed.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        self._refuse_after_failure()

    def put_verdicts(self, place: int, verdicts: Mapping[int, Verdict], echoes: Echoes | None = None) -> None:
        """Take verdicts on the sample at a place; a later one on the same statement replaces an earlier one.

        Those of a single call come with its account, and are committed with it or not at all.

        Raises:
            StorageFailed: If an earlier group could not be committed.
        """
        with self._changed:
            self._refuse_after_failure()
            if not verdicts and echoes is None:
                return
            if echoes is not None:
                self._pending.echoes[place] = echoes
            self._pending.verdicts.update({(place, number): one for number, one in verdicts.items()})
            self._tell_the_thread()

    async def put_made(self, place: int, made: Made) -> None:
        """Take the statements that were made of the sample at a place, and return when they are committed.

        Raises:
            StorageFailed: If they could not be committed.
        """
        with self._changed:
            self._refuse_after_failure()
            self._pending.made[place] = made
            committed = self._awaited()
        await committed

    async def put_row(self, row: Row) -> None:
        """Take a finished sample, and return when it is committed, with all verdicts that were put before.

        Raises:
            StorageFailed: If it could not be committed.
        """
        with self._changed:
            self._refuse_after_failure()
            self._pending.rows.append(row)
            committed = self._awaited()
        await committed

    async def room(self) -> None:
        """Wait while so much is pending that a disk which cannot follow would fill the memory.

        Raises:
            StorageFailed: If it could not be committed.
        """
        while len(self._pending) >= _ROOM:
            committed = self._loop.create_future()
            with self._changed:
                self._refuse_after_failure()
                self._waiting.append(committed)
            await committed

    def _refuse_after_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _awaited(self) -> asyncio.Future[None]:
        """What comes true with the commit of all that is pending."""
        committed = self._loop.create_future()
        self._waiting.append(committed)
        self._tell_the_thread()
        return committed

    def _tell_the_thread(self) -> None:
        """Note when a group began; wake the thread for its first part, and when it is full."""
        if not self._since:
            self._since = time.monotonic()
            self._changed.notify()
        elif len(self._pending) >= GROUP_SIZE:
            self._changed.notify()

    def _work(self) -> None:
        """Commit group after group until the block has ended, or a commit fails."""
        waiting: list[asyncio.Future[None]] = []
        failure: Exception | None = StorageFailed("the journal's thread ended by a bug; see the trace above")
        try:
            while (taken := self._next_group()) is not None:
                group, waiting = taken
                self._store.commit(group, start=self._start, spent=self._spent())
                self._loop.call_soon_threadsafe(_release, waiting)
            failure = None
        except (AirjudgeError, *_BUGS) as error:
            failure = error
        finally:  # whatever ended the thread, nobody is left waiting for it
            if failure is not None:
                with self._changed:
                    self._failure = failure
                    waiting += self._waiting
                self._loop.call_soon_threadsafe(_fail, waiting, failure)

    def _next_group(self) -> tuple[Group, list[asyncio.Future[None]]] | None:
        """Wait until a group is full, old enough or the last one; None when there is nothing more."""
        with self._changed:
            while not self._is_due():
                age = time.monotonic() - self._since if self._since else 0.0
                self._changed.wait(GROUP_SECONDS - age if self._since else None)
            if not self._pending and not self._waiting:
                return None
            group, waiting = self._pending, self._waiting
            self._pending, self._waiting, self._since = Group(), [], 0.0
            return group, waiting

    def _is_due(self) -> bool:
        old = self._since and time.monotonic() - self._since >= GROUP_SECONDS
        return self._closing or bool(old) or len(self._pending) >= GROUP_SIZE


def _release(waiting: list[asyncio.Future[None]]) -> None:
    for one in waiting:
        if not one.done():
            one.set_result(None)


def _fail(waiting: list[asyncio.Future[None]], error: Exception) -> None:
    for one in waiting:
        if not one.done():
            one.set_exception(error)
