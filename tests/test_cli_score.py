"""The command line: one line and a next step for every error, objects on stdout, progress on stderr."""

import json
from pathlib import Path

import pytest

from tests.commands import Command, options
from tests.stub import Fault, Stub, StubConfig
from tests.stub import faults as faults_of

LINE = {"user_input": "When?", "retrieved_contexts": ["The ferry departs at six."], "reference": "The ferry departs."}
SUMMARY_KEYS = {
    "n", "n_scored", "n_undefined", "n_failed", "mean", "ci95", "micro_mean", "n_statements", "signature",
    "prompt_tokens", "cached_tokens", "completion_tokens", "seconds",
}  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(LINE) + "\n" + json.dumps(LINE | {"reference": "Whales sing."}) + "\n", encoding="utf-8")
    return path


def test_json_prints_the_summary_as_one_object(airjudge: Command, stub: Stub, data: Path, tmp_path: Path) -> None:
    ended = airjudge("score", data, *options(stub, tmp_path / "out"), "--json")
    assert ended.code == 0
    [line] = ended.out.splitlines()
    summary = json.loads(line)
    assert set(summary) >= SUMMARY_KEYS
    assert (summary["n"], summary["mean"], summary["micro_mean"]) == (2, 0.5, 0.5)


def test_the_table_shows_recall_counts_and_signature(airjudge: Command, stub: Stub, data: Path, tmp_path: Path) -> None:
    ended = airjudge("score", data, *options(stub, tmp_path / "out"))
    assert "0.500" in ended.out
    assert "2: 2 scored, 0 undefined, 0 failed" in ended.out
    assert "vllm-0.32.0" in ended.out


def test_failed_samples_leave_the_exit_code_alone(airjudge: Command, stub: Stub, data: Path, tmp_path: Path) -> None:
    data.write_text("not json\n" + json.dumps(LINE) + "\n", encoding="utf-8")
    ended = airjudge("score", data, *options(stub, tmp_path / "out"))
    assert ended.code == 0
    assert "bad_line: 1" in ended.out


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("missing.jsonl", "does not exist"),
        (".", "folder"),
        ("empty.jsonl", "empty"),
        ("table.csv", "no column for user_"),
    ],
)
def test_a_path_that_cannot_be_scored_is_an_input_error(
    airjudge: Command, stub: Stub, tmp_path: Path, name: str, told: str
) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "table.csv").write_text("a,b\n")
    ended = airjudge("score", tmp_path / name, *options(stub, tmp_path / "out"))
    assert ended.code == 2
    assert told.casefold() in ended.err.casefold()
    assert "hint:" in ended.err
    assert not stub.requests


def test_files_of_several_formats_are_one_data_set_whose_columns_may_be_mapped(
    airjudge: Command, stub: Stub, data: Path, tmp_path: Path
) -> None:
    text = "user_input,answer,retrieved_contexts\nWhen?,The ferry departs.,[]\n"
    (tmp_path / "b.csv").write_text(text.replace("answer", "reference"))
    ended = airjudge("score", tmp_path / "*.csv", data, *options(stub, tmp_path / "out"), "--json")
    summary = json.loads(ended.out)
    assert (summary["n"], summary["n_scored"], summary["n_empty_contexts"]) == (3, 3, 1)
    (tmp_path / "b.csv").write_text(text)
    ended = airjudge("score", tmp_path / "b.csv", *options(stub, tmp_path / "no"), "--map", "reference=answer")
    assert ended.code == 0


def test_nobody_at_the_address_is_said_with_the_address(airjudge: Command, data: Path, tmp_path: Path) -> None:
    ended = airjudge("score", data, "--base-url", "http://127.0.0.1:9", "--out", tmp_path / "out")
    assert ended.code == 3
    assert "http://127.0.0.1:9" in ended.err
    assert "hint:" in ended.err


def test_several_base_urls_are_one_judge(airjudge: Command, stub: Stub, data: Path, tmp_path: Path) -> None:
    with Stub() as second:
        more = ("--base-url", second.base_url, "--concurrency", "2", "--wait-for-server", "1")
        ended = airjudge("score", data, *options(stub, tmp_path / "out"), *more, "--json")
        assert ended.code == 0
        assert json.loads(ended.out)["n_scored"] == 2
        # Each is warmed up; the two samples share their context, so both are asked about at one server.
        assert [sum(one.schema_name == "verdict" for one in each.chats) for each in (stub, second)] == [3, 1]


