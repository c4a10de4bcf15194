"""Look at the servers of a pool: whether one that failed a request is away, back, and still the same judge."""

import asyncio
import logging
from collections.abc import Coroutine
from types import TracebackType
from typing import Self

from airjudge.backends.faults import BACK_OFF_S
from airjudge.errors import AirjudgeError, JudgeError, JudgeForeign, JudgeUnreachable, RequestTimeout, SchemaNotCompiled
from airjudge.judge.enforcement import LONGEST_PAUSE_S, check_canary, check_identity, prove_again
from airjudge.judge.pool import Member, Pool

_log = logging.getLogger("airjudge.judge")

POLL_S = 1.0
"""Seconds between two looks at a server's queue."""
NOT_BACK = (JudgeUnreachable, JudgeForeign, RequestTimeout)
"""What a server that is starting, or something else at its address, answers meanwhile."""


class Watch:
    """Keeps a pool true to what its servers do, by tasks of its own that end with it."""

    def __init__(self, pool: Pool, method: str) -> None:
        """Watch nothing yet; a server that comes back is proved for the method."""
        self._pool, self._method = pool, method
        self.recheck = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Follow the queue of each server that has an adaptive limit."""
        for member in self._pool.members:
            if member.limit is not None:
                self._start(self._follow_queue(member))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def is_away(self, member: Member, *, since: float, restarted: bool) -> bool:
        """Look at a server after a fault, once for all faults up to now.

        Args:
            member: The server.
            since: When the fault came, on the event loop's clock.
            restarted: Whether another process may be answering since: then its canary is asked as well.

        Returns:
            Whether it is away; it is then being waited for.

        Raises:
            JudgeError: If it is another judge now, or stopped enforcing.
        """
        async with member.looking:
            if member.present and member.looked_at < since:
                await self._look(member, restarted=restarted)
            return not member.present

    async def _look(self, member: Member, *, restarted: bool) -> None:
        try:
            await check_identity(member.backend, member.facts)
            if restarted:
                await check_canary(member.backend)
        except (*NOT_BACK, SchemaNotCompiled) as error:
            why = error if isinstance(error, JudgeError) else JudgeUnreachable(f"{member.base_url}: {error}")
            self._pool.leave(member, why)
            self._start(self._bring_back(member))
        except JudgeError as error:
            self._pool.stop(error)
            raise
        finally:
            member.looked_at = asyncio.get_running_loop().time()

    async def _bring_back(self, member: Member) -> None:
        """Prove a server again and again until it is back, or something else is there."""
        pause_s = BACK_OFF_S
        while True:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            try:
                await prove_again(member.backend, member.facts, self._method)
            except NOT_BACK:
                continue
            except JudgeError as error:
                self._pool.stop(error)
            except AirjudgeError as error:
                self._pool.stop(JudgeUnreachable(f"{member.base_url} came back and cannot be used: {error}"))
            else:
                self._pool.welcome(member)
            return

    async def _follow_queue(self, member: Member) -> None:
        """Tell the limit how many requests wait on the server, while there is anything in flight."""
        while True:
            await asyncio.sleep(POLL_S)
            if not member.present or not member.in_flight or member.limit is None:
                continue
            n_waiting = await member.backend.n_waiting()
            if n_waiting is None:
                return
            member.limit.queued(n_waiting)
