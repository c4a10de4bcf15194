"""Runs that are killed at random moments, and what has to hold of them afterwards.

Driven by the tests with a few kills, and by `benchmarks/chaos` with many.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from airjudge.errors import InputError
from airjudge.journal import Reader
from airjudge.run import verify_run
from airjudge.run.folder import EXPORTS
from tests.rows import row
from tests.stub import Stub
from tests.stub.faults import RecordedRequest

N_SAMPLES = 80
LATENCY_S = 0.02
FOUR_AT_ONCE = ("--concurrency", "4")
Runner = subprocess.Popen[bytes]


def statement_asked(request: RecordedRequest) -> str | None:
    """Give the text of the statement that a request asks a verdict on; None for other requests."""
    if request.schema_name != "verdict" or "Harbour" not in request.text:
        return None
    return request.text.rpartition("Statement: ")[2].partition("\n")[0]


def committed(out: Path) -> set[str]:
    """Give the texts of all statements that the journal of a folder holds a verdict on."""
    with suppress(InputError), Reader(out) as journal:
        if not journal.is_empty:
            return {str(text) for (text,) in journal.rows("SELECT text FROM verdicts WHERE attributed IS NOT NULL")}
    return set()


class KilledRun:
    """One command whose process is started again and again; `twice` are statements asked after their commit."""

    def __init__(self, stub: Stub, data: Path, out: Path, *options: str) -> None:
        self.stub, self.data, self.out, self.options = stub, data, out, options
        self.twice: list[str] = []
        self.n_kills = self.n_starts = 0

    def start(self, environment: Mapping[str, str] | None = None, *, python_options: Sequence[str] = ()) -> Runner:
        """Start the command in a process group of its own; `python_options` stand before its `-m`."""
        key = {"STUB_KEY": self.stub.api_key or ""}
        server = ("--base-url", self.stub.base_url, "--model", self.stub.model, "--api-key-env", "STUB_KEY")
        files = (str(self.data), "--out", str(self.out))
        return subprocess.Popen(
            [sys.executable, *python_options, "-m", "airjudge", "score", *files, *server, "--json", *self.options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **key, **(environment or {})},
        )

    def once(self, kill_after: float | None = None, environment: Mapping[str, str] | None = None) -> int:
        """Start it, kill its group that many seconds after its first question, and give its exit code."""
        self.n_starts += 1
        before, n_before = committed(self.out), len(self.stub.requests)
        with self.start(environment) as process:
            if kill_after is not None:
                self._kill(process, kill_after, n_before)
            process.communicate(timeout=120)
        asked = (statement_asked(request) for request in self.stub.requests[n_before:])
        self.twice += [text for text in asked if text in before]
        self.n_kills += process.returncode == -signal.SIGKILL
        return process.returncode

    def _kill(self, process: Runner, after: float, n_before: int) -> None:
        while process.poll() is None and not any(map(statement_asked, self.stub.requests[n_before:])):
            time.sleep(0.005)
        with suppress(subprocess.TimeoutExpired):
            process.wait(after)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def exports(self) -> dict[str, bytes]:
        """Give all exports by name."""
        return {name: (self.out / name).read_bytes() for name in EXPORTS}


def write_rows(folder: Path, n_samples: int = N_SAMPLES) -> Path:
    """Write samples of one to three statements."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row(f"N{n}", 1 + n % 3)) + "\n" for n in range(n_samples)), encoding="utf-8")
    return path


class Chaos(NamedTuple):
    """How often runs were killed, how many ended after how many starts, and what does not hold of any."""

    n_kills: int
    n_runs: int
    n_starts: int
    wrong: list[str]


def chaos(stub: Stub, folder: Path, *, kills: int, rng: random.Random) -> Chaos:
    """Kill runs until there were that many kills, and let each end."""
    stub.config.latency_s = LATENCY_S
    data = write_rows(folder)
    whole = KilledRun(stub, data, folder / "whole", *FOUR_AT_ONCE)
    whole.once()
    ended = time.monotonic()
    # Half of what a whole run takes from its first question on: a run is killed several times, and what
    # is left to ask becomes so little that later kills meet the exports.
    horizon = 0.5 * (ended - next(one.arrived_at for one in stub.requests if statement_asked(one)))
    wrong: list[str] = []
    n_kills = n_runs = n_starts = 0
    while n_kills < kills:
        n_runs += 1
        run = KilledRun(stub, data, folder / f"run{n_runs}", *FOUR_AT_ONCE)
        while n_kills + run.n_kills < kills and run.once(rng.uniform(0, horizon)) != 0:
            pass
        code = run.once()
        n_kills, n_starts = n_kills + run.n_kills, n_starts + run.n_starts
        wrong += [f"run {n_runs}: {what}" for what in findings(run, whole, code)]
    return Chaos(n_kills, n_runs, n_starts, wrong)


def findings(run: KilledRun, whole: KilledRun, code: int) -> list[str]:
    """Say what does not hold of a run that was killed and ended, beside one that was not."""
    wrong = [f"its last start ended with {code}"] if code else []
    wrong += [f"asked again after its commit: {text}" for text in run.twice]
    wrong += [f"{name} differs from that of an uninterrupted run" for name in _different(run, whole)]
    return wrong + list(verify_run(run.out).findings)


def _different(run: KilledRun, whole: KilledRun) -> list[str]:
    ours, theirs = run.exports(), whole.exports()
    return [name for name in theirs if ours[name] != theirs[name]]
