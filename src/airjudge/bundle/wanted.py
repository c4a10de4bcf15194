"""What a bundle is made for."""

import platform
import sys
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from airjudge.schema import Record

Device = Literal["cpu", "gpu"]
DEVICES: Final[tuple[Device, ...]] = ("cpu", "gpu")
Machine = Literal["x86_64", "aarch64"]
Python = Literal["3.11", "3.12", "3.13"]


class Wanted(Record):
    """What a bundle is made for: the machine that it is carried to, and the judges on it.

    Without `packages` it holds judges alone, for a place where airjudge is installed already.
    """

    device: Device
    judges: tuple[str, ...] = Field(min_length=1)
    python: Python
    machine: Machine
    packages: bool = True

    @property
    def is_this_machine(self) -> bool:
        """Whether pip can be asked for what it would install here."""
        return self.python == this_python() and self.machine == platform.machine()


def this_python() -> str:
    """The version of this interpreter, as a bundle names it."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def lock_file(device: Device) -> Path:
    """The lock that holds all packages for a device: shipped in the wheel, and beside the sources of a checkout."""
    package = Path(__file__).resolve().parents[1]
    shipped = package / "locks" / f"{device}.lock"
    return shipped if shipped.is_file() else package.parents[1] / f"{device}.lock"
