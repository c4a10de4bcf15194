"""`airjudge demo`: the samples that ship with airjudge, scored by the default judge."""

import asyncio
import json
from typing import Annotated

import typer


def demo(
    *,
    judge: Annotated[str | None, typer.Option(help="Judge profile to use; see: airjudge models list.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Score the samples that ship with airjudge: weights, server, proof of enforcement, table."""
    from airjudge.cli.render import print_samples, stages
    from airjudge.datasets import demo_samples
    from airjudge.judge import Judge
    from airjudge.metrics import ContextRecall

    samples = demo_samples()
    with stages() as on_progress, Judge.find(judge, on_progress=on_progress) as found:
        on_progress(f"proving that the server enforces the verdict schema, then scoring {len(samples)} samples", 0, 0)
        scored = asyncio.run(ContextRecall(found).score_samples(samples))
        signature = found.signature("given")
    if as_json:
        objects = [
            one.model_dump(mode="json") | {"expected": sample.metadata["expected"]}
            for sample, one in zip(samples, scored, strict=True)
        ]
        print(json.dumps({"samples": objects, "signature": str(signature)}, ensure_ascii=False))
    else:
        print_samples(list(zip(samples, scored, strict=True)), signature)
