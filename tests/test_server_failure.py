"""The logs are those of real failures of vLLM 0.32, shortened in the middle, with other paths."""

from pathlib import Path

import pytest

from airjudge.errors import ServerFailed
from airjudge.server.failure import explain, stage, useful_lines

LOGS = Path(__file__).parent / "server_logs"


def explained(said: str, code: int = 1) -> ServerFailed:
    return explain(said, code, profile="smol", path=Path("/logs/x.log"))


def log(name: str) -> str:
    return (LOGS / f"{name}.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "cause", "line", "next_step"),
    [
        ("port_taken", "another program listens", "Address already in use", "--port"),
        ("config_missing", "weights are incomplete", "Invalid repository ID or local directory", "models verify smol"),
        ("weights_truncated", "weights are incomplete", "file not fully covered", "models verify smol"),
        ("cache_too_large", "not enough memory", "less than requested memory for kv (200.0 GiB)", "smaller judge"),
        ("cache_too_small", "not enough memory", "0.18 GiB KV cache is needed", "smaller judge"),
        ("allocation_refused", "not enough memory", "DefaultCPUAllocator: can't allocate", "smaller judge"),
        ("worker_killed", "was killed, most likely", "WorkerProc initialization failed", "smaller judge"),
        ("worker_killed_later", "was killed, most likely", "VllmWorker-0 died unexpectedly", "smaller judge"),
        ("option_unknown", "does not know an option", "unrecognized arguments: --no-such-flag", "pip install"),
    ],
)
def test_a_real_failure_is_explained(name: str, cause: str, line: str, next_step: str) -> None:
    error = explained(log(name))
    assert cause in str(error)
    assert line in str(error)
    assert next_step in error.hint
    assert "/logs/x.log" in str(error)


@pytest.mark.parametrize("name", sorted(path.stem for path in LOGS.glob("*.log")))
def test_only_lines_that_say_something_are_shown(name: str) -> None:
    lines = useful_lines(log(name))
    assert 1 <= len(lines) <= 6
    shown = "\n".join(lines)
    assert not [word for word in ('File "', "Traceback", "█", "warnings.warn", "pid=") if word in shown]


def test_a_server_whose_python_lacks_airjudge_is_told_how_it_would_find_it() -> None:
    error = explained("(APIServer pid=7) ModuleNotFoundError: No module named 'airjudge'\n")
    assert "does not find airjudge" in str(error)
    assert "PYTHONPATH" in error.hint


@pytest.mark.parametrize(
    ("code", "cause"), [(132, "lacks instructions"), (137, "killed, most likely by the system because memory")]
)
def test_a_death_without_words_is_explained_by_its_signal(code: int, cause: str) -> None:
    # A shell's convention, which the supervisor follows: 128 + 4 (SIGILL), 128 + 9 (SIGKILL).
    error = explained("(APIServer pid=7) INFO 11-30 17:06:08 [model.py:1] Using max model len 8192\n", code)
    assert cause in str(error)
    assert "Using max model len 8192" in str(error)


def test_missing_vllm_is_explained() -> None:
    said = "/venv/bin/python: Error while finding module specification for 'vllm.entrypoints.openai.api_server' "
    error = explained(said + "(ModuleNotFoundError: No module named 'vllm')\n")
    assert "not installed" in str(error)
    assert "airjudge[cpu]" in error.hint


@pytest.mark.parametrize("said", ["", "\n\n", "\x00\xff", "Traceback (most recent call last):\n"])
def test_a_log_that_says_nothing_names_itself(said: str) -> None:
    error = explained(said)
    assert "exit code 1" in str(error)
    assert "/logs/x.log" in str(error)


def test_a_line_without_end_is_cut() -> None:
    assert len(useful_lines("ValueError: " + "x" * 10_000)[0]) == 400


def test_the_stage_is_the_last_one_that_the_log_names() -> None:
    assert stage("") == "loading vLLM"
    assert stage(log("cache_too_large")) == "making room for the KV cache"
    assert stage(log("cache_too_large") + READY) == "opening the port"


READY = "(APIServer pid=9553) INFO 11-30 16:58:43 [entry.py:140] Starting vLLM server on http://127.0.0.1:8951\n"
