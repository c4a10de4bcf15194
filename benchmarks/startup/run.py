"""What each second of a warm `airjudge demo` goes to.

    python -m benchmarks.startup.run                       # three demos on the default judge, some minutes
    python -m benchmarks.startup.run --against OTHER/src   # in turn with another checkout's airjudge
    python -m benchmarks.startup.run --table               # what was measured last; nothing is run

Each demo is a process of its own, as a user starts it; weights are prepared before. vLLM's log is followed while it
grows, and a stage ends when the line that tells of the next one is there. Everything but the stages is in "whole".
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final, Literal

from pydantic import JsonValue

from airjudge.profiles import load_profile
from airjudge.schema import Record
from airjudge.server.registry import private_folder
from airjudge.weights import prepared
from benchmarks.peers.run import machine, vllm_version

RESULTS: Final = Path(__file__).parents[1] / "results" / "startup.json"
SOURCES: Final = Path(__file__).parents[2] / "src"
STAGES: Final = {
    "airjudge, up to vLLM's start": "",
    "vLLM's imports": "non-default args",
    "its engine process": "Initializing a V1 LLM engine",
    "its worker process": "Starting to load model",
    "weights read": "Loading weights took",
    "weights packed": "GiB for KV cache",
    "KV cache": "init engine (",
    "routes": "Starting vLLM server",
}
"""A stage's name, and what the line says that ends it; the first ends when the log is there."""
REST: Final = ("proof of enforcement, verdicts, end",)
POLL_S: Final = 0.02
Arm = Literal["this", "against"]


class Demo(Record):
    """One demo: seconds of each stage, in order, and of the whole; a stage that vLLM does not have took none."""

    arm: Arm
    repeat: int
    stages_s: Mapping[str, float]
    whole_s: float


class Measured(Record):
    """What the results file holds; `against` says what the other arm was, in words."""

    date: str
    machine: Mapping[str, JsonValue]
    vllm: str
    judge: str
    against: str
    demos: tuple[Demo, ...]


class Follower(threading.Thread):
    """Reads the log that a demo makes, and stamps the lines that end a stage."""

    def __init__(self, logs: Path) -> None:
        super().__init__(daemon=True)
        self._logs, self._old = logs, set(logs.glob("*.log"))
        self.stamps: dict[str, float] = {}
        self.over = threading.Event()

    def run(self) -> None:
        """Follow until the demo is over."""
        while not self.over.wait(POLL_S):
            for log in set(self._logs.glob("*.log")) - self._old:
                text, now = log.read_text(encoding="utf-8", errors="replace"), time.monotonic()
                for stage, line in STAGES.items():
                    if line in text:
                        self.stamps.setdefault(stage, now)


def stages_of(start: float, stamps: Mapping[str, float], end: float) -> dict[str, float]:
    """Seconds of each stage, from the times at which they ended; what was not seen took none.

    Raises:
        ValueError: If no stage was seen: vLLM's log says other things than it did.
    """
    if len(stamps) <= 1:
        msg = "the log tells of no stage: its lines are not those of the vLLM that this was written for"
        raise ValueError(msg)
    found, before = {}, start
    for stage in STAGES:
        ended = max(before, stamps.get(stage, before))
        found[stage], before = ended - before, ended
    return {**found, REST[0]: end - before}


def demo(judge: str, sources: Path, *, arm: Arm, repeat: int) -> Demo:
    """Run one demo.

    Raises:
        subprocess.CalledProcessError: If it fails.
    """
    follower = Follower(private_folder("logs"))
    start = time.monotonic()
    follower.start()
    subprocess.run(
        [sys.executable, "-P", "-m", "airjudge", "demo", "--judge", judge, "--json"],
        env={**os.environ, "PYTHONPATH": str(sources)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    end = time.monotonic()
    follower.over.set()
    follower.join()
    stages = stages_of(start, follower.stamps, end)
    return Demo(
        arm=arm,
        repeat=repeat,
        stages_s={name: round(s, 2) for name, s in stages.items()},
        whole_s=round(end - start, 2),
    )


def ratio(demos: Sequence[Demo]) -> float | None:
    """Median over repeats of the whole time over that of the other arm in the same repeat; None without one."""
    other = {one.repeat: one.whole_s for one in demos if one.arm == "against"}
    pairs = [one.whole_s / other[one.repeat] for one in demos if one.arm == "this" and one.repeat in other]
    return median(pairs) if pairs else None


def table(measured: Measured) -> Iterator[str]:
    """The Markdown table: medians over demos."""
    arms = {arm: [one for one in measured.demos if one.arm == arm] for arm in ("against", "this")}
    arms = {arm: demos for arm, demos in arms.items() if demos}
    names = {"this": "now", "against": measured.against}
    yield f"| stage | {' | '.join(names[arm] for arm in arms)} |"
    yield f"|---|{'---|' * len(arms)}"
    for stage in (*STAGES, *REST):
        cells = (median(one.stages_s[stage] for one in demos) for demos in arms.values())
        yield f"| {stage} | {' | '.join(f'{cell:.1f} s' for cell in cells)} |"
    whole = " | ".join(f"{median(one.whole_s for one in demos):.1f} s" for demos in arms.values())
    yield f"| whole | {whole} |"
    share = ratio(measured.demos)
    if share is not None:
        yield ""
        yield f"In pairs, now over {measured.against}: {share:.2f} (target .67)."


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--judge", default="qwen2.5-coder-1.5b", help="profile to serve (%(default)s)")
    made.add_argument("--repeats", type=int, default=3)
    made.add_argument("--against", type=Path, metavar="SRC", help="src folder of another checkout, run in turn")
    made.add_argument("--named", default="before", help="what to call that in the table (%(default)s)")
    made.add_argument("--results", type=Path, default=RESULTS)
    made.add_argument("--table", action="store_true", help="print what the results hold; run nothing")
    return made


def measure(asked: argparse.Namespace) -> Measured:
    """Run the demos, in turn where there are two arms."""
    prepared(load_profile(asked.judge))
    arms: dict[Arm, Path] = {"against": asked.against, "this": SOURCES} if asked.against else {"this": SOURCES}
    demos = []
    for repeat in range(1, asked.repeats + 1):
        for arm, sources in arms.items():
            demos.append(demo(asked.judge, sources, arm=arm, repeat=repeat))
            print(demos[-1].model_dump_json(), file=sys.stderr, flush=True)
    return Measured(
        date=datetime.now(UTC).date().isoformat(),
        machine=machine(),
        vllm=vllm_version(),
        judge=asked.judge,
        against=asked.named if asked.against else "",
        demos=tuple(demos),
    )


def main() -> None:
    """Measure, keep it, and print the table."""
    asked = parser().parse_args()
    if not asked.table:
        measured = measure(asked)
        asked.results.parent.mkdir(parents=True, exist_ok=True)
        asked.results.write_text(measured.model_dump_json(indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(Measured.model_validate_json(asked.results.read_bytes()))))


if __name__ == "__main__":
    main()
