"""Make a bundle: wheels, judges, papers, and the script that installs them on the other side."""

import shutil
from pathlib import Path
from typing import Final

from airjudge.bundle import papers, wheels
from airjudge.bundle.judges import copy_judge
from airjudge.bundle.ourselves import pack
from airjudge.bundle.wanted import Wanted, lock_file
from airjudge.errors import BundleFailed, InputError
from airjudge.schema import Record
from airjudge.version import __version__
from airjudge.weights import Progress, silent

SCRIPT: Final = "install.sh"
FACTS: Final = "bundle.json"


class Bundled(Record):
    """A bundle that was made; `sums_sha256` is the one hash that vouches for all of its files."""

    folder: Path
    n_files: int
    n_bytes: int
    sums_sha256: str


class Facts(Record):
    """What a bundle says of itself, for `install.sh`."""

    airjudge: str
    wanted: Wanted
    torch: str | None


def make_bundle(wanted: Wanted, out: Path, progress: Progress = silent) -> Bundled:
    """Make a bundle in a new or empty folder; one that fails is taken away again.

    Raises:
        InputError: If the folder holds something, or cannot be made.
        ProfileError: If there is no profile of a name.
        WeightsError: If a judge's weights cannot be brought, or are not those of its profile.
        BundleFailed: If a package cannot be brought, or the disk is full.
    """
    _check_free(out)
    unfinished = out.with_name(f".{out.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        sums = _fill(unfinished, wanted, progress)
        if out.exists():
            out.rmdir()
        unfinished.rename(out)
    except OSError as error:
        msg = f"cannot make the bundle in {out}: {error.strerror or error}"
        raise BundleFailed(msg, "Free some space, or choose another folder with -o.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    files = [one for one in out.rglob("*") if one.is_file()]
    return Bundled(folder=out, n_files=len(files), n_bytes=sum(one.stat().st_size for one in files), sums_sha256=sums)


def _check_free(out: Path) -> None:
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        msg = f"{out} is there already, and is not an empty folder"
        raise InputError(msg, "Name another folder with -o.")


def _fill(folder: Path, wanted: Wanted, progress: Progress) -> str:
    profiles = [copy_judge(name, folder / "judges", progress) for name in dict.fromkeys(wanted.judges)]
    packages: list[papers.Package] = []
    if wanted.packages:
        wheels.download(wanted, folder / "wheels", progress)
        shutil.copyfile(lock_file(wanted.device), folder / "packages.lock")
        pack(folder / "wheels")
        packages = papers.packages_of(folder / "wheels")
    progress("write hashes, licences and the bill of materials", 0, 0)
    papers.write_licences(packages, profiles, folder / papers.LICENCES)
    papers.write_materials(packages, profiles, folder / papers.MATERIALS)
    torch = wheels.TORCH_CPU if wanted.packages and wanted.device == "cpu" else None
    facts = Facts(airjudge=__version__, wanted=wanted, torch=torch)
    (folder / FACTS).write_text(facts.model_dump_json(indent=1) + "\n", encoding="utf-8")
    script = folder / SCRIPT
    shutil.copyfile(Path(__file__).with_name(SCRIPT), script)
    script.chmod(0o755)
    return papers.write_sums(folder, progress)
