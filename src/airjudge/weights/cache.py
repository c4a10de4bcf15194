"""The cache folder: where things lie in it, who may write, and what is whole.

CACHE/pins/ID.json                     hashes of unpinned files, recorded at the first pull
CACHE/ID/source/FILE.gguf              the file that was brought, where one was converted
CACHE/ID/model/                        what vLLM loads; with its manifest it is whole
CACHE/ID/partial/                      unfinished work, which the next pull continues
"""

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from pydantic import ValidationError

from airjudge.errors import WeightsError, WeightsUnavailable
from airjudge.profiles import Profile, SourceFile
from airjudge.schema import Record

Progress = Callable[[str, int, int], None]
"""Told (stage, done, total) now and then; total is 0 where nobody knows it."""

CHUNK_BYTES = 2**22
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
MOVE_CACHE = "Free some space, or put the cache elsewhere: AIRJUDGE_CACHE=/path/with/space"


class FileHash(Record):
    """A file by name, size in bytes and SHA-256."""

    name: str
    size: int
    sha256: str


class Manifest(Record):
    """What a prepared folder holds and what it was made of; written last, so that it means whole.

    `source` are the files as brought, `files` those of the folder: the same ones unless
    `converter` names what made the second from the first.
    """

    profile: str
    digest: str
    verified: bool
    source: tuple[FileHash, ...]
    files: tuple[FileHash, ...]
    revision: str | None = None
    converter: str | None = None


class Pins(Record):
    """Hashes of files that no profile names, as the first pull met them."""

    source: str
    revision: str | None
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Weights that vLLM can load.

    `digest` is a SHA-256 over names and hashes of the source files: the same on every machine.
    `verified` is false if a source file was taken as it came, its hash being unknown to the profile.
    """

    path: Path
    digest: str
    verified: bool


@dataclass(frozen=True, slots=True)
class Folders:
    """The places of one profile in the cache."""

    root: Path
    pins: Path

    @property
    def source(self) -> Path:
        """Files as brought, where they are converted."""
        return self.root / "source"

    @property
    def model(self) -> Path:
        """The folder for vLLM."""
        return self.root / "model"

    @property
    def partial(self) -> Path:
        """Unfinished work."""
        return self.root / "partial"

    @property
    def manifest(self) -> Path:
        """The mark of a whole model folder."""
        return self.model / "airjudge-manifest.json"


def silent(stage: str, done: int, total: int) -> None:
    """Progress for those who do not want to know."""


def cache_dir() -> Path:
    """The cache folder, made if it is missing, readable by its owner alone.

    `AIRJUDGE_CACHE` moves it; otherwise it is where this system keeps a user's caches.
    """
    given = os.environ.get("AIRJUDGE_CACHE")
    folder = Path(given).expanduser().absolute() if given else platformdirs.user_cache_path("airjudge")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        msg = f"cannot make the cache folder {folder}: {error.strerror}"
        raise WeightsError(msg, "Name one that you may write: AIRJUDGE_CACHE=/path") from error
    return folder


def folders(profile: Profile) -> Folders:
    """The places of a profile in the cache; nothing is made."""
    cache = cache_dir()
    return Folders(root=cache / profile.id, pins=cache / "pins" / f"{profile.id}.json")


@contextmanager
def locked(places: Folders, progress: Progress) -> Iterator[None]:
    """Hold a profile's lock, after waiting for another process that holds it."""
    places.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (places.root / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another airjudge that prepares these weights", 0, 0)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def disk_errors(places: Folders, needed_bytes: int) -> Iterator[None]:
    """Turn what the operating system says about files into errors of ours."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL_DISK:
            raise disk_full(places.root, needed_bytes) from error
        msg = f"{error.filename or places.root}: {error.strerror or error}"
        raise WeightsError(msg, MOVE_CACHE) from error


def disk_full(folder: Path, needed_bytes: int) -> WeightsUnavailable:
    """The error that says how much space is needed where."""
    free = shutil.disk_usage(folder).free
    msg = f"the disk of {folder} is full: about {needed_bytes / 1e9:.2f} GB needed, {free / 1e9:.2f} GB free"
    return WeightsUnavailable(msg, MOVE_CACHE)


def require_space(places: Folders, needed_bytes: int) -> None:
    """Refuse to begin what the disk cannot hold."""
    if shutil.disk_usage(places.root).free < needed_bytes:
        raise disk_full(places.root, needed_bytes)


def hash_file(path: Path, progress: Progress = silent) -> FileHash:
    """Size and SHA-256 of a file, read once."""
    size = path.stat().st_size
    return FileHash(
        name=path.name, size=size, sha256=_digest_of(_chunks(path), f"check {path.name}", total=size, progress=progress)
    )


def write_hashed(chunks: Iterable[bytes], target: Path, *, total: int, progress: Progress) -> FileHash:
    """Write chunks to a file, synced to disk, and hash them on the way."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with target.open("wb") as out:

        def written() -> Iterator[bytes]:
            for chunk in chunks:
                out.write(chunk)
                yield chunk

        sha256 = _digest_of(written(), f"write {target.name}", total=total, progress=progress)
        out.flush()
        os.fsync(out.fileno())
    return FileHash(name=target.name, size=target.stat().st_size, sha256=sha256)


def copy_hashed(origin: Path, target: Path, progress: Progress) -> FileHash:
    """Copy a file, synced to disk, and hash it on the way."""
    return write_hashed(_chunks(origin), target, total=origin.stat().st_size, progress=progress)


def publish_folder(unfinished: Path, target: Path) -> None:
    """Put a finished folder in its place, where an older one may be; synced to disk."""
    for path in unfinished.iterdir():
        sync(path)
    sync(unfinished)
    if target.exists():
        shutil.rmtree(target)
    unfinished.replace(target)
    sync(target.parent)


def sync(path: Path) -> None:
    """Ask the system to bring a file or a folder's entries to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, record: Record) -> None:
    """Write a record so that the file is either the old one or the whole new one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".partial")
    unfinished.write_text(record.model_dump_json(indent=1), encoding="utf-8")
    sync(unfinished)
    unfinished.replace(path)
    sync(path.parent)


def read_manifest(places: Folders) -> Manifest | None:
    """The manifest of a model folder; None if there is none that we can read."""
    try:
        return Manifest.model_validate_json(places.manifest.read_bytes())
    except (OSError, ValidationError):
        return None


def read_pins(places: Folders) -> Pins | None:
    """What earlier pulls recorded; None before the first."""
    try:
        return Pins.model_validate_json(places.pins.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        msg = f"{places.pins}: not a record of pinned files"
        raise WeightsError(msg, f"Delete {places.pins} to pin the files anew.") from error


def source_digest(files: Iterable[FileHash | SourceFile]) -> str:
    """SHA-256 over `name sha256` lines in order of name: what a signature says about weights."""
    lines = sorted(f"{file.name} {file.sha256}" for file in files)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as handle:
        while chunk := handle.read(CHUNK_BYTES):
            yield chunk


def _digest_of(chunks: Iterable[bytes], stage: str, *, total: int, progress: Progress) -> str:
    digest, done = hashlib.sha256(), 0
    for chunk in chunks:
        digest.update(chunk)
        done += len(chunk)
        progress(stage, done, total)
    return digest.hexdigest()
