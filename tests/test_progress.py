"""What is shown while a run goes on: live on a terminal, plain lines elsewhere, nothing if asked."""

import logging
import os
import pty
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from airjudge.cli.progress import display
from airjudge.schema import RunCounts

SHOW = """
import logging, time
from airjudge.cli.progress import display
from airjudge.schema import RunCounts
with display(tick_s=0.01) as shown:
    shown.stage("scoring [bold]d.jsonl", 0, 0)
    shown.counts(RunCounts(n_samples=20, n_restored=5, n_total=80, n_statements=41, failures={"timeout": 2}))
    time.sleep(0.3)
    logging.getLogger("airjudge.judge").warning("server_away", extra={"event": {"tries": 3}})
    time.sleep(0.3)
print("done")
"""


def test_without_a_terminal_there_is_a_line_now_and_then_and_one_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with display(every_s=0.02, tick_s=0.005) as shown:
        shown.counts(RunCounts(n_samples=1, n_statements=1))
        first = _wait_for_line(capsys)
        shown.counts(RunCounts(n_samples=9, n_statements=9))
    captured = capsys.readouterr()
    assert first.startswith("1 samples, 1 statements")
    assert captured.err.splitlines()[-1].startswith("9 samples, 9 statements")
    assert captured.out == ""


def test_a_run_that_stands_still_is_still_told(capsys: pytest.CaptureFixture[str]) -> None:
    with display(every_s=0.02, tick_s=0.005) as shown:
        shown.counts(RunCounts(n_samples=1, n_statements=1))
        _wait_for_line(capsys)
        assert _wait_for_line(capsys).startswith("1 samples")


def test_a_short_run_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    with display() as shown:
        shown.counts(RunCounts(n_samples=9, n_statements=9))
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_a_module_warns_of_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("airjudge.judge")
    with display():
        log.warning(
            "server_away", extra={"event": {"server": "http://127.0.0.1:1", "tries": 3}, "data": {"x": "secret"}}
        )
        log.info("server_busy")
    log.warning("later")
    assert capsys.readouterr().err == "server away: server http://127.0.0.1:1, tries 3\n"


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with display(quiet=True, every_s=0.01, tick_s=0.005) as shown:
        shown.stage("starting", 0, 0)
        shown.counts(RunCounts(n_samples=1))
        logging.getLogger("airjudge.judge").warning("server_away")
        time.sleep(0.05)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_reader_that_went_away_does_not_end_a_run() -> None:
    script = SHOW.replace("tick_s=0.01", "tick_s=0.01, every_s=0.02")
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()) as process:
        assert process.stderr
        process.stderr.close()
        assert process.stdout
        assert process.stdout.read() == b"done\n"
    assert process.returncode == 0


def test_an_error_passes_through_and_no_thread_stays() -> None:
    before = threading.active_count()
    error = ValueError("mine")
    with pytest.raises(ValueError, match="mine"), display(quiet=True):
        raise error
    assert threading.active_count() == before


def test_a_terminal_shows_how_far_the_run_is_and_is_left_clean() -> None:
    shown = _on_terminal(sys.executable, "-c", SHOW)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert "20 of 80 samples (5 from an earlier start)" in text
    assert "41 statements" in text
    assert "2 failed (timeout 2)" in text
    assert "scoring [bold]d.jsonl" in text
    assert "server away: tries 3" in text
    # The cursor, hidden for the display, is shown again.
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def _wait_for_line(capsys: pytest.CaptureFixture[str]) -> str:
    """Wait for the next line on stderr."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        lines = capsys.readouterr().err.splitlines()
        if lines:
            return lines[0]
        time.sleep(0.005)
    pytest.fail("no line came")


def _on_terminal(*command: str) -> str:
    """Run a command whose stderr is a terminal, and give what that terminal was sent."""
    master, slave = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=_environment()) as process:
        os.close(slave)
        sent = bytearray()
        # Reading the terminal of a process that has ended is an error on Linux.
        while chunk := _read(master):
            sent += chunk
        assert process.communicate()[0] == b"done\n"
    os.close(master)
    assert process.returncode == 0
    return sent.decode()


def _environment() -> dict[str, str]:
    source = str(Path(__file__).parents[1] / "src")
    path = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "TERM": "xterm", "COLUMNS": "120", "PYTHONPATH": path}


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""
