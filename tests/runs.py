"""Runs of the tests: written, started, stopped, looked at."""

import asyncio
import json
from pathlib import Path

import pytest

from airjudge import ContextRecall, JudgeSettings
from airjudge.datasets import Source
from airjudge.errors import JudgeUnauthorized
from airjudge.run import RunHeader, RunSettings, score_dataset
from airjudge.run.folder import EXPORTS
from airjudge.run.scoring import OnCounts, uncounted
from airjudge.schema import ReasonsPolicy
from tests.killing import statement_asked
from tests.rows import Row, connected, row
from tests.stub import Fault, Stub
from tests.stub import faults as faults_of

STOP = faults_of.respond(401)
ONE_AT_A_TIME = JudgeSettings(concurrency=1)


def write(folder: Path, *rows: Row | str, name: str = "rows.jsonl") -> Path:
    """Write rows, and strings as lines of their own."""
    path = folder / name
    lines = [one if isinstance(one, str) else json.dumps(one) for one in rows]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def run(
    stub: Stub,
    data: Path | Source,
    out: Path,
    *,
    asked: JudgeSettings = ONE_AT_A_TIME,
    reasons: ReasonsPolicy = "none",
    evidence: bool = False,
    on_counts: OnCounts = uncounted,
    **settings: object,
) -> RunHeader:
    """Score a file or a source, one request at a time unless told otherwise; settings of the run by their names."""
    metric = ContextRecall(connected(stub, asked), reasons=reasons, evidence=evidence)
    chosen = RunSettings.model_validate(settings)
    return asyncio.run(score_dataset(data, metric, out, settings=chosen, on_counts=on_counts))


def stopped_at(stub: Stub, text: str, data: Path, out: Path, **settings: object) -> None:
    """Run until a question with this text, which the server refuses in a way that ends the run."""
    fault = Fault(STOP, when=faults_of.mentions(text))
    stub.faults.append(fault)
    with pytest.raises(JudgeUnauthorized):
        run(stub, data, out, **settings)  # type: ignore[arg-type]
    stub.faults.remove(fault)
    stub.clear()


def statements_asked(stub: Stub) -> list[str]:
    """Give the statements that a verdict was asked on, sorted."""
    return sorted(text for one in stub.chats if (text := statement_asked(one)))


def exports(out: Path) -> dict[str, bytes]:
    """Give all exports of a run by name."""
    return {name: (out / name).read_bytes() for name in EXPORTS}


def numbered(count: int) -> list[Row]:
    """Build that many rows of one statement."""
    return [row(f"N{n}") for n in range(count)]
