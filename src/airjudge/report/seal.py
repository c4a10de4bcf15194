"""What binds a report to its runs: hashes in its head, so that a reader can tell whether they belong together.

A hash is no signature: whoever changes a report can write a new one. So `airjudge report` tells the report's hash
when it is written; who notes that down needs to trust nobody between.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from airjudge.errors import InputError
from airjudge.report.markup import Element, element
from airjudge.run import RunState

_RUN: Final = "airjudge-run"
_SEAL: Final = "airjudge-seal"
_OPEN: Final = "0" * 64
_HEAD_BYTES: Final = 1 << 16
_FOUND: Final = {
    name: re.compile(rf'<meta name="{name}" content="([0-9a-f]{{64}})">'.encode()) for name in (_RUN, _SEAL)
}


def digest_of(state: RunState) -> str:
    """SHA-256 over all that `run.json` tells: data, weights, versions, settings, summary, the hash of each export."""
    return hashlib.sha256(state.model_dump_json().encode()).hexdigest()


def bindings(states: Sequence[RunState]) -> list[Element]:
    """The elements of a report's head that name its runs, and the place of its seal."""
    runs = [element("meta", {"name": _RUN, "content": digest_of(one)}) for one in states]
    return [*runs, element("meta", {"name": _SEAL, "content": _OPEN})]


def sealed(page: str) -> tuple[str, str]:
    """A page with its seal, and the seal: the SHA-256 of the page with zeros in its place."""
    seal = hashlib.sha256(page.encode()).hexdigest()
    return page.replace(f'name="{_SEAL}" content="{_OPEN}"', f'name="{_SEAL}" content="{seal}"', 1), seal


def wrong_with(report: Path, state: RunState) -> list[str]:
    """What does not hold of a report: that it is as it was written, and that it is of this run as it is now.

    Raises:
        InputError: If it cannot be read, or is no report of ours.
    """
    try:
        page = report.read_bytes()
    except OSError as error:
        msg = f"{report} cannot be read: {error.strerror or error}"
        raise InputError(msg, "Name a file that airjudge report wrote.") from error
    head = page[:_HEAD_BYTES]
    seal, runs = _FOUND[_SEAL].search(head), _FOUND[_RUN].findall(head)
    if seal is None or not runs:
        msg = f"{report} is no report that names its runs"
        raise InputError(msg, "Write it again: airjudge report RUN -o FILE")
    at = seal.span(1)
    found = []
    if hashlib.sha256(page[: at[0]] + _OPEN.encode() + page[at[1] :]).hexdigest().encode() != seal[1]:
        found.append(f"{report} was changed after it was written")
    if digest_of(state).encode() not in runs:
        found.append(f"{report} is not of this run as it is now")
    return found
