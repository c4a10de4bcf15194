"""`airjudge compare` from end to end: runs through the stub, labels from files, text, Markdown and JSON."""

import json
from pathlib import Path

import pytest

from tests.commands import Command
from tests.rows import Row, row
from tests.runs import run, write
from tests.stub import Fault, Stub
from tests.stub import faults as faults_of

HOSTILE = "[a](javascript:alert)|`x` <script>\x1b[31m *b*"


def rows() -> list[Row]:
    """Four samples of two statements, of two systems; the contexts hold them all."""
    return [
        row(name, 2) | {"system": system}
        for name, system in zip("ABCD", ("bm25", "bm25", "dense", "dense"), strict=True)
    ]


@pytest.fixture
def runs(stub: Stub, tmp_path: Path) -> tuple[Path, Path]:
    """Two runs of four samples: one that finds all, and one that misses pier two of A and of B."""
    data = write(tmp_path, *rows())
    run(stub, data, tmp_path / "one", keep=["system"])
    for name in "AB":
        stub.faults.append(
            Fault(faults_of.want("0"), when=faults_of.mentions(f"Statement: Harbour {name} opened pier two"))
        )
    run(stub, data, tmp_path / "two", keep=["system"])
    stub.faults.clear()
    return tmp_path / "one", tmp_path / "two"


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """People miss pier two of A alone."""
    told: list[Row] = [
        {"id": name, "statement": number, "attributed": not (name == "A" and number == "2")}
        for name in "ABCD"
        for number in "12"
    ]
    return write(tmp_path, *told, name="labels.jsonl")


def test_json_tells_judges_pairs_people_and_decisions(airjudge: Command, runs: tuple[Path, Path], labels: Path) -> None:
    asked = ("--labels", labels, "--systems", "system", "--fail-under", 0.8, "--by", "system", "--json")
    ended = airjudge("compare", *runs, *asked)
    assert (ended.code, ended.err) == (0, "")
    told = json.loads(ended.out)
    assert [(one["name"], one["n"], one["mean"]) for one in told["judges"]] == [
        ("one", 8, 1), ("two", 8, 0.75), ("labels", 8, 0.875),
    ]  # fmt: skip
    assert told["judges"][0]["signature"].startswith("judge@unverified pointwise#")
    assert told["judges"][0]["usage"]["requests"] == 8
    assert [(one["a"], one["b"], one["table"]) for one in told["pairs"]] == [
        ("one", "two", [[0, 0], [2, 6]]), ("one", "labels", [[0, 0], [1, 7]]), ("two", "labels", [[1, 1], [0, 6]]),
    ]  # fmt: skip
    assert told["judges"][1]["people"]["all"]["specificity"] == 1
    assert told["judges"][1]["people"]["all"]["sensitivity"] == pytest.approx(6 / 7)
    assert (told["gate"]["flips"], told["ranking"]["flips"]) == (True, False)
    assert told["pairs"][0]["disagreements"][0]["statement"] == "2"
    assert [one["value"] for one in told["pairs"][0]["slices"]] == ["bm25", "dense"]


def test_text_tells_the_same(airjudge: Command, runs: tuple[Path, Path], labels: Path) -> None:
    ended = airjudge("compare", *runs, "--labels", labels, "--labels-random", "--fail-under", 0.8)
    assert ended.code == 0
    for part in (
        "4 samples, 4 groups, 8 statements",
        "one | labels",
        "Krippendorff's alpha",
        "balanced accuracy",
        "Rogan-Gladen",
        "The gate at recall 0.8 depends on the judge",
        "one | two: 2 disagreements, the 2 most confident",
        "only 4 groups are labelled in full",
    ):
        assert part in ended.out


def test_markdown_reads_nothing_of_the_data_as_markup(airjudge: Command, stub: Stub, tmp_path: Path) -> None:
    text = f"Harbour A opened pier one. {HOSTILE}"
    hostile = row("A") | {"retrieved_contexts": [text], "statements": [{"id": "1", "text": text}]}
    data = write(tmp_path, hostile, row("B"))
    run(stub, data, tmp_path / "one")
    stub.faults.append(Fault(faults_of.want("0"), when=faults_of.mentions("Harbour A")))
    run(stub, data, tmp_path / "two")
    ended = airjudge("compare", tmp_path / "one", tmp_path / "two", "--markdown")
    assert ended.code == 0
    [line] = [line for line in ended.out.splitlines() if "javascript" in line]
    assert r"\[a\](javascript:alert)\|\`x\` &lt;script&gt; \[31m \*b\*" in line
    assert line.count(" | ") == 4  # five columns, and no more for the text's own pipe
    printed = airjudge("compare", tmp_path / "one", tmp_path / "two").out
    assert "\x1b[31m" not in printed
    assert "[a](javascript:alert)" in printed


def test_all_disagreements_are_written_and_few_are_shown(
    airjudge: Command, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "disagreements.jsonl"
    ended = airjudge("compare", *runs, "--disagreements", 1, "--disagreements-out", out, "--json")
    assert len(json.loads(ended.out)["pairs"][0]["disagreements"]) == 1
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [(one["judge_a"], one["judge_b"], one["sample"]) for one in lines] == [
        ("one", "two", "A"),
        ("one", "two", "B"),
    ]


def test_runs_of_other_statements_end_with_2_and_can_be_compared_by_scores(
    airjudge: Command, stub: Stub, tmp_path: Path
) -> None:
    for name, n in (("one", 1), ("two", 2)):
        run(stub, write(tmp_path, row("A", n), row("B", n), name=f"{name}.jsonl"), tmp_path / name)
    folders = (tmp_path / "one", tmp_path / "two")
    ended = airjudge("compare", *folders)
    assert (ended.code, ended.out) == (2, "")
    assert '"A": 1 and 2 statements' in ended.err
    assert "hint: " in ended.err
    ended = airjudge("compare", *folders, "--scores-only")
    assert ended.code == 0
    assert "2 samples, 2 groups, scores alone" in ended.out


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("--markdown", "--json"), "--markdown"),
        (("--labels-random",), "--labels"),
        (("--margin", "0"), "--margin"),
        (("--margin", "nan"), "--margin"),
        (("--epsilon", "1"), "--epsilon"),
        (("--fail-under", "1.1"), "--fail-under"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(
    airjudge: Command, tmp_path: Path, asked: tuple[str, ...], told: str
) -> None:
    ended = airjudge("compare", tmp_path, *asked)
    assert ended.code == 2
    assert told in ended.err


def test_a_folder_without_a_run_is_refused(airjudge: Command, tmp_path: Path) -> None:
    ended = airjudge("compare", tmp_path, tmp_path)
    assert ended.code == 2
    assert "holds no run" in ended.err
