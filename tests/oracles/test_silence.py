"""The watch over connections: what leads out of the machine is refused and named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracles.silence import SWITCHES, silence

WATCHED = """
import socket
from tests.oracles.silence import ContactRefused, Watch
watch = Watch()
watch.start()
for reach in (
    lambda: socket.create_connection(("192.0.2.1", 9), timeout=1),
    lambda: socket.getaddrinfo("example.invalid", 443),
    lambda: socket.getaddrinfo("localhost", 80),
):
    try:
        reach()
    except ContactRefused as error:
        print("refused", error)
print(watch.take(), watch.take())
"""


def test_a_contact_outside_is_refused_and_noted_once() -> None:
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, check=True, cwd=root)
    assert ended.stdout.splitlines() == [
        "refused 192.0.2.1",
        "refused example.invalid",
        "['192.0.2.1', 'example.invalid'] []",
    ]


def test_this_process_is_silent() -> None:
    assert SWITCHES.items() <= os.environ.items()
    assert "airjudge-oracles-" in os.environ["HOME"]
    assert not [name for name in os.environ if name.lower().endswith("_proxy")]


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy"])
def test_a_proxy_is_taken_away(name: str, tmp_path: Path) -> None:
    environment = {name: "http://127.0.0.1:9"}
    silence(tmp_path, environment=environment)
    assert name not in environment
