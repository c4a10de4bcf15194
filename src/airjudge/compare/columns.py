"""Columns of the data that runs carry in their records, laid along a frame's samples."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from airjudge.compare.frame import Frame, Indices, Records
from airjudge.datasets.refusal import short
from airjudge.errors import InputError
from airjudge.schema import ScoredSample
from airjudge.summary import MAX_VALUES, NONE, OTHER, column_text

_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Column:
    """A column's values, largest first, and for each sample the number of its value.

    The last two of `values` are for samples that have none, and for those whose value is not among `named`.
    """

    name: str
    values: tuple[str, ...]
    of_sample: Indices

    @property
    def named(self) -> tuple[str, ...]:
        """The values that samples have."""
        return self.values[:-2]


def read_column(name: str, runs: Sequence[Records], *, frame: Frame, most: int | None = MAX_VALUES) -> Column:
    """A column by name, from the first run that carries it for a sample; `group` is the sample's group.

    Beyond the `most` largest values a sample's is `(other)`; where no run carries one, it is `(none)`.

    Raises:
        InputError: If no sample of any run carries the column.
    """
    texts = [next(_texts(name, runs, sample), None) for sample in frame.ids]
    counted = Counter(text for text in texts if text is not None)
    if not counted:
        msg = f"no run carries a column {short(name)}"
        raise InputError(msg, _hint(runs))
    ordered = sorted(counted, key=lambda text: (-counted[text], text))[:most]
    # Apart from the values: a column may well hold the text "(none)".
    number = {text: place for place, text in enumerate(ordered)}
    none, other = len(ordered), len(ordered) + 1
    of_sample = np.array([none if text is None else number.get(text, other) for text in texts], dtype=np.intp)
    return Column(name, (*ordered, NONE, OTHER), of_sample)


def _texts(name: str, runs: Sequence[Records], sample: str) -> Iterator[str]:
    for records in runs:
        if sample in records and (text := _text(records[sample], name)) is not None:
            yield text


def _text(sample: ScoredSample, name: str) -> str | None:
    text = column_text(sample.group if name == "group" else sample.metadata.get(name))
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


def _hint(runs: Sequence[Records]) -> str:
    known = sorted({column for records in runs for sample in records.values() for column in sample.metadata})
    carried = f"They carry: {', '.join(map(short, known[:_SHOWN]))}. " if known else ""
    return f"{carried}A run carries the columns that airjudge score was told to --keep."
