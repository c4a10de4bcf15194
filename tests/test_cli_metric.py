"""`airjudge score --metric`: metrics without a judge, their runs read by every other command, and useless options."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.commands import Command, options
from tests.rows import Row
from tests.stub import Stub

LIKE = "non_llm_context_recall"
IDS = "id_based_context_recall"
FERRY = "The ferry departs at six."
# By likeness a finds the first of two, b of an empty retrieval none of one, c has nothing to find. Means 1/2 and 0:
# 1/4 over samples, 1/3 over statements. By ids a finds "1" of "1" and "x", and b nothing of "1": the same.
ROWS: tuple[Row, ...] = (
    {
        "id": "a", "kind": "x", "question": "When?", "contexts": ["It is red.", FERRY],
        "reference_contexts": ["The ferry departs at ten.", "Whales sing."], "retrieved_ids": [1],
        "reference_ids": ["1", "x", "x"],
    },
    {"id": "b", "kind": "x", "contexts": [], "reference_contexts": [FERRY], "retrieved_ids": [], "reference_ids": [1]},
    {"id": "c", "kind": "y", "contexts": [FERRY], "reference_contexts": [], "retrieved_ids": [1], "reference_ids": []},
)  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path / "data.jsonl", ROWS)


def written(path: Path, rows: Sequence[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def scored(out: Path) -> dict[str, float | None]:
    return {row["id"]: row["score"] for row in map(json.loads, (out / "samples.jsonl").read_text().splitlines())}


@pytest.mark.parametrize("metric", [LIKE, IDS])
def test_a_run_without_a_judge_has_a_summary_slices_gates_and_junit(
    airjudge: Command, data: Path, tmp_path: Path, metric: str
) -> None:
    out, junit = tmp_path / "out", tmp_path / "junit.xml"
    ended = airjudge(
        "score", data, "--metric", metric, "--out", out, "--by", "kind", "--junit", junit, "--fail-under", "0.3",
        "--json",
    )  # fmt: skip
    assert ended.code == 1
    assert "gate fail_under_mean failed: mean recall is 0.25, under 0.3" in ended.err
    told = json.loads(ended.out)
    assert (told["mean"], told["micro_mean"], told["requests"], told["n_empty_contexts"]) == (0.25, 1 / 3, 0, 1)
    assert [(one["value"], one["mean"]) for one in told["slices"]] == [("x", 0.25), ("y", None)]
    assert [case.get("name") for case in ET.parse(junit).iter("testcase")] == ["a", "b", "c", "fail_under_mean"]
    assert scored(out) == {"a": 0.5, "b": 0.0, "c": None}


@pytest.mark.parametrize("metric", [LIKE, IDS])
def test_every_other_command_reads_a_run_without_a_judge(
    airjudge: Command, data: Path, tmp_path: Path, metric: str
) -> None:
    out, report = tmp_path / "out", tmp_path / "report.html"
    assert airjudge("score", data, "--metric", metric, "--out", out, "--keep", "kind").code == 0
    assert "everything holds" in airjudge("verify", out).out
    assert airjudge("score", data, "--metric", metric, "--out", tmp_path / "again").code == 0
    assert airjudge("compare", out, tmp_path / "again").code == 0
    assert "3 samples written" in airjudge("export", out, "--format", "csv", "--table", "statements").out
    ended = airjudge("report", out, "-o", report)
    assert (ended.code, "No texts" in ended.out) == (0, False)
    page = report.read_text()
    assert "no judge rules" in page
    assert "as the judge rules" not in page
    assert FERRY in page
    data.rename(tmp_path / "moved.jsonl")
    ended = airjudge("report", out, "-o", report, "--data", tmp_path / "moved.jsonl")
    assert (ended.code, "no texts" in ended.out) == (0, False)


def test_likeness_is_told_for_each_reference_context(airjudge: Command, data: Path, tmp_path: Path) -> None:
    airjudge("score", data, "--metric", LIKE, "--out", tmp_path / "out")
    first = json.loads((tmp_path / "out" / "samples.jsonl").read_text().splitlines()[0])
    # "The ferry departs at six." and "... ten." differ in three of 25 letters.
    assert first["statements"][0]["reason"] == "similarity 0.880 to retrieved context 2"
    assert first["statements"][0]["probability"] is None


def test_distance_and_threshold_reach_the_metric_and_its_signature(
    airjudge: Command, data: Path, tmp_path: Path
) -> None:
    ended = airjudge(
        "score", data, "--metric", LIKE, "--out", tmp_path / "out", "--distance", "hamming", "--threshold", "0.9"
    )
    assert "hamming>0.9" in ended.out.replace("\n", "")
    assert scored(tmp_path / "out")["a"] == 0.0


def test_a_run_goes_on_only_as_the_same_metric(airjudge: Command, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    airjudge("score", data, "--metric", LIKE, "--out", out)
    before = (out / "samples.jsonl").stat().st_mtime_ns
    assert airjudge("score", data, "--metric", LIKE, "--out", out).code == 0
    assert (out / "samples.jsonl").stat().st_mtime_ns == before
    ended = airjudge("score", data, "--metric", LIKE, "--out", out, "--threshold", "0.9")
    assert ended.code == 2
    assert "levenshtein>0.5 there, " in ended.err
    assert "levenshtein>0.9 now" in ended.err
    ended = airjudge("score", data, "--metric", IDS, "--out", out)
    assert ended.code == 2


def test_a_fork_takes_over_only_from_the_same_metric(airjudge: Command, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    airjudge("score", data, "--metric", LIKE, "--out", out)
    longer = written(tmp_path / "longer.jsonl", [*ROWS, {**ROWS[0], "id": "d", "contexts": ["Whales sing."]}])
    ended = airjudge("score", longer, "--metric", LIKE, "--out", tmp_path / "fork", "--fork", out, "--json")
    assert (ended.code, json.loads(ended.out)["n_taken_over"]) == (0, 1)
    assert scored(tmp_path / "fork") == {"a": 0.5, "b": 0.0, "c": None, "d": 0.5}
    ended = airjudge("score", longer, "--metric", IDS, "--out", tmp_path / "other", "--fork", out)
    assert ended.code == 2
    assert "its judge is another one" in ended.err


@pytest.mark.parametrize(
    ("metric", "given", "words"),
    [
        (LIKE, ("--judge", "x"), "asks no judge: leave --judge out"),
        (LIKE, ("--base-url", "http://127.0.0.1:1", "--model", "m"), "leave --base-url, --model out"),
        (LIKE, ("--method", "pointwise"), "leave --method out"),
        (LIKE, ("--statements", "given"), "leave --statements out"),
        (LIKE, ("--concurrency", "auto"), "leave --concurrency out"),
        (LIKE, ("--reasons", "all"), "leave --reasons out"),
        (LIKE, ("--evidence",), "leave --evidence out"),
        (LIKE, ("--calibration", "file"), "leave --calibration out"),
        (LIKE, ("--price-in", "1", "--price-out", "1"), "leave --price-in, --price-out out"),
        (IDS, ("--allow-remote",), "compares ids and asks no judge: leave --allow-remote out"),
        (IDS, ("--distance", "jaro"), "leave --distance out"),
        ("context_recall", ("--threshold", "0.5"), "does not go by likeness: leave --threshold out"),
    ],
)
def test_options_that_would_change_nothing_are_refused_by_name(
    airjudge: Command, data: Path, tmp_path: Path, metric: str, given: Sequence[str], words: str
) -> None:
    ended = airjudge("score", data, "--metric", metric, "--out", tmp_path / "out", *given)
    assert ended.code == 2
    assert words in " ".join(ended.err.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("metric", "column", "field"),
    [
        (LIKE, "reference_contexts", "reference_contexts"),
        (LIKE, "contexts", "retrieved_contexts"),
        (IDS, "reference_ids", "reference_context_ids"),
        (IDS, "retrieved_ids", "retrieved_context_ids"),
    ],
)
def test_a_missing_column_is_named_with_the_next_step(
    airjudge: Command, tmp_path: Path, metric: str, column: str, field: str
) -> None:
    rows = [{name: value for name, value in row.items() if name != column} for row in ROWS]
    data = written(tmp_path / "data.jsonl", rows)
    ended = airjudge("score", data, "--metric", metric, "--out", tmp_path / "out")
    assert ended.code == 2
    assert f"no column for {field}" in ended.err
    assert f"--map {field}=COLUMN" in ended.err
    renamed = written(
        tmp_path / "renamed.jsonl", [{"mine" if k == column else k: v for k, v in row.items()} for row in ROWS]
    )
    ended = airjudge("score", renamed, "--metric", metric, "--out", tmp_path / "out", "--map", f"{field}=mine", "-q")
    assert (ended.code, scored(tmp_path / "out")["a"]) == (0, 0.5)


def test_a_missing_package_is_told_before_anything_is_read(
    airjudge: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    ended = airjudge("score", tmp_path / "none.jsonl", "--metric", LIKE, "--out", tmp_path / "out")
    assert ended.code == 2
    assert "hint: pip install 'airjudge[similarity]'" in ended.err


def test_a_run_of_a_judge_is_compared_with_one_without_by_scores_alone(
    airjudge: Command, stub: Stub, data: Path, tmp_path: Path
) -> None:
    rows = [{**row, "question": "When?", "reference": FERRY} for row in ROWS]
    whole, judged, plain = written(tmp_path / "whole.jsonl", rows), tmp_path / "judged", tmp_path / "plain"
    assert airjudge("score", whole, *options(stub, judged)).code == 0
    assert airjudge("score", whole, "--metric", LIKE, "--out", plain).code == 0
    ended = airjudge("compare", judged, plain)
    assert ended.code == 2
    assert "the runs do not hold the same statements" in ended.err
    assert "They rule on statements of the reference and on reference contexts" in ended.err
    assert "--scores-only" in ended.err
    assert airjudge("compare", judged, plain, "--scores-only").code == 0


def test_a_line_that_stops_the_run_is_told_with_what_the_metric_reads(airjudge: Command, tmp_path: Path) -> None:
    data = written(tmp_path / "data.jsonl", [ROWS[0], {**ROWS[1], "reference_ids": "1"}])
    ended = airjudge("score", data, "--metric", IDS, "--out", tmp_path / "out", "--bad-lines", "stop")
    assert ended.code == 2
    assert "reference_context_ids (reference_ids) must be a list of strings or whole numbers" in ended.err
    assert "what the metric reads" in ended.err


def test_help_says_which_columns_each_metric_reads(airjudge: Command) -> None:
    told = " ".join(airjudge("score", "--help").out.split())
    for word in ("reference_contexts", "retrieved_context_ids", "reference_context_ids", LIKE, IDS):
        assert word in told
