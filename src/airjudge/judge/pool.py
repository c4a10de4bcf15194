"""The servers of one judge, and which of them gets the next request.

Every server has a number of places. A sample keeps to the server that has its prefix in its cache, and goes
before samples that have not begun, so that the prefix is still there; a sample that begins goes where there
is most room, where possible beside others with the same first context. A server that is away gets nothing,
and what waited for it goes elsewhere.
"""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from airjudge.backends.faults import FaultKind
from airjudge.errors import BudgetSpent, InputError, JudgeError, JudgeUnreachable
from airjudge.judge.allowance import Allowance
from airjudge.judge.enforcement import Backend
from airjudge.judge.facts import ServerFacts
from airjudge.judge.limit import AdaptiveLimit
from airjudge.judge.settings import LEAST_WAIT_S, WAIT_S, JudgeSettings
from airjudge.schema import ServerUse, Usage

_log = logging.getLogger("airjudge.judge")

HOMES = 4096
"""First contexts whose server is remembered; more samples than this are never open at once."""


class Seat:
    """Where the questions of one sample are asked: nowhere yet, or at the server that has its prefix.

    `context` is what the sample may share with others, its first context.
    """

    __slots__ = ("context", "member")

    def __init__(self, context: str = "") -> None:
        """Begin nowhere."""
        self.context = context
        self.member: Member | None = None


class Member:
    """One server of a pool: what it is, what it is doing, and what it has done."""

    def __init__(self, backend: Backend, facts: ServerFacts, limit: AdaptiveLimit | None) -> None:
        """Begin idle and present; without a limit of its own only the pool's counts."""
        self.backend, self.facts, self.limit = backend, facts, limit
        self.present, self.in_flight, self.absences = True, 0, 0
        self.looked_at, self.looking = 0.0, asyncio.Lock()
        self.paused_until = 0.0
        self.waiting: Queue = deque()
        self.faults: dict[str, int] = {}
        self._n_replies = self._prompt_tokens = self._cached_tokens = self._completion_tokens = 0

    @property
    def base_url(self) -> str:
        """Where it is."""
        return self.backend.connection.base_url

    @property
    def usage(self) -> Usage:
        """Counts of its replies."""
        return Usage(
            requests=self._n_replies,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self._cached_tokens,
            completion_tokens=self._completion_tokens,
        )

    def use(self) -> ServerUse:
        """Its account, as a run writes it down."""
        limit = self.limit.now if self.limit else 0
        return ServerUse(
            base_url=self.base_url, usage=self.usage, faults=self.faults, absences=self.absences, in_flight=limit
        )

    def replied(self, usage: Usage, at: float, *, latency_s: float) -> None:
        """Add a reply to its account, and let its limit learn from it; its place is still taken."""
        if self.limit is not None:
            self.limit.replied(at, latency_s, full=self.in_flight >= self.limit.now)
        self._n_replies += usage.requests
        self._prompt_tokens += usage.prompt_tokens
        self._cached_tokens += usage.cached_tokens
        self._completion_tokens += usage.completion_tokens

    def blame(self, kind: FaultKind) -> None:
        """Add a fault to its account."""
        self.faults[kind] = self.faults.get(kind, 0) + 1

    def has_room(self, now: float) -> bool:
        """Whether it may be sent another request."""
        return self.present and now >= self.paused_until and (self.limit is None or self.in_flight < self.limit.now)


Queue = deque[tuple[asyncio.Future[Member], Seat]]
"""Those who wait for a place, and where they are seated."""


