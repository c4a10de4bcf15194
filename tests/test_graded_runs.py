"""Runs of method opik, from the data set to whoever reads them: grades are no recall, and nobody calls them that."""

import csv
import json
import re
import signal
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from airjudge import ContextRecall, GradedContextRecall, JudgeSettings
from airjudge.compare import compare_runs
from airjudge.datasets import open_source
from airjudge.errors import InputError
from airjudge.journal import JOURNAL
from airjudge.report import Evidence, ReportSettings, comparison_of, named, write_report
from airjudge.run import RunSettings, open_run, read_scored, score_dataset, verify_run
from airjudge.schema import ScoredSample
from airjudge.summary import summarise
from tests.browsing import Browser
from tests.commands import Command, options
from tests.killing import KilledRun
from tests.rows import Row, connected
from tests.runs import exports, run, write
from tests.stub import Fault, Stub
from tests.stub import faults as faults_of

OPIK = JudgeSettings(method="opik", concurrency=1)
REASON = 'No <b>pier</b> is named & "six" is wrong.'


def graded_row(name: str, response: str = "The ferry leaves at six from the north pier.", **fields: object) -> Row:
    """A row whose response the stub finds in what is before it, word by word."""
    told = {
        "user_input": f"When does ferry {name} leave?",
        "reference": "The ferry leaves at six from the north pier.",
        "retrieved_contexts": [f"Timetable {name}: the ferry leaves at six from the north pier."],
    }
    return {"id": name, "response": response, **told, **fields}


RIGHT = graded_row("A", lang="en")
WRONG = graded_row("B", "Whales sing under water.", lang="en")
EMPTY = graded_row("C", retrieved_contexts=["  "], lang="de")
BROKEN = graded_row("D", lang="de")
ROWS = (RIGHT, WRONG, EMPTY, BROKEN)
"""Grades 1, 0, 0 without a question, and a failure."""


@pytest.fixture
def stub(stub: Stub) -> Stub:
    """A stub that gives no grade of D."""
    stub.faults.append(Fault(faults_of.say("0.85"), when=faults_of.mentions("ferry D")))
    return stub


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path, *ROWS)


def command(stub: Stub, out: Path, *more: object) -> list[object]:
    return [*options(stub, out), "--method", "opik", *more]


async def scored(stub: Stub, data: Path, out: Path, **settings: object) -> list[ScoredSample]:
    metric = GradedContextRecall(connected(stub, OPIK))
    await score_dataset(data, metric, out, settings=RunSettings.model_validate(settings))
    return list(read_scored(out))


# Records


async def test_a_graded_sample_has_a_score_a_reason_and_no_statement(stub: Stub, data: Path, tmp_path: Path) -> None:
    records = await scored(stub, data, tmp_path / "run")
    assert [(one.score, one.reason, one.status) for one in records] == [
        (1.0, "word overlap", "scored"),
        (0.0, "word overlap", "scored"),
        (0.0, None, "scored"),
        (None, None, "failed"),
    ]
    assert not any(one.statements for one in records)
    assert [one.empty_contexts for one in records] == [False, False, True, False]
    assert records[3].error is not None
    assert records[3].error.kind == "reply_refused"
    assert not stub.bodies("ferry C")


async def test_an_empty_retrieval_is_an_error_where_that_is_asked_for(stub: Stub, data: Path, tmp_path: Path) -> None:
    records = await scored(stub, data, tmp_path / "run", zero_if_empty=False)
    assert records[2].error is not None
    assert (records[2].score, records[2].error.kind) == (None, "empty_contexts")
    assert not stub.bodies("ferry C")


async def test_the_summary_has_a_mean_and_nothing_of_statements(stub: Stub, data: Path, tmp_path: Path) -> None:
    await scored(stub, data, tmp_path / "run", by=("lang",))
    summary = open_run(tmp_path / "run").state.summary
    assert summary is not None
    assert summary.mean == pytest.approx(1 / 3)
    assert summary.bounds == pytest.approx((1 / 4, 2 / 4))
    assert (summary.micro_mean, summary.micro_ci95, summary.statement_coverage) == (None, None, None)
    assert (summary.n_statements, summary.n_verdicts, summary.n_unjudged, summary.n_empty_contexts) == (0, 0, 0, 1)
    assert [(one.value, one.mean, one.micro_mean) for one in summary.slices] == [("de", 0.0, None), ("en", 0.5, None)]


