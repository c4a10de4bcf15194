"""Judges at the stub provider, and runs of them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from airjudge import ContextRecall, Judge, JudgeSettings
from airjudge.errors import JudgeError
from airjudge.run import RunHeader, read_scored, score_dataset
from airjudge.schema import ScoredSample
from tests.rows import Row, row
from tests.stub import HostedStub
from tests.stub import faults as faults_of

THREE = [row("North"), row("Middle", 2), row("South")]
ABOUT_MIDDLE = faults_of.mentions("Harbour Middle")


def hosted(provider: HostedStub, *, base_url: str = "", **settings: Any) -> Judge:
    chosen = JudgeSettings.model_validate(settings)
    return Judge.hosted(base_url or provider.base_url, provider.model, api_key=provider.api_key, settings=chosen)


def asked(one: Row) -> Row:
    """What the metric takes of a row."""
    return {name: one[name] for name in ("user_input", "retrieved_contexts", "reference")}


def obedient(text: str) -> Callable[[Any], str]:
    """Say the same to every question."""
    return lambda _messages: text


async def run(judge: Judge, rows: Sequence[Row], folder: Path) -> tuple[RunHeader, list[ScoredSample]]:
    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps(one) + "\n" for one in rows))
    header = await score_dataset(data, ContextRecall(judge), folder / "run")
    return header, list(read_scored(folder / "run"))


async def refused(judge: Judge) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        async with judge:
            pass
    return caught.value