class Pool:
    """Hands out places at servers. `most` bounds all requests in flight; None leaves it to each server's limit."""

    def __init__(
        self, members: Sequence[Member], *, most: int | None, wait_s: float, allowance: Allowance | None = None
    ) -> None:
        """Begin with every server present; wait that long for one when all are away."""
        self.members, self._most, self._wait_s = tuple(members), most, wait_s
        self.allowance = allowance or Allowance(JudgeSettings())
        self._until_idle: list[asyncio.Future[None]] = []
        self._n_in_flight = 0
        self._new: Queue = deque()
        self._homes: OrderedDict[int, Member] = OrderedDict()
        self._end: JudgeError | None = None
        self._giving_up: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def usage(self) -> Usage:
        """Counts of all replies of all servers."""
        return sum((member.usage for member in self.members), Usage())

    @property
    def facts(self) -> ServerFacts:
        """What every server of the pool is."""
        return self.members[0].facts

    @property
    def is_full(self) -> bool:
        """Whether somebody waits for a place."""
        return bool(self._new) or any(member.waiting for member in self.members)

    @asynccontextmanager
    async def place(self, seat: Seat) -> AsyncIterator[Member]:
        """A place at a server for one request."""
        member = await self.claim(seat)
        try:
            yield member
        finally:
            self.release(member)

    async def claim(self, seat: Seat) -> Member:
        """Wait for a place, at the sample's server if it is present, and take it.

        Raises:
            JudgeError: If the run has to stop.
        """
        member = await self._claimed(seat)
        if self.allowance.is_spent(self.usage, n_open=self._n_in_flight):
            self.release(member)
            await self._idle()
            msg = f"the run has cost {self.allowance.cost(self.usage)}, and another question would be too much"
            raise BudgetSpent(msg)
        return member

    async def _idle(self) -> None:
        """Wait until nothing is in flight: what is paid for comes back, and nothing else is sent."""
        if self._n_in_flight:
            self._until_idle.append(self._loop.create_future())
            await self._until_idle[-1]

    async def _claimed(self, seat: Seat) -> Member:
        if self._end:
            raise self._end
        member = None if self.is_full else self._choice(seat)
        if member is not None:
            self._take(member, seat)
            return member
        future: asyncio.Future[Member] = self._loop.create_future()
        self._queue_of(seat).append((future, seat))
        self.dispatch()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.release(future.result())
            raise

    def release(self, member: Member) -> None:
        """Give a place back."""
        member.in_flight -= 1
        self._n_in_flight -= 1
        if self.is_full:
            self.dispatch()
        while self._until_idle and not self._n_in_flight:
            waiter = self._until_idle.pop()
            if not waiter.done():
                waiter.set_result(None)

    def dispatch(self) -> None:
        """Give free places to those who wait: first where their prefix is, then to samples that begin."""
        for member in self.members:
            self._serve(member.waiting)
        self._serve(self._new)

    def _serve(self, queue: Queue) -> None:
        while queue:
            future, seat = queue[0]
            if not future.done():
                member = self._choice(seat)
                if member is None:
                    return
                self._take(member, seat)
                future.set_result(member)
            queue.popleft()

    def _queue_of(self, seat: Seat) -> Queue:
        return seat.member.waiting if seat.member and seat.member.present else self._new

    def _choice(self, seat: Seat) -> Member | None:
        """The server to ask now; None if the sample has to wait."""
        if seat.member and seat.member.present:
            return self._if_room(seat.member)
        idlest = min(filter(self._if_room, self.members), key=lambda one: one.in_flight, default=None)
        home = self._homes.get(hash(seat.context)) if len(self.members) > 1 else None
        # A context that all samples share must not leave the other servers idle.
        if home and idlest and self._if_room(home) and home.in_flight < 2 * idlest.in_flight + 2:
            return home
        return idlest

    def _if_room(self, member: Member) -> Member | None:
        free = self._most is None or self._n_in_flight < self._most
        return member if free and member.has_room(self._loop.time()) else None

    def _take(self, member: Member, seat: Seat) -> None:
        member.in_flight += 1
        self._n_in_flight += 1
        if seat.member is not member:
            seat.member = member
            if len(self.members) == 1:
                return
            self._homes[hash(seat.context)] = member
            if len(self._homes) > HOMES:
                self._homes.popitem(last=False)

    def slow_down(self, member: Member, seconds: float) -> None:
        """A server is busy and says so: fewer requests from now on, and none for a while."""
        now = self._loop.time()
        _log.info("server_busy", extra={"event": {"server": member.base_url, "pause_s": seconds}})
        if member.limit is not None:
            member.limit.refused(now, seconds)
        member.paused_until = max(member.paused_until, now + seconds)
        self._loop.call_later(seconds, self.dispatch)

    def leave(self, member: Member, why: JudgeError) -> None:
        """A server is away: what waited for it goes elsewhere, or waits until one is back."""
        member.present = False
        member.absences += 1
        _log.warning("server_away", extra={"event": {"server": member.base_url, "reason": why.kind}})
        self._new.extendleft(reversed(member.waiting))
        member.waiting.clear()
        if not any(one.present for one in self.members):
            self._giving_up = self._loop.call_later(self._wait_s, self._give_up, why)
        self.dispatch()

    def welcome(self, member: Member) -> None:
        """A server is back, and is what it was."""
        member.present = True
        _log.warning("server_back", extra={"event": {"server": member.base_url}})
        if self._giving_up:
            self._giving_up.cancel()
        self.dispatch()

    def _give_up(self, why: JudgeError) -> None:
        msg = f"{why}; waited {self._wait_s:g} s for it to come back"
        self.stop(JudgeUnreachable(msg, "Start it again and give the same command, or wait longer: --wait-for-server"))

    def stop(self, error: JudgeError) -> None:
        """No question can be answered any more: tell all who wait, and all who come."""
        self._end = self._end or error
        queues = [self._new, *(member.waiting for member in self.members)]
        for future, _ in (one for queue in queues for one in queue):
            if not future.done():
                future.set_exception(self._end)
        for queue in queues:
            queue.clear()


def new_pool(backends: Sequence[Backend], facts: ServerFacts, *, settings: JudgeSettings) -> Pool:
    """A pool of servers that were proved alike."""
    wait_s = WAIT_S if settings.wait_for_server_s is None else settings.wait_for_server_s
    most = None if settings.concurrency == "auto" else settings.concurrency
    members = [Member(one, facts, AdaptiveLimit() if most is None else None) for one in backends]
    return Pool(members, most=most, wait_s=max(wait_s, LEAST_WAIT_S), allowance=Allowance(settings))


def check_distinct(roots: Sequence[str]) -> None:
    """Refuse a judge without servers, or with one of them twice.

    Raises:
        InputError: If that is so.
    """
    if not roots or len(set(roots)) < len(roots):
        msg = "a judge needs at least one base URL, and each only once"
        raise InputError(msg)
