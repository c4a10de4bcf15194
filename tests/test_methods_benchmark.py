"""The benchmark of methods: a run and a row for each set and method, rows in one file, nothing asked twice."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airjudge.datasets.labels import read_labels
from airjudge.schema import Sample
from benchmarks.agreement import methods
from tests.rows import row
from tests.stub import Stub

NAME = "wice_subclaims"


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A set of three samples, whose contexts support all; people missed the second statement of each."""
    monkeypatch.setattr(methods, "DATA", tmp_path)
    rows = [row(name, 2) for name in ("A", "B", "C")]
    for one in rows:
        one["statements"] = [{**told, "label": n} for n, told in zip((1, 0), one["statements"], strict=True)]  # type: ignore[call-overload]
    path = tmp_path / f"{NAME}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


@pytest.fixture
def benchmark(
    stub: Stub, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run the benchmark, and give what it printed."""
    monkeypatch.setenv("AIRJUDGE_API_KEY", stub.api_key or "")
    places = ("--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "methods.json"))
    server = ("--base-url", stub.base_url, "--model", stub.model)

    def run(*options: str) -> str:
        monkeypatch.setattr(sys, "argv", ["methods", "--set", NAME, *places, *server, *options])
        methods.main()
        return capsys.readouterr().out

    return run


def rows_in(tmp_path: Path) -> list[methods.MethodRow]:
    return list(methods.held(tmp_path / "methods.json").rows)


def test_rows_of_several_starts_stand_in_one_table(benchmark: Callable[..., str], tmp_path: Path) -> None:
    benchmark("--method", "ragas")
    benchmark("--method", "reasoned")
    shown = benchmark("--method", "pointwise")
    rows = rows_in(tmp_path)
    assert [one.method for one in rows] == ["pointwise", "ragas", "reasoned"]
    assert [line.split(" | ")[2] for line in shown.splitlines()[2:]] == ["pointwise", "ragas", "reasoned"]
    for one in rows:
        assert (one.n, one.n_samples, one.n_statements) == (3, 3, 6)
        # Each judge finds all attributed, people half: recall 1 beside 1/2, and a coin's balanced accuracy.
        assert (one.mean_absolute_error, one.balanced_accuracy, one.spearman) == (0.5, 0.5, None)
    assert [one.coverage for one in rows] == [None, 1, None]
    assert [one.usage.requests for one in rows] == [6, 3, 6]


def test_a_finished_run_is_read_and_its_row_replaced_not_added(
    benchmark: Callable[..., str], stub: Stub, tmp_path: Path
) -> None:
    first = benchmark("--method", "ragas")
    stub.clear()
    assert benchmark("--method", "ragas") == first
    assert not stub.requests
    assert len(rows_in(tmp_path)) == 1


def test_the_first_samples_are_a_run_and_a_row_of_their_own(benchmark: Callable[..., str], tmp_path: Path) -> None:
    benchmark("--method", "ragas", "--first", "2")
    assert f"| {NAME} (first 2) | judge | ragas | 2 | 4 |" in benchmark("--method", "ragas")
    assert [(one.first, one.n) for one in rows_in(tmp_path)] == [(None, 3), (2, 2)]


def test_the_table_alone_asks_nothing(benchmark: Callable[..., str], stub: Stub) -> None:
    shown = benchmark("--method", "pointwise")
    stub.clear()
    assert benchmark("--table") == shown
    assert not stub.requests


def test_for_a_grade_the_reference_stands_for_the_response(data: Path, tmp_path: Path) -> None:
    source = methods.data_of(NAME, "opik", tmp_path / "made")
    samples = [entry.value for entry in source.entries(lambda _: False)]
    assert len(samples) == 3
    assert all(isinstance(one, Sample) and one.response == one.reference for one in samples)


def test_human_recall_is_the_share_of_attributed_labels_and_undefined_where_one_is_missing(data: Path) -> None:
    labels = read_labels(data)
    assert methods.human_recall(labels, "A") == 0.5
    assert methods.human_recall(labels, "unknown") is None
