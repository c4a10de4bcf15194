"""Many samples of one statement each: speed, memory, and SIGKILL and resume on the way.

    python benchmarks/scale/run.py                              # 50,000 samples, about a minute
    python benchmarks/scale/run.py --samples 1000000 --kill-at 0.5 0.98

Runs `airjudge score` as a process of its own against the lean stub (`stub.py`) in another, ends it with
SIGKILL whenever the stub has been asked the given share of all questions, and gives the same command
again. Afterwards every verdict is held against a recomputation of what the stub answers, and the stub's
log against what was committed when the process was killed.
"""

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from itertools import pairwise, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import psutil

from airjudge import prompts
from airjudge.backends.vllm import Connection, VllmBackend
from airjudge.schema import Sample
from airjudge.statements import split_statements

RESULTS = Path(__file__).parents[1] / "results" / "scale.json"
STUB = Path(__file__).with_name("stub.py")
POLL_S = 0.05
COUNTER = b"airjudge_stub_requests_total "
MB = 10**6


@dataclass(frozen=True, slots=True)
class Mark:
    """One look at the run: seconds since its process began, its memory, verdicts asked for since the stub began."""

    at: float
    rss: int
    n_asked: int


@dataclass(slots=True)
class Start:
    """One process of `airjudge score`, from its begin to its end; `n_before` and `n_after` as the stub counts."""

    n_before: int
    n_after: int = 0
    marks: list[Mark] = field(default_factory=list)
    cpu_s: float = 0.0
    seconds: float = 0.0
    code: int = 0
    out: bytes = b""
    committed: frozenset[int] = frozenset()

    def first_request_s(self, n_proof: int) -> float | None:
        """Seconds until a sample was asked for, after the requests that prove enforcement; None if none was."""
        return next((mark.at for mark in self.marks if mark.n_asked > self.n_before + n_proof), None)

    def asking_s(self, n_proof: int) -> float:
        """Seconds between the first sample's request and the last."""
        first = self.first_request_s(n_proof)
        last = next((mark.at for mark in self.marks if mark.n_asked >= self.n_after), self.seconds)
        return 0.0 if first is None else last - first


@dataclass(frozen=True, slots=True)
class Stub:
    """The lean judge: where it is, and how often it has been asked for a verdict."""

    base_url: str
    model: str
    metrics: HTTPConnection

    def n_asked(self) -> int:
        """Read its counter."""
        self.metrics.request("GET", "/metrics")
        lines = self.metrics.getresponse().read().splitlines()
        return next(int(line.removeprefix(COUNTER)) for line in lines if line.startswith(COUNTER))


