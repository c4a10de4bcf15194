"""Inputs for tests of data sets: lines that make a sample, files of them, and the entries that are read from files."""

import json
from pathlib import Path

from airjudge.datasets import Entry, open_source
from airjudge.schema import Sample

Line = bytes | str | dict[str, object]

GOOD: dict[str, object] = {"user_input": "Where?", "reference": "Here. There.", "retrieved_contexts": ["It is here."]}


def good(**fields: object) -> dict[str, object]:
    return {**GOOD, **fields}


def write_lines(folder: Path, *lines: Line, name: str = "data.jsonl") -> Path:
    """Write lines into a file of a folder."""
    encoded = [
        line if isinstance(line, bytes) else (line if isinstance(line, str) else json.dumps(line)).encode()
        for line in lines
    ]
    file = folder / name
    file.write_bytes(b"\n".join(encoded) + b"\n")
    return file


def never(place: int) -> bool:
    """Skip no place."""
    return False


def entries_of(*paths: Path | str, mapping: dict[str, str] | None = None) -> list[Entry]:
    """All entries of files."""
    return list(open_source([str(path) for path in paths], mapping=mapping).entries(never))


def samples_of(*paths: Path | str, mapping: dict[str, str] | None = None) -> list[Sample]:
    """All samples of files that have nothing else."""
    values = [entry.value for entry in entries_of(*paths, mapping=mapping)]
    samples = [value for value in values if isinstance(value, Sample)]
    assert len(samples) == len(values), values
    return samples
