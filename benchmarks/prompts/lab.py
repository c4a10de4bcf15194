"""Measure prompt variants for the one-question judge on human-labelled statements.

One question asks a running OpenAI-compatible server for a single token, 0 or 1, and keeps
the log-odds of that token. A variant is a weighted sum of the log-odds of its questions.
Raw log-odds are appended to ``raw.jsonl`` as they arrive, so an interrupted run resumes
and a new variant over old questions costs nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import numpy as np
from figures import table
from variants import QUESTIONS, VARIANTS, Sample, Statement

SETS = ("wice_subclaims", "factcheck_bench_claims", "klue_nli_ko")
SCHEMA = {"type": "integer", "enum": [0, 1]}
Key = tuple[str, str, str]  # question, sample id, statement id


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
                Statement(id=s["id"], text=s["text"], label=int(s["label"]))
                for s in record["statements"]
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


def subset(samples: Sequence[Sample], n: int, rng: np.random.Generator) -> list[Sample]:
    """Take n samples without replacement, in file order; all of them if there are fewer."""
    if n >= len(samples):
        return list(samples)
    chosen = sorted(rng.choice(len(samples), size=n, replace=False).tolist())
    return [samples[i] for i in chosen]


def log_odds(reply: dict[str, list[dict[str, dict[str, list[dict[str, list[dict[str, str | float]]]]]]]]) -> float:
    """Log-odds of label 1 over label 0, each summed over its tokenisations.

    Raises:
        ValueError: If either label is missing among the returned alternatives.
    """
    alternatives = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
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
        self.tokens = 0

    async def ask(self, question: str, sample: Sample, statement: Statement) -> None:
        """Ask one question unless its answer is known."""
        key = (question, sample.id, statement.id)
        if key in self.known:
            return
        body = {
            "model": self._server.model,
            "messages": QUESTIONS[question](sample, statement),
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
        url = self._server.base_url.rstrip("/") + "/chat/completions"
        async with self._slots, self._session.post(url, json=body) as response:
            if response.status != 200:
                msg = f"{response.status} from {url}: {await response.text()}"
                raise RuntimeError(msg)
            reply = await response.json()
        self.known[key] = log_odds(reply)
        self.tokens += int(reply["usage"]["prompt_tokens"])
        line = {"q": question, "sample": sample.id, "st": statement.id, "logit": round(self.known[key], 4)}
        with self._raw.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line, ensure_ascii=False) + "\n")


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
