"""Nothing but the judge is contacted: every connection and look-up of a whole command is listed.

Every test runs under `tests.guard`, which fails it if anybody beside this machine is contacted. What that leaves, which
loopback address is contacted, is told here, and what native code does, which no audit hook hears, is told by strace.
Under the guard run: score, demo, compare, calibrate, report, check, doctor and others here; the doors of ragas, opik
and deepeval here and in test_compat_*, held against their originals in tests/oracles, where those in LangChain,
LlamaIndex and MLflow run too.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.guard import own_addresses
from tests.rooms import in_a_room, missing_room
from tests.stub import Stub

# Audit hooks see each connect and each name look-up of the interpreter, whichever library makes it.
HOOK = """
import atexit, sys
seen = []
def hook(event, args):
    if event == "socket.connect":
        seen.append(repr(args[1]))
    elif event in {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.sendto"}:
        seen.append(event + repr(args[:2]))
sys.addaudithook(hook)
atexit.register(lambda: print("SEEN", sorted(set(seen)), file=sys.stderr))
"""
GUARD = f"""{HOOK}
from airjudge.cli import main
sys.argv[0] = "airjudge"
main()
"""
DOORS = """
import asyncio, os
from openai import AsyncOpenAI
from airjudge.compat import deepeval, opik, ragas

fact, gap = "The ferry departs at six.", "A captain sings loudly."
client = AsyncOpenAI(base_url=os.environ["AIRJUDGE_BASE_URL"], api_key=os.environ["AIRJUDGE_API_KEY"])
of_ragas = ragas.ContextRecall(llm=ragas.llm_factory(os.environ["AIRJUDGE_MODEL"], client=client))
asyncio.run(of_ragas.ascore(user_input="When?", retrieved_contexts=[fact], reference=f"{fact} {gap}"))
opik.ContextRecall().score(input="When?", output="At six.", expected_output=fact, context=[fact])
case = deepeval.LLMTestCase(input="When?", expected_output=f"{fact} {gap}", retrieval_context=[fact])
deepeval.ContextualRecallMetric().measure(case, _show_indicator=False)
print("three doors")
"""


FACTS = ("The ferry departs at six.", "The boat is red.")


def contacts(stub: Stub, *arguments: object, program: str = GUARD, **variables: str) -> str:
    """What a command of airjudge, or another program, contacted, as a list that Python can read."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    environment = {"STUB_KEY": stub.api_key or "", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **variables}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return next(line for line in ended.stderr.splitlines() if line.startswith("SEEN"))


def named(stub: Stub) -> dict[str, str]:
    """The variables by which airjudge finds a stub."""
    return {"AIRJUDGE_BASE_URL": stub.base_url, "AIRJUDGE_API_KEY": stub.api_key or "", "AIRJUDGE_MODEL": stub.model}


# ragas#2603, deepeval#757, #2092, promptfoo#9968: telemetry that is on by default, or sent after it was turned off
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
            ("check", data),
            ("compare", out, "--labels", labels),
            ("report", out, "--labels", labels, "-o", tmp_path / "report.html"),
            ("calibrate", out, "--labels", labels, "-o", tmp_path / "calibration.json"),
            ("export", out, "--format", "csv"),
            ("import-verdicts", labels, "--out", tmp_path / "recorded"),
            ("batch", "export", data, "--model", "m", "-o", tmp_path / "batch.jsonl"),
        ):
            assert contacts(stub, *arguments) == "SEEN []", arguments
        assert len(stub.requests) == n_asked


def test_the_demo_and_the_doors_contact_the_judge_that_the_environment_names_and_nobody_else() -> None:
    with Stub() as stub:
        judge = f"SEEN [\"('127.0.0.1', {stub.port})\"]"
        assert contacts(stub, "demo", **named(stub)) == judge
        assert contacts(stub, program=HOOK + DOORS, **named(stub)) == judge


