"""The journal alone: what is on the disk when, and that nobody waits longer than said."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from airjudge.errors import InputError, RunLocked, StorageFailed
from airjudge.journal import JOURNAL, Group, Reader, Row, Store, Writer, file_hash, locked, written_whole
from airjudge.journal.writer import GROUP_SECONDS, GROUP_SIZE
from airjudge.run.places import Places
from airjudge.schema import SampleError, ScoredSample, Verdict


def verdict(number: int, *, attributed: bool | None = True, reason: str | None = None) -> Verdict:
    return Verdict(id=f"s{number}", text=f"Text {number}.", attributed=attributed, probability=0.1 + 0.2, reason=reason)


def scored(name: str, *verdicts: Verdict) -> ScoredSample:
    return ScoredSample(id=name, score=1.0, status="scored", statements=verdicts)


def spent() -> tuple[float, str]:
    return 1.5, '{"requests": 3}'


def committed_within(folder: Path, n_verdicts: int, seconds: float) -> bool:
    began = time.monotonic()
    with Reader(folder) as journal:
        while len(list(journal.rows("SELECT 1 FROM verdicts"))) < n_verdicts:
            if time.monotonic() - began > seconds:
                return False
            time.sleep(0.002)
    return True


def test_a_group_is_due_when_its_oldest_verdict_has_waited_50_ms_or_32_have_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("airjudge.journal.writer.time.monotonic", lambda: now)
    with Store(tmp_path) as store:
        waiting = Writer(store, start=1, spent=spent)
        waiting.put_verdicts(0, {0: verdict(0)})
        now = 100.049
        waiting.put_verdicts(0, {1: verdict(1)})
        assert not waiting._is_due()
        now = 100.051
        assert waiting._is_due()
        full = Writer(store, start=1, spent=spent)
        full.put_verdicts(0, {number: verdict(number) for number in range(31)})
        assert not full._is_due()
        full.put_verdicts(1, {0: verdict(0)})
        assert full._is_due()


async def test_records_come_back_as_they_were_put_in_input_order(tmp_path: Path) -> None:
    failed = ScoredSample(
        id="ü\0 b",
        score=None,
        status="failed",
        error=SampleError(kind="timeout", message="no reply\nwithin 1 s"),
        statements=(verdict(0, reason="«so»"), verdict(1, attributed=None)),
        group="g",
        metadata={"lang": "de", "n": [1, None, 0.1]},
    )
    empty = ScoredSample(id="c", score=0.0, status="scored", statements=(verdict(0),), empty_contexts=True)
    with Store(tmp_path) as store:
        async with Writer(store, start=store.begin("here", "2026-01-01"), spent=spent) as writer:
            for place, one in ((2, empty), (0, failed)):
                writer.put_verdicts(place, dict(enumerate(one.statements)))
                await writer.put_row(Row(place, one))
    with Reader(tmp_path) as journal:
        assert list(journal.scored()) == [(0, failed), (2, empty)]


async def test_verdicts_of_unfinished_samples_stay_out_of_the_records_and_are_known_to_a_resume(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        async with Writer(store, start=1, spent=spent) as writer:
            for place in (0, 1, 3, 4, 9):
                writer.put_verdicts(place, {0: verdict(0), 2: verdict(2)})
            for place in (1, 4):
                writer.put_verdicts(place, {1: verdict(1, attributed=None)})
                await writer.put_row(Row(place, scored(f"n{place}")))
    with Reader(tmp_path) as journal:
        assert [(place, len(one.statements)) for place, one in journal.scored()] == [(1, 3), (4, 3)]
        assert journal.verdicts(3) == {0: verdict(0), 2: verdict(2)}
        assert journal.verdicts(4) == {0: verdict(0), 2: verdict(2)}  # a failed question is no verdict


async def test_a_lone_verdict_is_committed_without_another_one_pushing_it(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        async with Writer(store, start=1, spent=spent) as writer:
            writer.put_verdicts(0, {0: verdict(0)})
            assert await asyncio.to_thread(committed_within, tmp_path, 1, seconds=20)


async def test_a_full_group_does_not_wait_for_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airjudge.journal.writer.GROUP_SECONDS", 3600.0)
    with Store(tmp_path) as store:
        async with Writer(store, start=1, spent=spent) as writer:
            writer.put_verdicts(0, {n: verdict(n) for n in range(GROUP_SIZE - 1)})
            await asyncio.sleep(4 * GROUP_SECONDS)
            with Reader(tmp_path) as journal:
                assert not journal.verdicts(0)
            writer.put_verdicts(1, {0: verdict(0)})
            assert await asyncio.to_thread(committed_within, tmp_path, GROUP_SIZE, seconds=20)


async def test_what_is_pending_when_the_block_is_cancelled_is_committed(tmp_path: Path) -> None:
    async def put_and_wait(store: Store) -> None:
        async with Writer(store, start=1, spent=spent) as writer:
            writer.put_verdicts(0, {0: verdict(0)})
            await asyncio.sleep(3600)

    with Store(tmp_path) as store:
        task = asyncio.create_task(put_and_wait(store))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    with Reader(tmp_path) as journal:
        assert journal.verdicts(0) == {0: verdict(0)}


async def test_a_sample_is_never_committed_before_its_verdicts(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        async with Writer(store, start=1, spent=spent) as writer:

            async def one(place: int) -> None:
                for number in range(5):
                    writer.put_verdicts(place, {number: verdict(number)})
                    await asyncio.sleep(0.001)
                await writer.put_row(Row(place, scored(f"n{place}")))
                with Reader(tmp_path) as journal:
                    assert len(journal.verdicts(place)) == 5

            await asyncio.gather(*(one(place) for place in range(40)))


async def test_a_disk_that_cannot_follow_holds_back_who_puts(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        async with Writer(store, start=1, spent=spent) as writer:
            with Store(tmp_path) as another, another.transaction():  # the writer has to wait for this transaction
                for place in range(100):
                    writer.put_verdicts(place, {n: verdict(n) for n in range(50)})
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(writer.room(), timeout=0.3)
            await asyncio.wait_for(writer.room(), timeout=20)


async def test_a_commit_that_fails_is_the_error_of_all_who_wait_and_of_all_who_come(tmp_path: Path) -> None:
    async def put_into_a_removed_file(store: Store) -> None:
        async with Writer(store, start=1, spent=spent) as writer:
            (tmp_path / JOURNAL).unlink()
            with pytest.raises(StorageFailed):
                await asyncio.wait_for(writer.put_row(Row(0, scored("a"))), timeout=20)
            with pytest.raises(StorageFailed):
                writer.put_verdicts(1, {0: verdict(0)})

    with Store(tmp_path) as store, pytest.raises(StorageFailed, match="was removed"):
        await put_into_a_removed_file(store)


async def test_a_bug_in_a_commit_ends_the_run_instead_of_hanging_it(tmp_path: Path) -> None:
    broken = scored("a").model_copy(update={"metadata": {"x": object()}})
    with Store(tmp_path) as store, pytest.raises(TypeError):
        async with Writer(store, start=1, spent=spent) as writer:
            await asyncio.wait_for(writer.put_row(Row(0, broken)), timeout=20)


def test_half_a_surrogate_pair_from_a_judge_can_be_kept(tmp_path: Path) -> None:
    odd = Verdict(id="1", text="T", attributed=True).model_copy(update={"reason": "\ud800!"})
    with Store(tmp_path) as store:
        store.commit(Group({(0, 0): odd}), start=1, spent=spent())
    with Reader(tmp_path) as journal:
        assert journal.verdicts(0)[0].reason == "?!"


def test_a_start_that_never_told_its_end_was_killed_and_keeps_its_cost(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.commit(Group(), start=store.begin("a", "2026-01-01"), spent=(2.5, '{"requests": 7}'))
        store.begin("b", "2026-01-02")
    with Reader(tmp_path) as journal:
        first, second = journal.starts()
    assert (first.ended, first.seconds, first.usage.requests) == ("killed", 2.5, 7)
    assert (second.ended, second.usage.requests) == (None, 0)


def test_a_folder_without_a_journal_is_said_to_hold_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no run"):
        Reader(tmp_path)


def test_a_journal_in_a_folder_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.commit(Group({(0, 0): verdict(0)}), start=1, spent=spent())
    tmp_path.chmod(0o500)
    with Reader(tmp_path) as journal:
        assert journal.verdicts(0)
    tmp_path.chmod(0o700)


def test_a_folder_has_one_holder_and_names_it(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(RunLocked, match=f"process {os.getpid()} on "), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_file_whose_writing_fails_leaves_the_old_one_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")

    def fail() -> None:
        with written_whole(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])
    with written_whole(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"
    assert file_hash(tmp_path / "none") is None


def test_a_million_places_take_less_memory_than_a_photograph() -> None:
    tracemalloc.start()
    places = Places(range(0, 1_000_000, 2))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (0 in places, 1 in places, 999_998 in places, 5_000_000 in places) == (True, False, True, False)
    assert held < 200_000  # one bit each is 125,000 bytes


# What reaches the disk, and when

_TRACED = """
import asyncio, os, sys
from pathlib import Path
from airjudge.journal import Row, Store, Writer, written_whole
from airjudge.schema import ScoredSample, Verdict

