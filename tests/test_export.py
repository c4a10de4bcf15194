"""Exports say what the journal says, in every format; `verify` finds what does not follow from it."""

import asyncio
import csv
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from airjudge import ContextRecall, JudgeSettings
from airjudge.cli import main
from airjudge.errors import JudgeUnauthorized
from airjudge.journal import JOURNAL, Store
from airjudge.run import RunSettings, export_table, read_scored, remake_exports, score_dataset, verify_run
from airjudge.run.folder import EXPORTS
from airjudge.schema import ScoredSample
from tests.rows import connected, row
from tests.stub import Fault, Stub
from tests.stub import faults as faults_of


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.fixture
def out(stub: Stub, tmp_path: Path) -> Path:
    """A finished run of four samples: two statements, an empty retrieval, a bad line, one with a failed statement."""
    rows = [row("North", 2), row("Empty") | {"retrieved_contexts": []}, "{", row("South", 2) | {"group": "g,\n1"}]
    data = tmp_path / "rows.jsonl"
    data.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in rows))
    about = faults_of.mentions("Statement: Harbour South opened pier two.")
    stub.faults.append(Fault(faults_of.say("maybe"), when=about))
    settings = RunSettings(keep=("user_input",))
    asyncio.run(score_dataset(data, ContextRecall(connected(stub)), tmp_path / "out", settings=settings))
    return tmp_path / "out"


@pytest.fixture
def airjudge(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process, and give its exit code and what it printed."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["airjudge", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return run


def test_the_lines_are_the_records_of_the_journal(out: Path) -> None:
    lines = (out / "samples.jsonl").read_text().splitlines()
    assert [ScoredSample.model_validate_json(line) for line in lines] == list(read_scored(out))


def test_the_table_of_samples_has_a_row_each_in_input_order(out: Path) -> None:
    rows = pq.read_table(out / "samples.parquet").to_pylist()
    told = ["place", "id", "score", "status", "error_kind", "group", "empty_contexts", "n_statements", "n_attributed"]
    assert [[one[name] for name in told] for one in rows] == [
        [0, "North", 1.0, "scored", None, None, False, 2, 2],
        [1, "Empty", 0.0, "scored", None, None, True, 1, 0],
        [2, "line-3", None, "failed", "bad_line", None, False, 0, 0],
        [3, "South", None, "failed", "reply_refused", "g,\n1", False, 2, 1],
    ]
    assert json.loads(rows[0]["metadata"]) == {"user_input": "What did Harbour North open?"}


def test_the_table_of_statements_has_a_row_each_with_the_place_of_its_sample(out: Path) -> None:
    rows = pq.read_table(out / "statements.parquet").to_pylist()
    assert [(one["place"], one["sample"], one["number"], one["id"], one["attributed"]) for one in rows] == [
        (0, "North", 0, "1", True),
        (0, "North", 1, "2", True),
        (1, "Empty", 0, "1", False),
        (3, "South", 0, "1", True),
        (3, "South", 1, "2", None),
    ]
    assert rows[0]["probability"] == pytest.approx(0.9)
    assert rows[0]["text"] == "Harbour North opened pier one."


def test_the_summary_stands_in_a_file_of_its_own_too(out: Path) -> None:
    summary = json.loads((out / "summary.json").read_text())
    assert summary == json.loads((out / "run.json").read_text())["summary"]
    assert (summary["n"], summary["mean"]) == (4, 0.5)


def test_all_exports_made_again_are_the_same_bytes(out: Path) -> None:
    before = {name: (out / name).read_bytes() for name in EXPORTS}
    for name in EXPORTS:
        (out / name).write_text("spoilt")
    assert remake_exports(out) == 4
    assert {name: (out / name).read_bytes() for name in EXPORTS} == before


def test_commas_and_line_ends_survive_a_csv(out: Path, tmp_path: Path) -> None:
    path, n_samples = export_table(out, "csv", target=tmp_path / "t.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert (n_samples, len(rows)) == (4, 4)
    assert (rows[3]["group"], rows[3]["score"], rows[0]["score"]) == ("g,\n1", "", "1.0")


def test_statements_can_be_lines_too(out: Path, tmp_path: Path) -> None:
    path, _ = export_table(out, "jsonl", "statements", target=tmp_path / "s.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == pq.read_table(out / "statements.parquet").to_pylist()


def test_of_an_unfinished_run_what_is_done_is_exported(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.respond(401), when=faults_of.mentions("Harbour C")))
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row(name)) + "\n" for name in "ABC"))
    metric = ContextRecall(connected(stub, JudgeSettings(concurrency=1)))
    with pytest.raises(JudgeUnauthorized):
        asyncio.run(score_dataset(data, metric, tmp_path / "out"))
    _, n_samples = export_table(tmp_path / "out", "csv", target=tmp_path / "t.csv")
    assert n_samples == 2
    assert verify_run(tmp_path / "out").findings == ()


