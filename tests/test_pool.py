"""Several servers as one judge, and servers that go away and come back."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from airjudge import ContextRecall, Judge, JudgeSettings
from airjudge.errors import EnforcementMissing, InputError, JudgeChanged, JudgeError, JudgesDiffer, JudgeUnreachable
from airjudge.run import read_scored, score_dataset
from airjudge.schema import ScoredSample
from tests.rows import Row, kinds, row
from tests.stub import Fault, Stub, StubConfig
from tests.stub import faults as faults_of

HARBOUR = faults_of.mentions("Harbour")


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.fixture
def pair() -> Iterator[tuple[Stub, Stub]]:
    with Stub() as first, Stub() as second:
        yield first, second


def pool_of(stubs: Sequence[Stub], **settings: Any) -> Judge:
    urls = [stub.base_url for stub in stubs]
    return Judge.connect(urls, api_key=stubs[0].api_key, settings=JudgeSettings.model_validate(settings))


async def scored(judge: Judge, rows: Sequence[Row], folder: Path) -> list[ScoredSample]:
    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps(one) + "\n" for one in rows))
    await score_dataset(data, ContextRecall(judge), folder / "run")
    return list(read_scored(folder / "run"))


def rows_of(n: int, n_statements: int = 1) -> list[Row]:
    return [row(f"N{i}", n_statements) for i in range(n)]


async def when(condition: Callable[[], bool], *, within_s: float = 30) -> None:
    """Wait for something that another thread brings about."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        await asyncio.sleep(0.01)


async def away_for(stub: Stub, seconds: float, **changes: Any) -> Stub:
    """End a stub in the middle of what it does, and give its successor on the same port, entered."""
    await asyncio.to_thread(stub.__exit__, None, None, None)
    await asyncio.sleep(seconds)
    return await asyncio.to_thread(stub.successor(**changes).__enter__)


# One judge at several addresses


async def test_work_is_shared_among_servers_and_a_sample_keeps_to_one(pair: tuple[Stub, Stub], tmp_path: Path) -> None:
    for one in pair:
        one.config.latency_s = 0.02
    records = await scored(pool_of(pair, concurrency=8), rows_of(20, 3), tmp_path)
    assert set(kinds(records).values()) == {None}
    seen = [{f"N{n}" for n in range(20) if one.bodies(f"Harbour N{n} ")} for one in pair]
    assert seen[0].isdisjoint(seen[1])
    assert len(seen[0] | seen[1]) == 20
    assert min(map(len, seen)) >= 5


async def test_samples_that_share_their_first_context_go_to_one_server(pair: tuple[Stub, Stub], tmp_path: Path) -> None:
    for one in pair:
        one.config.latency_s = 0.02
    shared = [row(f"N{n}") | {"retrieved_contexts": [f"Port law {n % 2}.", f"Harbour N{n}."]} for n in range(16)]
    await scored(pool_of(pair, concurrency=2), shared, tmp_path)
    for law in ("Port law 0.", "Port law 1."):
        assert sorted(bool(one.bodies(law)) for one in pair) == [False, True]


async def test_a_context_that_all_samples_share_leaves_no_server_idle(pair: tuple[Stub, Stub], tmp_path: Path) -> None:
    for one in pair:
        one.config.latency_s = 0.02
    shared = [row(f"N{n}") | {"retrieved_contexts": ["Port law.", f"Harbour N{n}."]} for n in range(30)]
    await scored(pool_of(pair, concurrency=8), shared, tmp_path)
    assert min(len(one.bodies("Port law.")) for one in pair) >= 6


async def test_the_limit_counts_requests_in_flight_over_all_servers(pair: tuple[Stub, Stub], tmp_path: Path) -> None:
    for one in pair:
        one.config.latency_s = 0.05
    await scored(pool_of(pair, concurrency=2), rows_of(8, 5), tmp_path)
    spans = [(one.arrived_at, one.left_at or 0.0) for stub in pair for one in stub.chats if HARBOUR(one)]
    assert max(sum(a <= start < b for a, b in spans) for start, _ in spans) == 2


