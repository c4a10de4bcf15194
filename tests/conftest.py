"""What tests share: one real vLLM and one real browser for the whole session."""

import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from airjudge import server
from airjudge.cli import main
from airjudge.server import Server
from tests.browsing import Browser, missing_browser
from tests.commands import Command, Ended
from tests.ready import require_judge
from tests.stub import Stub

pytest_plugins = ["tests.guard"]

SMOLLM = "smollm2-135m"

# A busy machine is no failure: the tests that are about time say so themselves.
settings.register_profile("airjudge", deadline=None)
settings.load_profile("airjudge")

# A job that a shell put into the background ignores Ctrl-C, and so would every command that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def airjudge(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in this process."""

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["airjudge", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        keys = [key for name in ("KEY", "STUB_KEY") if (key := os.environ.get(name))]
        assert not any(key in captured.out + captured.err for key in keys)
        return Ended(int(caught.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """A stub whose key is in STUB_KEY."""
    with Stub() as running:
        monkeypatch.setenv("STUB_KEY", running.api_key or "")
        yield running


@pytest.fixture(scope="session")
def smollm_ready() -> None:
    """Skip where vLLM or the weights of SmolLM2 are missing; in CI that is a failure."""
    require_judge(SMOLLM)


@pytest.fixture(scope="session")
def smollm_server(smollm_ready: None) -> Iterator[Server]:
    """A real vLLM that serves SmolLM2 with outlines, started and ended by our own code."""
    with server.serve(SMOLLM) as running:
        yield running


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A real Chromium for the tests of one module; skipped where there is none, in CI that is a failure."""
    missing = missing_browser()
    if missing:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    with Browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running
