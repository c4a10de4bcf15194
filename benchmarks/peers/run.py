"""Context recall by airjudge, ragas, opik and deepeval, in turn, on the same machine, weights and server.

    python -m benchmarks.peers.run                               # 8 samples of wice_subclaims, 2 turns of each tool
    python -m benchmarks.peers.run --set factcheck_bench_responses --first 2
    python -m benchmarks.peers.run --add                         # further turns beside those that the results hold
    python -m benchmarks.peers.run --table                       # what was measured last; nothing is asked

Turns go A B C, A B C, so that drift shows; each has a vLLM process of its own, so that none finds another's prompts in
the cache. The peers run in the environment of `make test-oracles`, telemetry off, `--concurrency` samples in flight;
airjudge finds its own number. A *covered* statement is one of the human split on which a tool returned a verdict, or on
a statement that matches it: word-level F1, case and punctuation folded, of at least .5, one to one. Tokens and requests
are the server's own counts. What every turn brought back is kept beside the table, sample by sample.
"""

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import numpy as np
import psutil
from pydantic import JsonValue

from airjudge import agreement
from airjudge.schema import Record
from airjudge.server.process import installed_distribution
from benchmarks.agreement.run import DATA
from benchmarks.efficiency.run import Target, counters
from benchmarks.matching import one_to_one
from benchmarks.peers.serving import Backend, serving
from benchmarks.peers.turn import TOOLS, Brought, Labelled, Sample
from benchmarks.peers.turn import Verdict as Told
from tests.oracles.silence import silence

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = ROOT / "benchmarks" / "results" / "peers.json"
LOGS: Final = ROOT / "benchmarks" / "results" / "peers"
OURS: Final = ("airjudge pointwise", "airjudge ragas")
SEED: Final = "ragas"
"""Whom ratios are against."""
TURN_LIMIT_S: Final = 3600.0


class Turn(Record):
    """One tool's turn over one set: what it brought back and what that cost.

    `covered` of `n_statements` statements of the human split have a verdict; both and kappa are None for a tool whose
    verdicts do not say what they are on. `mean_absolute_error` is over the samples with a score. Seconds are wall time
    from the first sample to the last; tokens and requests are the server's counts.
    """

    tool: str
    version: str
    dataset: str
    repeat: int
    n_samples: int
    failures: int
    wall_s: float
    client_cpu_s: float
    client_peak_bytes: int
    requests: int
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    n_statements: int
    n_verdicts: int
    covered: int | None
    mean_absolute_error: float | None
    kappa: float | None

    @property
    def covered_statements_per_s(self) -> float | None:
        """Covered statements a second; None for a tool whose verdicts do not say what they are on."""
        return None if self.covered is None else self.covered / self.wall_s


class Measured(Record):
    """What the results file holds: every turn, and where it was measured."""

    date: str
    machine: Mapping[str, JsonValue]
    versions: Mapping[str, str]
    judge: str
    concurrency: int
    turns: tuple[Turn, ...]


def human_recall(sample: Sample) -> float:
    """Share of a sample's statements that people found supported."""
    labels = [one["label"] for one in sample["statements"]]
    return sum(labels) / len(labels)


class Played(NamedTuple):
    """A turn that is over: whose, over which set, what it brought back, and what the server counted meanwhile."""

    tool: str
    dataset: str
    repeat: int
    told: Brought
    used: Mapping[str, float]


def turn_of(played: Played, samples: Sequence[Sample]) -> Turn:
    """The figures of a turn."""
    told, used = played.told, played.used
    rows = {one["id"]: one for one in told["rows"]}
    pairs, errors = [], []
    for sample in samples:
        row = rows[sample["id"]]
        if row["score"] is not None:
            errors.append(abs(row["score"] - human_recall(sample)))
        pairs += matched(sample["statements"], row["verdicts"])
    says_what = any(one["text"] for row in rows.values() for one in row["verdicts"])
    people, judge = (np.array([pair[at] for pair in pairs], dtype=bool) for at in (0, 1))
    return Turn(
        tool=played.tool,
        version=told["version"],
        dataset=played.dataset,
        repeat=played.repeat,
        n_samples=len(samples),
        failures=sum(row["score"] is None for row in rows.values()),
        wall_s=told["wall_s"],
        client_cpu_s=told["client_cpu_s"],
        client_peak_bytes=told["client_peak_bytes"],
        requests=round(used["vllm:request_success_total"]),
        prompt_tokens=round(used["vllm:prompt_tokens_total"]),
        cached_tokens=round(used["vllm:prompt_tokens_cached_total"]),
        generated_tokens=round(used["vllm:generation_tokens_total"]),
        n_statements=sum(len(sample["statements"]) for sample in samples),
        n_verdicts=sum(len(row["verdicts"]) for row in rows.values()),
        covered=len(pairs) if says_what else None,
        mean_absolute_error=float(np.mean(errors)) if errors else None,
        kappa=agreement.cohen_kappa(people, judge) if says_what else None,
    )


