"""The samples that ship with airjudge."""

from importlib.resources import as_file, files

from airjudge.datasets.opening import open_source
from airjudge.errors import DatasetError
from airjudge.schema import Sample


def demo_samples() -> tuple[Sample, ...]:
    """Samples that ship with the package; `metadata` holds the `expected` recall of each.

    Raises:
        DatasetError: If the installed file was changed and a line is broken.
    """
    with as_file(files("airjudge") / "demo.jsonl") as path:
        entries = open_source([str(path)]).entries(lambda _place: False)
        return tuple(_sample_or_raise(entry.value) for entry in entries)


def _sample_or_raise(value: Sample | DatasetError) -> Sample:
    """Raise an error record."""
    if isinstance(value, DatasetError):
        raise value
    return value
