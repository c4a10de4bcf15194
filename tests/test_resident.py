"""A judge that stays open: used from any thread and loop, opened once, closed in the end."""

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airjudge import ContextRecall, Judge, JudgeSettings, RecallResult
from airjudge.errors import InputError, JudgeUnreachable
from airjudge.resident import ResidentJudge, resident
from tests.rows import connected
from tests.stub import Stub

SAMPLE = {"user_input": "a?", "reference": "It is red.", "retrieved_contexts": ["It is red."]}


async def recall(judge: Judge) -> RecallResult:
    return await ContextRecall(judge).ascore(**SAMPLE)  # type: ignore[arg-type]


@pytest.fixture
def served(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """A stub that the environment names."""
    monkeypatch.setenv("AIRJUDGE_BASE_URL", stub.base_url)
    monkeypatch.setenv("AIRJUDGE_API_KEY", stub.api_key or "")
    return stub


def opened(stub: Stub) -> int:
    """How often a judge was proved, by its canary."""
    return len(stub.bodies("Reply with the single word"))


def test_threads_and_loops_share_one_open_judge(served: Stub) -> None:
    judge = resident(served.model, settings=JudgeSettings(concurrency=3))
    with ThreadPoolExecutor(8) as threads:
        values = [one.value for one in threads.map(lambda _: judge.call(recall), range(16))]
    values += [asyncio.run(judge.acall(recall)).value for _ in range(2)]
    assert values == [1.0] * 18
    assert opened(served) == 1
    assert resident(served.model, settings=JudgeSettings(concurrency=3)) is judge
    assert resident(served.model) is not judge
    judge.close()
    assert judge.call(recall).value == 1.0
    judge.close()


def test_it_refuses_to_block_a_running_loop(stub: Stub) -> None:
    judge = resident(connected(stub))

    async def inside() -> None:
        judge.call(recall)

    with pytest.raises(RuntimeError, match="await acall instead"):
        asyncio.run(inside())
    assert not stub.requests


def test_what_cannot_be_opened_is_tried_again(served: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    urls = iter(["http://127.0.0.1:9/v1", served.base_url])
    judge = ResidentJudge(lambda: Judge.find(settings=JudgeSettings(timeout_s=5)))
    monkeypatch.setenv("AIRJUDGE_BASE_URL", next(urls))
    with pytest.raises(JudgeUnreachable):
        judge.call(recall)
    monkeypatch.setenv("AIRJUDGE_BASE_URL", next(urls))
    assert judge.call(recall).value == 1.0
    judge.close()


def test_a_name_that_stands_for_nothing_lists_what_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AIRJUDGE_BASE_URL", raising=False)
    monkeypatch.setenv("AIRJUDGE_CACHE", str(tmp_path))
    with pytest.raises(InputError, match="no model 'gpt-4o' is served here") as caught:
        resident("gpt-4o").call(recall)
    assert "qwen2.5-coder-1.5b" in caught.value.hint
    assert "airjudge serve --served-model-name gpt-4o" in caught.value.hint


CANCELLED = r"""
import asyncio, sys
from airjudge import Judge
from airjudge.resident import resident
judge = resident(Judge.connect(sys.argv[1], api_key=sys.argv[2]))
async def waits(_):
    try:
        await asyncio.sleep(60)
    finally:
        sys.stdout.write("stopped\n")
async def main():
    try:
        await asyncio.wait_for(judge.acall(waits), 0.2)
    except TimeoutError:
        sys.stdout.write("timeout\n")
    await asyncio.sleep(0.2)
asyncio.run(main())
"""


def test_what_is_cancelled_is_left_and_the_process_ends_by_itself(stub: Stub) -> None:
    command = [sys.executable, "-c", CANCELLED, stub.base_url, stub.api_key or ""]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert sorted(ended.stdout.split()) == ["stopped", "timeout"]
    assert ended.stderr == ""


def test_what_the_environment_names_later_is_another_judge(served: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    first = resident(served.model)
    assert resident(served.model) is first
    monkeypatch.setenv("AIRJUDGE_BASE_URL", "http://127.0.0.1:9/v1")
    assert resident(served.model) is not first
