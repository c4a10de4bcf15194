"""Labels in: what people or another judge ruled, from our own data format or from one ruling a line."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from airjudge.datasets.cells import Cells
from airjudge.datasets.files import Input
from airjudge.datasets.opening import row_file
from airjudge.datasets.refusal import Fields, Refused, short
from airjudge.datasets.rows import Row, every
from airjudge.datasets.rulings import ACCEPTED, Told, told_in
from airjudge.errors import InputError
from airjudge.labels import Label, Labels
from airjudge.quoting import from_cell

_SHOWN: Final = 5
"""Problems of one file that are told; the rest is counted."""
_NAMES_SHOWN: Final = 20


def read_labels(path: Path | str, *, who: str | None = None) -> Labels:
    """Read labels from a file that a data set could stand in too: JSON Lines, CSV, Parquet, compressed or not.

    Args:
        path: Samples with `statements[]`, of which each has `label`, `judges` or `annotators`; the samples of
            a run; or rows with one ruling each (`rulings.ACCEPTED`).
        who: Whose labels: None for those that the file calls the label, else the name of a judge in it, or
            `annotator-N` or `N` for one person's votes, N from 1.

    Returns:
        All labels, by sample, in the order of the file.

    Raises:
        InputError: If the file cannot be read or holds no label of `who`; or with the first lines that are
            wrong, and how many there are. Two labels on one statement that contradict each other are wrong.
    """
    file = row_file(Input(str(path), Path(path)))
    reading = _Reading(str(path), who, of_cells=isinstance(file, Cells))
    file.columns()  # refuses what is no text of rows at all, with the next step
    for row in file.rows(every):
        reading.take(row)
    return reading.labels()


def labels_digest(path: Path | str) -> str:
    """SHA-256 of a file of labels, in hex.

    Raises:
        InputError: If it cannot be read.
    """
    return row_file(Input(str(path), Path(path))).digest()


@dataclass(slots=True)
class _Reading:
    """What has been read of one file so far."""

    path: str
    who: str | None
    of_cells: bool
    n_bad: int = 0
    problems: list[str] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)
    ruled_by: dict[str | None, None] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    hosted: bool | None = None
    found: defaultdict[str, list[Label]] = field(default_factory=lambda: defaultdict(list))
    _known: defaultdict[tuple[str, str], list[tuple[Label, int]]] = field(default_factory=lambda: defaultdict(list))

    def take(self, row: Row) -> None:
        """Take the labels of a row, or note what is wrong with it."""
        line = row.editor_line or row.line
        try:
            group, told = told_in(self._fields(row), default_id=f"line-{row.line}")
            for one in told:
                self._take_one(one, line)
            if group is not None and told:
                self._take_group(told[0].label.sample, group)
        except Refused as exc:
            self._note(line, str(exc))
        except RecursionError:
            self._note(line, "nested too deeply")

    def _fields(self, row: Row) -> Fields:
        """The fields of a row; a table that we wrote and people filled in gets its texts back."""
        fields = row.read()
        if not self.of_cells:
            return fields
        return {name: from_cell(one) if isinstance(one, str) else one for name, one in fields.items()}

    def _take_one(self, told: Told, line: int) -> None:
        if told.who is not None:
            self.names.setdefault(told.who)
        if told.is_main:
            self.ruled_by.setdefault(told.who)
        if not self._is_wanted(told):
            return
        self.hosted = told.hosted if self.hosted is None else self.hosted
        label = told.label
        for known, known_line in self._same(label):
            if known.id == label.id and known.text != label.text and None not in {known.text, label.text}:
                msg = f"gives the statement {short(label.id)} another text than line {known_line}"
                raise Refused(msg)
            if known.attributed != label.attributed:
                msg = f"contradicts line {known_line} on the same statement of the sample {short(label.sample)}"
                raise Refused(msg)
            if _tells(label) == _tells(known):
                return
        for key in _keys(label):
            self._known[label.sample, key].append((label, line))
        self.found[label.sample].append(label)

    def _is_wanted(self, told: Told) -> bool:
        if self.who is None:
            return told.is_main
        return told.who in {self.who, f"annotator-{self.who}"}

    def _same(self, label: Label) -> Iterator[tuple[Label, int]]:
        """Labels before this one that are on the same statement, each once."""
        met = {id(one): (one, line) for key in _keys(label) for one, line in self._known.get((label.sample, key), ())}
        for one, line in met.values():
            if one.id is None or label.id is None or one.id == label.id:
                yield one, line

    def _take_group(self, sample: str, group: str) -> None:
        if self.groups.setdefault(sample, group) != group:
            msg = f"the group of {short(sample)} was {short(self.groups[sample])} before, and is {short(group)} now"
            raise Refused(msg)

    def _note(self, line: int, reason: str) -> None:
        self.n_bad += 1
        if len(self.problems) < _SHOWN:
            self.problems.append(f"{self.path}:{line}: {reason}")

    def labels(self) -> Labels:
        """All that was read.

        Raises:
            InputError: If a line was wrong, or there is no label of whom they were wanted of.
        """
        if self.who is None and len(self.ruled_by) > 1:
            msg = f"{self.path} holds rulings of several"
            raise InputError(msg, f"Say whose are meant: {self._listed_names()}")
        if self.problems:
            more = f"\nand {self.n_bad - len(self.problems)} more lines" if self.n_bad > len(self.problems) else ""
            raise InputError("\n".join(self.problems) + more, ACCEPTED)
        if not self.found:
            raise self._nothing()
        by_sample = {sample: tuple(labels) for sample, labels in self.found.items()}
        return Labels(self.who or Path(self.path).name, by_sample, self.groups, self.hosted)

    def _nothing(self) -> InputError:
        if self.who is None:
            hint = f"Say whose are meant: {self._listed_names()}" if self.names else ACCEPTED
            return InputError(f"{self.path} holds no label", hint)
        msg = f"{self.path} holds nothing of {short(self.who)}"
        return InputError(msg, f"It holds rulings of {self._listed_names()}" if self.names else "It names nobody.")

    def _listed_names(self) -> str:
        more = f" and {len(self.names) - _NAMES_SHOWN} more" if len(self.names) > _NAMES_SHOWN else ""
        return ", ".join(short(name) for name in list(self.names)[:_NAMES_SHOWN]) + more


def _keys(label: Label) -> set[str]:
    """Under what a label is looked for among those of its sample."""
    by_id = {f"id {one}" for one in (label.id, label.named) if one is not None}
    return by_id | {f"text {one.strip()}" for one in (label.text, label.named) if one is not None}


def _tells(label: Label) -> tuple[str | None, ...]:
    """By what a label tells its statement: one that tells the same again is a repetition."""
    return label.id, label.text, label.named
