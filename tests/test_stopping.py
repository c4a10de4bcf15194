"""What stops a run, and what is left of it: signals, disks, kills."""

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from airjudge.errors import InputError, StorageFailed
from airjudge.journal import JOURNAL, Store
from airjudge.run import RunState, read_scored, verify_run
from airjudge.schema import RunCounts
from tests.killing import FOUR_AT_ONCE, KilledRun, chaos, committed, findings, write_rows
from tests.rows import row
from tests.runs import numbered, run, statements_asked, stopped_at, write
from tests.stub import Fault, Stub
from tests.stub import faults as faults_of

FAILPOINTS = [
    "before_commit:4", "after_commit:4", "during_export:2", "before_rename:3", "after_rename:3", "after_finish",
]  # fmt: skip


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


# Signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_lets_what_is_in_flight_end_and_begins_nothing_else(
    stub: Stub, tmp_path: Path, number: signal.Signals
) -> None:
    stub.faults.append(Fault(faults_of.hang(1.0), when=faults_of.mentions("Harbour N")))
    data = write(tmp_path, *numbered(9))
    killed = KilledRun(stub, data, tmp_path / "out", "--concurrency", "2")
    with killed.start() as process:
        while not statements_asked(stub):
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"2 samples are done" in err
    assert b"hint: The same command goes on" in err
    assert b"Traceback" not in err
    assert len(committed(tmp_path / "out")) == 2
    assert RunState.model_validate_json((tmp_path / "out" / "run.json").read_bytes()).state == "interrupted"
    stub.faults.clear()
    assert killed.once() == 0
    assert killed.twice == []
    assert len(list(read_scored(tmp_path / "out"))) == 9


def test_two_signals_abort_at_once_and_leave_a_run_to_go_on_with(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.hang(60), when=faults_of.mentions("Harbour N3")))
    data = write(tmp_path, *numbered(5))
    killed = KilledRun(stub, data, tmp_path / "out", "--concurrency", "1")
    with killed.start() as process:
        while not any("N3" in text for text in statements_asked(stub)):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)  # half of what the open question would take
    assert (process.returncode, b"Traceback" in err) == (130, False)
    stub.faults.clear()
    assert killed.once() == 0
    assert len(list(read_scored(tmp_path / "out"))) == 5


def test_a_signal_while_the_server_is_proved_ends_at_once(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.hang(60), when=faults_of.schema_named("canary")))
    killed = KilledRun(stub, write(tmp_path, *numbered(2)), tmp_path / "out")
    with killed.start() as process:
        while not any(one.schema_name == "canary" for one in stub.requests):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, b"Traceback" in err, b"hint: The same command" in err) == (130, False, True)


def test_a_signal_while_the_results_are_written_leaves_a_run_to_go_on_with(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *numbered(3))
    killed = KilledRun(stub, data, tmp_path / "out")
    interrupt_oneself = (
        "import os, signal, airjudge.run.export as e; "
        "e.summarise = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT); "
        "import sys; sys.argv = sys.argv[2:]; from airjudge.cli import main; main()"
    )
    with killed.start(python_options=["-c", interrupt_oneself]) as process:
        _, err = process.communicate(timeout=30)
    assert (process.returncode, b"Traceback" in err, b"hint: The same command" in err) == (130, False, True)
    stub.clear()
    assert killed.once() == 0
    assert statements_asked(stub) == []


def test_a_drain_takes_no_longer_than_one_request_may(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.hang(0.8), when=faults_of.mentions("Harbour Middle")))
    data = write(tmp_path, row("Middle", 10))
    killed = KilledRun(stub, data, tmp_path / "out", "--concurrency", "1", "--timeout", "2")
    with killed.start() as process:
        while not statements_asked(stub):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    # Ten questions of .8 s are not all asked within 2 s; those that were are kept.
    assert 1 <= len(committed(tmp_path / "out")) < 10


# Disks


