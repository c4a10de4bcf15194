"""The adaptive limit: within its bounds always, at what a server can carry in the end."""

import heapq
from collections import deque
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge.judge.limit import LADDER, MOST, START, AdaptiveLimit


def simulated(
    limit: AdaptiveLimit, *, places: int, service_s: float, n_replies: int, tells_queue: bool = False
) -> Iterator[tuple[float, int]]:
    """A server that runs `places` requests at once and lets others wait, under constant demand.

    One that tells its queue does so once a second. Yields time and limit after each reply.
    """
    now, n_in_flight, told_at = 0.0, 0, 0.0
    waiting: deque[float] = deque()
    running: list[tuple[float, float]] = []
    for _ in range(n_replies):
        while n_in_flight < limit.now:
            waiting.append(now)
            n_in_flight += 1
        while waiting and len(running) < places:
            heapq.heappush(running, (now + service_s, waiting.popleft()))
        if tells_queue and now >= told_at + 1:
            limit.queued(len(waiting))
            told_at = now
        now, sent_at = heapq.heappop(running)
        limit.replied(now, now - sent_at, full=n_in_flight >= limit.now)
        n_in_flight -= 1
        yield now, limit.now


def test_it_starts_modestly_and_never_above_its_bound() -> None:
    assert AdaptiveLimit().now == START == 8
    assert AdaptiveLimit(most=5).now == 4
    assert AdaptiveLimit(start=1).now == 1
    with pytest.raises(ValueError, match="at least 1"):
        AdaptiveLimit(most=0)


Event = tuple[str, float]
EVENTS = st.lists(
    st.tuples(st.sampled_from(["reply", "idle reply", "queue", "refusal"]), st.floats(0, 50)), max_size=400
)


@given(EVENTS, st.integers(1, 300), st.integers(1, 300))
def test_it_never_leaves_its_bounds_whatever_happens(events: list[Event], start: int, most: int) -> None:
    limit, now = AdaptiveLimit(start=start, most=most), 0.0
    for kind, amount in events:
        now += amount / 10
        if kind == "queue":
            limit.queued(amount)
        elif kind == "refusal":
            limit.refused(now, amount)
        else:
            limit.replied(now, amount, full=kind == "reply")
        assert 1 <= limit.now <= most


@given(st.sampled_from(LADDER[1:]), st.floats(0, 100))
def test_a_429_halves_it_once_for_all_that_were_in_flight(start: int, pause_s: float) -> None:
    limit = AdaptiveLimit(start=start)
    limit.refused(10.0, pause_s)
    halved = limit.now
    assert halved <= start / 2 or halved == 1
    limit.refused(10.0 + max(pause_s, 1.0) / 2, pause_s)
    assert limit.now == halved
    limit.refused(11.0 + max(pause_s, 1.0), pause_s)
    assert limit.now < halved or halved == 1


@pytest.mark.parametrize("places", [1, 2, 5, 8, 16, 40, 100])
@pytest.mark.parametrize("service_s", [0.05, 2.0])
@pytest.mark.parametrize("tells_queue", [False, True])
def test_it_converges_on_what_a_server_carries(places: int, service_s: float, tells_queue: bool) -> None:
    n_replies = 200 * max(places, 8)
    found = list(
        simulated(AdaptiveLimit(), places=places, service_s=service_s, n_replies=n_replies, tells_queue=tells_queue)
    )
    half_time, _ = found[n_replies // 2]
    end, _ = found[-1]
    # At best `places` replies come in each service time. The second half may lose a tenth to trials of a lower
    # rung, and must not let more wait than it needs: twice the places is the next rung and a trial above it, ten
    # are the eight of the start, below which only a queue is a reason to go, and a trial of twelve.
    rate = (n_replies - n_replies // 2) / (end - half_time)
    assert rate >= 0.9 * places / service_s
    tail = [rung for _, rung in found[n_replies // 2 :]]
    assert sum(tail) / len(tail) <= max(3 if tells_queue else 10, 2 * places)


def test_it_grows_to_its_bound_at_a_server_that_keeps_up() -> None:
    *_, (_, last) = simulated(AdaptiveLimit(), places=1000, service_s=1.0, n_replies=20_000)
    assert last >= LADDER[-2]
    assert max(rung for _, rung in simulated(AdaptiveLimit(), places=1000, service_s=1.0, n_replies=20_000)) == MOST


def test_it_does_not_grow_while_there_is_too_little_to_ask() -> None:
    limit = AdaptiveLimit()
    for n in range(1000):
        limit.replied(n * 0.1, 1.0, full=False)
    assert limit.now == START


def test_a_queue_that_stays_shrinks_it_and_a_passing_one_does_not() -> None:
    limit = AdaptiveLimit(start=64)
    for waiting in (30, 0, 30, 0, *[16] * 10):  # 16 is a quarter of 64
        limit.queued(waiting)
    assert limit.now == 64
    limit.queued(20)
    limit.queued(20)
    # 64 - 20 = 44, for which 48 is the next rung.
    assert limit.now == 48


def test_a_long_queue_halves_it_at_most_and_never_takes_it_below_two() -> None:
    limit = AdaptiveLimit(start=64)
    limit.queued(1000)
    limit.queued(1000)
    assert limit.now == 32
    for _ in range(40):
        limit.queued(1000)
    assert limit.now == 2


def test_it_shrinks_when_latency_more_than_doubles() -> None:
    limit = AdaptiveLimit(start=32, most=32)
    found = []
    for n in range(8000):
        # Latency stays the same on every rung, so the highest one is kept, until something else loads the server.
        limit.replied(n * 0.02, 0.5 if n < 4000 else 1.5, full=True)
        found.append(limit.now)
    assert found[3999] == 32
    # Two windows of 64 replies, and the rest of one that had begun.
    assert min(found[4000:4200]) < 32