def matched(statements: Sequence[Labelled], verdicts: Sequence[Told]) -> list[tuple[bool, bool]]:
    """People's label and the tool's verdict of each covered statement."""
    pairs = one_to_one([one["text"] for one in statements], [one["text"] for one in verdicts])
    return [(bool(statements[at]["label"]), verdicts[told]["attributed"]) for at, told in pairs]


def play(asked: argparse.Namespace, tool: str, samples: Path, *, repeat: int) -> Played:
    """Play one turn on a fresh server.

    Raises:
        RuntimeError: If the tool's process fails; its last lines are told.
    """
    backend: Backend = "outlines" if tool in OURS else "auto"
    out = LOGS / f"{asked.set}-{tool.replace(' ', '-')}-{repeat}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, serving(asked.judge, backend, Path(place) / "vllm.log") as server:
        before = asyncio.run(counters(server))
        _run_tool(asked, tool, server=server, files=(samples, out, Path(place)))
        after = asyncio.run(counters(server))
    used = {key: value - before.get(key, 0.0) for key, value in after.items()}
    return Played(tool, asked.set, repeat, told=json.loads(out.read_bytes()), used=used)


def _run_tool(asked: argparse.Namespace, tool: str, *, server: Target, files: tuple[Path, Path, Path]) -> None:
    samples, out, place = files
    told = {
        "tool": tool,
        "base_url": server.base_url,
        "api_key": server.api_key,
        "model": server.model,
        "profile": asked.judge,
        "data": str(samples),
        "out": str(out),
        "concurrency": asked.concurrency,
    }
    (place / "turn.json").write_text(json.dumps(told), encoding="utf-8")
    environment = dict(os.environ)
    if tool not in OURS:
        silence(place, environment=environment)
    python = sys.executable if tool in OURS else str(asked.peers)
    done = subprocess.run(
        [python, "-P", str(Path(__file__).with_name("turn.py")), str(place / "turn.json")],
        env=environment,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=TURN_LIMIT_S,
        check=False,
    )
    if done.returncode:
        tail = "\n".join(done.stderr.strip().split("\n")[-5:])
        msg = f"{tool} ended with {done.returncode}:\n{tail}"
        raise RuntimeError(msg)


def first_samples(name: str, first: int | None, place: Path) -> tuple[list[Sample], Path]:
    """The samples of a set that are asked, and the file that the tools read them from."""
    lines = [line for line in (DATA / f"{name}.jsonl").read_bytes().split(b"\n") if line.strip()][:first]
    path = place / "samples.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return [json.loads(line) for line in lines], path


def table(measured: Measured) -> Iterator[str]:
    """The Markdown table: medians over turns, most failures, the ratio to the seed over pairs of one repeat."""
    yield (
        "| set | tool | turns | samples/s | covered statements/s | against ragas | covered | failed | error | kappa "
        "| generated | computed | requests | client CPU | client memory |"
    )
    yield f"|{'---|' * 15}"
    for dataset in dict.fromkeys(turn.dataset for turn in measured.turns):
        for tool in TOOLS:
            turns = [turn for turn in measured.turns if (turn.dataset, turn.tool) == (dataset, tool)]
            if turns:
                yield _line(turns, [turn for turn in measured.turns if (turn.dataset, turn.tool) == (dataset, SEED)])


