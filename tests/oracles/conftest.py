"""What the tests of this folder share: silence, a judge that replays, a real vLLM."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from tests.oracles.silence import silence

# Before any original is imported: several read their switches and make their folders then.
_HOME = Path(tempfile.mkdtemp(prefix="airjudge-oracles-"))
silence(_HOME)
os.chdir(_HOME)  # deepeval and MLflow write where they stand

from tests.oracles.replaying import Replay  # noqa: E402 - after the switches
from tests.stub import Stub  # noqa: E402

pytest_plugins = ["tests.guard"]

# A busy machine is no failure, and failing examples are kept by tests, not by a folder.
settings.register_profile(
    "oracles", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("oracles")


class Served(NamedTuple):
    """A real vLLM with the outlines backend that serves SmolLM2."""

    base_url: str
    api_key: str
    model: str


@pytest.fixture(scope="session")
def _replay() -> Iterator[Replay]:
    with Stub() as stub:
        yield Replay(stub)


@pytest.fixture(scope="session")
def replay(_replay: Replay) -> Replay:
    """A judge that replays `replay.replies`; the same address for the whole session, so that @given can use it."""
    return _replay


@pytest.fixture(autouse=True)
def _fresh_replay(request: pytest.FixtureRequest) -> None:
    """Let no test see the replies, requests and faults of another."""
    if "replay" in request.fixturenames:
        request.getfixturevalue("_replay").reset()


@pytest.fixture(scope="session")
def oracle_server() -> Served:
    """The server that `make test-oracles` started; without it the test is skipped, in CI it fails."""
    found = [os.environ.get(f"AIRJUDGE_ORACLE_{name}") for name in ("BASE_URL", "API_KEY", "MODEL")]
    if not all(found):
        reason = "no real vLLM here: run make test-oracles"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return Served(*(one or "" for one in found))


def pytest_unconfigure() -> None:
    """Leave nothing behind."""
    shutil.rmtree(_HOME, ignore_errors=True)
