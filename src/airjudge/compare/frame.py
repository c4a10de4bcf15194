"""The samples and statements of several runs laid side by side, so that verdicts become arrays of one order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from airjudge.labels import Labels
from airjudge.schema import ScoredSample, Status, Verdict

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]
Unit = tuple[str, str]
"""Id and text of a statement."""
Records = Mapping[str, ScoredSample]
"""The records of one judge by sample id."""

MISSING: Final = -1
SCORED, UNDEFINED, FAILED = 0, 1, 2
STATUS: Final[Mapping[Status, int]] = {"scored": SCORED, "undefined": UNDEFINED, "failed": FAILED}


@dataclass(frozen=True, slots=True)
class Frame:
    """All samples and statements that at least one run holds, in the order in which they were first met.

    `first[s]` is the position of the first statement of sample `s`, and `first[-1]` the number of statements;
    `sample_of` and `group_of` are the sample of each statement and the group of each sample, by number.
    """

    ids: tuple[str, ...]
    units: tuple[tuple[Unit, ...], ...]
    first: Indices
    sample_of: Indices
    group_of: Indices
    n_groups: int

    @property
    def n_statements(self) -> int:
        """How many statements there are."""
        return int(self.first[-1])

    def unit(self, statement: int) -> tuple[str, Unit]:
        """The sample's id, and the statement's id and text, of a statement by number."""
        sample = int(self.sample_of[statement])
        return self.ids[sample], self.units[sample][statement - int(self.first[sample])]


@dataclass(frozen=True, slots=True)
class Rulings:
    """What one judge ruled, in the order of a frame; NaN is no verdict, no probability, no score.

    `given` marks statements that were put to the judge; `status` is one of SCORED, UNDEFINED, FAILED, MISSING.
    """

    verdicts: Floats
    probabilities: Floats
    given: Bools
    scores: Floats
    status: npt.NDArray[np.int8]


def without_verdicts(rulings: Rulings) -> Rulings:
    """The scores alone."""
    none = np.zeros(0)
    return Rulings(none, none, np.zeros(0, dtype=np.bool_), rulings.scores, rulings.status)


def units_of(sample: ScoredSample) -> tuple[Unit, ...]:
    """Ids and texts of a sample's statements."""
    return tuple((one.id, one.text.strip()) for one in sample.statements)


def by_id(samples: Iterable[ScoredSample]) -> tuple[dict[str, ScoredSample], int]:
    """Records by id, and how many are left out since an earlier record has their id."""
    found: dict[str, ScoredSample] = {}
    n_repeated = 0
    for sample in samples:
        if found.setdefault(sample.id, sample) is not sample:
            n_repeated += 1
    return found, n_repeated


def differing(runs: Sequence[Records]) -> list[str]:
    """Samples of which runs do not hold the same statements.

    A sample that failed may lack statements: it ended before they were known, or was recorded in part.
    """
    found: dict[str, None] = {}
    for number, records in enumerate(runs):
        for other in runs[:number]:
            for name, sample in records.items():
                if name in other and not _fit(sample, other[name]):
                    found[name] = None
    return list(found)


def _fit(a: ScoredSample, b: ScoredSample) -> bool:
    of_a, of_b = units_of(a), units_of(b)
    if of_a == of_b:
        return True
    texts_a, texts_b = dict(of_a), dict(of_b)
    shared = texts_a.keys() & texts_b.keys()
    return (
        all(texts_a[name] == texts_b[name] for name in shared)
        and (len(shared) == len(texts_b) or a.status == "failed")
        and (len(shared) == len(texts_a) or b.status == "failed")
    )


def framed(runs: Sequence[Records], labels: Labels | None = None) -> Frame:
    """Lay runs side by side.

    The group of a sample is that which a run knows for it, else that of the labels, else it is its own.
    """
    ids = tuple(dict.fromkeys(name for records in runs for name in records))
    units: list[tuple[Unit, ...]] = []
    groups: dict[tuple[bool, str], int] = {}
    group_of = np.empty(len(ids), dtype=np.intp)
    for number, name in enumerate(ids):
        own = [records[name] for records in runs if name in records]
        units.append(_all_units(own))
        group = next((one.group for one in own if one.group), None) or (labels.groups.get(name) if labels else None)
        group_of[number] = groups.setdefault((group is None, group or name), len(groups))
    counts = np.array([len(one) for one in units], dtype=np.intp)
    first = np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(counts)])
    return Frame(ids, tuple(units), first, np.repeat(np.arange(len(ids)), counts), group_of, len(groups))


def without_statements(frame: Frame) -> Frame:
    """The same samples, of which scores alone can be compared."""
    n = len(frame.ids)
    none = np.zeros(0, dtype=np.intp)
    return Frame(frame.ids, ((),) * n, np.zeros(n + 1, dtype=np.intp), none, frame.group_of, frame.n_groups)


def _all_units(records: Sequence[ScoredSample]) -> tuple[Unit, ...]:
    """Statements of a sample: those of a record that did not fail, and what failed ones hold besides.

    A record that is scored without any is a grade, and says nothing of them.
    """
    ruled = [one for one in records if one.statements or one.status != "scored"] or records
    ordered = sorted(ruled, key=lambda one: one.status == "failed")
    units = units_of(ordered[0])
    if ordered[0].status != "failed" or all(units_of(one) == units for one in ordered):
        return units
    return tuple(dict.fromkeys(unit for one in ordered for unit in units_of(one)))


def rulings_of(frame: Frame, records: Records) -> Rulings:
    """What one judge ruled, as arrays; statements that the frame does not hold are left out."""
    verdicts, probabilities = np.full((2, frame.n_statements), np.nan)
    given = np.zeros(frame.n_statements, dtype=np.bool_)
    scores = np.full(len(frame.ids), np.nan)
    status = np.full(len(frame.ids), MISSING, dtype=np.int8)
    for number, name in enumerate(frame.ids):
        sample = records.get(name)
        if sample is None:
            continue
        status[number] = STATUS[sample.status]
        scores[number] = or_nan(sample.score)
        for place, one in _placed(frame, number, sample):
            given[place] = True
            verdicts[place] = or_nan(one.attributed)
            probabilities[place] = or_nan(one.probability)
    return Rulings(verdicts, probabilities, given, scores, status)


def _placed(frame: Frame, number: int, sample: ScoredSample) -> Iterable[tuple[int, Verdict]]:
    """The verdicts of a sample, each with the place of its statement in the frame."""
    first, units, own = int(frame.first[number]), frame.units[number], units_of(sample)
    if own == units:
        return enumerate(sample.statements, first)
    places = {unit: place for place, unit in enumerate(units, first)}
    return [(places[unit], one) for unit, one in zip(own, sample.statements, strict=True) if unit in places]


def or_nan(value: float | None) -> float:
    """A number, or NaN, which stands for none inside arrays."""
    return np.nan if value is None else float(value)