def test_servers_that_differ_are_refused_with_the_difference(
    airjudge: Command, stub: Stub, data: Path, tmp_path: Path
) -> None:
    with Stub(StubConfig(version="0.40.1")) as second:
        ended = airjudge("score", data, *options(stub, tmp_path / "out"), "--base-url", second.base_url)
    assert ended.code == 3
    assert "version 0.32.0 and 0.40.1" in ended.err


def test_a_server_that_does_not_come_back_in_time_ends_the_run_with_3(
    airjudge: Command, stub: Stub, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airjudge.judge.pool.LEAST_WAIT_S", 0.2)
    stub.faults.append(
        Fault(faults_of.respond(503), when=lambda one: "Whales" in one.text or one.method == "GET", after=2)
    )
    ended = airjudge("score", data, *options(stub, tmp_path / "out"), "--wait-for-server", "0.5")
    assert ended.code == 3
    assert stub.base_url.removesuffix("/v1") in ended.err
    assert "--wait-for-server" in ended.err


def test_columns_of_other_names_are_told(airjudge: Command, stub: Stub, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"question": "When?", "contexts": ["At six."], "ground_truth": "At six."}\n')
    ended = airjudge("score", data, *options(stub, tmp_path / "out"))
    assert ended.code == 0
    assert "user_input from question, reference from ground_truth, retrieved_contexts from contexts" in ended.err
    assert "columns:" not in airjudge("score", data, *options(stub, tmp_path / "quiet"), "--quiet").err


def test_an_address_outside_is_refused_before_any_name_is_looked_up(
    airjudge: Command, data: Path, tmp_path: Path
) -> None:
    ended = airjudge("score", data, "--base-url", "http://192.0.2.7/v1", "--out", tmp_path / "out")
    assert ended.code == 3
    assert "--allow-remote" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--base-url", "ftp://127.0.0.1"),
        ("--base-url", "127.0.0.1:8000"),
        ("--base-url", "http://user:secret@127.0.0.1/v1"),
        ("--base-url", "http://127.0.0.1:1", "--judge", "x"),
        ("--model", "x"),
        ("--base-url", "http://127.0.0.1:1", "--api-key-env", "NOT_SET_ANYWHERE"),
        ("--judge", "no-such-judge"),
        ("--concurrency", "0"),
        ("--concurrency", "many"),
        ("--concurrency", "5000"),
        ("--wait-for-server", "-1"),
        ("--base-url", "http://127.0.0.1:1", "--base-url", "http://127.0.0.1:1/v1"),
        ("--timeout", "0"),
        ("--statements", "words"),
        ("--method", "opik"),
    ],
)
def test_an_option_that_cannot_work_is_a_usage_error(
    airjudge: Command, data: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    ended = airjudge("score", data, *arguments, "--out", tmp_path / "out")
    assert ended.code == 2
    assert ended.err
    assert "secret" not in ended.err


def test_a_server_that_ignores_the_schema_is_refused_with_how_to_start_it(
    airjudge: Command, stub: Stub, data: Path, tmp_path: Path
) -> None:
    stub.config.backend = "none"
    ended = airjudge("score", data, *options(stub, tmp_path / "out"))
    assert ended.code == 3
    assert "--structured-outputs-config" in ended.err
    assert not (tmp_path / "out").exists()


def test_an_old_server_is_refused_before_the_probe(airjudge: Command, data: Path, tmp_path: Path) -> None:
    with Stub(StubConfig(version="0.4.2", api_key=None)) as stub:
        ended = airjudge("score", data, "--base-url", stub.base_url, "--out", tmp_path / "out")
        assert ended.code == 3
        assert "0.4.2" in ended.err
        assert all(not request.path.endswith("/completions") for request in stub.requests)


def test_texts_of_the_data_do_not_steer_the_terminal(airjudge: Command, stub: Stub, data: Path, tmp_path: Path) -> None:
    data.write_text("\x1b[31m[bold]not json\n" + json.dumps(LINE) + "\n", encoding="utf-8")
    ended = airjudge("score", data, *options(stub, tmp_path / "out"))
    assert "\x1b" not in ended.out + ended.err
