"""The switches of the originals are off here."""

import os
from pathlib import Path

import pytest

from tests.oracles.silence import SWITCHES, silence


def test_this_process_is_silent() -> None:
    assert SWITCHES.items() <= os.environ.items()
    assert "airjudge-oracles-" in os.environ["HOME"]
    assert not [name for name in os.environ if name.lower().endswith("_proxy")]


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy"])
def test_a_proxy_is_taken_away(name: str, tmp_path: Path) -> None:
    environment = {name: "http://127.0.0.1:9"}
    silence(tmp_path, environment=environment)
    assert name not in environment
