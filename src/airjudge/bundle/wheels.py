"""The wheels of all packages of a lock, downloaded by pip and held against the lock's hashes."""

import subprocess
import sys
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
_HINT: Final = "Check the network and the package index (pip config list), then give the same command again."


def download(wanted: Wanted, folder: Path, progress: Progress) -> None:
    """Bring the wheels of all packages; nothing is built, installed or imported.

    Raises:
        BundleFailed: If pip cannot bring one, or it is not the one of the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = target_options(wanted)
    if wanted.device == "cpu":
        progress("download torch for CPU", 0, 0)
        try:
            _download([*target, TORCH_CPU], folder)
        except BundleFailed:
            _download([*target, "--index-url", _TORCH_INDEX, TORCH_CPU], folder)
    progress(f"download the packages of {wanted.device}.lock", 0, 0)
    _download([*target, "--require-hashes", "--requirement", str(lock_file(wanted.device))], folder)


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


def _download(options: Sequence[str], folder: Path) -> None:
    quiet = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--dest", str(folder)]
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", *quiet, *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
        msg = f"pip could not bring the packages: {[*errors, *lines[-1:], 'it said nothing'][0]}"
        raise BundleFailed(msg, _HINT)
