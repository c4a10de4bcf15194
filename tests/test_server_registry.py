import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airjudge.errors import ProfileError, ServerFailed
from airjudge.server import Server, running
from airjudge.server.registry import registered


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("AIRJUDGE_CACHE", str(folder))
    return folder


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as sleeper:
        yield sleeper
        sleeper.kill()


def server_of(pid: int, profile: str = "smollm2-135m") -> Server:
    return Server(
        base_url="http://127.0.0.1:1/v1",
        model="m",
        api_key="a-secret-key",
        profile=profile,
        digest="0" * 64,
        pid=pid,
        log=Path("/logs/x.log"),
    )


def entries(cache: Path) -> list[Path]:
    return list((cache / "servers").iterdir())


def test_a_registered_server_is_found_for_its_profile_alone() -> None:
    with registered(server_of(os.getpid())):
        assert running("smollm2-135m") == server_of(os.getpid())
        assert running("qwen2.5-coder-1.5b") is None


def test_nobody_else_can_read_the_key(cache: Path) -> None:
    with registered(server_of(os.getpid())):
        assert [stat.S_IMODE(path.stat().st_mode) for path in entries(cache)] == [0o600]
        assert stat.S_IMODE((cache / "servers").stat().st_mode) == 0o700


def test_the_entry_goes_with_the_block(cache: Path) -> None:
    with pytest.raises(RuntimeError), registered(server_of(os.getpid())):
        raise RuntimeError
    assert running("smollm2-135m") is None
    assert entries(cache) == []


def test_an_entry_whose_process_is_gone_is_removed(cache: Path, process: "subprocess.Popen[bytes]") -> None:
    with registered(server_of(process.pid)):
        process.kill()
        process.wait()
        assert running("smollm2-135m") is None
        assert entries(cache) == []


def test_a_process_that_has_the_pid_of_an_old_server_is_not_taken_for_it(cache: Path) -> None:
    with registered(server_of(os.getpid())):
        (entry,) = entries(cache)
        # Started in 1970: no process that lives now did.
        entry.write_text(entry.read_text().split('"started"')[0] + '"started": 1.0}')
        assert running("smollm2-135m") is None


@pytest.mark.parametrize("text", ["", "{}", "not JSON", '{"server": 1, "started": 2}'])
def test_a_damaged_entry_is_passed_over(cache: Path, text: str) -> None:
    (cache / "servers").mkdir(parents=True)
    (cache / "servers" / "1.json").write_text(text)
    assert running("smollm2-135m") is None


def test_an_unknown_profile_is_an_error() -> None:
    with pytest.raises(ProfileError):
        running("no-such-judge")


def test_the_key_does_not_show_in_the_repr() -> None:
    assert "a-secret-key" not in repr(server_of(1))


def test_looking_for_a_server_writes_nothing(cache: Path) -> None:
    assert running("smollm2-135m") is None
    assert list(cache.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told_with_a_next_step(cache: Path) -> None:
    cache.mkdir()
    (cache / "servers").write_text("a file in its place")
    with pytest.raises(ServerFailed, match="cannot write") as refused, registered(server_of(os.getpid())):
        pytest.fail("it cannot be registered")
    assert "AIRJUDGE_CACHE" in refused.value.hint
