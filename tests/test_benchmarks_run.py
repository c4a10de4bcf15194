"""Each benchmark that has no tests of its own, from end to end against the stub: what is not run rots."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.accuracy import run as accuracy
from benchmarks.agreement import run as agreement
from benchmarks.chaos import run as chaos
from benchmarks.efficiency import run as efficiency
from benchmarks.prompts import lab
from tests.rows import Row, row
from tests.stub import Stub

SETS = ("wice_subclaims", "factcheck_bench_responses")


def labelled(name: str) -> Row:
    """Four statements, of which the contexts hold two and people found three supported."""
    held = [f"Harbour {name} opened pier one.", f"Harbour {name} opened pier two."]
    texts = [*held, "Elephants mostly sleep while standing.", "Radium glows green."]
    statements = [{"id": str(n), "text": text, "label": int(n != 4)} for n, text in enumerate(texts, 1)]
    return {**row(name), "group": name, "lang": "en", "retrieved_contexts": held, "statements": statements}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of labelled sets, which all benchmarks read."""
    folder = tmp_path / "data"
    folder.mkdir()
    lines = [json.dumps(labelled(name)) + "\n" for name in ("A", "B", "C")]
    for name in SETS:
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    for module in (accuracy, agreement, efficiency):
        monkeypatch.setattr(module, "DATA", folder)
    return folder


def command(monkeypatch: pytest.MonkeyPatch, stub: Stub, *arguments: str) -> None:
    monkeypatch.setenv("AIRJUDGE_API_KEY", stub.api_key or "")
    monkeypatch.setattr(sys, "argv", ["run.py", *arguments])


@pytest.mark.usefixtures("data")
def test_accuracy(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "accuracy.json"
    command(monkeypatch, stub, "wice_subclaims", "--base-url", stub.base_url, "--results", str(results))
    accuracy.main()
    figures = json.loads(results.read_bytes())["sets"]["wice_subclaims"]
    # Of nine statements that people found supported the stub finds six, and none of the other three.
    assert (figures["n"], figures["yes_rate"]) == (12, 0.5)
    assert figures["balanced_accuracy"] == pytest.approx((6 / 9 + 1) / 2)


@pytest.mark.usefixtures("data")
def test_agreement(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, runs = tmp_path / "agreement.json", str(tmp_path / "runs")
    asked = ("--base-url", stub.base_url, "--model", stub.model, "--runs", runs, "--results", str(results))
    command(monkeypatch, stub, "wice_subclaims", *asked)
    agreement.main()
    (told,) = json.loads(results.read_bytes())["sets"]["wice_subclaims"]["judges"].values()
    assert told["all"]["balanced_accuracy"] == pytest.approx((6 / 9 + 1) / 2)


@pytest.mark.usefixtures("data")
def test_efficiency(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "efficiency.json"
    asked = ("--base-url", stub.base_url, "--model", stub.model, "--repeats", "1", "--results", str(results))
    command(monkeypatch, stub, "tokens", "time", "client", *asked)
    efficiency.main()
    found = json.loads(results.read_bytes())
    assert all(one["computed"] >= one["unique"] > 0 for one in found["tokens"].values())
    assert found["time"]["median_ratio"] > 0
    assert set(found["client_ms_per_verdict"]) == set(SETS)


def test_the_lab_of_prompts(
    stub: Stub, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = ("--data", str(data), "--sets", "wice_subclaims", "--out", str(tmp_path), "--variants", "shipped")
    reached = ("--base-url", stub.base_url, "--model", stub.model, "--api-key-env", "AIRJUDGE_API_KEY")
    command(monkeypatch, stub, *reached, *sets)
    lab.main()
    assert len((tmp_path / "raw.jsonl").read_bytes().split(b"\n")) > 12
    assert "shipped" in capsys.readouterr().out


def test_chaos(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "chaos.json"
    command(monkeypatch, stub, "--kills", "2", "--results", str(results))
    with pytest.raises(SystemExit) as ended:
        chaos.main()
    assert ended.value.code == 0
    assert json.loads(results.read_bytes())["n_kills"] >= 2
