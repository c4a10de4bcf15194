"""What can be told of this machine: variables, folders, weights, room, clock."""

import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import psutil

from airjudge import weights
from airjudge.doctor.findings import Finding
from airjudge.errors import WeightsError, WeightsMissing
from airjudge.profiles import GIB, Profile, fits, this_machine
from airjudge.server import OFFLINE
from airjudge.weights import Progress, cache_dir

_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_SECRET_FOLDERS: Final = ("servers", "logs")
"""Folders of the cache that hold keys, and the words of servers."""
_ROOM_TO_WORK: Final = GIB
_COPIES: Final = 3
"""A judge's weights lie on the disk as they came, as they are converted, and as they are served, for a moment."""
_CLOCK_SLACK_S: Final = 120.0


def of_variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Variables that keep libraries quiet, and those that lead outside."""
    unset = [f"{name}={value}" for name, value in OFFLINE.items() if environment.get(name) != value]
    if unset:
        yield Finding(
            area="environment",
            level="note",
            found=f"not set here: {', '.join(one.partition('=')[0] for one in unset)}",
            consequence="airjudge sends nothing, and sets them for its own servers; libraries that you use "
            "beside it may contact their makers",
            fix=f"export {' '.join(unset)}",
        )
    else:
        yield Finding(area="environment", level="ok", found="all variables that keep libraries offline are set")
    proxies = [name for name in _PROXIES if environment.get(name)]
    if proxies:
        yield Finding(
            area="environment",
            level="note",
            found=f"a proxy is set: {', '.join(proxies)}",
            consequence="airjudge does not use it, neither for questions nor for its servers; other programs do",
            fix=f"unset {' '.join(proxies)}",
        )


def of_cache(folder: Path | None = None) -> Iterator[Finding]:
    """Who else may write into the cache, where weights lie, and read what is secret in it."""
    folder = folder or cache_dir()
    if not folder.is_dir():
        yield Finding(area="cache", level="ok", found=f"{folder} is not there yet: it will be made private")
        return
    written = [path for path in (folder, *_subfolders(folder)) if not _is_ours(path)]
    for path in written:
        yield Finding(
            area="cache",
            level="serious",
            found=f"other users can write into {path}",
            consequence="they can replace weights, or lead questions to a server of theirs",
            fix=f"chown -R $USER {path} && chmod -R go-w {path}",
        )
    read = [one for name in _SECRET_FOLDERS if (one := folder / name).is_dir() and _mode(one) & 0o077]
    for path in read:
        yield Finding(
            area="cache",
            level="warning",
            found=f"other users can enter {path}",
            consequence="keys of running servers, or what servers wrote, lie there",
            fix=f"chmod -R go-rwx {path}",
        )
    if not written and not read:
        yield Finding(area="cache", level="ok", found=f"{folder} is written by you alone")


def of_weights(profile: Profile, on_progress: Progress) -> Finding:
    """Whether a judge's weights are there and are those that its profile names; all of them are read."""
    try:
        report = weights.verify(profile, progress=on_progress)
    except WeightsMissing:
        return Finding(
            area="weights",
            level="note",
            found=f"the weights of {profile.id} are not here",
            consequence="the first run has to bring them, which a room without network cannot",
            fix=f"airjudge models pull {profile.id} --from FOLDER",
        )
    except WeightsError as error:
        return Finding(
            area="weights",
            level="serious",
            found=str(error),
            consequence="scores would be those of another judge than the profile names",
            fix=error.hint or f"airjudge models pull {profile.id}",
        )
    told = f"{profile.id}: {report.n_files} files, {report.n_bytes / 1e9:.2f} GB"
    if report.verified:
        return Finding(area="weights", level="ok", found=f"{told}, each with the SHA-256 that the profile names")
    return Finding(
        area="weights",
        level="note",
        found=f"{told}, unchanged since they were pulled; the profile knows no hash of them",
        consequence="nobody but their source vouches for them",
        fix="put their SHA-256 into a profile of your own",
    )


def of_disk(profile: Profile) -> Finding:
    """Whether the disk has room to work, and for the judge's weights where they are not here yet."""
    free = shutil.disk_usage(_existing(cache_dir())).free
    needed = _ROOM_TO_WORK + (0 if _are_here(profile) else _COPIES * profile.memory.weights_bytes)
    told = f"{free / GIB:.1f} GiB of disk are free"
    if free >= needed:
        return Finding(area="room", level="ok", found=told)
    return Finding(
        area="room",
        level="warning",
        found=f"{told}; {needed / GIB:.1f} GiB are needed",
        consequence="weights cannot be brought, or a run stops when the disk is full (it goes on afterwards)",
        fix="free some, or put the cache elsewhere: export AIRJUDGE_CACHE=/path/with/space",
    )


def of_memory(profile: Profile) -> Finding:
    """Whether the judge's server has the memory that it needs."""
    fit = fits(profile, this_machine())
    available = psutil.virtual_memory().available
    if not fit.fits:
        return Finding(
            area="room",
            level="warning",
            found=f"{profile.id} does not fit this machine: {fit.reason}",
            consequence="its server will not start here",
            fix="choose another judge: airjudge models list",
        )
    if profile.device == "cpu" and available < fit.needed_bytes:
        return Finding(
            area="room",
            level="warning",
            found=f"{available / GIB:.1f} GiB of memory are free; {profile.id} needs {fit.needed_bytes / GIB:.1f} GiB",
            consequence="its server will not start, or the machine begins to swap",
            fix="end other programs",
        )
    return Finding(area="room", level="ok", found=f"{profile.id} fits this machine")


def of_clock(now: float | None = None) -> Finding:
    """Whether the clock stands before something that was written earlier."""
    now = time.time() if now is None else now
    paths = [Path(__file__), *_subfolders(_existing(cache_dir()))]
    newest = max(path.stat().st_mtime for path in paths if path.exists())
    if now + _CLOCK_SLACK_S >= newest:
        return Finding(area="clock", level="ok", found=f"the clock says {time.strftime('%F %R', time.gmtime(now))} UTC")
    return Finding(
        area="clock",
        level="warning",
        found=f"the clock says {time.strftime('%F %R', time.gmtime(now))} UTC, which is before files that exist",
        consequence="run.json tells wrong times, certificates are held against a wrong date; no verdict depends on it",
        fix="set it: timedatectl set-time 'YYYY-MM-DD HH:MM'",
    )


def _are_here(profile: Profile) -> bool:
    try:
        weights.prepared(profile)
    except WeightsError:
        return False
    return True


def _subfolders(folder: Path) -> list[Path]:
    return sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink())


def _is_ours(path: Path) -> bool:
    """Whether nobody but this user (and root, who may do anything) can write into a folder."""
    return path.stat().st_uid in {os.getuid(), 0} and not _mode(path) & 0o022


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _existing(path: Path) -> Path:
    """A path, or the closest folder above it that exists."""
    return path if path.exists() else _existing(path.parent)