@pytest.mark.reaches(*own_addresses())
def test_the_doctor_looks_at_the_server_that_it_is_given_and_at_this_machine_alone(tmp_path: Path) -> None:
    with Stub() as stub:
        options = ("--judge", "smollm2-135m", "--base-url", stub.base_url, "--api-key-env", "STUB_KEY")
        seen = contacts(stub, "doctor", *options, AIRJUDGE_CACHE=str(tmp_path))
        tried = set(re.findall(r"'([^']*)', (\d+|None)", seen))
        assert tried <= {(host, port) for host in ("127.0.0.1", *own_addresses()) for port in (str(stub.port), "None")}
        assert ("127.0.0.1", str(stub.port)) in tried


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


# A small judge talks on where the doors ask for more than a token: those ask the stub.
TRACED = """
import json, os, subprocess, sys
from airjudge import server
from tests.stub import Stub

def run(commands, judge):
    named = {"AIRJUDGE_BASE_URL": judge.base_url, "AIRJUDGE_API_KEY": judge.api_key, "AIRJUDGE_MODEL": judge.model}
    for command in commands:
        subprocess.run([sys.executable, *command], env={**os.environ, **named}, check=True)

commands, program = json.loads(sys.argv[1])
with server.serve("smollm2-135m") as judge:
    run(commands, judge)
with Stub() as stub:
    run([["-c", program]], stub)
"""


def traced(command: Sequence[object], trace: Path) -> subprocess.CompletedProcess[str]:
    """Run a command, and write whom its whole tree of processes contacts to a file; skip where that is not allowed."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    strace = ["strace", "-f", "--seccomp-bpf", "-o", trace, "-e", "trace=connect,sendto,sendmsg,sendmmsg,bind"]
    ended = subprocess.run([*map(str, [*strace, *command])], capture_output=True, text=True, check=False, timeout=840)
    if ended.returncode and "ptrace" in ended.stderr:
        pytest.skip("this user may not trace processes")
    return ended


def internet_calls(trace: Path) -> list[str]:
    return [line for line in trace.read_text().splitlines() if "sa_family=AF_INET" in line]


def contacts_outside(trace: Path) -> list[str]:
    """Calls about an address beside loopback, or a resolver, which may be on loopback or behind a path.

    One to nscd is none: it may be for the name of a user.
    """
    loopback, resolver = re.compile(r'"(127\.0\.0\.1|::1)"'), re.compile(r"htons\(53\)|/systemd/resolve/")
    outside = [line for line in internet_calls(trace) if not loopback.search(line)]
    return outside + [line for line in trace.read_text().splitlines() if resolver.search(line)]


@pytest.mark.parametrize("script", ["exec 3<>/dev/tcp/192.0.2.1/9", "getent hosts judge.invalid"])
def test_what_native_code_contacts_is_seen_by_strace(script: str, tmp_path: Path) -> None:
    if reason := missing_room():
        pytest.skip(f"no room without a network can be made here: {reason}")
    ended = traced(in_a_room(["bash", "-c", script]), tmp_path / "trace")
    assert ended.returncode != 0
    assert contacts_outside(tmp_path / "trace")


@pytest.mark.server
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("smollm_ready")
def test_the_whole_process_tree_of_a_server_commands_and_doors_talks_to_its_own_loopback_alone(tmp_path: Path) -> None:
    data, labels, out, trace = (tmp_path / name for name in ("data.jsonl", "labels.jsonl", "out", "trace"))
    row = {"user_input": "When?", "reference": "At six.", "retrieved_contexts": ["At six, see http://example.com"]}
    data.write_text(json.dumps(row))
    labels.write_text(json.dumps({"id": "line-1", "text": "At six.", "attributed": True}))
    commands = [
        ["-m", "airjudge", "score", data, "--out", out],
        ["-m", "airjudge", "demo"],
        ["-m", "airjudge", "compare", out, "--labels", labels],
        ["-m", "airjudge", "report", out, "--labels", labels, "-o", tmp_path / "report.html"],
    ]
    ended = traced([sys.executable, "-c", TRACED, json.dumps([commands, DOORS], default=str)], trace)
    assert ended.returncode == 0, ended.stderr
    assert "three doors" in ended.stdout
    calls = internet_calls(trace)
    assert any("connect(" in line and "127.0.0.1" in line for line in calls)  # the clients reached their server
    assert len({line.split()[0] for line in calls}) > 1  # and the trace saw processes or threads beside it
    assert contacts_outside(trace) == []
