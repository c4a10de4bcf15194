"""How close a run comes to what its server could do at best.

    python -m benchmarks.limits.run                   # wice_subclaims and 3 answers of factcheck_bench_responses
    python -m benchmarks.limits.run --table           # what was measured last; nothing is asked

The limit of a run in seconds is its unique prompt tokens over the server's best prefill rate, plus its decode steps
over the best decode rate. Unique tokens are the nodes of the trie of all prompts: each has to be computed once,
whatever the order. The first token of a reply comes out of the prefill, so a reply of n tokens is n - 1 steps, and
one of one token, as every verdict is, none. The best rates are measured on the same server in the same minutes:
prefill with long prompts that share nothing, decode with many long replies at once. Each is the best of its repeats.
A run is of airjudge's own, its proof of enforcement left out, under a cache salt of its own; limit over wall time is
the share that it achieves.
"""

import argparse
import asyncio
import random
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

import aiohttp
from pydantic import JsonValue

from airjudge.schema import Record
from benchmarks.efficiency.run import Target, counters, questions_of, scored, target_of, tokens_of, trie_nodes
from benchmarks.peers.run import machine, vllm_version

RESULTS: Final = Path(__file__).parents[1] / "results" / "limits.json"
SETS: Final[Mapping[str, int | None]] = {"wice_subclaims": None, "factcheck_bench_responses": 3}
PREFILL_WORDS: Final = (500, 1500, 3000)
"""Words of the long prompts; a word is a token or a little more."""
AT_ONCE: Final = (4, 16, 32)
"""Replies in flight while the decode rate is measured."""
REPLY_TOKENS: Final = 48


class Rates(Record):
    """The best that a server does: prompt tokens a second, and generated tokens a second."""

    prefill: float
    decode: float


class Share(Record):
    """What one set costs at best and in fact; `wall_s` is a time a repeat.

    `computed_tokens` are the server's count a repeat, the proof of enforcement included.
    """

    dataset: str
    first: int | None
    n_requests: int
    unique_tokens: int
    computed_tokens: int
    decode_steps: int
    wall_s: tuple[float, ...]
    limit_s: float

    @property
    def achieved(self) -> float:
        """Limit over the median wall time: 1 is all that the server can give."""
        return self.limit_s / median(self.wall_s)


class Measured(Record):
    """What the results file holds."""

    date: str
    machine: Mapping[str, JsonValue]
    vllm: str
    judge: str
    rates: Rates
    shares: tuple[Share, ...]


def limit_s(unique_tokens: int, decode_steps: int, rates: Rates) -> float:
    """Seconds that a server needs at least."""
    return unique_tokens / rates.prefill + decode_steps / rates.decode


async def best_rates(target: Target, repeats: int) -> Rates:
    """Measure both rates, each the best of its repeats and sizes."""
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {target.api_key}"}) as session:
        prefill = [
            await _rate(session, target, n_words=n, n_replies=2, n_tokens=1, counter="prompt_tokens")
            for n in PREFILL_WORDS
            for _ in range(repeats)
        ]
        decode = [
            await _rate(session, target, n_words=8, n_replies=n, n_tokens=REPLY_TOKENS, counter="completion_tokens")
            for n in AT_ONCE
            for _ in range(repeats)
        ]
    return Rates(prefill=max(prefill), decode=max(decode))


async def _rate(
    session: aiohttp.ClientSession, target: Target, *, n_words: int, n_replies: int, n_tokens: int, counter: str
) -> float:
    """Tokens a second of some requests at once, none of which finds anything in the cache."""
    bodies = [_body(target.model, n_words=n_words, n_tokens=n_tokens) for _ in range(n_replies)]

    async def one(body: Mapping[str, JsonValue]) -> int:
        async with session.post(f"{target.base_url}/chat/completions", json=body) as reply:
            reply.raise_for_status()
            return int((await reply.json())["usage"][counter])

    start = time.perf_counter()
    tokens = await asyncio.gather(*(one(body) for body in bodies))
    return sum(tokens) / (time.perf_counter() - start)


