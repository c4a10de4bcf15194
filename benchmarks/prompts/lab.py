"""Measure prompt variants for the one-question judge on human-labelled statements.

One question asks a running OpenAI-compatible server for a single token, 0 or 1, and keeps
the log-odds of that token. A variant is a weighted sum of the log-odds of its questions.
Raw log-odds are appended to ``raw.jsonl`` as they arrive, so an interrupted run resumes
and a new variant over old questions costs nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import fnmatch
import json
import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import numpy as np

from benchmarks.prompts.figures import Judged, differences, header, table
from benchmarks.prompts.variants import OFFSETS, QUESTIONS, VARIANTS, Message, Sample, Statement, Weights

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SETS = ("wice_subclaims", "factcheck_bench_claims", "klue_nli_ko")
SCHEMA = {"type": "integer", "enum": [0, 1]}
Key = tuple[str, str, str]  # question, sample id, statement id
Pair = tuple[Sample, Statement]


@dataclass(frozen=True)
class Server:
    """Where the judge is reached; ``api_key`` is empty for a server without one."""

    base_url: str
    model: str
    api_key: str
    concurrency: int


def read_samples(path: Path) -> list[Sample]:
    """Read one labelled file, in file order."""
    samples = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            statements = tuple(
                Statement(id=s["id"], text=s["text"], label=int(s["label"])) for s in record["statements"]
            )
            samples.append(
                Sample(
                    id=record["id"],
                    group=record["group"],
                    user_input=record["user_input"],
                    contexts=tuple(record["retrieved_contexts"]),
                    statements=statements,
                )
            )
    return samples


def log_odds(alternatives: Sequence[Mapping[str, str | float]]) -> float:
    """Log-odds of label 1 over label 0, each summed over its tokenisations.

    Args:
        alternatives: ``top_logprobs`` of the reply's one token. Behind vLLM's mask the
            forbidden tokens come back with -9999, which adds nothing.

    Raises:
        ValueError: If either label is missing among the alternatives.
    """
    mass = {"0": 0.0, "1": 0.0}
    for alternative in alternatives:
        label = str(alternative["token"]).strip()
        if label in mass:
            mass[label] += math.exp(float(alternative["logprob"]))
    if min(mass.values()) == 0:
        msg = f"a label has no probability in {alternatives}"
        raise ValueError(msg)
    return math.log(mass["1"]) - math.log(mass["0"])


class Asker:
    """Asks questions with bounded concurrency and appends each log-odds to a file."""

    def __init__(self, session: aiohttp.ClientSession, server: Server, raw: Path) -> None:
        """Read the log-odds that an earlier run left in ``raw``."""
        self._session, self._server, self._raw = session, server, raw
        self._slots = asyncio.Semaphore(server.concurrency)
        self.known: dict[Key, float] = dict(read_raw(raw))

    async def ask(self, question: str, sample: Sample, statement: Statement) -> None:
        """Ask one question unless its answer is known.

        Raises:
            RuntimeError: If the server does not answer 200.
        """
        key = (question, sample.id, statement.id)
        if key in self.known:
            return
        url = self._server.base_url.rstrip("/") + "/chat/completions"
        body = request_body(self._server.model, QUESTIONS[question](sample, statement))
        async with self._slots, self._session.post(url, json=body) as response:
            if response.status != 200:
                msg = f"{response.status} from {url}: {await response.text()}"
                raise RuntimeError(msg)
            reply = await response.json()
        self.known[key] = log_odds(reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"])
        self._append(key)

    def _append(self, key: Key) -> None:
        """Write one answer at once, so that an interrupted run loses none."""
        question, sample, statement = key
        line = {"q": question, "sample": sample, "st": statement, "logit": round(self.known[key], 4)}
        with self._raw.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line, ensure_ascii=False) + "\n")


def request_body(model: str, messages: Sequence[Message]) -> dict[str, object]:
    """One question's request: a single constrained token with its alternatives."""
    return {
        "model": model,
        "messages": messages,
        "temperature": 0,
        "top_p": 1,
        "seed": 0,
        "max_completion_tokens": 1,
        "logprobs": True,
        "top_logprobs": 20,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "schema": SCHEMA},
        },
    }