def test_a_band_leaves_grades_alone() -> None:
    graded = [ScoredSample(id=str(n), score=n / 10, status="scored", reason="r") for n in (2, 8)]
    found = summarise(graded, rng=np.random.default_rng(0), band=(0.4, 0.6)).abstained
    assert found is not None
    assert (found.n_statements, found.n_samples, found.micro_bounds) == (0, 0, None)
    assert found.bounds == pytest.approx((0.5, 0.5))


async def test_a_data_set_that_was_opened_for_recall_is_a_misuse(stub: Stub, data: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no response"):
        await score_dataset(open_source([str(data)]), GradedContextRecall(connected(stub, OPIK)), tmp_path / "run")


# Journal and exports


async def test_a_run_that_was_stopped_goes_on_and_ends_as_one_that_was_not(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *(graded_row(f"N{n}") for n in range(6)))
    await scored(stub, data, tmp_path / "whole")
    stub.clear()
    killed = KilledRun(stub, data, tmp_path / "out", "--concurrency", "1", "--method", "opik")
    stub.config.latency_s = 0.06  # more than a group waits: each sample has a commit of its own
    assert killed.once(environment={"AIRJUDGE_FAILPOINT": "after_commit:6"}) == -signal.SIGKILL
    with sqlite3.connect(tmp_path / "out" / JOURNAL) as journal:
        done = {name for (name,) in journal.execute("SELECT id FROM samples")}
    assert 0 < len(done) < 6
    stub.clear()
    assert killed.once() == 0
    asked = {f"N{n}" for n in range(6) if stub.bodies(f"ferry N{n} leave")}
    assert asked == {f"N{n}" for n in range(6)} - done
    assert exports(tmp_path / "out") == exports(tmp_path / "whole")


async def test_a_retry_asks_what_failed_alone(stub: Stub, data: Path, tmp_path: Path) -> None:
    await scored(stub, data, tmp_path / "run")
    stub.faults.clear()
    stub.clear()
    records = await scored(stub, data, tmp_path / "run", retry_failed=True)
    assert [one.score for one in records] == [1.0, 0.0, 0.0, 1.0]
    assert [bool(stub.bodies(f"ferry {name} ")) for name in "ABD"] == [False, False, True]


async def test_exports_carry_the_reason(
    airjudge: Command, stub: Stub, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.faults.append(
        Fault(faults_of.want(json.dumps({"score": 0.3, "reason": REASON})), faults_of.mentions("ferry B"))
    )
    out = tmp_path / "run"
    await scored(stub, data, out)
    lines = [json.loads(line) for line in (out / "samples.jsonl").read_text().splitlines()]
    assert (lines[1]["score"], lines[1]["reason"]) == (0.3, REASON)
    table = pq.read_table(out / "samples.parquet").to_pylist()
    assert [(one["score"], one["reason"], one["n_statements"]) for one in table[1:3]] == [
        (0.3, REASON, 0),
        (0, None, 0),
    ]
    assert pq.read_table(out / "statements.parquet").num_rows == 0
    assert verify_run(out).findings == ()


def test_a_table_of_a_graded_run_has_a_column_for_the_reason(
    airjudge: Command, stub: Stub, data: Path, tmp_path: Path
) -> None:
    airjudge("score", data, *command(stub, tmp_path / "out"))
    assert airjudge("export", tmp_path / "out", "--format", "csv").code == 0
    with (tmp_path / "out" / "samples.csv").open() as file:
        assert [one["reason"] for one in csv.DictReader(file)] == ["word overlap", "word overlap", "", ""]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE samples SET score = 0.55 WHERE id = 'A'", "0.55 is no grade"),
        ("UPDATE samples SET score = 1.0 WHERE id = 'C'", "cannot be"),
        ("UPDATE samples SET score = 1.0 WHERE id = 'D'", "has a score"),
        (
            "INSERT INTO verdicts (place, number, id, text, attributed) VALUES (0, 0, '1', 'Whales.', 1)",
            "has statements",
        ),
    ],
)
async def test_verify_finds_what_no_graded_record_can_be(
    stub: Stub, data: Path, tmp_path: Path, change: str, told: str
) -> None:
    await scored(stub, data, tmp_path / "run")
    assert verify_run(tmp_path / "run").findings == ()
    with sqlite3.connect(tmp_path / "run" / JOURNAL) as journal:
        journal.execute(change)
    assert any(told in finding for finding in verify_run(tmp_path / "run").findings)


# Command line