@contextmanager
def lean_stub(log: Path) -> Iterator[Stub]:
    """Run the stub in a process of its own; when the block has ended, its log is whole."""
    command = [sys.executable, str(STUB), "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            told = json.loads(process.stdout.readline())
            yield Stub(told["base_url"], told["model"], HTTPConnection(urlsplit(told["base_url"]).netloc))
        finally:
            process.terminate()


def write_samples(path: Path, n_samples: int) -> None:
    """Write a data set whose lines differ in every field."""
    with path.open("w", encoding="utf-8") as file:
        for n in range(n_samples):
            row = {
                "id": f"s{n}",
                "user_input": f"What did harbour {n} open, and when?",
                "reference": f"Harbour {n} opened pier {n % 97} in {1850 + n % 150}.",
                "retrieved_contexts": [
                    f"Harbour {n} lies on the north coast. Its pier {n % 97} opened to traffic in {1850 + n % 150}.",
                    f"Ferry {n % 389} calls at the harbour twice a day. In winter it does not run at all.",
                ],
            }
            file.write(json.dumps(row) + "\n")


def checksums(data: Path, stub: Stub) -> "array[int]":
    """The stub's checksum of the request for each sample, in order; its lowest bit is the verdict."""
    backend = VllmBackend(Connection(stub.base_url), model=stub.model)
    found = array("L")
    with data.open(encoding="utf-8") as file:
        for line in file:
            sample = Sample.model_validate_json(line)
            [statement] = split_statements(sample, "given")
            found.append(zlib.crc32(b"\r\n\r\n" + backend.body(prompts.pointwise(sample, statement))))
    return found


def followed(command: Sequence[str], stub: Stub, kill_at: int | None) -> Start:
    """Run a command, look at it until it ends, and kill it when that many verdicts have been asked for."""
    start = Start(n_before=stub.n_asked())
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        seen = psutil.Process(process.pid)
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            start.marks.append(Mark(time.monotonic() - began, seen.memory_info().rss, stub.n_asked()))
            if kill_at is not None and start.marks[-1].n_asked >= kill_at:
                process.send_signal(signal.SIGKILL)
                kill_at = None
            time.sleep(POLL_S)
        start.seconds = time.monotonic() - began
        process.returncode = start.code = os.waitstatus_to_exitcode(ended[1])
        assert process.stdout
        start.out = process.stdout.read()
    start.cpu_s = ended[2].ru_utime + ended[2].ru_stime
    start.n_after = stub.n_asked()
    return start


def committed(out: Path) -> frozenset[int]:
    """Places of the samples that the journal holds."""
    database = sqlite3.connect(f"file:{out / 'journal.sqlite'}?mode=ro", uri=True)
    try:
        return frozenset(place for (place,) in database.execute("SELECT place FROM samples"))
    finally:
        database.close()


def run_to_the_end(command: Sequence[str], out: Path, *, stub: Stub, kill_at: Sequence[int]) -> list[Start]:
    """Give a command again until it is not killed."""
    starts = []
    for limit in [*kill_at, None]:
        starts.append(followed(command, stub, limit))
        if limit is None:
            break
        if starts[-1].code != -signal.SIGKILL:
            print(f"it ended before {limit} verdicts were asked for", file=sys.stderr)
            break
        starts[-1].committed = committed(out)
    if starts[-1].code:
        sys.exit(f"airjudge ended with {starts[-1].code}")
    return starts


def n_wrong(out: Path, expected: Sequence[int]) -> int:
    """Samples that are missing, out of place, or scored otherwise than the stub answers."""
    wrong = 0
    with (out / "samples.jsonl").open(encoding="utf-8") as file:
        for n, (line, checksum) in enumerate(zip_longest(file, expected)):
            if line is None or checksum is None:
                wrong += 1
                continue
            record = json.loads(line)
            found = (record["id"], record["score"], [one["attributed"] for one in record["statements"]])
            wrong += found != (f"s{n}", float(checksum & 1), [bool(checksum & 1)])
    return wrong


def asked(log: Path) -> list[int]:
    """Checksums of all verdicts asked for, in order."""
    return [int(line, 16) for line in log.read_text(encoding="ascii").split()]


def n_asked_again(starts: Sequence[Start], log: Sequence[int], expected: Sequence[int]) -> tuple[int, int]:
    """Requests for samples that were committed before, and requests that prove enforcement, a start.

    A start must ask each sample that was not committed once: what goes beyond is its proof, or was asked
    again. Checksums of 32 bits collide among a million, so they are counted, not looked up.
    """
    again = n_proof = 0
    done: frozenset[int] = frozenset()
    for start in starts:
        open_ones = Counter(checksum for place, checksum in enumerate(expected) if place not in done)
        extra = Counter(log[start.n_before : start.n_after]) - open_ones
        repeated = extra & Counter(expected[place] for place in done)
        again += repeated.total()
        n_proof = extra.total() - repeated.total()
        done = start.committed
    return again, n_proof


def memory(starts: Sequence[Start], n_samples: int) -> dict[str, float]:
    """Memory when a tenth of all samples, at most 100,000, were asked for; later on; and the growth, in MB."""
    at = min(100_000, n_samples // 10)
    early = next(mark.rss for mark in starts[0].marks if mark.n_asked >= at)
    later = [mark for start in starts for mark in start.marks if mark.n_asked >= at]
    asking = [mark.rss for mark in later if mark.n_asked < starts[-1].n_after]
    return {
        "samples_then": at,
        "then": early / MB,
        "at_the_last_request": asking[-1] / MB if asking else early / MB,
        "peak": max(mark.rss for mark in later) / MB,
        "growth_while_asking": (max(asking, default=early) - early) / MB,
    }


def figures(starts: Sequence[Start], n_samples: int, n_proof: int) -> dict[str, object]:
    """All that is measured, from the starts of one run."""
    asking_s = sum(start.asking_s(n_proof) for start in starts)
    return {
        "samples": n_samples,
        "cores": os.cpu_count(),
        "verdicts_per_s": (starts[-1].n_after - n_proof * len(starts)) / asking_s,
        "client_cpu_ms_per_verdict": 1000 * sum(start.cpu_s for start in starts) / n_samples,
        "wall_s": sum(start.seconds for start in starts),
        "export_s": starts[-1].seconds - (starts[-1].first_request_s(n_proof) or 0) - starts[-1].asking_s(n_proof),
        "memory_mb": memory(starts, n_samples),
        "resumes": [
            {"committed": len(before.committed), "first_request_s": start.first_request_s(n_proof)}
            for before, start in pairwise(starts)
        ],
        "timeline": [
            [round(mark.at, 2), mark.n_asked - start.n_before, round(mark.rss / MB, 1)]
            for start in starts
            for mark in start.marks[:: max(1, len(start.marks) // 50)]
        ],
    }


def table(found: dict[str, object]) -> str:
    """The figures as Markdown."""
    rows = [(key, value) for key, value in found.items() if not isinstance(value, list | dict)]
    for group in ("memory_mb", *(("resumes",) if found["resumes"] else ())):
        parts = found[group]
        for number, part in enumerate(parts if isinstance(parts, list) else [parts], start=1):
            rows += [(f"{group} {number if group == 'resumes' else ''} {key}", value) for key, value in part.items()]
    shown = ((" ".join(key.replace("_", " ").split()), value) for key, value in rows)
    lines = (f"| {key} | {value:.4g} |" if isinstance(value, float) else f"| {key} | {value} |" for key, value in shown)
    return "\n".join(("| figure | value |", "|---|---|", *lines))


def measure(n_samples: int, kill_at: Sequence[float], options: Sequence[str]) -> dict[str, object]:
    """Run it all in a temporary folder."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        data, out, log = folder / "samples.jsonl", folder / "out", folder / "asked"
        write_samples(data, n_samples)
        with lean_stub(log) as stub:
            where = ["--base-url", stub.base_url, "--model", stub.model, "--out", str(out)]
            command = [sys.executable, "-m", "airjudge", "score", str(data), *where, "--quiet", "--json", *options]
            limits = [int(share * n_samples) for share in sorted(kill_at)]
            starts = run_to_the_end(command, out, stub=stub, kill_at=limits)
        expected = checksums(data, stub)
        again, n_proof = n_asked_again(starts, asked(log), expected)
        summary = json.loads(starts[-1].out)
        return {
            **figures(starts, n_samples, n_proof),
            "asked_again_after_commit": again,
            "wrong_samples": n_wrong(out, expected),
            "summary_as_recomputed": summary["n_scored"] == n_samples
            and summary["mean"] == sum(checksum & 1 for checksum in expected) / n_samples,
        }


def main() -> None:
    """Measure, write the results, print them; exit 1 if the run was not right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--kill-at", type=float, nargs="*", default=[0.5], help="shares of all verdicts")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("rest", nargs="*", help="options for airjudge score, after --")
    options = parser.parse_args()
    found = measure(options.samples, options.kill_at, options.rest)
    options.results.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(table(found))
    if found["asked_again_after_commit"] or found["wrong_samples"] or not found["summary_as_recomputed"]:
        sys.exit("the results are not those of the stub's answers, or something was asked twice")


if __name__ == "__main__":
    main()
