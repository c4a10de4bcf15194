"""The benchmark of limits: what a server needs at least, and the whole of it against the stub."""

import json
from pathlib import Path

import pytest

from benchmarks.efficiency import run as efficiency
from benchmarks.limits import run
from tests.rows import row
from tests.stub import Stub


def test_the_limit_is_prefill_of_unique_tokens_and_decode_of_what_follows_the_first() -> None:
    # 1000 tokens at 500 a second, and 30 steps at 10 a second.
    assert run.limit_s(1000, 30, run.Rates(prefill=500, decode=10)) == pytest.approx(2 + 3)


def test_a_share_is_of_the_median_time() -> None:
    share = run.Share(
        dataset="x",
        first=None,
        n_requests=1,
        unique_tokens=1,
        computed_tokens=1,
        decode_steps=0,
        wall_s=(9.0, 4.0, 5.0),
        limit_s=4.0,
    )
    assert share.achieved == pytest.approx(4 / 5)


def test_the_whole_benchmark_runs(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(name, 2) for name in ("A", "B")]
    (tmp_path / "wice_subclaims.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    monkeypatch.setattr(efficiency, "DATA", tmp_path)
    monkeypatch.setenv("AIRJUDGE_API_KEY", stub.api_key or "")
    results = tmp_path / "limits.json"
    asked = ("--set", "wice_subclaims", "--base-url", stub.base_url, "--model", stub.model, "--repeats", "1")
    monkeypatch.setattr("sys.argv", ["limits", *asked, "--results", str(results)])
    run.main()
    (share,) = run.Measured.model_validate_json(results.read_bytes()).shares
    # Four statements, each asked in two phrasings and without contexts; replies of one token have no decode step.
    assert (share.n_requests, share.decode_steps) == (12, 0)
    assert 0 < share.unique_tokens <= share.computed_tokens
    assert "| wice_subclaims | 12 |" in capsys.readouterr().out