async def test_each_server_has_an_account_of_requests_tokens_and_faults(
    pair: tuple[Stub, Stub], tmp_path: Path
) -> None:
    pair[1].faults.append(Fault(faults_of.respond(408), when=HARBOUR, times=2))
    judge = pool_of(pair)
    await scored(judge, rows_of(40), tmp_path)
    first, second = judge.servers
    assert (first.base_url, second.base_url) == (pair[0].base_url, pair[1].base_url)
    assert [one.usage.requests for one in (first, second)] == [
        sum(HARBOUR(one) for one in pair[0].chats),
        sum(HARBOUR(one) for one in pair[1].chats) - 2,
    ]
    assert (first.faults, second.faults) == ({}, {"late": 2})
    assert judge.usage == first.usage + second.usage
    assert judge.usage.requests == 40


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"version": "0.33.0"}, r"version 0\.32\.0 and 0\.33\.0"),
        ({"model": "other"}, "model judge and other"),
        ({"max_model_len": 4096}, "max_model_len 8192 and 4096"),
        ({"backend": "xgrammar"}, "enforcement outlines and other"),
    ],
)
async def test_servers_that_are_not_one_judge_are_refused_with_the_difference(
    stub: Stub, changes: dict[str, Any], named: str
) -> None:
    with Stub(StubConfig(**changes)) as second:
        with pytest.raises(JudgesDiffer, match=named) as caught:
            async with pool_of([stub, second]):
                pass
        assert stub.base_url in str(caught.value)
        assert second.base_url in str(caught.value)
        assert not stub.bodies("Harbour")


def test_the_same_server_twice_is_refused(stub: Stub) -> None:
    with pytest.raises(InputError, match="only once"):
        Judge.connect([stub.base_url, stub.base_url.removesuffix("v1")])


async def test_the_work_of_a_server_that_dies_is_done_by_the_others(tmp_path: Path) -> None:
    with Stub(StubConfig(latency_s=0.05)) as first:
        second = Stub(StubConfig(latency_s=0.05)).__enter__()
        judge = pool_of([first, second], concurrency=4)
        run = asyncio.create_task(scored(judge, rows_of(20, 6), tmp_path))
        await when(lambda: len(second.bodies("Harbour")) >= 8)
        await asyncio.to_thread(second.__exit__, None, None, None)
        records = await run
        assert set(kinds(records).values()) == {None}
        assert len(records) == 20
        assert judge.servers[1].absences == 1
        # Whatever the dead one had not answered was asked again, and nothing else.
        assert judge.usage.requests == 120


async def test_a_server_that_comes_back_to_a_pool_is_proved_and_used_again(tmp_path: Path) -> None:
    with Stub(StubConfig(latency_s=0.05)) as first:
        second = Stub(StubConfig(latency_s=0.05)).__enter__()
        run = asyncio.create_task(scored(pool_of([first, second], concurrency=4), rows_of(150), tmp_path))
        await when(lambda: len(second.bodies("Harbour")) >= 4)
        again = await away_for(second, 0.3)
        try:
            assert set(kinds(await run).values()) == {None}
        finally:
            again.__exit__(None, None, None)
        names = [one.schema_name for one in again.chats]
        # The probe for the backend, the canary, the free reply and the warm-up come before any sample.
        assert names[:4] == [None, "canary", None, "verdict"]
        assert again.bodies("Harbour")


# A server that goes away


async def test_a_server_that_restarts_costs_no_sample_and_nothing_answered_is_asked_twice(tmp_path: Path) -> None:
    stub = Stub(StubConfig(latency_s=0.05)).__enter__()
    run = asyncio.create_task(scored(pool_of([stub], concurrency=4), rows_of(30, 2), tmp_path))
    await when(lambda: len(stub.bodies("Harbour")) >= 10)
    again = await away_for(stub, 1.0)
    try:
        records = await run
    finally:
        again.__exit__(None, None, None)
    assert set(kinds(records).values()) == {None}
    assert [one.id for one in records] == [f"N{n}" for n in range(30)]
    asked_before = [one for one in stub.chats if HARBOUR(one)]
    asked_again = {one.raw for one in again.chats} & {one.raw for one in asked_before}
    # Four were in flight when it died; what it had answered before is not among those asked again.
    assert len(asked_again) <= 4
    assert len({one.raw for one in (*asked_before, *again.chats) if HARBOUR(one)}) == 60


