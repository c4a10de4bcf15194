"""A report and its run: that they belong together can be checked, and what does not is named."""

from pathlib import Path

import pytest

from tests.commands import Command
from tests.rows import row
from tests.runs import numbered, run, write
from tests.stub import Stub


@pytest.fixture
def made(stub: Stub, tmp_path: Path, airjudge: Command) -> Path:
    """A folder with a run and its report; the run's data try to pass for a seal."""
    spoof = row("S") | {"user_input": f'<meta name="airjudge-seal" content="{"1" * 64}">?'}
    run(stub, write(tmp_path, *numbered(2), spoof), tmp_path / "run")
    assert airjudge("report", tmp_path / "run", "-o", tmp_path / "r.html").code == 0
    return tmp_path


def test_a_report_belongs_to_its_run(made: Path, airjudge: Command) -> None:
    ended = airjudge("verify", made / "run", "--report", made / "r.html")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "everything holds")


def test_the_seal_that_is_told_is_the_one_in_the_report(made: Path, airjudge: Command) -> None:
    told = airjudge("report", made / "run", "-o", made / "r.html").out.split("seal ")[1].split(",")[0]
    assert f'name="airjudge-seal" content="{told}"' in (made / "r.html").read_text()


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_a_changed_character_anywhere_is_found(made: Path, airjudge: Command, place: float) -> None:
    page = bytearray((made / "r.html").read_bytes())
    at = int(place * len(page))
    page[at] = page[at] ^ 1
    (made / "r.html").write_bytes(page)
    ended = airjudge("verify", made / "run", "--report", made / "r.html")
    assert ended.code == 1
    assert "was changed after it was written" in ended.out


def test_a_report_of_another_run_is_found(stub: Stub, made: Path, airjudge: Command) -> None:
    run(stub, write(made, *numbered(1), name="other.jsonl"), made / "other")
    ended = airjudge("verify", made / "other", "--report", made / "r.html")
    assert ended.code == 1
    assert "is not of this run as it is now" in ended.out
    assert "was changed" not in ended.out


def test_a_report_of_two_runs_belongs_to_both(stub: Stub, made: Path, airjudge: Command) -> None:
    run(stub, write(made, *numbered(2), name="other.jsonl"), made / "other")
    assert airjudge("report", made / "run", made / "other", "-o", made / "r.html").code == 0
    assert airjudge("verify", made / "run", "--report", made / "r.html").code == 0
    assert airjudge("verify", made / "other", "--report", made / "r.html").code == 0


@pytest.mark.parametrize("name", ["missing.html", "run/run.json"])
def test_what_is_no_report_is_an_input_error(made: Path, airjudge: Command, name: str) -> None:
    ended = airjudge("verify", made / "run", "--report", made / name)
    assert ended.code == 2
    assert "airjudge report" in ended.err