async def main(folder):
    with Store(folder) as store:
        async with Writer(store, start=1, spent=lambda: (0.0, "{}")) as writer:
            for place in range(3):
                writer.put_verdicts(place, {0: Verdict(id="1", text="T", attributed=True)})
                os.write(2, f"PUT {place}\\n".encode())
                await writer.put_row(Row(place, ScoredSample(id=str(place), score=1.0, status="scored")))
                os.write(2, f"DONE {place}\\n".encode())
    with written_whole(folder / "export.json") as file:
        file.write(b"all of it")
    os.write(2, b"EXPORTED\\n")

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    """System calls of a process that writes three samples and an export, in order, over all its threads."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    command = ["strace", "-f", "-y", "-s", "64", "-o", tmp_path / "trace",
               "-e", "trace=write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,close",
               sys.executable, "-c", _TRACED, tmp_path]  # fmt: skip
    ended = subprocess.run(list(map(str, command)), capture_output=True, check=False, timeout=120)
    if b"ptrace" in ended.stderr and ended.returncode:
        pytest.skip("this user may not trace processes")
    assert ended.returncode == 0, ended.stderr
    return (tmp_path / "trace").read_text().splitlines()


def places_of(trace: list[str], pattern: str) -> list[int]:
    return [number for number, line in enumerate(trace) if re.search(pattern, line)]


def test_the_wal_is_synced_after_a_verdict_is_written_and_before_it_counts_as_done(trace: list[str]) -> None:
    for place in range(3):
        (put,) = places_of(trace, rf'"PUT {place}')
        (done,) = places_of(trace, rf'"DONE {place}')
        written = [n for n in places_of(trace, r"pwrite64\(.*journal\.sqlite-wal>") if put < n < done]
        synced = [n for n in places_of(trace, r"(fsync|fdatasync)\(.*journal\.sqlite-wal>") if put < n < done]
        assert written
        assert synced
        assert max(written) < max(synced)


def test_an_export_is_synced_then_renamed_then_its_folder_is_synced(trace: list[str], tmp_path: Path) -> None:
    (written,) = places_of(trace, r"write\(.*export\.json\.partial>.*all of it")
    (synced,) = places_of(trace, r"fsync\(.*export\.json\.partial>")
    (renamed,) = places_of(trace, r"rename.*export\.json\.partial")
    folder = [n for n in places_of(trace, rf"fsync\(\d+<{re.escape(str(tmp_path))}>\)") if n > renamed]
    (told,) = places_of(trace, r'"EXPORTED')
    assert written < synced < renamed < folder[0] < told
