"""`airjudge serve` as a user runs it: a process of its own, real vLLM below it."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import Request, urlopen

import psutil
import pytest

from airjudge import server
from airjudge.profiles import load_profile

SERVE = [sys.executable, "-c", "from airjudge.cli import main; main()", "serve"]
END_LIMIT_S = 12.0


class Served:
    """A running `airjudge serve`, and all processes that were ever seen below it."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*SERVE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.seen: set[psutil.Process] = set()

    def look(self) -> set[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            self.seen |= set(psutil.Process(self.process.pid).children(recursive=True))
        return self.seen

    def all_end(self) -> bool:
        _, left = psutil.wait_procs(self.seen, timeout=END_LIMIT_S)
        return not [process for process in left if process.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def serve(smollm_ready: None) -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def make(*arguments: str) -> Served:
        made.append(Served(*arguments))
        return made[-1]

    yield make
    for one in made:
        one.process.terminate()
        one.process.communicate(timeout=30)


def wait_for_vllm(served: Served) -> None:
    """Until the program below the supervisor runs, which is long before it is ready."""
    deadline = time.monotonic() + 60
    while len(served.look()) < 2:
        assert time.monotonic() < deadline
        assert served.process.poll() is None
        time.sleep(0.1)


@pytest.mark.server
def test_serve_prints_one_line_serves_and_ends_with_everything(serve: Callable[..., Served]) -> None:
    served = serve("smollm2-135m", "--json", "--served-model-name", "gpt-4o-mini")
    assert served.process.stdout is not None
    told = json.loads(served.process.stdout.readline())
    assert sorted(told) == ["api_key", "base_url", "model"]
    assert told["model"] == "gpt-4o-mini"

    request = Request(told["base_url"] + "/models", headers={"Authorization": f"Bearer {told['api_key']}"})
    with urlopen(request, timeout=30) as reply:
        assert [model["id"] for model in json.load(reply)["data"]] == ["gpt-4o-mini"]
    found = server.running("smollm2-135m")
    assert found is not None
    assert (found.base_url, found.api_key) == (told["base_url"], told["api_key"])

    # The supervisor, the API server, the engine and its worker.
    assert len(served.look()) >= 4
    served.process.terminate()
    rest, said = served.process.communicate(timeout=END_LIMIT_S)
    assert served.process.returncode == 0
    assert served.all_end()
    assert rest == ""
    assert "loading weights" in said
    assert server.running("smollm2-135m") is None


@pytest.mark.server
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_ending_serve_while_vllm_starts_ends_everything(
    serve: Callable[..., Served], number: signal.Signals, code: int
) -> None:
    served = serve("smollm2-135m")
    wait_for_vllm(served)
    served.process.send_signal(number)
    _, said = served.process.communicate(timeout=END_LIMIT_S)
    assert served.process.returncode == code
    assert served.all_end()
    assert "Traceback" not in said


@pytest.mark.server
def test_serve_ends_when_the_process_that_started_it_is_killed(smollm_ready: None) -> None:
    script = f"import subprocess, sys; p = subprocess.Popen({[*SERVE, 'smollm2-135m']!r}, start_new_session=True); "
    script += "print(p.pid, flush=True); p.wait()"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        assert parent.stdout is not None
        ours = psutil.Process(int(parent.stdout.readline()))
        deadline = time.monotonic() + 60
        while len(tree := [ours, *ours.children(recursive=True)]) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        parent.kill()
    _, left = psutil.wait_procs(tree, timeout=END_LIMIT_S)
    assert not [process for process in left if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.server
def test_a_server_that_dies_while_starting_says_why(serve: Callable[..., Served], tmp_path: Path) -> None:
    profile = tmp_path / "wrong.toml"
    shipped = _profile_file("smollm2-135m").read_text(encoding="utf-8")
    profile.write_text(shipped.replace("vllm_args = [", 'vllm_args = ["--no-such-option", '), encoding="utf-8")
    assert "--no-such-option" in load_profile(str(profile)).vllm_args
    served = serve(str(profile), "--json")
    printed, said = served.process.communicate(timeout=120)
    assert served.process.returncode == 3
    assert printed == ""
    assert "unrecognized arguments: --no-such-option" in said
    assert "hint: " in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("no-such-judge",), 2, "no-such-judge"),
        (("smollm2-135m", "--port", "0"), 2, "--port"),
        (("smollm2-135m", "--port", "99999"), 2, "--port"),
    ],
)
def test_bad_arguments_are_told_without_a_traceback(arguments: tuple[str, ...], code: int, said: str) -> None:
    done = subprocess.run([*SERVE, *arguments], capture_output=True, check=False, text=True, timeout=60)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def _profile_file(name: str) -> Path:
    return Path(__file__).parents[1] / "models" / f"{name}.toml"
