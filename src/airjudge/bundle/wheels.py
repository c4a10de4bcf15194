"""The wheels of all packages of a lock, downloaded by pip and held against the lock's hashes."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from airjudge.bundle.wanted import Wanted, lock_file
from airjudge.errors import BundleFailed
from airjudge.weights import Progress

TORCH_CPU: Final = "torch==2.13.0+cpu"
"""The CPU build, which the lock for CPUs leaves out since no package index has it under its plain name."""

_TORCH_INDEX: Final = "https://download.pytorch.org/whl/cpu"
_GLIBCS: Final = range(5, 40)
_PIN: Final = re.compile(
    r"^(?P<pin>[^\s#;]+==[^\s;]+)(?: ; (?P<marker>.+?))?(?P<hashes>(?: \\\n    --hash=\S+)+)$", re.MULTILINE
)
_MISMATCH: Final = "DO NOT MATCH THE HASHES"
_TORCH_HINT: Final = (
    f"The CPU build of torch is at {_TORCH_INDEX} alone: reach that, or put its wheel for that Python and machine "
    "into a folder and name it: PIP_FIND_LINKS=/the/folder"
)
_HINT: Final = "Check the network and the package index (pip config list), then give the same command again."


def download(wanted: Wanted, folder: Path, progress: Progress) -> None:
    """Bring the wheels of all packages; nothing is built, installed or imported.

    Raises:
        BundleFailed: If pip cannot bring one, or it is not the one of the lock.
    """
    needed = pins_for(wanted)
    folder.mkdir(parents=True, exist_ok=True)
    target = target_options(wanted)
    if wanted.device == "cpu":
        progress("download torch for CPU", 0, 0)
        try:
            _download([*target, TORCH_CPU], folder)
        except BundleFailed:
            _download([*target, "--index-url", _TORCH_INDEX, TORCH_CPU], folder, _TORCH_HINT)
    progress(f"download the packages of {wanted.device}.lock", 0, 0)
    with tempfile.TemporaryDirectory() as place:
        pins = Path(place) / "packages.txt"
        pins.write_text(needed, encoding="utf-8")
        _download([*target, "--require-hashes", "--requirement", str(pins)], folder)


def pins_for(wanted: Wanted) -> str:
    """The pins of a lock that a machine needs, each with its hashes and no marker.

    pip holds markers against the Python and the machine that it runs on, whatever it downloads for: it would bring
    this machine's versions, and leave out what the other alone needs.

    Raises:
        BundleFailed: If the library that reads markers is missing.
    """
    try:
        from packaging.markers import Marker  # noqa: PLC0415 -- an extra; told by name where it is missing
    except ImportError as error:
        msg = f"the lock cannot be read: {error.name} is not installed"
        raise BundleFailed(msg, "pip install 'airjudge[bundle]'") from error
    there = {
        "python_version": wanted.python,
        "python_full_version": f"{wanted.python}.0",
        "platform_machine": wanted.machine,
    }
    found = _PIN.finditer(lock_file(wanted.device).read_text(encoding="utf-8"))
    kept = [one for one in found if one["marker"] is None or Marker(one["marker"]).evaluate(there)]
    return "".join(f"{one['pin']}{one['hashes']}\n" for one in kept)


def target_options(wanted: Wanted) -> list[str]:
    """What pip is told of the machine that it downloads for; nothing of this one."""
    if wanted.is_this_machine:
        return []
    version = wanted.python.replace(".", "")
    tags = [f"manylinux_2_{minor}_{wanted.machine}" for minor in reversed(_GLIBCS)]
    tags += [f"manylinux2014_{wanted.machine}", f"linux_{wanted.machine}", "any"]
    return [
        *("--python-version", wanted.python, "--implementation", "cp"),
        *(word for abi in (f"cp{version}", "abi3", "none") for word in ("--abi", abi)),
        *(word for tag in tags for word in ("--platform", tag)),
    ]


def _download(options: Sequence[str], folder: Path, hint: str = _HINT) -> None:
    quiet = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--dest", str(folder)]
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", *quiet, *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        msg = f"pip could not bring the packages: {_reason(lines)}"
        raise BundleFailed(msg, hint)


def _reason(lines: Sequence[str]) -> str:
    """What pip says went wrong; of a hash that does not match also which file, which stands in the line after."""
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("ERROR:"):
            told = line.removeprefix("ERROR:").strip()
            return f"{told} {after}" if _MISMATCH in told else told
    return [*lines[-1:], "it said nothing"][0]
