"""What a test on a real judge needs: vLLM, and the weights of the judge."""

import os

import pytest

from airjudge.errors import AirjudgeError
from airjudge.profiles import load_profile
from airjudge.server.process import installed_distribution
from airjudge.weights import prepared


def require_judge(name: str) -> None:
    """Skip where vLLM or the weights of a judge are missing; in CI that is a failure."""
    reason = "" if installed_distribution() else "vLLM is not installed"
    try:
        prepared(load_profile(name))
    except AirjudgeError as error:
        reason = reason or f"{error}; {error.hint}"
    if reason:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
