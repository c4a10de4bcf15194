"""Weights from a model hub, file by file at one revision, through huggingface_hub."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import StringConstraints

from airjudge.errors import WeightsUnavailable
from airjudge.profiles import HubSource, SourceFile
from airjudge.schema import Record
from airjudge.weights.cache import FULL_DISK, FileHash, Progress, hash_file

OTHER_WAYS = (
    "Name a mirror that you can reach (HF_ENDPOINT=https://…), or carry the files here: "
    "airjudge models pull NAME --from FOLDER"
)


class Listing(Record):
    """The files of a repository at one commit; a hash only where the hub tells one.

    What the hub says becomes names of files here, so it must look like what it should be.
    """

    revision: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40,64}$")]
    files: tuple[SourceFile, ...]


def list_files(source: HubSource, revision: str | None) -> Listing:
    """What a repository holds at a revision, or at its main branch where none is named.

    Raises:
        WeightsUnavailable: If the hub cannot be reached or does not have it, or huggingface_hub is missing.
    """
    with _hub_errors(source):
        from huggingface_hub import HfApi  # noqa: PLC0415 - heavy, and not a dependency of the client

        repo = HfApi(endpoint=_endpoint()).model_info(source.repo, revision=revision, files_metadata=True)
        plain = (f for f in repo.siblings or () if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", f.rfilename))
        files = [
            SourceFile(name=f.rfilename, size=f.size or None, sha256=f.lfs.sha256 if f.lfs else None) for f in plain
        ]
        return Listing(revision=repo.sha, files=tuple(files))


def fetch_files(
    source: HubSource, listing: Listing, *, names: Sequence[str], folder: Path, progress: Progress
) -> list[FileHash]:
    """Download files of a listing to a folder, going on where an earlier download ended, and hash them.

    Raises:
        WeightsUnavailable: If a file is not listed, or the hub stops answering.
    """
    lacking = sorted(set(names) - {file.name for file in listing.files})
    if lacking:
        msg = f"{source} has no {', '.join(lacking)}"
        raise WeightsUnavailable(msg, OTHER_WAYS)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    wanted = [file for file in listing.files if file.name in names]
    total = sum(file.size or 0 for file in wanted)
    bar = _bar_for(progress, stage=f"fetch {source.repo}", total=total)
    with _hub_errors(source):
        for file in wanted:
            if _is_there(file, folder):
                bar(initial=file.size or 0)
            else:
                _fetch(source, file, part=folder / f"{file.name}.{listing.revision}", bar=bar)
    return [hash_file(folder / file.name, progress) for file in wanted]


def _is_there(file: SourceFile, folder: Path) -> bool:
    path = folder / file.name
    return file.sha256 is not None and path.is_file() and hash_file(path).sha256 == file.sha256


def _fetch(source: HubSource, file: SourceFile, *, part: Path, bar: "type[_Bar]") -> None:
    """Download one file; `part` is what there is of it, named after the commit that it is from.

    huggingface_hub's own download begins anew after every interruption, and a shard has
    gigabytes; its lower half knows how to go on.
    """
    from huggingface_hub import hf_hub_url  # noqa: PLC0415 - heavy, and not a dependency of the client
    from huggingface_hub.file_download import http_get  # noqa: PLC0415
    from huggingface_hub.utils import build_hf_headers  # noqa: PLC0415

    if file.size is not None and part.exists() and part.stat().st_size > file.size:
        part.unlink()  # not the beginning of this file
    revision = part.name.removeprefix(f"{file.name}.")
    with part.open("ab") as out:
        http_get(
            hf_hub_url(source.repo, file.name, revision=revision, endpoint=_endpoint()),
            out,
            resume_size=out.tell(),
            headers={**build_hf_headers(), "Accept-Encoding": "identity"},
            expected_size=file.size,
            tqdm_class=bar,
        )
    part.replace(part.with_name(file.name))


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT") or None


@contextmanager
def _hub_errors(source: HubSource) -> Iterator[None]:
    try:
        from huggingface_hub import constants  # noqa: PLC0415 - heavy, and not a dependency of the client
        from huggingface_hub.errors import HTTPError  # noqa: PLC0415
    except ImportError as error:
        msg = f"cannot fetch {source}: huggingface_hub is not installed"
        raise WeightsUnavailable(msg, "Install what fetches from a hub: pip install 'airjudge[gpu]'") from error
    # Else it brings a list of programs that may be running it, to name one of them, and torch's version, to the hub.
    constants.HF_HUB_DISABLE_TELEMETRY = True
    try:
        yield
    except (HTTPError, OSError, RuntimeError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in FULL_DISK:
            raise
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        msg = f"cannot fetch {source}: {said}"
        raise WeightsUnavailable(msg, OTHER_WAYS) from error


class _Bar:
    """What huggingface_hub takes for a progress bar; made anew for every file."""

    told: ClassVar[Callable[[int], None]]

    def __init__(self, *, initial: int = 0, **_settings: object) -> None:
        self.update(initial)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_what: object) -> None:
        """There is nothing to close."""

    def update(self, n_bytes: float = 1) -> None:
        """Count bytes that came."""
        type(self).told(int(n_bytes))


def _bar_for(progress: Progress, *, stage: str, total: int) -> type[_Bar]:
    """A class of bars that count together towards one total."""
    done = 0

    def told(n_bytes: int) -> None:
        nonlocal done
        done += n_bytes
        progress(stage, done, total)

    return type("Bar", (_Bar,), {"told": staticmethod(told)})
