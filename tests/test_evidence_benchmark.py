"""The benchmark of evidence: figures against stances by hand, two runs, nothing asked twice."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.evidence import run as benchmark
from tests.rows import Row
from tests.stub import Stub

FERRY, LAMPS, OWLS = "The ferry departs at six.", "Amber lamps glow nightly.", "Owls hunt beside rivers."
YES, PART, NO = "completely-support", "partially-support", "irrelevant"


def claim(name: str, text: str, contexts: tuple[str, ...], *stances: str) -> Row:
    statement = {"id": "1", "text": text, "label": int(YES in stances), "label_raw": stances}
    told = {"user_input": "Q?", "reference": text, "retrieved_contexts": contexts, "statements": [statement]}
    return {"id": name, "group": name, **told}


ROWS = (
    claim("a", FERRY, (LAMPS, FERRY), NO, YES),
    # The stub puts the ferry's own sentence first here too; people say that it is no support.
    claim("b", FERRY, (FERRY, LAMPS, "Six bells."), NO, NO, PART),
    claim("c", OWLS, (LAMPS, FERRY), YES, NO),  # missed by the stub
    claim("d", FERRY, (FERRY,), YES, NO),  # a context was dropped: which stance is whose is not known
)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.fixture
def started(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[benchmark.Found, str]]:
    """Run the benchmark on the rows, and give what it wrote and printed."""
    monkeypatch.setattr(benchmark, "DATA", tmp_path)
    monkeypatch.setenv("AIRJUDGE_API_KEY", stub.api_key or "")
    (tmp_path / f"{benchmark.NAME}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in ROWS))
    results = tmp_path / "evidence.json"

    def run(*options: str) -> tuple[benchmark.Found, str]:
        places = ("--runs", str(tmp_path / "runs"), "--results", str(results))
        server = ("--base-url", stub.base_url, "--model", stub.model)
        monkeypatch.setattr(sys, "argv", ["evidence", *places, *server, *options])
        benchmark.main()
        return benchmark.Found.model_validate_json(results.read_bytes()), capsys.readouterr().out

    return run


def test_the_figures_are_those_of_the_stances(started: Callable[..., tuple[benchmark.Found, str]]) -> None:
    found, told = started()
    assert (found.n, found.n_unplaced, found.n_statements, found.n_attributed) == (4, 1, 3, 2)
    # a is put first right, b wrong; any context is right in 1/2 and 1/3 of the tries.
    assert (found.top_right.n, found.top_right.judge, found.top_right.overlap) == (2, 0.5, 0.5)
    assert found.top_right.chance == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert (found.top_complete.n, found.top_complete.judge) == (1, 1.0)
    # Verdicts on a's and b's contexts are .x and x.., people's marks .x and ..x: right on 1 of 2 marked, 2 of 3 others.
    assert (found.each_right.n, found.each_right.n_marked) == (5, 2)
    assert found.each_right.balanced_accuracy == pytest.approx((1 / 2 + 2 / 3) / 2)
    # Of 6 pairs a's mark, at .9, wins two and ties with b's first context; b's mark, at .1, ties with two others.
    assert found.each_right.auc == pytest.approx((2 + 0.5 + 2 * 0.5) / 6)
    # Precision by the judge 1/2, 1/3, 0; by people's complete ones 1/2, 0, 1/2. Average precision 1/2, 1, 0; 1/2, 0, 1.
    assert found.errors.n == 3
    assert found.errors.precision == pytest.approx((0 + 1 / 3 + 1 / 2) / 3)
    assert found.errors.average_precision == pytest.approx((0 + 1 + 1) / 3)
    assert (found.verdicts.requests, found.evidence.requests) == (4, 5)
    assert "| at least in part | 2 | 0.500" in told
    assert "1 of 4 samples are left out; 2 of 3 statements attributed." in told


def test_finished_runs_are_read_and_verdicts_of_another_folder_taken(
    started: Callable[..., tuple[benchmark.Found, str]], stub: Stub, tmp_path: Path
) -> None:
    first = started()
    stub.clear()
    assert started() == first
    assert not stub.requests
    (tmp_path / "runs" / "verdicts").rename(tmp_path / "moved")
    assert started("--verdicts", str(tmp_path / "moved")) == first
    assert not stub.requests


def test_without_the_set_it_says_what_to_set(
    started: Callable[..., tuple[benchmark.Found, str]], tmp_path: Path
) -> None:
    (tmp_path / f"{benchmark.NAME}.jsonl").unlink()
    with pytest.raises(SystemExit, match="set AIRJUDGE_DATA"):
        started()
