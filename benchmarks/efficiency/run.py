"""What a run costs beside what it must cost: prompt tokens, time, and the client's own processor time.

    python benchmarks/efficiency/run.py tokens time [--judge NAME | --base-url URL]
    python benchmarks/efficiency/run.py client

`tokens` divides the prompt tokens that the server computed (its /metrics) by the unique tokens of the
run: the nodes of the trie of its prompts. `time` divides the wall time of a run by that of a bare loop
which replays the same requests in the same order with the same concurrency, in turn, each with a fresh
cache salt. `client` is the client's processor time a verdict against a stub server in another process.
"""

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import aiohttp

from airjudge import prompts
from airjudge.backends.vllm import Connection, VllmBackend
from airjudge.cli.render import stages
from airjudge.datasets import open_source
from airjudge.judge import Judge, JudgeSettings
from airjudge.metrics import ContextRecall
from airjudge.profiles import load_profile
from airjudge.run import RunSettings, score_dataset
from airjudge.schema import Question, Sample
from airjudge.server import serve
from airjudge.statements import split_statements

DATA = Path(os.environ.get("AIRJUDGE_DATA", Path(__file__).parents[3] / "shared" / "data"))
RESULTS = Path(__file__).parents[1] / "results" / "efficiency.json"
SETS = {"wice_subclaims": None, "factcheck_bench_responses": 10}
CONCURRENCY = 16
HOW = load_profile("qwen2.5-coder-1.5b").pointwise
"""What the default judge is asked about a statement; every arm asks the same."""


def questions_of(name: str, limit: int | None) -> list[Question]:
    """All questions of a run over a set, in the order of samples and statements."""
    entries = open_source([str(DATA / f"{name}.jsonl")]).entries(lambda _place: False)
    samples = [one.value for one in entries if isinstance(one.value, Sample)]
    return [
        question
        for sample in islice(samples, limit)
        for statement in split_statements(sample, "given")
        for question in prompts.asked(sample, statement, HOW)
    ]


def trie_nodes(token_lists: Sequence[Sequence[int]]) -> int:
    """Unique tokens of prompts: each counts once for all prompts that share everything up to it."""
    ordered = sorted(map(tuple, token_lists))
    nodes = 0
    before: tuple[int, ...] = ()
    for tokens in ordered:
        shared = next((n for n, (a, b) in enumerate(zip(before, tokens, strict=False)) if a != b), None)
        nodes += len(tokens) - (min(len(before), len(tokens)) if shared is None else shared)
        before = tokens
    return nodes


@dataclass(frozen=True)
class Target:
    """A server to measure against."""

    base_url: str
    model: str
    api_key: str

    def connection(self, salt: str | None = None) -> Connection:
        """How the bare loop reaches it."""
        return Connection(self.base_url, api_key=self.api_key, cache_salt=salt)

    def judge(self, salt: str | None = None) -> Judge:
        """The judge behind it, under a cache salt of its own."""
        settings = JudgeSettings(concurrency=CONCURRENCY, cache_salt=salt, pointwise=HOW)
        return Judge.connect(self.base_url, self.model, api_key=self.api_key, settings=settings)


async def tokens_of(target: Target, questions: Sequence[Question]) -> list[list[int]]:
    """The prompts as the server tokenises them."""
    root = target.base_url.removesuffix("/v1")
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {target.api_key}"}) as session:

        async def one(question: Question) -> list[int]:
            messages = [{"role": m.role, "content": m.content} for m in question.messages]
            async with session.post(f"{root}/tokenize", json={"model": target.model, "messages": messages}) as reply:
                return list((await reply.json())["tokens"])

        return [await one(question) for question in questions]


async def counters(target: Target) -> dict[str, float]:
    """What the server has counted so far, by the names of its /metrics."""
    async with VllmBackend(target.connection(), model=target.model) as backend:
        return await backend.counters()


async def computed_tokens(target: Target) -> float:
    """Prompt tokens that the server has computed so far, those from its cache left out."""
    counted = await counters(target)
    return counted["vllm:prompt_tokens_total"] - counted["vllm:prompt_tokens_cached_total"]


async def scored(judge: Judge, name: str, limit: int | None) -> tuple[float, float, int]:
    """Wall seconds, processor seconds and verdicts of one run, the proof of enforcement left out."""
    with TemporaryDirectory() as folder:
        async with judge:
            wall, cpu = time.perf_counter(), time.process_time()
            settings = RunSettings(limit=limit)
            out = Path(folder) / "out"
            header = await score_dataset(DATA / f"{name}.jsonl", ContextRecall(judge), out, settings=settings)
            return time.perf_counter() - wall, time.process_time() - cpu, header.summary.n_statements


