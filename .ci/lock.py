"""Write cpu.lock, dev.lock and gpu.lock from pyproject.toml, and the lock of tests/oracles: `make lock`.

A locked version stays as long as pyproject.toml allows it; `make lock ARGS=--upgrade` takes the
newest ones. uv resolves from metadata alone, so no torch is downloaded. Only wheels for the
environments below get a hash: pip then never builds anything from source.
"""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from packaging.markers import Marker
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).resolve().parent.parent
MACHINES = ("x86_64", "aarch64")
PYTHONS = ((3, 11), (3, 12), (3, 13))

PHONES_HOME = "reports to, or deploys on, servers of other people; nothing here phones home"
CUDA_BUILD = "no text judge needs it, and its plain build, for CUDA, breaks transformers beside a CPU torch"
NOT_FOR_CPU = {
    "torch": "goes in first, as its CPU build (.ci/install): the plain one is for CUDA",
    "torchaudio": CUDA_BUILD,
    "torchcodec": CUDA_BUILD,
    "torchvision": CUDA_BUILD,
    "triton": "compiles for GPUs",
    "opencv-python-headless": "reads images and video",
}
UNWANTED = dict.fromkeys(("fastapi-cloud-cli", "rignore", "sentry-sdk"), PHONES_HOME)


class Archive(TypedDict):
    """One wheel or source as a pylock file lists it."""

    url: str
    hashes: Mapping[str, str]


class Package(TypedDict, total=False):
    """One package as a pylock file lists it."""

    name: str
    version: str
    marker: str
    sdist: Archive
    wheels: Sequence[Archive]


@dataclass(frozen=True)
class Lock:
    """What one lock file is made of.

    `excludes` maps a package to why it is left out; of those `with_source` the source has a hash too.
    """

    name: str
    about: str
    sources: Sequence[str]
    constraints: Sequence[str] = ()
    excludes: Mapping[str, str] = field(default_factory=dict)
    with_source: Sequence[str] = ()


LOCKS = (
    Lock(
        "cpu.lock",
        "airjudge and a judge without GPU, all but torch",
        ("pyproject.toml", "--extra", "cpu", "--group", "build", "--group", "beside-cpu-torch"),
        excludes=NOT_FOR_CPU | UNWANTED,
    ),
    Lock(
        "dev.lock", "what the tests and the linters need beside cpu.lock or gpu.lock", ("--group", "dev"), ("cpu.lock",)
    ),
    Lock(
        "gpu.lock",
        "airjudge and a judge on an NVIDIA GPU",
        ("pyproject.toml", "--extra", "gpu", "--group", "build"),
        ("dev.lock",),
        UNWANTED,
    ),
    Lock(
        "tests/oracles/oracles.lock",
        "the originals that the tests of tests/oracles hold airjudge against, and airjudge's client",
        ("pyproject.toml", "tests/oracles/oracles.in", "--group", "build"),
        with_source=("ragas",),  # its own tests are in its source alone
    ),
)


def main(options: Sequence[str]) -> None:
    """Write all locks in order, since each is constrained by those before it."""
    for lock in LOCKS:
        with tempfile.TemporaryDirectory() as folder:
            packages = resolve(lock, Path(folder), options)
        lines = [line for package in packages for line in entry(package, lock.with_source)]
        (ROOT / lock.name).write_text("\n".join([*header(lock), *lines, ""]), encoding="utf-8")
        sys.stderr.write(f"{lock.name}: {len(packages)} packages\n")


def resolve(lock: Lock, folder: Path, options: Sequence[str]) -> Sequence[Package]:
    """Resolve twice: once preferring what the lock holds, once more for the names of the wheels."""
    excludes, pins, pylock = folder / "excludes.txt", folder / "pins.txt", folder / "pylock.toml"
    excludes.write_text("\n".join(lock.excludes), encoding="utf-8")
    if (ROOT / lock.name).exists():
        pins.write_bytes((ROOT / lock.name).read_bytes())
    command = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", *lock.sources]
    command += ["--excludes", str(excludes), *(word for name in lock.constraints for word in ("-c", name))]
    run = [*command, "-o", str(pins), *options]
    subprocess.run(run, cwd=ROOT, check=True)
    run = [*command, "-c", str(pins), "-o", str(pylock), "--format", "pylock.toml"]
    subprocess.run(run, cwd=ROOT, check=True)
    packages: Sequence[Package] = tomllib.loads(pylock.read_text(encoding="utf-8"))["packages"]
    return packages