def _body(model: str, *, n_words: int, n_tokens: int) -> dict[str, JsonValue]:
    drawn = random.Random(secrets.randbits(64))
    words = " ".join(drawn.choice(("river", "stone", "seven", "green", "house", "north")) for _ in range(n_words))
    return {
        "model": model,
        "messages": [{"role": "user", "content": f"{secrets.token_hex(8)} {words}"}],
        "max_tokens": n_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "cache_salt": secrets.token_hex(8),
    }


def share_of(target: Target, name: str, first: int | None, *, rates: Rates, repeats: int) -> Share:
    """Score a set some times, and hold it against its limit."""
    questions = questions_of(name, first)
    unique = trie_nodes(asyncio.run(tokens_of(target, questions)))
    before = asyncio.run(counters(target))
    walls = [asyncio.run(scored(target.judge(secrets.token_hex(8)), name, first))[0] for _ in range(repeats)]
    after = asyncio.run(counters(target))
    used = {key: (value - before.get(key, 0.0)) / repeats for key, value in after.items()}
    steps = sum(question.max_tokens - 1 for question in questions)
    return Share(
        dataset=name,
        first=first,
        n_requests=len(questions),
        unique_tokens=unique,
        computed_tokens=round(used["vllm:prompt_tokens_total"] - used["vllm:prompt_tokens_cached_total"]),
        decode_steps=steps,
        wall_s=tuple(round(one, 2) for one in walls),
        limit_s=limit_s(unique, steps, rates),
    )


def table(measured: Measured) -> Iterator[str]:
    """The Markdown table."""
    rates = measured.rates
    yield f"Best rates: {rates.prefill:,.0f} prompt tokens/s, {rates.decode:,.1f} generated tokens/s."
    yield ""
    yield "| set | requests | unique tokens | computed | decode steps | at best | in fact (median) | achieved |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in measured.shares:
        first = f" (first {one.first})" if one.first else ""
        yield (
            f"| {one.dataset}{first} | {one.n_requests:,} | {one.unique_tokens:,} "
            f"| {one.computed_tokens:,} | {one.decode_steps:,} | {one.limit_s:.1f} s | {median(one.wall_s):.1f} s "
            f"| {one.achieved:.2f} |"
        )


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--judge", default="qwen2.5-coder-1.5b", help="profile to serve (%(default)s)")
    made.add_argument("--base-url", help="a server that runs already (key in AIRJUDGE_API_KEY)")
    made.add_argument("--model", help="the model it serves")
    made.add_argument("--set", dest="sets", action="append", choices=SETS, help="repeatable; default all")
    made.add_argument("--repeats", type=int, default=3)
    made.add_argument("--results", type=Path, default=RESULTS)
    made.add_argument("--table", action="store_true", help="print what the results hold; ask nothing")
    return made


def measure(asked: argparse.Namespace, target: Target) -> Measured:
    """The best rates of a server, and what runs achieve of them."""
    rates = asyncio.run(best_rates(target, asked.repeats))
    print(f"{rates.prefill:.0f} prompt tokens/s, {rates.decode:.1f} generated tokens/s", file=sys.stderr, flush=True)
    shares = [share_of(target, name, SETS[name], rates=rates, repeats=asked.repeats) for name in asked.sets or SETS]
    return Measured(
        date=datetime.now(UTC).date().isoformat(),
        machine=machine(),
        vllm=vllm_version(),
        judge=asked.judge,
        rates=rates,
        shares=tuple(shares),
    )


def main() -> None:
    """Measure, keep it, and print the table."""
    asked = parser().parse_args()
    if not asked.table:
        with target_of(asked) as target:
            measured = measure(asked, target)
        asked.results.parent.mkdir(parents=True, exist_ok=True)
        asked.results.write_text(measured.model_dump_json(indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(Measured.model_validate_json(asked.results.read_bytes()))))


if __name__ == "__main__":
    main()