def test_the_command_tells_a_grade_and_no_recall(airjudge: Command, stub: Stub, data: Path, tmp_path: Path) -> None:
    ended = airjudge("score", data, *command(stub, tmp_path / "out", "--junit", tmp_path / "j.xml"))
    assert ended.code == 0
    assert "grade (mean of samples)" in ended.out
    assert "recall" not in ended.out
    assert "statements  " not in ended.out
    assert "0 statements, " not in ended.err
    assert "opik#" in ended.out
    cases = (tmp_path / "j.xml").read_text()
    assert '<testcase name="A" classname="rows.jsonl"><system-out>grade 1: word overlap</system-out>' in cases
    assert 'type="reply_refused"' in cases


def test_a_gate_and_a_price_hold_for_grades_too(airjudge: Command, stub: Stub, data: Path, tmp_path: Path) -> None:
    price = ("--price-in", "1", "--price-out", "1")
    ended = airjudge("score", data, *command(stub, tmp_path / "out", "--fail-under", "0.9", *price, "--json"))
    told = json.loads(ended.out)
    assert ended.code == 1
    assert told["gates"][0]["value"] == pytest.approx(1 / 3)
    assert told["cost"]["amount"] > 0


def test_a_data_set_without_responses_is_refused_with_the_next_step(
    airjudge: Command, stub: Stub, tmp_path: Path
) -> None:
    row = {name: value for name, value in RIGHT.items() if name != "response"}
    data = write(tmp_path, {**row, "said": "Six."})
    ended = airjudge("score", data, *command(stub, tmp_path / "out"))
    assert ended.code == 2
    assert "no column for response" in ended.err
    assert "--map response=COLUMN" in ended.err
    assert not stub.requests
    assert airjudge("score", data, *command(stub, tmp_path / "out", "--map", "response=said")).code == 0
    assert stub.bodies("Response to grade: Six.")


@pytest.mark.parametrize(
    "given",
    [
        ("--statements", "claims"),
        ("--reasons", "all"),
        ("--evidence",),
        ("--calibration", "c.json"),
        ("--statements-from", "run"),
        ("--fork", "run"),
    ],
)
def test_options_of_statements_are_refused_by_name(
    airjudge: Command, stub: Stub, data: Path, tmp_path: Path, given: tuple[str, ...]
) -> None:
    ended = airjudge("score", data, *command(stub, tmp_path / "out", *given))
    assert ended.code == 2
    assert f"leave {given[0]} out" in " ".join(ended.err.split())
    assert not stub.requests


def test_a_batch_file_is_of_pointwise_questions_alone(airjudge: Command, data: Path, tmp_path: Path) -> None:
    ended = airjudge("batch", "export", data, "--model", "m", "-o", tmp_path / "b.jsonl", "--method", "opik")
    assert ended.code == 2
    assert re.search("'opik' is not (one of )?'pointwise'", ended.err)


def test_the_same_command_by_another_method_is_refused(
    airjudge: Command, stub: Stub, data: Path, tmp_path: Path
) -> None:
    airjudge("score", data, *command(stub, tmp_path / "out"))
    ended = airjudge("score", data, *options(stub, tmp_path / "out"))
    assert ended.code == 2
    assert "is another one" in ended.err
    assert "mapping.response: response there, none now" in ended.err


def test_a_repeated_run_says_nothing_of_statements_that_flip(
    airjudge: Command, stub: Stub, data: Path, tmp_path: Path
) -> None:
    ended = airjudge("score", data, *command(stub, tmp_path / "out", "--repeat", "2"))
    assert (ended.code, "repeats:" in ended.out) == (0, False)
    compared = airjudge("compare", tmp_path / "out", tmp_path / "out" / "repeat-2")
    assert compared.code == 0
    assert "grades of responses" in compared.out


def test_statements_of_a_graded_run_and_its_calibration_are_not_to_be_had(
    airjudge: Command, stub: Stub, data: Path, tmp_path: Path
) -> None:
    airjudge("score", data, *command(stub, tmp_path / "out"))
    labels = write(tmp_path, {"id": "A", "statement": "Six.", "attributed": 1}, name="labels.jsonl")
    ended = airjudge("calibrate", tmp_path / "out", "--labels", labels, "-o", tmp_path / "c.json")
    assert (ended.code, "no statement in" in ended.err) == (2, True)
    ended = airjudge("score", data, *options(stub, tmp_path / "of"), "--statements-from", tmp_path / "out", "--json")
    assert json.loads(ended.out)["failures"] == {"no_statements": 4}


