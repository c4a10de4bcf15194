"""Fails a test during which anybody but this machine was contacted, by it or by any Python that it started.

A plugin of pytest. An audit hook does not hear what native code does on its own; the tests under strace see that.
"""

import ast
import os
import shutil
import socket
import tempfile
from collections.abc import Generator, Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from tests.guard.watch import PIP


class Note(NamedTuple):
    """A contact that was refused.

    `host` may be a command that would have escaped the guard; `process` is the command line of who tried,
    `test` the test that it was started by, empty if none; `frames` has its innermost frame first.
    """

    host: str
    event: str
    process: str
    test: str
    frames: list[str]

    def __str__(self) -> str:
        """Say who was tried, by whom and where."""
        by = f"  by {self.process}" + f", started in {self.test}" * bool(self.test)
        return "\n".join([f"{self.host} ({self.event})", by, *(f"    {frame}" for frame in self.frames)])


class Guard:
    """The guard of one session of tests; its folder holds what children load, who is allowed, and who was tried."""

    def __init__(self) -> None:
        """Watch this process, and from now on each Python that it starts."""
        self.folder = Path(tempfile.mkdtemp(prefix="airjudge-guard-"))
        self._notes = self.folder / "notes"
        self._notes.touch()
        self.allow(())
        hook = Path(shutil.copy(Path(__file__).with_name("watch.py"), self.folder / "sitecustomize.py"))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(self.folder), os.environ.get("PYTHONPATH")]))
        spec = spec_from_file_location(hook.stem, hook)
        assert spec is not None
        assert spec.loader is not None
        spec.loader.exec_module(module_from_spec(spec))

    def allow(self, hosts: Iterable[str]) -> None:
        """Let these be contacted, and nobody else."""
        (self.folder / "allowed").write_text("".join(f"{host}\n" for host in hosts), encoding="utf-8")

    def take(self) -> list[Note]:
        """Give what was noted since the last call."""
        with self._notes.open("r+b") as file:
            lines = file.read().decode().splitlines()
            file.truncate(0)
        return [Note(*ast.literal_eval(line)) for line in lines]


def own_addresses() -> list[str]:
    """Give the addresses of this machine's interfaces, for tests that look at what it exposes."""
    found = [one for addresses in psutil.net_if_addrs().values() for one in addresses]
    return sorted({one.address for one in found if one.family in {socket.AF_INET, socket.AF_INET6}})


_GUARD = pytest.StashKey[Guard]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin to watch, before any test is imported."""
    config.addinivalue_line("markers", "reaches(*hosts): the test contacts these hosts on purpose")
    config.addinivalue_line("markers", "fetches_packages: pip, started by the test, may contact a package index")
    config.stash[_GUARD] = Guard()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave no file behind; the hook stays, as hooks of the interpreter do."""
    shutil.rmtree(config.stash[_GUARD].folder, ignore_errors=True)


@pytest.fixture(scope="session")
def guard(pytestconfig: pytest.Config) -> Guard:
    """The guard of this session, for tests that look at what was refused."""
    return pytestconfig.stash[_GUARD]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Allow what the test says that it contacts."""
    hosts = [host for marker in item.iter_markers("reaches") for host in marker.args]
    pip = [PIP] * (item.get_closest_marker("fetches_packages") is not None)
    item.config.stash[_GUARD].allow([*hosts, *pip])
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test, its fixtures ended, if anybody was contacted."""
    try:
        return (yield)
    finally:
        item.config.stash[_GUARD].allow(())
        if notes := item.config.stash[_GUARD].take():
            pytest.fail(_told(notes), pytrace=False)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a session for what nobody was failed for: what happened while tests were collected, or after the last."""
    if notes := session.config.stash[_GUARD].take():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        session.config.get_terminal_writer().line(f"\n{_told(notes)}", red=True)


def _told(notes: Iterable[Note]) -> str:
    told = "\n".join(dict.fromkeys(map(str, notes)))
    return f"somebody beside this machine was contacted, which was refused:\n{told}"
