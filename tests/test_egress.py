"""Nothing but the judge is contacted: every connection and look-up of a whole command is listed."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stub import Stub

# Audit hooks see each connect and each name look-up of the interpreter, whichever library makes it.
GUARD = """
import sys
seen = []
def hook(event, args):
    if event == "socket.connect":
        seen.append(repr(args[1]))
    elif event in {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.sendto"}:
        seen.append(event + repr(args[:2]))
sys.addaudithook(hook)
from airjudge.cli import main
sys.argv = ["airjudge", *sys.argv[1:]]
try:
    main()
finally:
    print("SEEN", sorted(set(seen)), file=sys.stderr)
"""


FACTS = ("The ferry departs at six.", "The boat is red.")


def contacts(stub: Stub, *arguments: object, **variables: str) -> str:
    """What a command of airjudge contacted, as a list that Python can read."""
    command = [sys.executable, "-c", GUARD, *map(str, arguments)]
    environment = {"STUB_KEY": stub.api_key or "", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **variables}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return next(line for line in ended.stderr.splitlines() if line.startswith("SEEN"))


def test_a_run_contacts_the_judge_and_nobody_else(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text(
        json.dumps({"user_input": "a?", "reference": " ".join(FACTS), "retrieved_contexts": ["A http://example.com"]})
    )
    with Stub() as stub:
        seen = contacts(
            stub, "score", data, "--base-url", stub.base_url, "--api-key-env", "STUB_KEY", "--out", tmp_path / "out",
            "--reasons", "all",
        )  # fmt: skip
        assert seen == f"SEEN [\"('127.0.0.1', {stub.port})\"]"
        out, labels, n_asked = tmp_path / "out", tmp_path / "labels.jsonl", len(stub.requests)
        rows = [{"id": "line-1", "text": text, "attributed": text == FACTS[0]} for text in FACTS]
        labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
        for arguments in (
            ("verify", out),
            ("compare", out, "--labels", labels),
            ("report", out, "--labels", labels, "-o", tmp_path / "report.html"),
            ("export", out, "--format", "csv"),
            ("import-verdicts", labels, "--out", tmp_path / "recorded"),
            ("batch", "export", data, "--model", "m", "-o", tmp_path / "batch.jsonl"),
        ):
            assert contacts(stub, *arguments) == "SEEN []", arguments
        assert len(stub.requests) == n_asked


def test_a_metric_without_a_judge_contacts_nobody_though_a_judge_is_named(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text(
        json.dumps({
            "retrieved_contexts": ["A http://example.com"], "reference_contexts": ["A http://example.com"],
            "retrieved_context_ids": [1], "reference_context_ids": [1],
        })
    )  # fmt: skip
    with Stub() as stub:
        for metric in ("non_llm_context_recall", "id_based_context_recall"):
            arguments = ("score", data, "--metric", metric, "--out", tmp_path / metric)
            assert contacts(stub, *arguments, AIRJUDGE_BASE_URL=stub.base_url) == "SEEN []"
        assert not stub.requests


def test_commands_without_a_judge_contact_nobody() -> None:
    with Stub() as stub:
        for arguments in (["--help"], ["--version"], ["models", "list"]):
            assert contacts(stub, *arguments) == "SEEN []"
            assert not stub.requests


@pytest.mark.server
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("smollm_ready")
def test_the_whole_process_tree_of_a_run_talks_to_its_own_loopback_alone(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    data, trace = tmp_path / "data.jsonl", tmp_path / "trace"
    row = {"user_input": "When?", "reference": "At six.", "retrieved_contexts": ["At six, see http://example.com"]}
    data.write_text(json.dumps(row))
    traced = ["strace", "-f", "--seccomp-bpf", "-o", trace, "-e", "trace=connect,sendto,sendmsg,sendmmsg,bind"]
    run = [sys.executable, "-m", "airjudge", "score", data, "--judge", "smollm2-135m", "--out", tmp_path / "out"]
    ended = subprocess.run([*map(str, traced + run)], capture_output=True, text=True, check=False, timeout=840)
    if ended.returncode and "ptrace" in ended.stderr:
        pytest.skip("this user may not trace processes")
    assert ended.returncode == 0, ended.stderr
    calls = [line for line in trace.read_text().splitlines() if "sa_family=AF_INET" in line]
    assert any("connect(" in line and "127.0.0.1" in line for line in calls)  # the client reached its server
    assert len({line.split()[0] for line in calls}) > 1  # and the trace saw processes or threads beside it
    assert [line for line in calls if not re.search(r'"(127\.0\.0\.1|::1)"', line)] == []
