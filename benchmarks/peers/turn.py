"""One turn of one tool: all samples of a file through it, in the environment that it is installed in.

    python benchmarks/peers/turn.py TURN.json        # what is asked; it names the file for what comes back

`run.py` starts it. Every tool is used as its documentation shows, against one OpenAI-compatible server, and does what
it does by itself: prompts, retries, limits. Kept are its score of each sample, and the verdicts that it has. The clock
runs from the first sample to the last; imports are not measured. Nothing of airjudge is imported but by its own turns.
"""

import asyncio
import contextvars
import json
import math
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict


class Asked(TypedDict):
    """What a turn is asked for. `data` and `out` are files, `concurrency` the samples in flight for a peer."""

    tool: str
    base_url: str
    api_key: str
    model: str
    profile: str
    data: str
    out: str
    concurrency: int


class Verdict(TypedDict):
    """One ruling; `text` is the statement as the tool tells it, empty where it keeps none."""

    text: str
    attributed: bool


class Row(TypedDict):
    """What a tool makes of a sample; `score` is None where it failed, `error` says how."""

    id: str
    score: float | None
    verdicts: Sequence[Verdict]
    error: str


class Labelled(TypedDict):
    """A statement of the human split; `label` is 1 if people found that the contexts support it."""

    id: str
    text: str
    label: int


class Sample(TypedDict):
    """A line of a labelled set, as far as it is used."""

    id: str
    user_input: str
    reference: str
    retrieved_contexts: list[str]
    statements: list[Labelled]


class Brought(TypedDict):
    """What a turn writes."""

    version: str
    rows: Sequence[Row]
    wall_s: float
    client_cpu_s: float
    client_peak_bytes: int


class Ready(NamedTuple):
    """A tool, imported and set up: what runs samples through it, and which it is."""

    run: Callable[[Sequence[Sample]], Awaitable[list[Row]]]
    version: str


def airjudge_tool(asked: Asked, method: str) -> Ready:
    """Our metric, with the questions that the judge's profile asks and the statements that a sample carries."""
    from airjudge import Judge  # noqa: PLC0415 -- each tool is in an environment of its own
    from airjudge.judge import JudgeSettings  # noqa: PLC0415
    from airjudge.metrics import ContextRecall  # noqa: PLC0415
    from airjudge.schema import Sample as Ours  # noqa: PLC0415
    from airjudge.schema import Statement  # noqa: PLC0415
    from airjudge.version import __version__  # noqa: PLC0415

    settings = JudgeSettings.model_validate({"method": method, "profile": asked["profile"]})
    judge = Judge.connect(asked["base_url"], asked["model"], api_key=asked["api_key"], settings=settings)

    async def run(samples: Sequence[Sample]) -> list[Row]:
        ours = [
            Ours(
                id=sample["id"],
                user_input=sample["user_input"],
                reference=sample["reference"],
                retrieved_contexts=tuple(sample["retrieved_contexts"]),
                statements=tuple(Statement(id=one["id"], text=one["text"]) for one in sample["statements"]),
            )
            for sample in samples
        ]
        scored = await ContextRecall(judge).score_samples(ours)
        return [
            Row(
                id=one.id,
                score=one.score,
                verdicts=[
                    Verdict(text=verdict.text, attributed=verdict.attributed)
                    for verdict in one.statements
                    if verdict.attributed is not None
                ],
                error=one.error.message if one.error else "",
            )
            for one in scored
        ]

    return Ready(run, __version__)


def ragas_tool(asked: Asked) -> Ready:
    """`collections.ContextRecall` behind `llm_factory`; what it drops of a reply is kept as it passes."""
    import ragas  # noqa: PLC0415
    from openai import AsyncOpenAI  # noqa: PLC0415
    from ragas.llms import llm_factory  # noqa: PLC0415
    from ragas.metrics.collections import ContextRecall  # noqa: PLC0415

    client = AsyncOpenAI(base_url=asked["base_url"], api_key=asked["api_key"])
    llm = llm_factory(asked["model"], client=client)
    generate, current = llm.agenerate, contextvars.ContextVar[str]("sample")
    told: dict[str, list[Verdict]] = {}

    async def kept(prompt: str, model: type) -> object:
        reply = await generate(prompt, model)
        told[current.get()] = [
            Verdict(text=one.statement, attributed=bool(one.attributed)) for one in reply.classifications
        ]
        return reply

    llm.agenerate = kept
    metric = ContextRecall(llm=llm)

    async def one(sample: Sample) -> Row:
        current.set(sample["id"])
        result = await metric.ascore(
            user_input=sample["user_input"],
            retrieved_contexts=sample["retrieved_contexts"],
            reference=sample["reference"],
        )
        return Row(id=sample["id"], score=number(result.value), verdicts=told.get(sample["id"], []), error="")

    return Ready(each(one, asked["concurrency"]), ragas.__version__)


