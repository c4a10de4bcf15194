"""What goes with the files of a bundle: hashes, licences, the bill of materials."""

import hashlib
import json
import zipfile
from collections.abc import Iterable, Sequence
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from airjudge.errors import BundleFailed
from airjudge.profiles import Profile
from airjudge.weights import Progress, hash_file

if TYPE_CHECKING:
    from cyclonedx.model.component import Component

SUMS: Final = "SHA256SUMS"
LICENCES: Final = "LICENCES.md"
MATERIALS: Final = "bill-of-materials.cdx.json"
_UNKNOWN: Final = "not stated"


class Package(NamedTuple):
    """A wheel, and what its metadata say."""

    name: str
    version: str
    licence: str
    path: Path


def packages_of(folder: Path) -> list[Package]:
    """What the wheels in a folder say of themselves, by name."""
    return sorted(_package(path) for path in folder.glob("*.whl"))


def _package(path: Path) -> Package:
    with zipfile.ZipFile(path) as wheel:
        name = next(one for one in wheel.namelist() if one.endswith(".dist-info/METADATA") and one.count("/") == 1)
        told = HeaderParser().parsestr(wheel.read(name).decode("utf-8", "replace"))
    return Package(str(told["Name"]), str(told["Version"]), _licence(told), path)


def _licence(told: Message) -> str:
    """A licence as the metadata give it: an expression, else classifiers, else the first line of a text."""
    if told["License-Expression"]:
        return str(told["License-Expression"])
    classifiers = [str(one).rpartition(" :: ")[2] for one in told.get_all("Classifier", []) if "License ::" in str(one)]
    text = str(told["License"] or "").strip().partition("\n")[0][:80]
    return "; ".join(classifiers) or text or _UNKNOWN


def write_licences(packages: Iterable[Package], profiles: Iterable[Profile], path: Path) -> None:
    """Write which licence each package and each judge has, as they say; the texts are in the wheels."""
    rows = [f"| {one.name} {one.version} | {_cell(one.licence)} |" for one in packages]
    judges = [f"| {one.id} | {_cell(one.licence)} |" for one in profiles]
    head = ["| {} | licence, as it says itself |", "|---|---|"]
    lines = [head[0].format("judge"), head[1], *judges, "", head[0].format("package"), head[1], *rows]
    path.write_text("\n".join(["# Licences", "", *lines, ""]), encoding="utf-8")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")


def write_materials(packages: Sequence[Package], profiles: Iterable[Profile], path: Path) -> None:
    """Write the bill of materials in CycloneDX's JSON, with the SHA-256 of each wheel and of each file of weights.

    Raises:
        BundleFailed: If the library that makes it is not installed.
    """
    try:
        from cyclonedx.model.bom import Bom  # noqa: PLC0415 - an extra, imported where it is needed
        from cyclonedx.output.json import JsonV1Dot6  # noqa: PLC0415
    except ImportError as error:
        msg = "the bill of materials needs cyclonedx-python-lib"
        raise BundleFailed(msg, "pip install 'airjudge[bundle]'") from error
    components = [_library(one) for one in packages] + [_model(one) for one in profiles]
    written = json.loads(JsonV1Dot6(Bom(components=components)).output_as_string())
    path.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _library(package: Package) -> "Component":
    from cyclonedx.model import HashAlgorithm, HashType  # noqa: PLC0415 - as above
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415
    from cyclonedx.model.license import DisjunctiveLicense  # noqa: PLC0415
    from packageurl import PackageURL  # noqa: PLC0415

    return Component(
        type=ComponentType.LIBRARY,
        name=package.name,
        version=package.version,
        bom_ref=f"{package.name}=={package.version}",
        purl=PackageURL("pypi", name=package.name.lower(), version=package.version),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=hash_file(package.path).sha256)],
        licenses=[DisjunctiveLicense(name=package.licence)],
    )


def _model(profile: Profile) -> "Component":
    from cyclonedx.model import HashAlgorithm, HashType  # noqa: PLC0415 - as above
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415
    from cyclonedx.model.license import DisjunctiveLicense  # noqa: PLC0415

    return Component(
        type=ComponentType.MACHINE_LEARNING_MODEL,
        name=profile.id,
        bom_ref=f"judge:{profile.id}",
        description=profile.summary,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=one.sha256) for one in profile.files if one.sha256],
        licenses=[DisjunctiveLicense(name=profile.licence)],
    )


def write_sums(folder: Path, progress: Progress) -> str:
    """Write the SHA-256 of every file, as `sha256sum -c` reads them; returns that of the list itself."""
    files = sorted(one for one in folder.rglob("*") if one.is_file() and one.name != SUMS)
    lines = []
    for number, path in enumerate(files, start=1):
        progress("hash files", number, len(files))
        lines.append(f"{hash_file(path).sha256}  {path.relative_to(folder).as_posix()}\n")
    written = "".join(lines).encode()
    (folder / SUMS).write_bytes(written)
    return hashlib.sha256(written).hexdigest()
