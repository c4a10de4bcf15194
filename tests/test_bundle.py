"""A bundle: what is in it, what its script refuses, and that it needs nothing else."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from airjudge.bundle import Wanted, make_bundle, ourselves, papers, wheels
from airjudge.bundle.wanted import Device, Machine, Python, lock_file, this_python
from airjudge.errors import BundleFailed, InputError
from airjudge.version import __version__
from tests.commands import Command

ROOT = Path(__file__).parents[1]
HERE = {"device": "cpu", "judges": ["smollm2-135m"], "python": this_python(), "machine": os.uname().machine}
JUDGES_ONLY = Wanted.model_validate({**HERE, "packages": False})


@pytest.fixture(scope="module")
def bundle(smollm_ready: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of one judge without packages."""
    out = tmp_path_factory.mktemp("bundles") / "bundle"
    make_bundle(JUDGES_ONLY, out)
    return out


@pytest.fixture
def copy(bundle: Path, tmp_path: Path) -> Path:
    """A copy of the bundle that a test may spoil; its large files are linked."""
    return Path(shutil.copytree(bundle, tmp_path / "bundle", copy_function=os.link))


def install(folder: Path, target: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(folder / "install.sh"), str(target)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHON": sys.executable, "NO_DEMO": "1", **environment},
    )