def opik_tool(asked: Asked) -> Ready:
    """Opik's `ContextRecall`; the sets have no response of a system, so the reference stands for it."""
    os.environ |= {"OPENAI_API_KEY": asked["api_key"], "OPENAI_API_BASE": asked["base_url"]}
    os.environ |= {"OPENAI_BASE_URL": asked["base_url"]}
    import opik  # noqa: PLC0415
    from opik.evaluation.metrics import ContextRecall  # noqa: PLC0415

    metric = ContextRecall(model=f"openai/{asked['model']}", track=False)

    async def one(sample: Sample) -> Row:
        result = await metric.ascore(
            input=sample["user_input"],
            output=sample["reference"],
            expected_output=sample["reference"],
            context=sample["retrieved_contexts"],
        )
        return Row(id=sample["id"], score=number(result.value), verdicts=[], error="")

    return Ready(each(one, asked["concurrency"]), opik.__version__)


def deepeval_tool(asked: Asked) -> Ready:
    """`ContextualRecallMetric` behind `LocalModel`; its verdicts do not say which statement they are on.

    Its own time limit for a reply is a minute and a half, which most exceed on two cores; it gets five, and no more,
    since nothing else ends a reply that runs away.
    """
    os.environ["DEEPEVAL_PER_ATTEMPT_TIMEOUT_SECONDS_OVERRIDE"] = "300"
    import deepeval  # noqa: PLC0415
    from deepeval.metrics import ContextualRecallMetric  # noqa: PLC0415
    from deepeval.models import LocalModel  # noqa: PLC0415
    from deepeval.test_case import LLMTestCase  # noqa: PLC0415

    model = LocalModel(model=asked["model"], base_url=asked["base_url"], api_key=asked["api_key"])

    async def one(sample: Sample) -> Row:
        metric = ContextualRecallMetric(model=model)
        case = LLMTestCase(
            input=sample["user_input"],
            actual_output=sample["reference"],
            expected_output=sample["reference"],
            retrieval_context=sample["retrieved_contexts"],
        )
        await metric.a_measure(case, _show_indicator=False)
        verdicts = [Verdict(text="", attributed=str(one.verdict).lower().endswith("yes")) for one in metric.verdicts]
        return Row(id=sample["id"], score=number(metric.score), verdicts=verdicts, error="")

    return Ready(each(one, asked["concurrency"]), deepeval.__version__)


def each(
    one: Callable[[Sample], Awaitable[Row]], concurrency: int
) -> Callable[[Sequence[Sample]], Awaitable[list[Row]]]:
    """Run samples through a tool, some at once; whatever it raises for one is that sample's failure."""

    async def run(samples: Sequence[Sample]) -> list[Row]:
        places = asyncio.Semaphore(concurrency)

        async def guarded(sample: Sample) -> Row:
            async with places:
                try:
                    row = await one(sample)
                except Exception as error:  # noqa: BLE001 -- a tool of others may raise anything; it is counted
                    told = f"{type(error).__name__}: {error}"[:300]
                    return Row(id=sample["id"], score=None, verdicts=[], error=told)
                return row if row["score"] is not None else {**row, "error": "no score (NaN)"}

        return await asyncio.gather(*(guarded(sample) for sample in samples))

    return run


def number(value: object) -> float | None:
    """A score as a number; None for NaN and for what is none."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


TOOLS: Mapping[str, Callable[[Asked], Ready]] = {
    "airjudge pointwise": lambda asked: airjudge_tool(asked, "pointwise"),
    "airjudge ragas": lambda asked: airjudge_tool(asked, "ragas"),
    "ragas": ragas_tool,
    "opik": opik_tool,
    "deepeval": deepeval_tool,
}


def main() -> None:
    """Run the turn that the file asks for."""
    asked: Asked = json.loads(Path(sys.argv[1]).read_bytes())
    samples = [json.loads(line) for line in Path(asked["data"]).read_bytes().split(b"\n") if line]
    ready = TOOLS[asked["tool"]](asked)
    wall, cpu = time.perf_counter(), time.process_time()
    rows = asyncio.run(_run(ready, samples))
    told = Brought(
        version=ready.version,
        rows=rows,
        wall_s=time.perf_counter() - wall,
        client_cpu_s=time.process_time() - cpu,
        client_peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )
    Path(asked["out"]).write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")


async def _run(ready: Ready, samples: Sequence[Sample]) -> list[Row]:
    return await ready.run(samples)


if __name__ == "__main__":
    main()