async def test_enforcement_is_proved_again_before_the_next_sample_is_asked(tmp_path: Path) -> None:
    stub = Stub(StubConfig(latency_s=0.05)).__enter__()
    run = asyncio.create_task(scored(pool_of([stub], concurrency=4), rows_of(40), tmp_path))
    await when(lambda: len(stub.bodies("Harbour")) >= 4)
    again = await away_for(stub, 0.3, backend="none", answer=lambda _: "hello")
    try:
        with pytest.raises(JudgeError) as caught:
            await run
    finally:
        again.__exit__(None, None, None)
    assert isinstance(caught.value, EnforcementMissing | JudgeChanged)
    assert not again.bodies("Harbour")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model": "another"}, "another"),
        ({"version": "0.33.0"}, r"0\.33\.0"),
        ({"max_model_len": 4096}, "4096"),
        ({"backend": "xgrammar"}, "enforcement"),
    ],
)
async def test_a_server_that_comes_back_as_another_judge_stops_the_run(
    tmp_path: Path, changes: dict[str, Any], named: str
) -> None:
    stub = Stub(StubConfig(latency_s=0.05)).__enter__()
    run = asyncio.create_task(scored(pool_of([stub], concurrency=4), rows_of(40), tmp_path))
    await when(lambda: len(stub.bodies("Harbour")) >= 4)
    again = await away_for(stub, 0.3, **changes)
    try:
        with pytest.raises(JudgeChanged, match=named):
            await run
    finally:
        again.__exit__(None, None, None)
    assert not again.bodies("Harbour")


async def test_a_server_that_stays_away_stops_the_run_when_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airjudge.judge.pool.LEAST_WAIT_S", 0.5)
    stub = Stub(StubConfig(latency_s=0.05)).__enter__()
    run = asyncio.create_task(scored(pool_of([stub], wait_for_server_s=1), rows_of(200), tmp_path))
    await when(lambda: len(stub.bodies("Harbour")) >= 4)
    await asyncio.to_thread(stub.__exit__, None, None, None)
    started = time.monotonic()
    with pytest.raises(JudgeUnreachable, match=f"{stub.port}.*waited 1 s") as caught:
        await run
    assert 0.9 < time.monotonic() - started < 20
    assert "--wait-for-server" in caught.value.hint


async def test_a_gateway_whose_judge_is_restarting_is_waited_for(stub: Stub, tmp_path: Path) -> None:
    everything = Fault(faults_of.respond(502, "<h1>Bad Gateway</h1>"), when=lambda _: True)
    stub.config.latency_s = 0.02
    run = asyncio.create_task(scored(pool_of([stub], concurrency=4), rows_of(40), tmp_path))
    await when(lambda: len(stub.bodies("Harbour")) >= 4)
    stub.faults.append(everything)
    await asyncio.sleep(1.5)
    n_sent_meanwhile = len(stub.chats)
    stub.faults.clear()
    assert set(kinds(await run).values()) == {None}
    # While it was away it was looked at, and asked nothing but what was in flight when it went.
    assert n_sent_meanwhile <= 40 / 2


async def test_an_engine_that_died_behind_its_server_is_found_by_its_health(stub: Stub, tmp_path: Path) -> None:
    stub.config.latency_s = 0.02
    dead = [
        Fault(faults_of.respond(500), when=HARBOUR),
        Fault(faults_of.respond(503), when=faults_of.on_path("/health")),
    ]
    run = asyncio.create_task(scored(pool_of([stub], concurrency=4), rows_of(20), tmp_path))
    await when(lambda: len(stub.bodies("Harbour")) >= 2)
    stub.faults.extend(dead)
    # Longer than all pauses of a question's five tries together, 3.75 s.
    await asyncio.sleep(5)
    stub.faults.clear()
    assert set(kinds(await run).values()) == {None}


async def test_a_judge_that_is_loading_is_waited_for_only_if_that_was_asked_for(tmp_path: Path) -> None:
    with Stub() as ended:
        pass
    with pytest.raises(JudgeUnreachable, match=str(ended.port)):
        await scored(pool_of([ended]), rows_of(1), tmp_path)
    run = asyncio.create_task(scored(pool_of([ended], wait_for_server_s=60), rows_of(1), tmp_path))
    await asyncio.sleep(1)
    with ended.successor():
        assert set(kinds(await run).values()) == {None}


