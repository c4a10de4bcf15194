"""The doctor: each thing that is wrong is found, named with its consequence, and mended by the line that is given."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from airjudge.doctor import Finding, installed, machine, process
from airjudge.profiles import load_profile
from airjudge.server import OFFLINE, Server
from airjudge.weights import silent
from tests.commands import Command
from tests.guard import own_addresses
from tests.stub import Fault, Stub, StubConfig
from tests.stub import faults as faults_of
from tests.stub.faults import RecordedRequest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.reaches(*own_addresses())  # the doctor tries whether a port answers there, too


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private cache of the test's own, so that no weights are read."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("AIRJUDGE_CACHE", str(folder))
    monkeypatch.delenv("AIRJUDGE_BASE_URL", raising=False)
    return folder


def findings(airjudge: Command, *options: object, code: int) -> list[Finding]:
    ended = airjudge("doctor", "--judge", "smollm2-135m", "--json", *options)
    assert ended.code == code, ended.err
    return [Finding.model_validate(one) for one in json.loads(ended.out)["findings"]]


def of(found: list[Finding], area: str, level: str) -> str:
    """What was found in an area on a level, in one text."""
    return "\n".join(one.found for one in found if (one.area, one.level) == (area, level))


def named(stub: Stub) -> list[object]:
    return ["--base-url", stub.base_url, *(["--api-key-env", "STUB_KEY"] if stub.api_key else [])]


def test_a_sound_server_has_nothing_serious_and_a_key_is_in_no_text(stub: Stub, airjudge: Command) -> None:
    found = findings(airjudge, *named(stub), code=0)
    assert "outlines enforces it" in of(found, "enforcement", "ok")
    assert "as tested" in of(found, "versions", "ok")
    assert of(found, "exposure", "ok").splitlines() == [
        f"port {stub.port} answers on loopback alone",
        "its /v1 routes want a key",
    ]
    assert not any(one.level == "serious" for one in found)
    assert all(one.consequence and one.fix for one in found if one.level != "ok")


def test_people_read_what_follows_and_what_to_do(stub: Stub, airjudge: Command) -> None:
    stub.config.backend = "none"
    ended = airjudge("doctor", "--judge", "smollm2-135m", *named(stub))
    assert ended.code == 1
    lines = ended.out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("  SERIOUS"))
    assert "ignores the reply schema" in lines[at]
    assert lines[at + 1].strip() == "so: no score of it can be trusted"
    assert lines[at + 2].strip().startswith("fix: ")
    assert lines[-1].endswith("1 serious, 0 warnings")


@pytest.mark.parametrize(
    ("changes", "level", "said"),
    [
        ({"backend": "none"}, "serious", "ignores the reply schema"),
        ({"backend": "xgrammar"}, "note", "outlines does not enforce it"),
        ({"version": "0.9.2"}, "serious", "the server runs vLLM 0.9.2"),
    ],
)
def test_what_a_server_enforces_is_proved(
    airjudge: Command, monkeypatch: pytest.MonkeyPatch, changes: Mapping[str, object], level: str, said: str
) -> None:
    monkeypatch.setenv("STUB_KEY", "stub-key")
    with Stub(StubConfig(**changes)) as stub:  # type: ignore[arg-type]
        found = findings(airjudge, *named(stub), code=int(level == "serious"))
    assert said in of(found, "enforcement", level)


def test_another_version_is_a_note(airjudge: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_KEY", "stub-key")
    with Stub(StubConfig(version="0.33.1")) as stub:
        found = findings(airjudge, *named(stub), code=0)
    assert of(found, "versions", "note") == "the server runs vLLM 0.33.1; tested with 0.32.0"


def test_a_server_without_a_key_on_loopback_is_a_warning(airjudge: Command) -> None:
    with Stub(StubConfig(api_key=None)) as stub:
        found = findings(airjudge, *named(stub), code=0)
    assert of(found, "exposure", "warning") == "it answers without an API key"


def test_a_wrong_key_is_serious_and_the_rest_is_looked_at_all_the_same(
    stub: Stub, airjudge: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", "another-key-than-it-wants")
    found = findings(airjudge, *named(stub), code=1)
    assert "refuses the API key" in of(found, "enforcement", "serious")
    assert "want a key" in of(found, "exposure", "ok")


def test_nobody_there_is_the_only_finding_about_a_server(airjudge: Command) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        found = findings(airjudge, "--base-url", f"http://127.0.0.1:{held.getsockname()[1]}/v1", code=1)
    assert "nobody answers" in of(found, "enforcement", "serious")
    assert not [one for one in found if one.area == "exposure"]


def asked_for(path: str) -> Callable[[RecordedRequest], bool]:
    return lambda one: one.path == path


def test_open_routes_are_named(stub: Stub, airjudge: Command) -> None:
    for path, status in (("/docs", 200), ("/server_info", 200), ("/invocations", 400)):
        stub.faults.append(Fault(faults_of.respond(status), when=asked_for(path)))
    found = findings(airjudge, *named(stub), code=1)
    assert of(found, "exposure", "serious") == "it runs in developer mode: /server_info"
    assert "/docs" in of(found, "exposure", "note")
    assert "without a key it answers /invocations, /tokenize, /metrics: " in of(found, "exposure", "note")


def test_without_a_server_it_says_so(airjudge: Command) -> None:
    found = findings(airjudge, code=0)
    assert "no server was looked at" in of(found, "server", "note")
    assert "are not here" in of(found, "weights", "note")


def test_options_that_lack_their_other_half_are_refused(airjudge: Command) -> None:
    ended = airjudge("doctor", "--model", "m")
    assert ended.code == 2
    assert "need --base-url" in ended.err


def test_an_address_outside_is_not_contacted(airjudge: Command) -> None:
    ended = airjudge("doctor", "--judge", "smollm2-135m", "--base-url", "http://8.8.8.8/v1")
    assert ended.code == 3
    assert "--allow-remote" in ended.err


@pytest.mark.parametrize(("mode", "level"), [(0o700, "ok"), (0o770, "serious"), (0o702, "serious")])
def test_a_cache_that_others_write_into_is_serious(cache: Path, mode: int, level: str) -> None:
    cache.chmod(mode)
    (found,) = machine.of_cache()
    assert found.level == level
    assert level == "ok" or found.fix.endswith(f"chmod -R go-w {cache}")


def test_a_folder_of_keys_that_others_enter_is_a_warning(cache: Path) -> None:
    (cache / "servers").mkdir(mode=0o755)
    (found,) = machine.of_cache()
    assert (found.level, found.fix) == ("warning", f"chmod -R go-rwx {cache / 'servers'}")
    subprocess.run(found.fix, shell=True, check=True)
    assert [one.level for one in machine.of_cache()] == ["ok"]


# vllm#23684, #8458, #3719
def test_the_line_that_mends_the_environment_mends_it() -> None:
    (found,) = machine.of_variables({})
    assert found.level == "note"
    script = f"{found.fix}; env"
    shown = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True, env={}).stdout
    told = dict(line.split("=", 1) for line in shown.splitlines())
    assert [one.level for one in machine.of_variables(told)] == ["ok"]
    assert OFFLINE.items() <= told.items()


def test_a_proxy_is_told() -> None:
    found = list(machine.of_variables({**OFFLINE, "https_proxy": "http://proxy:3128"}))
    assert [one.level for one in found] == ["ok", "note"]
    assert found[1].fix == "unset https_proxy"


class Disk:
    """A disk with so many free bytes."""

    def __init__(self, free: int) -> None:
        self.free = free

    def __call__(self, _: Path) -> "Disk":
        return self


def test_a_disk_without_room_for_the_weights_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = load_profile("qwen2.5-coder-1.5b")
    needed = 2**30 + 3 * profile.memory.weights_bytes
    for free, level in ((needed, "ok"), (needed - 1, "warning")):
        monkeypatch.setattr(shutil, "disk_usage", Disk(free))
        assert machine.of_disk(profile).level == level


def test_a_judge_that_does_not_fit_is_a_warning() -> None:
    small = load_profile("smollm2-135m")
    assert machine.of_memory(small).level == "ok"
    huge = small.memory.model_copy(update={"weights_bytes": 2**50})
    assert machine.of_memory(small.model_copy(update={"memory": huge})).level == "warning"


def test_a_clock_before_what_exists_is_a_warning() -> None:
    assert machine.of_clock().level == "ok"
    assert machine.of_clock(time.time() - 10 * 365 * 86400).level == "warning"


def test_weights_that_are_missing_say_how_they_are_brought() -> None:
    found = machine.of_weights(load_profile("smollm2-135m"), silent)
    assert (found.level, found.fix) == ("note", "airjudge models pull smollm2-135m --from FOLDER")


def test_the_tested_versions_are_those_of_the_locks() -> None:
    locks = "".join((ROOT / name).read_text() for name in ("cpu.lock", "gpu.lock"))
    for name, version in installed.TESTED.items():
        assert f"\n{name}=={version}" in locks


def test_another_version_of_what_checks_replies_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_installed", {"outlines-core": "0.3.0", "vllm": "0.32.0"}.get)
    found = list(installed.of_packages())
    assert [one.level for one in found] == ["ok", "warning"]
    assert found[1].fix == "pip install outlines-core==0.2.14"


QUIET = {**OFFLINE}
HUB_NAME = "it was started with a/b, which is no path but a name of the hub"


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        (["--enable-log-requests"], QUIET, ("serious", "it logs requests")),
        (["--api-key=SECRET"], QUIET, ("warning", "its API key stands among its arguments")),
        (["--api-key", "SECRET"], QUIET, ("warning", "its API key stands among its arguments")),
        (["--trust-remote-code"], QUIET, ("warning", "it runs code that came with the weights (--trust-remote-code)")),
        ([], {**QUIET, "VLLM_SERVER_DEV_MODE": "1"}, ("serious", "it runs in developer mode")),
        ([], {**QUIET, "VLLM_LOGGING_LEVEL": "debug"}, ("serious", "it logs at level DEBUG")),
        ([], {}, ("serious", "vLLM's usage statistics are on")),
        # vllm#23684, #8458, #3719: a server that was meant to be offline reached for the hub.
        (["a/b"], {}, ("warning", HUB_NAME)),
        (["a/b"], None, ("warning", HUB_NAME)),
        (["a/b", "--port", "1"], QUIET, ("note", HUB_NAME)),
        (["--model", "a/b"], {}, ("warning", HUB_NAME)),
        (["--model=a/b"], {}, ("warning", HUB_NAME)),
        (["/m", "--tokenizer", "a/b"], {}, ("warning", HUB_NAME)),
        (["/models/a/b"], {}, ("ok", "it serves what lies at /models/a/b")),
        (["--model", "./b"], {}, ("ok", "it serves what lies at ./b")),
        ([], {**QUIET, "HF_HUB_OFFLINE": "0"}, ("note", "not set for it: HF_HUB_OFFLINE")),
        ([], {**QUIET, "TRANSFORMERS_OFFLINE": ""}, ("note", "not set for it: TRANSFORMERS_OFFLINE")),
        ([], QUIET, ("ok", "all variables that keep it offline are set for it")),
        ([], None, ("note", "the variables of process 7 cannot be read from here")),
    ],
)
def test_what_a_process_says_of_itself(
    arguments: list[str], environment: Mapping[str, str] | None, said: tuple[str, str]
) -> None:
    found = list(process.of_process(process.Seen(7, ["vllm", "serve", *arguments], environment)))
    assert said in [(one.level, one.found) for one in found]
    assert not any("SECRET" in one.model_dump_json() for one in found)


LISTENS = """
import socket, sys, time
held = socket.socket(); held.bind(("127.0.0.1", 0)); held.listen()
print(held.getsockname()[1], flush=True); time.sleep(60)
"""


def test_the_process_behind_a_port_is_found_with_its_arguments_and_variables() -> None:
    command = [sys.executable, "-c", LISTENS, "--enable-log-requests"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "MARK": "x"}) as running:
        assert running.stdout is not None
        seen = process.listening_on(int(running.stdout.readline()))
        running.kill()
    assert seen is not None
    assert (seen.pid, seen.arguments[-1]) == (running.pid, "--enable-log-requests")
    assert seen.environment is not None
    assert seen.environment["MARK"] == "x"


def test_a_process_that_is_no_vllm_is_told() -> None:
    (found,) = process.of_process(process.Seen(7, ["nginx"], {}))
    assert (found.level, found.found) == ("note", "process 7, which holds the port, is no vLLM")


@pytest.mark.server
def test_our_own_server_has_nothing_to_be_mended(
    smollm_server: Server, airjudge: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", smollm_server.api_key)
    found = findings(airjudge, "--base-url", smollm_server.base_url, "--api-key-env", "KEY", code=0)
    about_server = [one for one in found if one.area in {"enforcement", "exposure", "process"}]
    assert {one.level for one in about_server} == {"ok"}
    assert "want a key\nso do the routes beside them" in of(found, "exposure", "ok")
    assert "no request logging, no developer mode" in of(found, "process", "ok")
    assert "all variables that keep it offline are set for it" in of(found, "process", "ok")
    assert "it serves what lies at /" in of(found, "process", "ok")
