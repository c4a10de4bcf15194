"""Data sets in: files of many formats, standard input and Python objects, read as streams of samples.

What does not describe a sample becomes an error record, never a crash; what cannot be read at all is an
InputError, at once where that can be seen at once.
"""

from airjudge.datasets.columns import FIELDS, REQUIRED, SPECIAL, parse_mapping
from airjudge.datasets.demo import demo_samples
from airjudge.datasets.labels import labels_digest, read_labels
from airjudge.datasets.memory import source_of
from airjudge.datasets.opening import open_source
from airjudge.datasets.rows import Entry, Source, duplicate_id

__all__ = [
    "FIELDS",
    "REQUIRED",
    "SPECIAL",
    "Entry",
    "Source",
    "demo_samples",
    "duplicate_id",
    "labels_digest",
    "open_source",
    "parse_mapping",
    "read_labels",
    "source_of",
]
