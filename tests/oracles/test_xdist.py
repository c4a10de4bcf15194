"""Our plugin for pytest under pytest-xdist: workers share a served judge, and their recalls come together."""

from pathlib import Path

import pytest

from tests.stub import Stub
from tests.test_pytest_plugin import HALF, IMPORTED, LOADED

pytest_plugins = ["pytester"]
TESTS = """
@pytest.mark.parametrize("n", range(4))
def test_it(n):
    assert_context_recall(**HALF, min=0.5)
"""
WORKERS = ("-n", "2", "-p", "no:deepeval", "-p", "no:langsmith_plugin", "-p", "no:opik")


@pytest.fixture(autouse=True)
def _tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(IMPORTED + HALF + TESTS)


def test_workers_share_a_served_judge_and_one_summary(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Stub() as stub:
        monkeypatch.setenv("STUB_KEY", stub.api_key or "")
        served = ("--airjudge-base-url", stub.base_url, "--airjudge-api-key-env", "STUB_KEY")
        ended = pytester.runpytest_subprocess(*LOADED, *served, *WORKERS)
    ended.assert_outcomes(passed=4)
    ended.stdout.fnmatch_lines(["4 assertions, 0 of them without a score; mean recall 0.500*"])


def test_a_worker_starts_no_judge_of_its_own(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRJUDGE_CACHE", str(tmp_path))
    monkeypatch.delenv("AIRJUDGE_BASE_URL", raising=False)
    ended = pytester.runpytest_subprocess(*LOADED, *WORKERS)
    ended.assert_outcomes(failed=4)
    ended.stdout.fnmatch_lines(["*each worker of pytest-xdist would start one*"])