async def test_after_a_broken_connection_the_canary_is_asked_before_anything_is_believed(
    stub: Stub, tmp_path: Path
) -> None:
    async def replaced(call: faults_of.Call) -> web.StreamResponse:
        # Another process takes over between two requests: the same names, and nothing that enforces.
        stub.config.backend, stub.config.answer = "none", lambda _: "1"
        return await faults_of.close_before_reply()(call)

    stub.faults.append(Fault(replaced, when=faults_of.mentions("Harbour N3 "), times=1))
    with pytest.raises(EnforcementMissing):
        await scored(pool_of([stub], concurrency=1), rows_of(10), tmp_path)
    assert not stub.bodies("Harbour N4 ")


async def test_an_absence_that_is_over_no_longer_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airjudge.judge.pool.LEAST_WAIT_S", 0.1)
    stub = Stub(StubConfig(latency_s=0.1)).__enter__()
    run = asyncio.create_task(scored(pool_of([stub], concurrency=1, wait_for_server_s=2), rows_of(40), tmp_path))
    await when(lambda: len(stub.bodies("Harbour")) >= 2)
    again = await away_for(stub, 0.2)
    try:
        # 38 questions of a tenth of a second each: the run outlives the time that the absence had.
        assert set(kinds(await run).values()) == {None}
    finally:
        again.__exit__(None, None, None)


async def test_questions_that_a_server_took_down_with_it_without_a_word_are_asked_again(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airjudge.backends.vllm.CHECK_TIMEOUT_S", 0.3)
    stub.config.latency_s = 0.02
    run = asyncio.create_task(scored(pool_of([stub], concurrency=4, timeout_s=1), rows_of(40), tmp_path))
    await when(lambda: len(stub.bodies("Harbour")) >= 4)
    # A machine that vanishes from the network closes no connection: everything sent to it is simply silent.
    stub.faults.append(Fault(faults_of.hang(60), when=lambda _: True))
    await asyncio.sleep(3)
    stub.faults.clear()
    assert set(kinds(await run).values()) == {None}


# A server that is busy


async def test_429_pauses_all_sending_for_as_long_as_the_server_asks(stub: Stub, tmp_path: Path) -> None:
    stub.config.latency_s = 0.01
    busy = faults_of.respond(429, headers={"Retry-After": "1"})
    stub.faults.append(Fault(busy, when=HARBOUR, times=1, after=10))
    judge = pool_of([stub])
    assert set(kinds(await scored(judge, rows_of(40), tmp_path)).values()) == {None}
    refused = [one for one in stub.chats if HARBOUR(one)][10]
    later = [one for one in stub.chats if one.arrived_at > (refused.left_at or 0.0) + 0.1]
    assert min(one.arrived_at for one in later) >= (refused.left_at or 0.0) + 0.95
    assert judge.servers[0].faults == {"busy": 1}


async def test_a_server_that_puts_off_many_times_costs_no_sample(stub: Stub, tmp_path: Path) -> None:
    busy = faults_of.respond(429, headers={"Retry-After": "0"})
    stub.faults.append(Fault(busy, when=faults_of.mentions("Harbour N1 "), times=12))
    assert set(kinds(await scored(pool_of([stub]), rows_of(3), tmp_path)).values()) == {None}


async def test_the_adaptive_limit_grows_where_the_server_keeps_up(stub: Stub, tmp_path: Path) -> None:
    stub.config.latency_s = 0.1
    judge = pool_of([stub])
    await scored(judge, rows_of(400), tmp_path)
    assert stub.peak_in_flight > 8


async def test_the_adaptive_limit_shrinks_where_requests_wait_on_the_server(tmp_path: Path) -> None:
    with Stub(StubConfig(latency_s=0.1, places=2)) as stub:
        judge = pool_of([stub])
        await scored(judge, rows_of(100), tmp_path)
        assert 1 <= judge.servers[0].in_flight < 8
        assert stub.peak_in_flight <= 12


# Retries


async def test_no_retry_ever_grows_a_prompt(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.close_in_reply(), when=faults_of.mentions("Harbour N0 "), times=2))
    stub.faults.append(Fault(faults_of.respond(408), when=faults_of.mentions("Harbour N1 "), times=2))
    stub.faults.append(Fault(faults_of.html(), when=faults_of.mentions("Harbour N2 "), times=2))
    assert set(kinds(await scored(pool_of([stub]), rows_of(3), tmp_path)).values()) == {None}
    for n in range(3):
        sent = [one.raw for one in stub.chats if f"Harbour N{n} " in one.text]
        assert len(sent) == 3
        assert len(set(sent)) == 1