def header(lock: Lock) -> list[str]:
    """Say what the file is for and what it leaves out, in comments."""
    first, last = (".".join(map(str, version)) for version in (PYTHONS[0], PYTHONS[-1]))
    origin = " and ".join(["pyproject.toml", *(word for word in lock.sources if word.endswith(".in"))])
    lines = [
        f"# {lock.about}: Linux with glibc ({', '.join(MACHINES)}), CPython {first} to {last}.",
        f"# Written by `make lock` from {origin}; installed by .ci/install, without dependencies.",
    ]
    lines += ["# Left out, although a package here asks for it:"] * bool(lock.excludes)
    return lines + [f"#   {name}: {why}" for name, why in lock.excludes.items()]


def entry(package: Package, with_source: Sequence[str]) -> list[str]:
    """Pin one package, with a marker only where it is not for all environments."""
    marker = Marker(package["marker"]) if "marker" in package else None
    fitting = [place for place in places() if marker is None or marker.evaluate(environment(*place))]
    hashes = sorted({digest for place in fitting for digest in digests(package, place)})
    if package["name"] in with_source:
        hashes.append(package["sdist"]["hashes"]["sha256"])
    pin = f"{package['name']}=={package['version']}"
    if len(fitting) < len(places()):
        pin += f" ; {condition(fitting)}"
    return [" \\\n    ".join([pin, *(f"--hash=sha256:{digest}" for digest in hashes)])]


def places() -> list[tuple[tuple[int, int], str]]:
    """List the environments that a lock is for, as (Python version, machine)."""
    return [(version, machine) for version in PYTHONS for machine in MACHINES]


def environment(version: tuple[int, int], machine: str) -> dict[str, str]:
    """Give the marker variables of one environment."""
    short = ".".join(map(str, version))
    return {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": f"{short}.0",
        "python_version": short,
        "sys_platform": "linux",
    }


def condition(fitting: Sequence[tuple[tuple[int, int], str]]) -> str:
    """Write the marker of the environments that need a package: versions, machines, or both."""
    versions = sorted({version for version, _ in fitting})
    machines = sorted({machine for _, machine in fitting})
    if len(fitting) != len(versions) * len(machines):
        msg = f"no simple marker selects {fitting}"
        raise ValueError(msg)
    either = " or ".join(f"python_version == '{major}.{minor}'" for major, minor in versions)
    parts = [f"({either})" if len(versions) > 1 else either] if len(versions) < len(PYTHONS) else []
    parts += [f"platform_machine == '{machine}'" for machine in machines] if len(machines) < len(MACHINES) else []
    return " and ".join(parts)


def digests(package: Package, place: tuple[tuple[int, int], str]) -> list[str]:
    """Give the SHA-256 of each wheel that fits an environment; having none is an error."""
    accepted = frozenset(tags(*place))
    found = [
        wheel["hashes"]["sha256"]
        for wheel in package.get("wheels", ())
        if accepted & parse_wheel_filename(wheel["url"].rsplit("/", 1)[-1])[3]
    ]
    if not found:
        msg = f"{package['name']} {package['version']} has no wheel for {place}"
        raise ValueError(msg)
    return found


def tags(version: tuple[int, int], machine: str) -> list[Tag]:
    """List the wheel tags that an environment accepts: any glibc from 2.5 to 2.39."""
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(39, 4, -1)]
    platforms += [f"{old}_{machine}" for old in ("manylinux2014", "manylinux2010", "manylinux1", "linux")]
    exact = cpython_tags(version, abis=[f"cp{version[0]}{version[1]}"], platforms=platforms)
    return [*exact, *compatible_tags(version, f"cp{version[0]}{version[1]}", platforms)]


if __name__ == "__main__":
    main(sys.argv[1:])