async def replayed(target: Target, questions: Sequence[Question], salt: str) -> float:
    """Wall seconds of the same requests, sent in order by a bare loop."""
    async with VllmBackend(target.connection(salt), model=target.model) as backend:
        bodies = [backend.body(question) for question in questions]
    headers = {"Authorization": f"Bearer {target.api_key}", "Content-Type": "application/json"}
    free = asyncio.Semaphore(CONCURRENCY)
    async with aiohttp.ClientSession(headers=headers) as session:

        async def one(body: bytes) -> None:
            async with free, session.post(f"{target.base_url}/chat/completions", data=body) as reply:
                await reply.read()

        start = time.perf_counter()
        await asyncio.gather(*(one(body) for body in bodies))
        return time.perf_counter() - start


def measure_tokens(target: Target) -> dict[str, dict[str, float]]:
    """Computed over unique prompt tokens of each set, everything that the judge sends included."""
    found = {}
    for name, limit in SETS.items():
        before = asyncio.run(computed_tokens(target))
        asyncio.run(scored(target.judge(secrets.token_hex(8)), name, limit))
        computed = asyncio.run(computed_tokens(target)) - before
        unique = trie_nodes(asyncio.run(tokens_of(target, questions_of(name, limit))))
        found[name] = {"computed": computed, "unique": unique, "ratio": computed / unique}
        print(f"tokens {name}: computed {computed:.0f}, unique {unique}, ratio {computed / unique:.3f}", flush=True)
    return found


def measure_time(target: Target, pairs: int) -> dict[str, object]:
    """Wall time of a run over that of the bare loop, pair by pair, the order swapped each time."""
    name = "wice_subclaims"
    questions = questions_of(name, SETS[name])
    ours, bare = [], []
    for _ in range(pairs):
        ours.append(asyncio.run(scored(target.judge(secrets.token_hex(8)), name, SETS[name]))[0])
        bare.append(asyncio.run(replayed(target, questions, secrets.token_hex(8))))
        print(f"time {name}: run {ours[-1]:.1f} s, bare loop {bare[-1]:.1f} s", flush=True)
    ratios = [a / b for a, b in zip(ours, bare, strict=True)]
    print(f"time {name}: ratio, median of {pairs} pairs: {median(ratios):.3f}", flush=True)
    return {"set": name, "run_s": ours, "bare_s": bare, "ratios": ratios, "median_ratio": median(ratios)}


def measure_client(repeats: int) -> dict[str, float]:
    """Processor milliseconds of this process a verdict, median of repeats, a stub judge answering."""
    found = {}
    with stub() as target:
        for name in SETS:
            runs = [asyncio.run(scored(target.judge(), name, None)) for _ in range(repeats)]
            found[name] = median(cpu / n_verdicts * 1000 for _, cpu, n_verdicts in runs)
            print(f"client {name}: {found[name]:.2f} ms a verdict ({runs[0][2]} verdicts)", flush=True)
    return found


@contextmanager
def stub() -> Iterator[Target]:
    """The stub judge of the tests, in a process of its own."""
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-m", "tests.stub"], cwd=root, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Target(**json.loads(process.stdout.readline() if process.stdout else ""))
        finally:
            process.terminate()


@contextmanager
def target_of(options: argparse.Namespace) -> Iterator[Target]:
    """The server that the options name, or one started for the measurement."""
    if options.base_url:
        yield Target(options.base_url, options.model, os.environ.get("AIRJUDGE_API_KEY", ""))
        return
    with stages() as told, serve(options.judge, on_progress=told) as server:
        yield Target(server.base_url, server.model, server.api_key)


def main() -> None:
    """Measure what is asked for and add it to the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=("tokens", "time", "client"))
    parser.add_argument("--judge", default="qwen2.5-coder-1.5b", help="profile to serve")
    parser.add_argument("--base-url", help="a server that runs already (key in AIRJUDGE_API_KEY)")
    parser.add_argument("--model", help="the model it serves")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = json.loads(options.results.read_text(encoding="utf-8")) if options.results.exists() else {}
    if "client" in options.what:
        found["client_ms_per_verdict"] = measure_client(options.repeats)
    if {"tokens", "time"} & set(options.what):
        with target_of(options) as target:
            if "tokens" in options.what:
                found["tokens"] = measure_tokens(target)
            if "time" in options.what:
                found["time"] = measure_time(target, options.repeats)
    options.results.parent.mkdir(exist_ok=True)
    options.results.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