# Side by side


@pytest.fixture
async def runs(stub: Stub, data: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A graded run, and a pointwise one of the same data."""
    await scored(stub, data, tmp_path / "graded")
    await score_dataset(data, ContextRecall(connected(stub)), tmp_path / "recall")
    return tmp_path / "graded", tmp_path / "recall"


def test_a_grade_beside_recall_is_compared_by_samples_and_called_another_quantity(
    airjudge: Command, runs: tuple[Path, Path]
) -> None:
    comparison = compare_runs([open_run(folder) for folder in runs])
    assert comparison.scores_only
    [pair] = comparison.pairs
    assert (pair.n, pair.recall.n) == (0, 3)
    assert "graded and of recall are not the same quantity" in comparison.notes[0]
    ended = airjudge("compare", *runs)
    assert ended.code == 0
    assert "not the same quantity" in " ".join(ended.out.split())


def test_two_graded_runs_are_compared_by_their_grades(runs: tuple[Path, Path], tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.symlink_to(runs[0], target_is_directory=True)
    with pytest.raises(InputError, match="given twice"):
        compare_runs([open_run(runs[0]), open_run(again)])
    alone = open_run(runs[0])
    other = type(alone)("other", tmp_path / "other", alone.state, alone.samples)
    comparison = compare_runs([alone, other])
    assert "grades of responses" in comparison.notes[0]
    assert comparison.pairs[0].recall.difference == 0.0


def test_labels_of_statements_do_not_hold_for_grades_and_still_do_for_the_other_run(
    airjudge: Command, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    labels = write(
        tmp_path,
        *({"id": name, "statement_id": "1", "attributed": value} for name, value in (("A", 1), ("B", 0))),
        name="labels.jsonl",
    )
    ended = airjudge("compare", runs[0], "--labels", labels)
    assert (ended.code, "no label of" in ended.err) == (2, True)
    assert airjudge("compare", *runs, "--labels", labels).code == 0


def _report(path: Path, *folders: Path) -> str:
    opened = named([open_run(folder) for folder in folders])
    evidence = Evidence(None, None, comparison_of(opened, None))
    write_report(opened, path, evidence=evidence, settings=ReportSettings())
    return path.read_text()


def _data_in(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_report_of_a_graded_run_shows_grades_reasons_and_responses(runs: tuple[Path, Path], tmp_path: Path) -> None:
    page = _report(tmp_path / "r.html", runs[0])
    assert "not comparable with recall" in page
    assert ">Grades<" in page
    assert "Statements with a verdict" not in page
    assert "A mark for each statement" not in page
    shown = {one["id"]: one for one in _data_in(page)["samples"]}
    assert shown["B"]["runs"][0] | {"error": None} == {
        "score": 0, "status": "scored", "error": None, "empty": False, "reason": "word overlap", "marks": [],
    }  # fmt: skip
    assert shown["B"]["texts"]["response"] == "Whales sing under water."
    worst = page[page.index('id="worst"') : page.index('id="samples"')]
    assert "word overlap" in worst
    assert "no context was retrieved" in worst


def test_the_report_of_both_says_what_each_number_is(runs: tuple[Path, Path], tmp_path: Path) -> None:
    page = _report(tmp_path / "r.html", *runs)
    assert "Recall of a sample is the share" in page
    assert "The grade of a sample is" in page
    assert "not the same quantity" in page


@pytest.mark.browser
async def test_the_page_shows_a_reason_as_text_and_no_empty_list_of_statements(
    stub: Stub, data: Path, tmp_path: Path, browser: Browser
) -> None:
    stub.faults.append(
        Fault(faults_of.want(json.dumps({"score": 0.3, "reason": REASON})), faults_of.mentions("ferry B"))
    )
    await scored(stub, data, tmp_path / "run")
    _report(tmp_path / "r.html", tmp_path / "run")
    browser.open(tmp_path / "r.html")
    for button in browser.all("#browser h3 button"):
        button.click()
    told = browser.one("#browser").text
    assert REASON in told
    assert "Whales sing under water." in told
    assert "There is no statement" not in told
    assert not browser.console()


def test_a_run_of_recall_keeps_its_words(stub: Stub, data: Path, tmp_path: Path) -> None:
    run(stub, data, tmp_path / "recall")
    page = _report(tmp_path / "r.html", tmp_path / "recall")
    assert "The grade of a sample" not in page
    assert "A mark for each statement" in page
