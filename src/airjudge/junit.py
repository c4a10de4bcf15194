"""A run as JUnit XML, which continuous integration shows: a case for each sample and for each gate.

A failed sample is an error, one without score is skipped, a gate that did not let the run pass is a
failure. The file is written as a stream, since a million samples need not fit in memory, under a
temporary name that is renamed when it is whole.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from airjudge.errors import InputError
from airjudge.gates import GateResult
from airjudge.journal import written_whole
from airjudge.schema import ScoredSample, Summary

HINT: Final = "Name another file with --junit."

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document may hold, escaped or not: controls, lone surrogates, U+FFFE and U+FFFF."""


@dataclass(frozen=True, slots=True)
class Suite:
    """What the head of the file says; `name` is that of the data set and the class name of its cases."""

    name: str
    summary: Summary
    started: datetime
    seconds: float
    gates: Sequence[GateResult] = ()


def check_junit_path(path: Path) -> None:
    """Refuse a file that could not be written when the run is over.

    Raises:
        InputError: If its folder does not exist or cannot be written to, or it is a folder itself.
    """
    if path.is_dir():
        msg = f"{path} is a folder"
        raise InputError(msg, HINT)
    if not path.parent.is_dir():
        msg = f"the folder {path.parent} does not exist"
        raise InputError(msg, HINT)
    if not os.access(path.parent, os.W_OK):
        msg = f"cannot write to {path.parent}"
        raise InputError(msg, HINT)


def write_junit(path: Path, samples: Iterable[ScoredSample], suite: Suite) -> None:
    """Write the file, and put it in its place when it is whole.

    Raises:
        StorageFailed: If it cannot be written; an earlier file of that name is as it was.
    """
    with written_whole(path) as file:
        file.writelines(line.encode() for line in _lines(samples, suite))


def _lines(samples: Iterable[ScoredSample], suite: Suite) -> Iterator[str]:
    summary = suite.summary
    counts: dict[str, str | int] = {
        "tests": summary.n + len(suite.gates),
        "failures": sum(not gate.passed for gate in suite.gates),
        "errors": summary.n_failed,
    }
    time = {"time": f"{max(0.0, suite.seconds):.3f}"}
    started = {"timestamp": suite.started.strftime("%Y-%m-%dT%H:%M:%S")}
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f"<testsuites{_attributes({'name': 'airjudge', **counts, **time})}>\n"
    own: dict[str, str | int] = {"name": suite.name, **counts, "skipped": summary.n_undefined, **time, **started}
    yield f"<testsuite{_attributes(own)}>\n"
    for sample in samples:
        yield _case(sample.id, suite.name, _sample_outcome(sample))
    for gate in suite.gates:
        yield _case(gate.name, "airjudge.gates", _gate_outcome(gate))
    yield "</testsuite>\n</testsuites>\n"


def _case(name: str, classname: str, outcome: str) -> str:
    return f"<testcase{_attributes({'name': name, 'classname': classname})}>{outcome}</testcase>\n"


def _sample_outcome(sample: ScoredSample) -> str:
    if sample.status == "failed":
        kind, message = (sample.error.kind, sample.error.message) if sample.error else ("unknown", "no reason known")
        return _told("error", kind, message)
    if sample.status == "undefined":
        return _told("skipped", "undefined", "there is no statement to rule on")
    if not sample.statements:
        why = "" if sample.reason is None else f": {_text(sample.reason)}"
        return f"<system-out>grade {sample.score:.6g}{why}{_marks(sample)}</system-out>"
    attributed = sum(v.attributed is True for v in sample.statements)
    score = "" if sample.score is None else f"{sample.score:.6g}"
    ruled = f"recall {score}, {attributed} of {len(sample.statements)} statements attributed"
    return f"<system-out>{ruled}{_marks(sample)}</system-out>"


def _marks(sample: ScoredSample) -> str:
    """Where a sample holds text that looks as if it were aimed at the judge."""
    places = ", ".join(f"{one.kind} in {one.place}" for one in sample.suspicions)
    return f"; marked: {places}" if places else ""


def _gate_outcome(gate: GateResult) -> str:
    return f"<system-out>{_text(gate.reason)}</system-out>" if gate.passed else _told("failure", gate.name, gate.reason)


def _told(element: str, kind: str, message: str) -> str:
    # Some readers show the attribute, others the text.
    return f"<{element}{_attributes({'type': kind, 'message': message})}>{_text(message)}</{element}>"


def _attributes(values: dict[str, str | int]) -> str:
    return "".join(f" {name}={quoteattr(_allowed(str(value)))}" for name, value in values.items())


def _text(text: str) -> str:
    return escape(_allowed(text))


def _allowed(text: str) -> str:
    r"""A text with the characters that XML forbids written as `\u001b`, so that ids which differ still do."""
    return _NOT_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
