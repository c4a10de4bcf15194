"""The second seed's own example, with nothing but its import line changed, as a script of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from airjudge.profiles import default_profile_name, this_machine
from tests.ready import require_judge
from tests.stub import Stub

SCRIPT = Path(__file__).parent / "seeds" / "opik_context_recall.py"


def printed(environment: dict[str, str], *, timeout_s: float) -> list[str]:
    """Run the script, and give the lines that it prints."""
    ended = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=timeout_s, env=environment, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def without_judge() -> dict[str, str]:
    """The environment of this process, naming no judge."""
    named = {"AIRJUDGE_BASE_URL", "AIRJUDGE_MODEL", "AIRJUDGE_API_KEY"}
    return {name: value for name, value in os.environ.items() if name not in named}


@pytest.fixture
def default_judge_ready() -> None:
    """Skip where vLLM or the default judge's weights are missing; in CI that is a failure."""
    require_judge(default_profile_name("gpu" if this_machine().gpus else "cpu"))


def test_the_import_line_is_all_that_differs_from_the_original() -> None:
    first, *others = SCRIPT.read_text(encoding="utf-8").splitlines()
    assert first == "from airjudge.compat.opik import ContextRecall"
    assert not any("airjudge" in line for line in others)


def test_the_example_runs_against_the_judge_that_the_environment_names(stub: Stub) -> None:
    named = {"AIRJUDGE_BASE_URL": stub.base_url, "AIRJUDGE_API_KEY": stub.api_key or ""}
    value, *reason = printed(without_judge() | named, timeout_s=60)
    assert 0 <= float(value) <= 1
    assert "".join(reason).strip()


@pytest.mark.server
@pytest.mark.timeout(1500)
def test_the_example_runs_on_the_default_judge(default_judge_ready: None) -> None:
    value, *reason = printed(without_judge(), timeout_s=1400)
    assert 0 <= float(value) <= 1
    assert "".join(reason).strip()