def _line(turns: Sequence[Turn], seeds: Sequence[Turn]) -> str:
    one, n = turns[0], turns[0].n_samples
    share = None if one.covered is None else median((turn.covered or 0) / turn.n_statements for turn in turns)
    cells = [
        f"{one.dataset} (first {n})",
        f"{one.tool} {one.version}",
        str(len(turns)),
        f"{median(turn.n_samples / turn.wall_s for turn in turns):.3f}",
        _number(_median([turn.covered_statements_per_s for turn in turns]), ".3f"),
        _number(ratio_to(turns, seeds), ".1f", "×"),
        _number(share, ".0%"),
        f"{max(turn.failures for turn in turns)} of {n}",
        _number(_median([turn.mean_absolute_error for turn in turns]), ".3f"),
        _number(_median([turn.kappa for turn in turns]), ".2f"),
        f"{median(turn.generated_tokens for turn in turns) / n:.0f}",
        f"{median(turn.prompt_tokens - turn.cached_tokens for turn in turns) / n:,.0f}",
        f"{median(turn.requests for turn in turns) / n:.1f}",
        f"{median(turn.client_cpu_s for turn in turns) / n * 1000:,.0f} ms",
        f"{median(turn.client_peak_bytes for turn in turns) / 1e6:.0f} MB",
    ]
    return f"| {' | '.join(cells)} |"


def ratio_to(turns: Sequence[Turn], seeds: Sequence[Turn]) -> float | None:
    """Median over repeats of covered statements a second over the seed's in the same repeat; None without a pair."""
    rates = {turn.repeat: turn.covered_statements_per_s for turn in seeds}
    pairs = [(turn.covered_statements_per_s, rates.get(turn.repeat)) for turn in turns]
    return _median([ours / theirs if ours is not None and theirs else None for ours, theirs in pairs])


def _median(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return median(known) if known else None


def _number(value: float | None, form: str, unit: str = "") -> str:
    return "–" if value is None else f"{value:{form}}{unit}"


def machine() -> dict[str, JsonValue]:
    """Where it was measured."""
    return {
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
    }


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--set", default="wice_subclaims", help="a set with a human split (%(default)s)")
    made.add_argument("--first", type=int, default=8, metavar="N", help="its first N samples (%(default)s)")
    made.add_argument("--repeats", type=int, default=2, help="turns of each tool (%(default)s)")
    made.add_argument("--tool", dest="tools", action="append", choices=TOOLS, help="repeatable; default all")
    made.add_argument("--judge", default="qwen2.5-coder-1.5b", help="profile to serve (%(default)s)")
    made.add_argument("--concurrency", type=int, default=8, help="samples in flight of a peer (%(default)s)")
    made.add_argument("--peers", type=Path, default=ROOT / ".venv-oracles" / "bin" / "python", help="the peers' Python")
    made.add_argument("--results", type=Path, default=RESULTS)
    made.add_argument("--add", action="store_true", help="keep the turns of this set that the results hold")
    made.add_argument("--table", action="store_true", help="print what the results hold; ask nothing")
    return made


def measure(asked: argparse.Namespace) -> None:
    """Play all turns, each kept as it ends; those of other sets stay, and with --add those of this one.

    Raises:
        SystemExit: If turns would be added to those of another judge.
    """
    before = held(asked.results) if asked.results.exists() else None
    if before and before.judge != asked.judge:
        msg = f"{asked.results} holds turns of {before.judge}: give other --results for {asked.judge}"
        raise SystemExit(msg)
    turns = [one for one in before.turns if asked.add or one.dataset != asked.set] if before else []
    done = max((one.repeat for one in turns if one.dataset == asked.set), default=0)
    asked.results.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        samples, path = first_samples(asked.set, asked.first, Path(place))
        for repeat in range(done + 1, done + asked.repeats + 1):
            for tool in asked.tools or TOOLS:
                turns.append(turn_of(play(asked, tool, path, repeat=repeat), samples))
                print(turns[-1].model_dump_json(), file=sys.stderr, flush=True)
                asked.results.write_text(_measured(asked, turns).model_dump_json(indent=1) + "\n", encoding="utf-8")


def _measured(asked: argparse.Namespace, turns: Sequence[Turn]) -> Measured:
    return Measured(
        date=datetime.now(UTC).date().isoformat(),
        machine=machine(),
        versions={"vllm": vllm_version(), **{one.tool: one.version for one in turns}},
        judge=asked.judge,
        concurrency=asked.concurrency,
        turns=tuple(turns),
    )


def vllm_version() -> str:
    """The installed vLLM."""
    return version(installed_distribution() or "vllm")


def held(results: Path) -> Measured:
    """What a results file holds."""
    return Measured.model_validate_json(results.read_bytes())


def main() -> None:
    """Play the turns that are asked for, keep them, and print the table."""
    asked = parser().parse_args()
    if not asked.table:
        measure(asked)
    print("\n".join(table(held(asked.results))))


if __name__ == "__main__":
    main()
