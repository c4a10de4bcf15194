"""Structured logs: one JSON object a line, no texts of the data unless asked, never the end of a run."""

import json
import logging
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airjudge.cli.logs import logging_to
from airjudge.errors import InputError, JudgeUnreachable
from airjudge.version import __version__

log = logging.getLogger("airjudge.run")


def events(path: Path) -> list[dict[str, object]]:
    """Read a log without the event that begins each command's part."""
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [event for event in found if event["event"] != "started"]


def test_an_event_is_one_line_with_its_fields(tmp_path: Path) -> None:
    path, before = tmp_path / "log.jsonl", datetime.now(UTC)
    with logging_to(path):
        log.warning("sample_failed", extra={"event": {"place": 3, "kind": "timeout"}})
    [found] = events(path)
    assert before.timestamp() - 1 <= datetime.fromisoformat(str(found.pop("ts"))).timestamp()
    assert found == {
        "level": "warning", "logger": "airjudge.run", "event": "sample_failed",
        "fields": {"place": 3, "kind": "timeout"},
    }  # fmt: skip


def test_each_command_begins_its_part_with_its_version(tmp_path: Path) -> None:
    with logging_to(tmp_path / "log"):
        pass
    [found] = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert (found["event"], found["fields"]) == ("started", {"version": __version__, "pid": os.getpid()})


def test_the_time_is_utc() -> None:
    from airjudge.cli.logs import JsonLines

    handler = JsonLines(Path(os.devnull))
    record = log.makeRecord(log.name, logging.INFO, "f", 1, "e", (), None)
    record.created = 0.25
    assert json.loads(handler.line(record))["ts"] == "1970-01-01T00:00:00.250+00:00"
    handler.close()


@pytest.mark.parametrize("wanted", [False, True])
def test_texts_of_the_data_are_logged_only_if_asked(tmp_path: Path, wanted: bool) -> None:
    with logging_to(tmp_path / "log", with_data=wanted):
        log.info("reply_refused", extra={"event": {"place": 1}, "data": {"reply": "secret"}})
    assert ("secret" in (tmp_path / "log").read_text()) is wanted
    assert events(tmp_path / "log")[0].get("data") == ({"reply": "secret"} if wanted else None)


def test_an_exception_is_logged_without_its_message(tmp_path: Path) -> None:
    with logging_to(tmp_path / "log"):
        try:
            int("secret")
        except ValueError:
            log.exception("broken")
    [found] = events(tmp_path / "log")
    exception = found["exception"]
    assert isinstance(exception, dict)
    assert exception["type"] == "ValueError"
    assert "test_logs.py" in exception["places"][0]
    assert "secret" not in json.dumps(found)


def test_how_a_command_broke_off_is_its_last_event(tmp_path: Path) -> None:
    error = JudgeUnreachable("nobody at secret.example")
    with pytest.raises(JudgeUnreachable), logging_to(tmp_path / "log"):
        raise error
    with pytest.raises(KeyboardInterrupt), logging_to(tmp_path / "log"):
        raise KeyboardInterrupt
    found = events(tmp_path / "log")
    assert [(one["event"], one["level"]) for one in found] == [("broken_off", "error"), ("interrupted", "warning")]
    assert found[0]["fields"] == {"kind": "judge_unreachable"}
    assert "secret" not in (tmp_path / "log").read_text()


def test_a_log_is_appended_to_and_belongs_to_its_owner(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with logging_to(tmp_path / "log"):
            log.info(name)
    assert [one["event"] for one in events(tmp_path / "log")] == ["first", "second"]
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


def test_nothing_is_logged_after_the_command_or_without_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_to(tmp_path / "log"):
        pass
    with logging_to(None):
        log.warning("sample_failed")
    assert events(tmp_path / "log") == []
    assert capsys.readouterr().err == ""
    assert not log.isEnabledFor(logging.INFO)


def test_any_value_becomes_json(tmp_path: Path) -> None:
    fields = {"a": float("nan"), "b": [1, (2, None)], "c": Path("x"), "d": {1: float("inf")}, "e": "\ud800\n\x00é"}
    with logging_to(tmp_path / "log"):
        log.info("odd", extra={"event": fields})
    [found] = events(tmp_path / "log")
    assert found["fields"] == {"a": None, "b": [1, [2, None]], "c": "x", "d": {"1": None}, "e": "\ud800\n\x00é"}


def test_a_file_that_cannot_be_opened_is_an_input_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing" / "log"):
        with pytest.raises(InputError, match="cannot write the log"), logging_to(path):
            pass


FULL = """
import logging, sys
from pathlib import Path
from airjudge.cli.logs import logging_to
log = logging.getLogger("airjudge.run")
with logging_to(Path(sys.argv[1])):
    for n in range(200):
        log.info("sample_done", extra={"event": {"place": n}})
print("done")
"""


def test_a_disk_that_fills_costs_lines_of_the_log_alone() -> None:
    ended = subprocess.run([sys.executable, "-c", FULL, "/dev/full"], capture_output=True, text=True, check=True)
    assert ended.stdout == "done\n"
    assert ended.stderr.count("\n") == 2
    assert "No space left on device" in ended.stderr
    assert "201 events are missing" in ended.stderr


CUT = """
import logging, resource, signal, sys
from pathlib import Path
from airjudge.cli.logs import logging_to
log = logging.getLogger("airjudge.run")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with logging_to(Path(sys.argv[1])):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, -1))
    for n in range(200):
        log.info("sample_done", extra={"event": {"place": n}})
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**9, -1))
    log.info("room_again")
"""


def test_after_a_line_that_was_cut_the_next_stands_alone(tmp_path: Path) -> None:
    # The limit on a file's size cuts a write in the middle, as a full disk does; then there is room again.
    path = tmp_path / "log"
    ended = subprocess.run([sys.executable, "-c", CUT, str(path)], capture_output=True, text=True, check=True)
    *whole, cut, last = path.read_text().splitlines()
    assert json.loads(last)["event"] == "room_again"
    places = [json.loads(line)["fields"]["place"] for line in whole[1:]]
    assert places == list(range(len(places)))
    with pytest.raises(json.JSONDecodeError):
        json.loads(cut)
    assert f"{200 - len(places)} events are missing" in ended.stderr
