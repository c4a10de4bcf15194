"""Commands of tests: run in this process, and how they ended."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.stub import Stub


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


def options(stub: Stub, out: Path) -> list[object]:
    """Give the options that name a stub and the folder of a run; the key is in STUB_KEY."""
    return ["--base-url", stub.base_url, "--model", stub.model, "--api-key-env", "STUB_KEY", "--out", out]
