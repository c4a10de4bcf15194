"""Pull, find and verify the weights of a profile."""

from collections.abc import Iterator
from pathlib import Path

from airjudge.errors import WeightsMismatch, WeightsMissing, WeightsUnpinned
from airjudge.profiles import FolderSource, HubSource, Profile
from airjudge.schema import Record
from airjudge.weights import cache
from airjudge.weights.bring import Job, bring_as_is, bring_converted
from airjudge.weights.cache import FileHash, Folders, Manifest, Prepared, Progress, silent
from airjudge.weights.local import require_path


class Verification(Record):
    """What a full check of prepared weights read and found to be right."""

    profile: str
    digest: str
    verified: bool
    n_files: int
    n_bytes: int


def prepared(profile: Profile) -> Prepared:
    """The weights of a profile, if they are whole; files are compared by size, not read.

    Raises:
        WeightsMissing: If they were never pulled, or are not those that the profile names today.
    """
    places = cache.folders(profile)
    manifest = _whole_manifest(profile, places)
    return Prepared(path=places.model, digest=manifest.digest, verified=manifest.verified)


def pull(
    profile: Profile, *, progress: Progress = silent, strict: bool = False, origin: Path | None = None
) -> Prepared:
    """Bring, check and prepare the weights of a profile; what is whole already is not brought again.

    Args:
        profile: The judge.
        progress: Told what goes on.
        strict: Refuse files whose hash the profile does not know.
        origin: A file or folder to take them from, in place of the profile's sources.

    Raises:
        WeightsUnavailable: If no source has them, or the disk is full.
        WeightsMismatch: If a file is not the one that the profile, or an earlier pull, names.
        WeightsUnpinned: If `strict` and the profile has no hash of a file.
    """
    if strict and not profile.pinned:
        msg = f"the profile {profile.id} does not pin its files: it has no SHA-256 of them"
        raise WeightsUnpinned(msg, "Pull without --strict to record what comes and refuse later changes.")
    if origin is not None:
        require_path(origin)
    places = cache.folders(profile)
    with cache.disk_errors(places, _bytes_to_write(profile)), cache.locked(places, progress):
        try:
            return prepared(profile)
        except WeightsMissing:
            places.manifest.unlink(missing_ok=True)
        sources = [FolderSource(kind="folder", path=origin)] if origin else profile.sources
        job = Job(profile=profile, sources=sources, places=places, progress=progress, strict=strict)
        if profile.gguf is None:
            bring_as_is(job)
        else:
            bring_converted(job, profile.gguf)
        return prepared(profile)


def verify(profile: Profile, *, progress: Progress = silent) -> Verification:
    """Read all files of prepared weights and compare them with their hashes.

    Weights that fail are no longer taken for whole: the next pull repairs them.

    Raises:
        WeightsMissing: If they were never pulled.
        WeightsMismatch: If a file is not what it was.
    """
    places = cache.folders(profile)
    manifest = _whole_manifest(profile, places)
    with cache.disk_errors(places, 0), cache.locked(places, progress):
        n_bytes = n_files = 0
        for path, expected in _files(places, manifest):
            found = cache.hash_file(path, progress)
            if found.sha256 != expected.sha256:
                places.manifest.unlink(missing_ok=True)
                msg = f"{path} has SHA-256 {found.sha256}, expected {expected.sha256}"
                raise WeightsMismatch(msg, f"Bring or prepare it anew: airjudge models pull {profile.id}")
            n_files, n_bytes = n_files + 1, n_bytes + found.size
    return Verification(
        profile=profile.id,
        digest=manifest.digest,
        verified=manifest.verified,
        n_files=n_files,
        n_bytes=n_bytes,
    )


def carried_files(profile: Profile) -> list[Path]:
    """The files of prepared weights that another machine needs to prepare them: as they were brought.

    Raises:
        WeightsMissing: If they were never pulled.
    """
    places = cache.folders(profile)
    manifest = _whole_manifest(profile, places)
    folder = places.model if manifest.converter is None else places.source
    return [folder / file.name for file in manifest.source]


def _whole_manifest(profile: Profile, places: Folders) -> Manifest:
    manifest = cache.read_manifest(places)
    if manifest is None or not _is_current(profile, manifest) or not _is_whole(places, manifest):
        msg = f"the weights of {profile.id} are not ready in {places.root}"
        raise WeightsMissing(msg, f"airjudge models pull {profile.id}")
    return manifest


def _is_current(profile: Profile, manifest: Manifest) -> bool:
    """Whether prepared weights are what the profile says today; it may have changed since."""
    held = {file.name: file.sha256 for file in manifest.source}
    revisions = {source.revision for source in profile.sources if isinstance(source, HubSource)}
    if manifest.revision is not None and None not in revisions and manifest.revision not in revisions:
        return False
    return all(held.get(file.name) == (file.sha256 or held.get(file.name, "")) for file in profile.files)


def _is_whole(places: Folders, manifest: Manifest) -> bool:
    try:
        return all(path.stat().st_size == file.size for path, file in _files(places, manifest))
    except FileNotFoundError:
        return False


def _files(places: Folders, manifest: Manifest) -> Iterator[tuple[Path, FileHash]]:
    yield from ((places.model / file.name, file) for file in manifest.files)
    if manifest.converter is not None:
        yield from ((places.source / file.name, file) for file in manifest.source)


def _bytes_to_write(profile: Profile) -> int:
    brought = 2 * (profile.gguf.size or 0) if profile.gguf else 0
    return profile.memory.weights_bytes + brought
