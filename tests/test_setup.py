"""What the setup stands on: complete locks, a wheel with the profiles, failures that say what to do."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ORACLES = "tests/oracles/oracles.lock"
LOCKS = ("cpu.lock", "dev.lock", "gpu.lock", ORACLES)

# What a CPU judge runs without. torch goes in first, as its CPU build; the other plain builds break
# transformers beside it; the last three talk to servers of other people.
NOT_FOR_CPU = {
    *("torch", "torchaudio", "torchcodec", "torchvision", "triton", "opencv-python-headless"),
    *("fastapi-cloud-cli", "rignore", "sentry-sdk"),
}


class Pin(NamedTuple):
    """One entry of a lock file."""

    requirement: Requirement
    hashes: int

    @property
    def version(self) -> Version:
        """The only version that the entry allows."""
        (specifier,) = self.requirement.specifier
        return Version(specifier.version)


def pins(lock: str) -> dict[str, Pin]:
    """Read a lock file as pip does: one requirement and its hashes per logical line."""
    text = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ")
    found: dict[str, Pin] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            words, *hashes = re.split(r"\s+--hash=", line)
            requirement = Requirement(words)
            found[canonicalize_name(requirement.name)] = Pin(requirement, len(hashes))
    return found


def group(name: str) -> list[Requirement]:
    """List a dependency group of the project, with the groups that it includes."""
    found: list[Requirement] = []
    for part in PROJECT["dependency-groups"][name]:
        found += [Requirement(part)] if isinstance(part, str) else group(part["include-group"])
    return found


def asked_of(lock: str) -> list[Requirement]:
    """List what the project asks of a lock file."""
    if lock == "dev.lock":
        return group("dev")
    if lock == ORACLES:
        lines = (ROOT / lock).with_suffix(".in").read_text(encoding="utf-8").splitlines()
        words = [word for line in lines if (word := line.split("#")[0].strip())]
        return [*map(Requirement, words + PROJECT["project"]["dependencies"]), *group("build")]
    words = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"][lock.removesuffix(".lock")]
    return [*map(Requirement, words), *group("build")]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_direct_requirement_is_locked_to_a_version_that_satisfies_it(lock: str) -> None:
    locked = pins(lock)
    for requirement in asked_of(lock):
        pin = locked[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin.version, prereleases=True), requirement


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_has_one_version_and_a_hash(lock: str) -> None:
    for name, pin in pins(lock).items():
        assert [specifier.operator for specifier in pin.requirement.specifier] == ["=="], name
        assert pin.hashes >= 1, name


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address(lock: str) -> None:
    assert "://" not in (ROOT / lock).read_text(encoding="utf-8")


def test_the_cpu_lock_leaves_out_what_breaks_or_phones_home() -> None:
    assert pins("cpu.lock").keys() & NOT_FOR_CPU == set()


@pytest.mark.parametrize("lock", ["cpu.lock", "gpu.lock"])
def test_tools_and_runtime_agree_on_the_packages_they_share(lock: str) -> None:
    runtime, tools = pins(lock), pins("dev.lock")
    shared = runtime.keys() & tools.keys()
    assert "packaging" in shared
    assert {name: runtime[name].version for name in shared} == {name: tools[name].version for name in shared}


def needs(name: str) -> list[Requirement]:
    """List what an installed package needs here, without extras; nothing if it is not installed."""
    try:
        words = distribution(name).requires or []
    except PackageNotFoundError:
        return []
    requirements = [Requirement(word) for word in words]
    return [r for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})]


@pytest.mark.parametrize(("lock", "left_out"), [("cpu.lock", NOT_FOR_CPU), ("dev.lock", set())])
def test_what_a_locked_package_needs_is_locked_too(lock: str, left_out: set[str]) -> None:
    locked = pins(lock).keys() | left_out
    missing = {
        f"{name} needs {requirement.name}"
        for name in pins(lock)
        for requirement in needs(name)
        if canonicalize_name(requirement.name) not in locked
    }
    assert missing == set()


def test_what_the_cpu_build_of_torch_needs_is_locked() -> None:
    # Installed without dependencies, before the lock; numpy and the rest are extras of torch.
    pytest.importorskip("torch")
    assert {canonicalize_name(r.name) for r in needs("torch")} <= pins("cpu.lock").keys() | NOT_FOR_CPU


def test_the_wheel_holds_every_profile_and_every_module_with_its_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--quiet", "--wheel-dir", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("airjudge-*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    profiles = {f"airjudge/models/{path.name}" for path in (ROOT / "models").glob("*.toml")}
    found = [path for path in (ROOT / "src/airjudge").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    modules = {path.relative_to(ROOT / "src").as_posix() for path in found}
    assert len(profiles) >= 2
    assert "airjudge/report/static/report.js" in modules
    assert profiles | modules <= held
    assert not {name for name in held if name.startswith(("tests", "benchmarks", "src", "models"))}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Copy what the setup reads into a folder whose name has a space."""
    folder = tmp_path / "a folder" / "airjudge"
    for name in ("Makefile", "pyproject.toml", *LOCKS, ".ci/install"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def make_install(checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `make install` where pip reaches nothing."""
    offline = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "AIRJUDGE_DEVICE": "cpu"}
    return subprocess.run(
        ["make", "install"],
        check=False,
        cwd=checkout,
        # `make test` runs this test, and its make must not pass for the parent of this one.
        env={name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        | offline
        | environment,
        capture_output=True,
        text=True,
    )


def test_a_missing_python_is_named_with_what_to_do(checkout: Path) -> None:
    run = make_install(checkout, PYTHON="no-such-python")
    assert run.returncode != 0
    assert "no Python 3.11, 3.12 or 3.13 among: no-such-python. Next: install one" in run.stderr


def test_an_unknown_device_is_named_with_the_known_ones(checkout: Path) -> None:
    run = make_install(checkout, AIRJUDGE_DEVICE="abacus")
    assert run.returncode != 0
    assert 'AIRJUDGE_DEVICE is "abacus". Next: use cpu or gpu' in run.stderr


def test_a_package_that_cannot_be_found_is_told_with_what_to_check(checkout: Path) -> None:
    run = make_install(checkout, PYTHON=sys.executable)
    assert run.returncode != 0
    assert "this step failed: torch for CPU" in run.stderr
    assert "Next: check the network and the package index" in run.stderr
    assert run.stdout == ""
    assert (checkout / ".venv" / "install.log").is_file()


def test_arguments_reach_pytest_and_the_demo() -> None:
    run = subprocess.run(
        ["make", "--dry-run", "test", "test-oracles", "demo", "ARGS=-k 'two words'"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "-m pytest -k 'two words'\n" in run.stdout
    assert ".ci/oracles -k 'two words'\n" in run.stdout
    assert "airjudge demo -k 'two words'\n" in run.stdout


def oracles(checkout: Path, *, airjudge: str, python: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script of the oracle tests with scripts in the places of airjudge and of its Python."""
    for name, script in ((".venv/bin/airjudge", airjudge), (".venv-oracles/bin/python", python)):
        path = checkout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/usr/bin/env bash\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
    (checkout / ".venv/bin/python").symlink_to(sys.executable)
    shutil.copy(ROOT / ".ci/oracles", checkout / ".ci/oracles")
    command = ["bash", str(checkout / ".ci/oracles"), "-k", "two words"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AIRJUDGE_ORACLE")}
    return subprocess.run(command, check=False, env=clean | environment, capture_output=True, text=True)


SERVER = """
trap 'touch ended; exit' TERM
echo '{"base_url": "http://127.0.0.1:1/v1", "model": "m", "api_key": "k"}'
while :; do sleep 0.05; done
"""


def test_the_server_of_the_oracle_tests_ends_with_them_whatever_they_say(checkout: Path) -> None:
    python = (
        'echo "$*|$AIRJUDGE_ORACLE_BASE_URL|$AIRJUDGE_ORACLE_MODEL|$AIRJUDGE_ORACLE_API_KEY|${HTTPS_PROXY-}"; exit 5'
    )
    run = oracles(checkout, airjudge=SERVER, python=python, HTTPS_PROXY="http://127.0.0.1:9")
    assert (run.returncode, run.stderr) == (5, "")
    assert run.stdout == "-m pytest tests/oracles -k two words|http://127.0.0.1:1/v1|m|k|\n"
    assert (checkout / "ended").exists()


def test_a_server_of_the_oracle_tests_that_does_not_start_is_told_with_what_to_do(checkout: Path) -> None:
    run = oracles(checkout, airjudge="echo no memory >&2; exit 3", python="echo asked")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("no memory\n")
    assert "the server of SmolLM2 ended. Next: read the lines above" in run.stderr


def test_a_named_server_is_taken_for_the_oracle_tests(checkout: Path) -> None:
    run = oracles(checkout, airjudge="touch started", python="exit 0", AIRJUDGE_ORACLE_BASE_URL="http://127.0.0.1:1/v1")
    assert run.returncode == 0
    assert not (checkout / "started").exists()
