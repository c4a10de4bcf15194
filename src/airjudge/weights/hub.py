"""Weights from a model hub, file by file at one revision, through huggingface_hub."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from airjudge.errors import WeightsUnavailable
from airjudge.profiles import HubSource, SourceFile
from airjudge.schema import Record
from airjudge.weights.cache import FULL_DISK, FileHash, Progress, hash_file

OTHER_WAYS = (
    "Name a mirror that you can reach (HF_ENDPOINT=https://…), or carry the files here: "
    "airjudge models pull NAME --from FOLDER"
)


class Listing(Record):
    """The files of a repository at one commit; a hash only where the hub tells one."""

    revision: str
    files: tuple[SourceFile, ...]


def list_files(source: HubSource, revision: str | None) -> Listing:
    """What a repository holds at a revision, or at its main branch where none is named.

    Raises:
        WeightsUnavailable: If the hub cannot be reached or does not have it, or huggingface_hub is missing.
    """
    with _hub_errors(source):
        from huggingface_hub import HfApi  # noqa: PLC0415 - heavy, and not a dependency of the client

        repo = HfApi(endpoint=_endpoint()).model_info(source.repo, revision=revision, files_metadata=True)
    plain = (found for found in repo.siblings if re.fullmatch(r"[A-Za-z0-9][\w.-]*", found.rfilename))
    files = [SourceFile(name=f.rfilename, size=f.size, sha256=f.lfs.sha256 if f.lfs else None) for f in plain]
    return Listing(revision=repo.sha, files=tuple(files))


def fetch_files(
    source: HubSource, listing: Listing, *, names: Sequence[str], folder: Path, progress: Progress
) -> list[FileHash]:
    """Download files of a listing to a folder, going on where an earlier download ended, and hash them.

    Raises:
        WeightsUnavailable: If the hub stops answering, or the disk is full.
    """
    sizes = {file.name: file.size or 0 for file in listing.files}
    bar = _bar_for(progress, stage=f"fetch {source.repo}", total=sum(sizes[name] for name in names))
    with _hub_errors(source):
        from huggingface_hub import hf_hub_download  # noqa: PLC0415 - heavy, and not a dependency of the client

        for name in names:
            hf_hub_download(
                source.repo,
                name,
                revision=listing.revision,
                local_dir=folder,
                endpoint=_endpoint(),
                tqdm_class=bar,
            )
    return [hash_file(folder / name, progress) for name in names]


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT") or None


@contextmanager
def _hub_errors(source: HubSource) -> Iterator[None]:
    try:
        from huggingface_hub.errors import HTTPError  # noqa: PLC0415 - heavy, and not a dependency of the client
    except ImportError as error:
        msg = f"cannot fetch {source}: huggingface_hub is not installed"
        raise WeightsUnavailable(msg, "Install what fetches from a hub: pip install 'airjudge[gpu]'") from error
    try:
        yield
    except (HTTPError, OSError, RuntimeError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in FULL_DISK:
            raise
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        msg = f"cannot fetch {source}: {said}"
        raise WeightsUnavailable(msg, OTHER_WAYS) from error


def _bar_for(progress: Progress, *, stage: str, total: int) -> type:
    """What huggingface_hub takes for a progress bar: a class, made anew for every file."""
    done = 0

    class Bar:
        def __init__(self, *, initial: int = 0, **_settings: object) -> None:
            self.update(initial)

        def __enter__(self) -> Self:
            return self

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            return None

        def update(self, n_bytes: float = 1) -> None:
            nonlocal done
            done += int(n_bytes)
            progress(stage, done, total)

        def close(self) -> None:
            """There is nothing to close."""

    return Bar