def test_a_full_disk_stops_the_run_with_a_reason_and_what_was_committed_is_kept(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *(row(f"N{n}" + "x" * 2000) for n in range(150)))
    killed = KilledRun(stub, data, tmp_path / "out", "--concurrency", "8")
    small = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000)); "
    prlimit = ["-c", small + "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"]
    with killed.start(python_options=prlimit) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert b"error: " in err
    assert b"hint: " in err
    assert b"Traceback" not in err
    kept = len(committed(tmp_path / "out"))
    assert 0 < kept < 150
    stub.clear()
    assert killed.once() == 0
    assert len(statements_asked(stub)) == 150 - kept
    assert verify_run(tmp_path / "out").findings == ()


def test_a_folder_that_is_removed_under_a_run_stops_it(stub: Stub, tmp_path: Path) -> None:
    stub.config.latency_s = 0.1  # more than a group waits: it is removed between two commits
    data = write(tmp_path, *numbered(6))

    def on_counts(counts: RunCounts) -> None:
        if counts.n_samples == 2:
            shutil.rmtree(tmp_path / "out", ignore_errors=True)

    with pytest.raises(StorageFailed, match="was removed"):
        run(stub, data, tmp_path / "out", on_counts=on_counts)
    assert run(stub, data, tmp_path / "out").summary.n == 6


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_refused(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *numbered(2))
    (tmp_path / "held").mkdir(mode=0o500)
    with pytest.raises(InputError, match="cannot write"):
        run(stub, data, tmp_path / "held" / "out")


def test_a_folder_that_cannot_be_made_is_refused(stub: Stub, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"):
        run(stub, write(tmp_path, *numbered(2)), Path("/proc/airjudge/out"))


def test_a_clock_that_jumped_back_between_two_starts_changes_nothing(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *numbered(4))
    stopped_at(stub, "Harbour N2", data, tmp_path / "out")
    with Store(tmp_path / "out") as store, store.transaction() as database:
        database.execute("UPDATE starts SET started = '2199-01-01T00:00:00+00:00'")
    header = run(stub, data, tmp_path / "out")
    assert header.summary.n == 4
    assert all(one.seconds >= 0 for one in header.starts)


def test_a_clock_that_jumps_back_within_a_start_leaves_its_seconds_right(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = count(time.time(), -3600.0)
    monkeypatch.setattr(time, "time", lambda: next(back))
    began = time.monotonic()
    header = run(stub, write(tmp_path, *numbered(4)), tmp_path / "out")
    assert 0 <= header.seconds <= time.monotonic() - began


def test_a_journal_of_another_version_is_refused(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *numbered(1))
    run(stub, data, tmp_path / "out")
    with Store(tmp_path / "out") as store, store.transaction() as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(InputError, match="another version"):
        run(stub, data, tmp_path / "out")


def test_a_journal_that_is_no_database_is_a_reason_not_a_crash(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *numbered(1))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / JOURNAL).write_bytes(b"\0" * 100 + b"nothing that SQLite wrote" * 400)
    with pytest.raises(StorageFailed, match="not a database"):
        run(stub, data, tmp_path / "out")


# Kills


@pytest.mark.parametrize("point", FAILPOINTS)
def test_a_kill_at_a_failpoint_leaves_a_run_that_ends_as_if_never_killed(
    stub: Stub, tmp_path: Path, point: str
) -> None:
    data = write_rows(tmp_path, 8)
    whole = KilledRun(stub, data, tmp_path / "whole", *FOUR_AT_ONCE)
    assert whole.once() == 0
    killed = KilledRun(stub, data, tmp_path / "out", *FOUR_AT_ONCE)
    assert killed.once(environment={"AIRJUDGE_FAILPOINT": point}) == -signal.SIGKILL
    assert findings(killed, whole, killed.once()) == []


def test_runs_killed_twenty_times_at_random_moments_end_as_if_never_killed(stub: Stub, tmp_path: Path) -> None:
    ended = chaos(stub, tmp_path, kills=20, rng=random.Random(7))
    assert (ended.n_kills, ended.wrong) == (20, [])
