"""Gates, JUnit, slices, logs and quiet, through the command as continuous integration runs it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.stub import Stub, StubConfig

LINE = {"user_input": "When?", "retrieved_contexts": ["The ferry departs at six."]}
# Recall 1, 0 and 1/2 by the stub's rule; a line that is none fails. Mean .5, one of four failed.
LINES = (
    json.dumps(LINE | {"id": "a", "reference": "The ferry departs.", "lang": "en"}),
    json.dumps(LINE | {"id": "b", "reference": "Whales sing.", "lang": "en"}),
    json.dumps(LINE | {"id": "c", "reference": "The ferry departs. Whales sing.", "lang": "de"}),
    "not json",
)


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with Stub(StubConfig(api_key=None)) as running:
        yield running


class Command:
    """`airjudge score` on the lines above, as a process of its own."""

    def __init__(self, stub: Stub, folder: Path) -> None:
        self.stub, self.folder = stub, folder
        self.data = folder / "data.jsonl"
        self.data.write_text("\n".join(LINES) + "\n", encoding="utf-8")

    def __call__(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        words = ["score", self.data, "--base-url", self.stub.base_url, "--out", self.folder / "out", *arguments]
        command = [sys.executable, "-m", "airjudge", *map(str, words)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "Traceback" not in ended.stderr
        return ended


@pytest.fixture
def score(stub: Stub, tmp_path: Path) -> Command:
    return Command(stub, tmp_path)


def test_without_gates_a_run_passes(score: Command) -> None:
    ended = score("--json")
    assert ended.returncode == 0
    found = json.loads(ended.stdout)
    assert (found["mean"], found["sample_coverage"], found["statement_coverage"]) == (0.5, 0.75, 1.0)
    assert found["rates"]["verdicts"] > 0
    assert "gates" not in found


def test_a_gate_that_fails_ends_with_1_and_one_line(score: Command) -> None:
    ended = score("--fail-under", "0.6", "--max-failed", "10%", "--json")
    assert ended.returncode == 1
    lines = [line for line in ended.stderr.splitlines() if line.startswith("gate ")]
    assert lines == [
        "gate fail_under_mean failed: mean recall is 0.5, under 0.6",
        "gate max_failed_percent failed: 1 of 4 samples failed (25 %), more than 10 %",
    ]
    assert json.loads(ended.stdout)["gates"] == [
        {"name": "fail_under_mean", "limit": 0.6, "value": 0.5, "passed": False},
        {"name": "max_failed_percent", "limit": 10.0, "value": 25.0, "passed": False},
    ]


def test_gates_that_hold_end_with_0(score: Command) -> None:
    ended = score("--fail-under", "0.5", "--max-failed", "1", "--json")
    assert ended.returncode == 0
    assert [one["passed"] for one in json.loads(ended.stdout)["gates"]] == [True, True]


def test_the_lower_end_is_a_gate_of_its_own(score: Command) -> None:
    # Three samples of 0, 1/2 and 1: the interval of their mean reaches down to 0.
    ended = score("--fail-under", "0.5", "--fail-on", "low")
    assert ended.returncode == 1
    assert "lower end of the 95 % interval of recall is 0 (mean 0.5), under 0.5" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--fail-under", "1.5"), "between 0 and 1"),
        (("--fail-under", "nan"), "between 0 and 1"),
        (("--fail-under", "high"), "--fail-under"),
        (("--max-failed", "few"), "a number of samples (5) or a percentage (1%)"),
        (("--max-failed", "1.5"), "ends in %"),
        (("--fail-on", "low"), "--fail-under"),
        (("--junit", "missing/folder/junit.xml"), "does not exist"),
        (("--log", "missing/folder/log.jsonl"), "cannot write the log"),
    ],
)
def test_what_cannot_be_delivered_is_refused_before_anything_is_asked(
    score: Command, arguments: tuple[str, ...], told: str
) -> None:
    n_before = len(score.stub.requests)
    ended = score(*arguments)
    assert ended.returncode == 2
    # The message is folded into a box of the terminal's width.
    assert told in " ".join(ended.stderr.replace("│", " ").split())
    assert len(score.stub.requests) == n_before


def test_junit_has_every_sample_and_the_gate(score: Command, tmp_path: Path) -> None:
    assert score("--junit", tmp_path / "junit.xml", "--fail-under", "0.6").returncode == 1
    [suite] = ET.parse(tmp_path / "junit.xml").getroot()
    assert {key: suite.get(key) for key in ("name", "tests", "errors", "failures", "skipped")} == {
        "name": "data.jsonl", "tests": "5", "errors": "1", "failures": "1", "skipped": "0",
    }  # fmt: skip
    assert [(case.get("name"), case[0].tag) for case in suite] == [
        ("a", "system-out"), ("b", "system-out"), ("c", "system-out"), ("line-4", "error"),
        ("fail_under_mean", "failure"),
    ]  # fmt: skip


def test_slices_are_shown_and_in_the_object(score: Command) -> None:
    table = score("--by", "lang", "--by", "group").stdout
    assert [line.split()[:4] for line in table.splitlines() if "lang =" in line] == [
        ["lang", "=", "en", "0.500"],
        ["lang", "=", "de", "0.500"],
        ["lang", "=", "(none)", "-"],
    ]
    assert "no sample has a column group" in table
    found = json.loads(score("--overwrite", "--by", "lang", "--json").stdout)
    assert [(one["value"], one["n"], one["mean"]) for one in found["slices"]] == [
        ("en", 2, 0.5), ("de", 1, 0.5), ("(none)", 1, None),
    ]  # fmt: skip
    kept = [json.loads(line)["metadata"] for line in (score.folder / "out" / "samples.jsonl").read_text().splitlines()]
    assert kept == [{"lang": "en"}, {"lang": "en"}, {"lang": "de"}, {}]


def test_a_finished_run_is_sliced_by_what_it_kept_without_a_question(score: Command) -> None:
    score("--keep", "lang")
    n_asked = len([one for one in score.stub.requests if "ferry" in one.text])
    found = json.loads(score("--by", "lang", "--json").stdout)
    assert [(one["value"], one["n"]) for one in found["slices"]] == [("en", 2), ("de", 1), ("(none)", 1)]
    assert len([one for one in score.stub.requests if "ferry" in one.text]) == n_asked
    exported = json.loads((score.folder / "out" / "summary.json").read_text())
    assert exported["slices"] == found["slices"]
    command = [sys.executable, "-m", "airjudge", "verify", str(score.folder / "out")]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_quiet_prints_nothing_but_what_went_wrong(score: Command) -> None:
    ended = score("--quiet")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    ended = score("--quiet", "--overwrite", "--max-failed", "0")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "gate max_failed failed: 1 of 4 samples failed, more than 0\n"


def test_without_a_terminal_the_last_line_of_progress_has_the_whole_run(score: Command) -> None:
    ended = score()
    assert ended.stderr.splitlines()[-1].startswith("4 of 4 samples")
    assert "1 failed (bad_line 1)" in ended.stderr


def test_a_log_tells_the_run_and_no_text_of_the_data(score: Command, tmp_path: Path) -> None:
    score("--log", tmp_path / "log.jsonl", "--by", "lang", "--fail-under", "0.6")
    text = (tmp_path / "log.jsonl").read_text()
    found = {one["event"]: one for one in map(json.loads, text.splitlines())}
    assert found["summary"]["fields"]["mean"] == 0.5
    assert found["progress"]["fields"]["n_samples"] == 4
    assert (found["gate_checked"]["level"], found["gate_checked"]["fields"]["passed"]) == ("warning", False)
    assert not [word for word in ("ferry", "Whales", "When", "not json", '"en"') if word in text]
