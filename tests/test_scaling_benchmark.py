"""The benchmark of scaling: its exponent, its samples, and the smallest sizes of each axis beside the stub."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks.scaling import run


def test_the_exponent_is_the_slope_in_logarithms() -> None:
    points = [run.Point(size=size, client_s=0.3 * size**1.5, requests=size) for size in (1, 4, 16)]
    assert run.exponent(points) == pytest.approx(1.5)


def test_samples_grow_along_one_axis_alone() -> None:
    few, many = next(run.rows("statements", 1)), next(run.rows("statements", 64))
    assert [len(one["statements"]) for one in (few, many)] == [1, 64]  # type: ignore[arg-type]
    short, long = next(run.rows("context_words", 256)), next(run.rows("context_words", 16384))
    assert len(str(long["retrieved_contexts"])) > 50 * len(str(short["retrieved_contexts"]))
    assert len(list(run.rows("samples", 10))) == 10


def test_the_smoke_form_measures_every_axis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results, drawn = tmp_path / "scaling.json", tmp_path / "scaling.svg"
    monkeypatch.setattr("sys.argv", ["scaling", "--smoke", "--results", str(results), "--plot", str(drawn)])
    run.main()
    measured = run.Measured.model_validate_json(results.read_bytes())
    # Three questions a statement: two phrasings, and the statement without contexts.
    asked = {one.axis: [point.requests for point in one.points] for one in measured.curves}
    assert asked == {"statements": [60, 240], "context_words": [120, 120], "samples": [60, 600]}
    assert "| samples | 10 · 100 |" in capsys.readouterr().out
    assert len(ET.fromstring(drawn.read_bytes()).findall("{http://www.w3.org/2000/svg}circle")) == 6