def test_a_sound_run_has_no_findings(out: Path, airjudge: Callable[..., tuple[int, str, str]]) -> None:
    code, said, _ = airjudge("verify", out, "--json")
    assert code == 0
    assert json.loads(said) == {"state": "finished", "n_samples": 4, "n_statements": 5, "findings": []}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE samples SET score = 0.75 WHERE place = 0", "its verdicts give 1.0, its record says 0.75"),
        ("UPDATE verdicts SET attributed = 0 WHERE place = 0 AND number = 1", "its verdicts give 0.5"),
        ("UPDATE verdicts SET attributed = 0 WHERE place = 3 AND number = 0", "not what its probability says"),
        ("UPDATE verdicts SET text = 'Other.' WHERE place = 0", "samples.jsonl was not written from these verdicts"),
        ("DELETE FROM verdicts WHERE place = 0 AND number = 0", "samples.jsonl was not written from these verdicts"),
        ("UPDATE verdicts SET attributed = 1 WHERE place = 3", "it is failed, and each of its statements has"),
        ("UPDATE samples SET status = 'scored', score = 1 WHERE place = 3", "1 of its statements have no verdict"),
        ("UPDATE samples SET status = 'undefined' WHERE place = 0", "its verdicts give 1.0"),
        ("DELETE FROM samples WHERE place = 1", "no record of the places 1 to 1"),
        ("DELETE FROM samples WHERE place = 1", "the summary is not that of the verdicts"),
    ],
)  # fmt: skip
def test_a_record_that_does_not_follow_from_its_verdicts_is_found(out: Path, change: str, told: str) -> None:
    with Store(out) as store, store.transaction() as database:
        database.execute(change)
    assert any(told in finding for finding in verify_run(out).findings)


@pytest.mark.parametrize("name", [*EXPORTS, "run.json"])
def test_a_file_that_was_changed_or_removed_is_found_by_its_name(
    out: Path, name: str, airjudge: Callable[..., tuple[int, str, str]]
) -> None:
    content = (out / name).read_bytes()
    (out / name).write_bytes(content.replace(b"1", b"2", 1))
    code, said, _ = airjudge("verify", out)
    assert code == 1
    assert name in said
    (out / name).unlink()
    assert any(name in finding for finding in verify_run(out).findings)


def test_a_journal_with_a_damaged_page_is_not_called_sound(
    out: Path, airjudge: Callable[..., tuple[int, str, str]]
) -> None:
    content = bytearray((out / JOURNAL).read_bytes())
    content[2 * 4096 : 3 * 4096] = bytes(4096)
    (out / JOURNAL).write_bytes(content)
    code, said, err = airjudge("verify", out)
    assert code in {1, 3}
    assert "damaged" in said or "error: " in err
    assert "Traceback" not in err


def test_a_folder_without_a_run_is_an_input_error(
    tmp_path: Path, airjudge: Callable[..., tuple[int, str, str]]
) -> None:
    for command in ("verify", "export"):
        code, _, err = airjudge(command, tmp_path)
        assert code == 2
        assert "holds no run" in err


def test_the_command_names_the_file_that_it_wrote(out: Path, airjudge: Callable[..., tuple[int, str, str]]) -> None:
    code, said, _ = airjudge("export", out, "--format", "csv")
    assert (code, said) == (0, f"4 samples written to {out / 'samples.csv'}\n")
    assert verify_run(out).findings == ()
    assert airjudge("export", out, "-o", out / "x")[0] == 2


@pytest.mark.parametrize("stage", ["no tables", "no header", "no start"])
def test_a_run_that_was_killed_while_it_made_its_journal_is_said_to_have_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stage: str
) -> None:
    if stage == "no tables":
        (tmp_path / JOURNAL).touch()
    else:
        with Store(tmp_path) as store:
            store.put_header({"data": "d.jsonl"} if stage == "no start" else {})
    monkeypatch.setattr(sys, "argv", ["airjudge", "verify", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "ended before it began" in capsys.readouterr().err