def read_raw(path: Path) -> Iterator[tuple[Key, float]]:
    """Yield the stored log-odds; nothing if the file does not exist."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield (record["q"], record["sample"], record["st"]), float(record["logit"])


async def ask_sample(asker: Asker, sample: Sample, questions: Sequence[str]) -> None:
    """Ask all questions about one sample, so that each request finds its prefix cached.

    The first statement goes first and caches the contexts; then each statement's first
    question caches the statement for its other questions.
    """

    async def ask_statement(statement: Statement) -> None:
        await asker.ask(questions[0], sample, statement)
        await asyncio.gather(*(asker.ask(q, sample, statement) for q in questions[1:]))

    lead, *rest = sample.statements
    await ask_statement(lead)
    await asyncio.gather(*(ask_statement(s) for s in rest))


async def ask_all(server: Server, sets: Mapping[str, Sequence[Sample]], *, questions: Sequence[str], raw: Path) -> None:
    """Ask every question about every statement that ``raw`` does not answer yet."""
    headers = {"Authorization": f"Bearer {server.api_key}"} if server.api_key else {}
    timeout = aiohttp.ClientTimeout(total=None)  # a slow machine may queue for long; nothing is retried
    async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:
        asker = Asker(session, server, raw)
        for name, samples in sets.items():
            print(f"asking {name}: {len(samples)} samples", file=sys.stderr)
            await asyncio.gather(*(ask_sample(asker, s, questions) for s in samples))


def answered(samples: Sequence[Sample], questions: Sequence[str], known: Mapping[Key, float]) -> list[Pair]:
    """The statements for which every question is answered, with their samples, in file order."""
    pairs = [(sample, statement) for sample in samples for statement in sample.statements]
    return [(s, t) for s, t in pairs if all((q, s.id, t.id) in known for q in questions)]


def judged(pairs: Sequence[Pair], variant: str, known: Mapping[Key, float]) -> Judged:
    """Log-odds of one variant beside the labels."""
    weights, offset = VARIANTS[variant], OFFSETS.get(variant, 0.0)
    logits = [offset + sum(w * known[q, s.id, t.id] for q, w in weights.items()) for s, t in pairs]
    return Judged(
        logits=np.array(logits, dtype=np.float64),
        labels=np.array([t.label == 1 for _, t in pairs], dtype=np.bool_),
        groups=[s.group for s, _ in pairs],
    )


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--base-url", default="http://127.0.0.1:8000/v1", help="such as http://127.0.0.1:8000/v1")
    parser.add_argument("--model", default="judge", help="name under which the server serves the judge")
    parser.add_argument("--api-key-env", help="environment variable that holds the server's key")
    parser.add_argument("--variants", default="*", help="names or patterns such as closest.*, comma-separated")
    parser.add_argument(
        "--against", choices=VARIANTS, metavar="VARIANT", help="print also how far each other one is ahead of it"
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("AIRJUDGE_DATA", "../shared/data")))
    parser.add_argument("--sets", default=",".join(SETS), help="file names without .jsonl, comma-separated")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of raw.jsonl")
    parser.add_argument(
        "--known", action="store_true", help="ask nothing: figures over what raw.jsonl answers for all the variants"
    )
    parser.add_argument("--concurrency", type=int, default=24, help="requests in flight")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap")
    return parser.parse_args()


def chosen(patterns: Sequence[str]) -> dict[str, Weights]:
    """The variants that the patterns name, in the order of the patterns.

    Raises:
        SystemExit: If a pattern names none.
    """
    named = {pattern: fnmatch.filter(VARIANTS, pattern) for pattern in patterns}
    empty = [pattern for pattern, names in named.items() if not names]
    if empty:
        msg = f"no variant is called {empty[0]}; there are {', '.join(VARIANTS)}"
        raise SystemExit(msg)
    return {name: VARIANTS[name] for names in named.values() for name in names}


def main() -> None:
    """Ask what is not known yet, then print the table."""
    options = arguments()
    variants = chosen([name for name in (*options.variants.split(","), options.against) if name])
    sets = {name: read_samples(options.data / f"{name}.jsonl") for name in options.sets.split(",")}
    # Asked in this order, questions with one layout share the statement's cached prefix.
    questions = list(dict.fromkeys(q for weights in variants.values() for q in weights))
    raw = options.out / "raw.jsonl"
    if not options.known:
        options.out.mkdir(parents=True, exist_ok=True)
        key = os.environ[options.api_key_env] if options.api_key_env else ""
        server = Server(options.base_url, options.model, key, options.concurrency)
        asyncio.run(ask_all(server, sets, questions=questions, raw=raw))
    known = dict(read_raw(raw))
    pairs = {name: answered(samples, questions, known) for name, samples in sets.items()}
    print(*header(), sep="\n")
    for line in report(variants, {name: p for name, p in pairs.items() if p}, known=known, options=options):
        print(line)


def report(
    variants: Mapping[str, Weights],
    pairs: Mapping[str, Sequence[Pair]],
    *,
    known: Mapping[Key, float],
    options: argparse.Namespace,
) -> Iterator[str]:
    """Yield the rows of every variant, each followed by its differences if any are wanted."""
    for variant in variants:
        ours = {name: judged(p, variant, known) for name, p in pairs.items()}
        yield from table(variant, ours, options.seed)
        if options.against and variant != options.against:
            both = {name: (ours[name], judged(p, options.against, known)) for name, p in pairs.items()}
            yield from differences(f"{variant} - {options.against}", both, options.seed)


if __name__ == "__main__":
    main()
