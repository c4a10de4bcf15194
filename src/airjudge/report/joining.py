"""Samples of several runs side by side, with people's labels: the rows of a report."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from airjudge.labels import Label, Labels
from airjudge.run import OpenedRun
from airjudge.schema import ScoredSample, Suspicion, Verdict

_SURE: Final = {True: 1.0, False: 0.0}
"""A verdict without a probability counts as certain."""


@dataclass(frozen=True, slots=True)
class JoinedStatement:
    """One statement, the verdict of each run (None where it has none) and the label (None where there is none)."""

    id: str
    text: str
    verdicts: tuple[Verdict | None, ...]
    label: Label | None = None

    @property
    def rulings(self) -> list[tuple[bool, float]]:
        """What was ruled, by runs and by people, with the probability of being attributed."""
        found = [(one.attributed, one.probability) for one in self.verdicts if one and one.attributed is not None]
        if self.label is not None and self.label.attributed is not None:
            found.append((self.label.attributed, None))
        return [(attributed, _SURE[attributed] if p is None else p) for attributed, p in found]

    @property
    def gap(self) -> float:
        """How far apart those are who differ on it, in probability, in [0, 1]; 0 if nobody does."""
        rulings = self.rulings
        if len({attributed for attributed, _ in rulings}) < 2:
            return 0.0
        probabilities = [probability for _, probability in rulings]
        return max(max(probabilities) - min(probabilities), 1e-9)


@dataclass(frozen=True)
class JoinedSample:
    """One sample with its record in each run, None where a run has none; `number` counts from 0 in the report."""

    number: int
    id: str
    records: tuple[ScoredSample | None, ...]
    labels: Labels | None = field(default=None, repr=False)

    @property
    def known(self) -> ScoredSample:
        """Its first record."""
        return next(record for record in self.records if record is not None)

    @property
    def lowest(self) -> float | None:
        """The lowest recall that a run gives it; None if none does."""
        scores = [record.score for record in self.records if record is not None and record.score is not None]
        return min(scores, default=None)

    @property
    def suspicions(self) -> tuple[Suspicion, ...]:
        """The marks on its texts, which are the same for all runs that read them."""
        return next((one.suspicions for one in self.records if one is not None and one.suspicions), ())

    def score_by(self, run: int) -> float | None:
        """The recall that a run gives it."""
        record = self.records[run]
        return None if record is None else record.score

    @property
    def score_by_people(self) -> float | None:
        """The share of its statements that people found attributed; None if one has no label, or there is none."""
        labels = [one.label.attributed if one.label else None for one in self.statements]
        decided = [label for label in labels if label is not None]
        return sum(decided) / len(decided) if decided and len(decided) == len(labels) else None

    @cached_property
    def statements(self) -> tuple[JoinedStatement, ...]:
        """All statements of all runs, in the order of the first run that has them; known by id and text."""
        verdicts: dict[tuple[str, str], list[Verdict | None]] = {}
        labels: dict[tuple[str, str], Label] = {}
        for number, record in enumerate(self.records):
            if record is None:
                continue
            on = self.labels.on(record) if self.labels else (None,) * len(record.statements)
            for verdict, label in zip(record.statements, on, strict=True):
                key = (verdict.id, verdict.text)
                verdicts.setdefault(key, [None] * len(self.records))[number] = verdict
                if label is not None:
                    labels.setdefault(key, label)
        return tuple(JoinedStatement(*key, tuple(found), labels.get(key)) for key, found in verdicts.items())

    @cached_property
    def gap(self) -> float:
        """The widest gap on one of its statements; one judge alone has none."""
        if len(self.records) == 1 and self.labels is None:
            return 0.0
        return max((statement.gap for statement in self.statements), default=0.0)


def joined(runs: Sequence[OpenedRun], labels: Labels | None) -> list[JoinedSample]:
    """All samples of all runs, in the order of the first run, then what only later ones have.

    A sample is known across runs by its id. Of samples of one run with the same id (all but the first failed as
    duplicates) only the first is joined with other runs; the others stand alone.
    """
    rows: list[list[ScoredSample | None]] = []
    place_of: dict[str, int] = {}
    for number, run in enumerate(runs):
        for sample, is_first in _firsts(run.samples):
            row = place_of.get(sample.id) if is_first else None
            if row is None:
                row = len(rows)
                rows.append([None] * len(runs))
            if is_first:
                place_of.setdefault(sample.id, row)
            rows[row][number] = sample
    return [_sample(number, tuple(row), labels) for number, row in enumerate(rows)]


def _firsts(samples: Sequence[ScoredSample]) -> Iterator[tuple[ScoredSample, bool]]:
    """Samples, and whether each is the first with its id."""
    seen: set[str] = set()
    for sample in samples:
        yield sample, sample.id not in seen
        seen.add(sample.id)


def _sample(number: int, records: tuple[ScoredSample | None, ...], labels: Labels | None) -> JoinedSample:
    return JoinedSample(number, next(one.id for one in records if one is not None), records, labels)
