"""Our own wheel, packed again from what is installed: a checkout and an installed wheel give the same."""

import base64
import hashlib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

from airjudge.bundle.wanted import DEVICES, lock_file
from airjudge.errors import BundleFailed
from airjudge.profiles import shipped_folder
from airjudge.version import __version__

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_DIST_INFO: Final = f"airjudge-{__version__}.dist-info"
_WHEEL: Final = "Wheel-Version: 1.0\nGenerator: airjudge bundle\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def pack(folder: Path) -> Path:
    """Write our wheel into a folder; the same sources give the same bytes.

    Raises:
        BundleFailed: If nothing is known of how airjudge was installed.
    """
    members = dict(_members())
    record = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in members.items()]
    members[f"{_DIST_INFO}/RECORD"] = "\n".join([*record, f"{_DIST_INFO}/RECORD,,", ""]).encode()
    path = folder / f"airjudge-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in members.items():
            wheel.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return path


def _members() -> Iterator[tuple[str, bytes]]:
    package = Path(__file__).resolve().parents[1]
    ours = [one for one in sorted(package.rglob("*")) if one.is_file() and "__pycache__" not in one.parts]
    shipped = {f"airjudge/{one.relative_to(package).as_posix()}": one for one in ours}
    shipped |= {f"airjudge/models/{one.name}": one for one in sorted(shipped_folder().iterdir()) if one.is_file()}
    shipped |= {f"airjudge/locks/{device}.lock": lock_file(device) for device in DEVICES}
    for name, path in sorted(shipped.items()):
        yield name, path.read_bytes()
    yield from _dist_info()


def _dist_info() -> Iterator[tuple[str, bytes]]:
    try:
        found = metadata.distribution("airjudge")
    except metadata.PackageNotFoundError as error:
        msg = "airjudge is not installed here: its own wheel cannot be packed"
        raise BundleFailed(msg, "Install it (pip install airjudge), and use the command of that place.") from error
    for name in ("METADATA", "entry_points.txt", "licenses/LICENSE"):
        text = found.read_text(name)
        if text is None:
            msg = f"the installed airjudge has no {name}"
            raise BundleFailed(msg, "Install it again.")
        yield f"{_DIST_INFO}/{name}", text.encode()
    yield f"{_DIST_INFO}/WHEEL", _WHEEL.encode()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
