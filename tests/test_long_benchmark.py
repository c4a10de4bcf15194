"""The benchmark of long contexts: its arms on two stubs, one of which is short."""

import argparse
import json
from pathlib import Path

import pytest

from airjudge.datasets.labels import read_labels
from airjudge.run import open_run
from benchmarks.efficiency.run import Target
from benchmarks.long import run
from tests.stub import Stub, StubConfig
from tests.test_long_contexts import FACT, filler

LABELLED = {
    "id": "A",
    "group": "A",
    "user_input": "What?",
    "reference": FACT,
    "retrieved_contexts": [filler(1), filler(2), f"{filler(3)} {FACT}"],
    "statements": [
        {"id": "1", "text": FACT, "label": 1},
        {"id": "2", "text": "Elephants mostly sleep while standing.", "label": 1},
    ],
}


def test_a_short_judge_fails_or_reads_in_parts_what_another_reads_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "set.jsonl"
    data.write_text(json.dumps(LABELLED) + "\n")
    monkeypatch.setattr(run, "DATA", tmp_path)
    asked = argparse.Namespace(judge="qwen2.5-coder-1.5b", set="set", first=1)
    rows = {}
    for arm, length in (("at once", 8192), ("fail", 500), ("split", 500)):
        with Stub(StubConfig(max_model_len=length)) as stub:
            target = Target(stub.base_url, stub.model, stub.api_key or "")
            used = run.scored(asked, target, tmp_path / arm, arm=arm)  # type: ignore[arg-type]
        whole = open_run(tmp_path / "at once")
        found = open_run(tmp_path / arm)
        rows[arm] = run.row_of(arm, found, whole, labels=read_labels(data), used=used)  # type: ignore[arg-type]
    assert (rows["at once"].n_failed, rows["at once"].n_verdicts, rows["at once"].n_in_parts) == (0, 2, 0)
    assert (rows["fail"].n_failed, rows["fail"].n_verdicts, rows["fail"].mean_absolute_error) == (1, 0, None)
    split = rows["split"]
    assert (split.n_failed, split.n_verdicts, split.n_in_parts, split.same) == (0, 2, 2, 2)
    # One of two statements is found that people both found: an error of a half.
    assert split.mean_absolute_error == pytest.approx(0.5)
    assert split.requests > rows["at once"].requests
