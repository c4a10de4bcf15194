"""How many requests are open at once, in which order they go out, and that none is left behind."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from airjudge.judge import JudgeSettings
from tests.rows import kinds, row, score_rows
from tests.stub import Fault, Stub
from tests.stub import faults as faults_of


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.mark.parametrize("limit", [1, 2])
async def test_no_more_requests_are_open_than_the_limit_allows(stub: Stub, tmp_path: Path, limit: int) -> None:
    stub.config.latency_s = 0.02
    rows = [row(f"N{n}", 5) for n in range(8)]  # four follow the first one at once, if they may
    records = await score_rows(stub, rows, tmp_path, settings=JudgeSettings(concurrency=limit))
    assert set(kinds(records).values()) == {None}
    assert stub.peak_in_flight == limit


async def test_the_limit_holds_while_replies_are_refused_and_the_canary_is_asked_again(
    stub: Stub, tmp_path: Path
) -> None:
    stub.config.latency_s = 0.02
    stub.faults.append(Fault(faults_of.say("Sure."), when=faults_of.mentions("Harbour N1")))
    rows = [row(f"N{n}", 5) for n in range(8)]
    await score_rows(stub, rows, tmp_path, settings=JudgeSettings(concurrency=2))
    assert stub.peak_in_flight == 2


async def test_requests_are_open_together_up_to_the_limit(stub: Stub, tmp_path: Path) -> None:
    stub.config.latency_s = 0.3
    rows = [row(f"N{n}") for n in range(40)]
    await score_rows(stub, rows, tmp_path, settings=JudgeSettings(concurrency=16))
    assert stub.peak_in_flight == 16


async def test_the_first_statement_of_a_sample_goes_alone_and_the_others_together(stub: Stub, tmp_path: Path) -> None:
    stub.config.latency_s = 0.1
    await score_rows(stub, [row("North", 6)], tmp_path)
    lead, *followers = (one for one in stub.chats if "Harbour North" in one.text)
    assert lead.left_at is not None
    assert all(one.arrived_at >= lead.left_at for one in followers)
    assert [one.in_flight for one in followers] == [1, 2, 3, 4, 5]


async def test_a_cancelled_run_leaves_no_request_open(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.hang(60), when=faults_of.mentions("Harbour")))
    task = asyncio.create_task(score_rows(stub, [row("North"), row("South")], tmp_path))
    for _ in range(1000):
        if stub.bodies("Harbour"):
            break
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.5)
    assert all(one.left_at is not None for one in stub.requests)