@pytest.mark.server
def test_a_bundle_holds_the_judge_as_it_came_and_the_hash_of_each_file(bundle: Path) -> None:
    assert {one.name for one in (bundle / "judges" / "smollm2-135m").iterdir()} == {
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "profile.toml",
    }
    checked = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=bundle, capture_output=True, text=True, check=True)
    files = {str(one.relative_to(bundle)) for one in bundle.rglob("*") if one.is_file()}
    assert {line.partition(":")[0] for line in checked.stdout.splitlines()} == files - {"SHA256SUMS"}
    materials = (bundle / "bill-of-materials.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(materials) is None
    assert "Apache-2.0" in (bundle / "LICENCES.md").read_text()


@pytest.mark.server
def test_a_changed_byte_anywhere_stops_it_and_names_the_file(copy: Path, tmp_path: Path) -> None:
    names = sorted(one.relative_to(copy).as_posix() for one in copy.rglob("*") if one.is_file())
    for name in names:
        if name in {"SHA256SUMS", "install.sh"}:  # the list itself is held by its own hash; the script runs
            continue
        content = bytearray((copy / name).read_bytes())
        content[len(content) // 2] ^= 1
        (copy / name).unlink()  # not into the file that is linked
        (copy / name).write_bytes(content)
        ended = install(copy, tmp_path / "target")
        assert ended.returncode == 1
        assert f"{name} was changed" in ended.stderr
        assert "nothing was installed" in ended.stderr
        content[len(content) // 2] ^= 1
        (copy / name).write_bytes(content)
    assert not (tmp_path / "target").exists()


@pytest.mark.server
def test_a_file_too_few_or_too_many_stops_it(copy: Path, tmp_path: Path) -> None:
    (copy / "judges" / "smollm2-135m" / "profile.toml").unlink()
    (copy / "wheels").mkdir()
    (copy / "wheels" / "evil-1-py3-none-any.whl").write_bytes(b"")
    ended = install(copy, tmp_path / "target")
    assert ended.returncode == 1
    assert "judges/smollm2-135m/profile.toml is missing" in ended.stderr
    assert "wheels/evil-1-py3-none-any.whl is not of this bundle" in ended.stderr


@pytest.mark.server
def test_a_judge_is_added_to_what_an_earlier_bundle_installed(bundle: Path, tmp_path: Path) -> None:
    target = Path(sys.prefix)  # an environment that has airjudge
    ended = install(bundle, target, AIRJUDGE_CACHE=str(tmp_path / "cache"))
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "cache" / "smollm2-135m" / "model" / "config.json").is_file()
    nowhere = install(bundle, tmp_path / "empty")
    assert nowhere.returncode == 1
    assert "airjudge is not installed in" in nowhere.stderr


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(InputError, match="not an empty folder"):
        make_bundle(JUDGES_ONLY, tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


def test_what_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smollm_ready: None) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(papers, "write_materials", fails)
    with pytest.raises(BundleFailed, match="No space left"):
        make_bundle(JUDGES_ONLY, tmp_path / "bundle")
    assert not list(tmp_path.iterdir())


def test_without_its_library_the_bill_of_materials_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cyclonedx.model.bom", None)
    with pytest.raises(BundleFailed, match="cyclonedx-python-lib") as caught:
        papers.write_materials([], [], tmp_path / "x")
    assert "airjudge[bundle]" in caught.value.hint


def test_our_own_wheel_installs_and_is_the_same_each_time(tmp_path: Path) -> None:
    first, second = (ourselves.pack(folder) for folder in (tmp_path, made(tmp_path / "again")))
    assert first.read_bytes() == second.read_bytes()
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--target", str(tmp_path / "site")]
    subprocess.run([*command, str(first)], check=True, capture_output=True)
    shown = subprocess.run(
        [sys.executable, "-m", "airjudge", "models", "list", "--json"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "smollm2-135m" in {one["id"] for one in json.loads(shown.stdout)}
    assert (tmp_path / "site" / "airjudge" / "locks" / "cpu.lock").read_bytes() == lock_file("cpu").read_bytes()
    with zipfile.ZipFile(first) as wheel:
        record = wheel.read(f"airjudge-{__version__}.dist-info/RECORD").decode().splitlines()
        assert {line.split(",")[0] for line in record} == set(wheel.namelist())


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_wheel_says_its_licence_and_has_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("thing-1.0.dist-info/METADATA", "Name: thing\nVersion: 1.0\nLicense-Expression: MIT\n")
    (found,) = papers.packages_of(tmp_path)
    assert found[:3] == ("thing", "1.0", "MIT")
    papers.write_materials([found], [], tmp_path / "bom.json")
    (component,) = json.loads((tmp_path / "bom.json").read_text())["components"]
    assert component["purl"] == "pkg:pypi/thing@1.0"
    assert component["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}]


@pytest.mark.parametrize(
    ("told", "licence"),
    [
        ("Classifier: License :: OSI Approved :: MIT License\n", "MIT License"),
        ("License: BSD\n", "BSD"),
        ("", "not stated"),
    ],
)
def test_a_licence_is_what_the_metadata_say(tmp_path: Path, told: str, licence: str) -> None:
    with zipfile.ZipFile(tmp_path / "a-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("a-1.dist-info/METADATA", f"Name: a\nVersion: 1\n{told}")
    assert papers.packages_of(tmp_path)[0].licence == licence


def test_pip_is_told_of_another_machine_and_of_this_one_nothing() -> None:
    assert wheels.target_options(JUDGES_ONLY) == []
    other = JUDGES_ONLY.model_copy(update={"python": "3.13", "machine": "aarch64"})
    options = wheels.target_options(other)
    pairs = list(zip(options[::2], options[1::2], strict=True))
    assert {"cp313", "abi3", "none"} == {value for name, value in pairs if name == "--abi"}
    platforms = {value for name, value in pairs if name == "--platform"}
    assert {"manylinux_2_28_aarch64", "manylinux2014_aarch64", "any"} <= platforms
    assert not any("x86_64" in one for one in platforms)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_pins_are_those_of_the_machine_that_it_is_for(device: Device, python: Python, machine: Machine) -> None:
    # pip itself holds markers against the Python that it runs on, whatever --python-version says.
    wanted = JUDGES_ONLY.model_copy(update={"device": device, "python": python, "machine": machine})
    pins = [line.split()[0] for line in wheels.pins_for(wanted).splitlines() if not line.startswith("    --hash=")]
    names = [pin.partition("==")[0] for pin in pins]
    assert len(names) == len(set(names)) > 100
    assert ("scipy==1.17.1" in pins) == (python == "3.11")
    assert ("six" in names) == (python != "3.11")
    if device == "cpu":
        assert ("intel-openmp" in names) == (machine == "x86_64")
    lines = [line for line in lock_file(device).read_text(encoding="utf-8").splitlines() if "==" in line]
    assert {line.partition("==")[0] for line in lines if not line.startswith("#") and " ; " not in line} <= set(names)


def test_a_file_that_is_not_that_of_the_lock_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tmp_path / "index"
    index.mkdir()
    with zipfile.ZipFile(index / "a-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("a-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: a\nVersion: 1\n")
    lock = tmp_path / "gpu.lock"
    lock.write_text(f"a==1 \\\n    --hash=sha256:{'0' * 64}\n", encoding="utf-8")
    monkeypatch.setattr(wheels, "lock_file", lambda _: lock)
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(index)), ("PIP_CONFIG_FILE", os.devnull)):
        monkeypatch.setenv(name, value)
    with pytest.raises(BundleFailed, match=r"DO NOT MATCH THE HASHES.*a==1.*a-1-py3-none-any\.whl"):
        wheels.download(JUDGES_ONLY.model_copy(update={"device": "gpu"}), tmp_path / "wheels", lambda *_: None)


def test_what_pip_cannot_bring_is_told_in_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(BundleFailed, match="Could not find a version that satisfies"):
        wheels.download(JUDGES_ONLY.model_copy(update={"device": "gpu"}), tmp_path / "wheels", lambda *_: None)


def test_where_the_torch_for_cpus_is_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(BundleFailed, match=r"torch==.*\+cpu") as caught:
        wheels.download(JUDGES_ONLY, tmp_path / "wheels", lambda *_: None)
    assert "PIP_FIND_LINKS" in caught.value.hint


def test_the_torch_of_a_bundle_is_that_of_the_setup() -> None:
    version = next(line for line in (ROOT / ".ci" / "install").read_text().splitlines() if line.startswith("torch="))
    assert f"torch=={version.partition('=')[2]}+cpu" == wheels.TORCH_CPU


@pytest.mark.server
def test_the_command_tells_the_hash_to_compare(smollm_ready: None, airjudge: Command, tmp_path: Path) -> None:
    ended = airjudge("bundle", "-o", tmp_path / "b", "--judge", "smollm2-135m", "--judges-only")
    assert ended.code == 0
    digest = hashlib.sha256((tmp_path / "b" / "SHA256SUMS").read_bytes()).hexdigest()
    assert digest in ended.out
    again = airjudge("bundle", "-o", tmp_path / "b", "--judge", "smollm2-135m", "--judges-only")
    assert again.code == 2
    unknown = airjudge("bundle", "-o", tmp_path / "c", "--judge", "smolm2", "--judges-only")
    assert unknown.code == 2
    assert "did you mean" in unknown.err
