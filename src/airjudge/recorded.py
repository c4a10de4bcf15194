"""Recorded verdicts, of any tool or person, as a run like any other: verified, exported and compared unchanged.

A recorded score becomes the probability of its verdict only if all scores of the judge can be probabilities:
each in [0, 1], and at least .5 exactly where the verdict is positive, since a run's verdicts follow from its
probabilities. One score that contradicts its verdict shows another scale or another threshold, so none is
taken then: a choice among them would leave the scores of easy statements. How many there were is told.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from airjudge.datasets import Source, labels_digest, open_source, read_labels
from airjudge.datasets.refusal import short
from airjudge.errors import InputError, NotRecorded
from airjudge.journal import Row
from airjudge.labels import Label, Labels
from airjudge.metrics import record
from airjudge.run import Origin, RunHeader, RunSettings, numbered_samples, row_of, write_records
from airjudge.run.asking import columns
from airjudge.schema import Record, Sample, ScoredSample, Signature, Statement, StatementMaker, Verdict
from airjudge.scoring import THRESHOLD
from airjudge.statements import split_statements
from airjudge.version import __version__

UNKNOWN: Final = "unknown"


class ImportSettings(Record):
    """How recorded verdicts become a run.

    `who` picks one of those who ruled in the file; `name` is what the judge is called, None for `who` or the
    name of the file. `statements` says where the statements of the data come from; `keep` and `by` are those
    of `RunSettings`.
    """

    who: str | None = None
    name: str | None = None
    statements: StatementMaker = "given"
    keep: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    overwrite: bool = False


class Recorded(Record):
    """What an import found.

    `n_taken` verdicts stand in the run, `n_undecided` have no ruling, `n_foreign` are on no statement of the
    data, like `foreign_example`. `n_samples_without` samples have no verdict at all. Of `n_scores` recorded
    scores `n_scores_unfit` are no probabilities of their verdicts: if there is one, no score was taken.
    """

    judge: str
    hosted: bool | None
    n_verdicts: int
    n_taken: int
    n_undecided: int
    n_foreign: int
    foreign_example: str | None
    n_samples_without: int
    n_scores: int
    n_scores_unfit: int

    @property
    def takes_scores(self) -> bool:
        """Whether the scores are the probabilities of the run."""
        return self.n_scores > 0 and self.n_scores_unfit == 0


def import_verdicts(
    verdicts: Path, out: Path, *, data: Sequence[str] | Source | None = None, settings: ImportSettings | None = None
) -> tuple[RunHeader, Recorded]:
    """Make a run of recorded verdicts.

    Args:
        verdicts: What `read_labels` reads.
        out: The folder of the run.
        data: The data set that the verdicts are on. None takes the file itself if it is one; else the samples
            are those that have a verdict, with the statements that were ruled on.
        settings: How.

    Raises:
        InputError: If a file cannot be read, no verdict is on a statement of the data, or the folder holds a run.
        StorageFailed: If the run cannot be written.
    """
    settings = settings or ImportSettings()
    labels = read_labels(verdicts, who=settings.who)
    source = _source(verdicts) if data is None else open_source(data) if isinstance(data, Sequence) else data
    if source is None and (settings.keep or settings.by):
        msg = f"{verdicts} holds rulings alone, and no columns of a data set"
        raise InputError(msg, "Name the data set that the verdicts are on: --data FILE")
    judge = settings.name or settings.who or verdicts.name.partition(".")[0]
    scores = _Scores(one for found in labels.by_sample.values() for one in found)
    work = _Import(labels, judge, settings, takes_scores=scores.n > 0 and scores.n_unfit == 0)
    rows = list(_rows_of_labels(work, verdicts) if source is None else _rows_of_source(work, source))
    found = work.found(scores)
    if not found.n_taken and not found.n_undecided:
        msg = f"none of the {found.n_verdicts} verdicts is on a statement of the data, like {found.foreign_example}"
        raise InputError(msg, "Their ids and texts must be those of the data; name it with --data.")
    header = write_records(rows, out, _origin(found, verdicts, source, settings=settings), overwrite=settings.overwrite)
    return header, found


def _source(verdicts: Path) -> Source | None:
    """The file of verdicts as a data set, if it is one in our own format."""
    try:
        source = open_source([str(verdicts)])
    except InputError:  # one ruling a line: there is no question and no context in it
        return None
    return source if "statements" in source.mapping else None


class _Scores:
    """Counts recorded scores, and those that are no probabilities of their verdicts."""

    def __init__(self, labels: Iterable[Label]) -> None:
        self.n = self.n_unfit = 0
        for one in labels:
            if one.score is not None and one.attributed is not None:
                self.n += 1
                fits = one.probability is not None and (one.probability >= THRESHOLD) == one.attributed
                self.n_unfit += not fits


@dataclass(slots=True)
class _Import:
    """Turns samples into records by the labels on them, and counts what became of the labels."""

    labels: Labels
    judge: str
    settings: ImportSettings
    takes_scores: bool
    n_taken: int = 0
    n_undecided: int = 0
    n_samples_without: int = 0
    foreign: Counter[str] = field(default_factory=Counter)
    _seen: set[str] = field(default_factory=set)

    def recorded(self, sample: Sample, statements: Sequence[Statement]) -> ScoredSample:
        """The record of a sample: a verdict where one is recorded."""
        self._seen.add(sample.id)
        found = self.labels.on(_unjudged(sample, statements))
        known = [one for one in found if one is not None]
        used = set(map(id, known))
        own = self.labels.by_sample.get(sample.id, ())
        self._count_foreign(sample.id, (one for one in own if id(one) not in used))
        n_ruled = sum(one.attributed is not None for one in known)
        self.n_taken += n_ruled
        self.n_undecided += len(known) - n_ruled
        self.n_samples_without += not n_ruled
        missing = NotRecorded(self.judge, len(statements) - n_ruled, len(statements))
        outcomes = [self._verdict(one, label) or missing for one, label in zip(statements, found, strict=True)]
        return record(sample, statements, outcomes)

    def _verdict(self, statement: Statement, label: Label | None) -> Verdict | None:
        if label is None or label.attributed is None:
            return None
        probability = label.probability if self.takes_scores else None
        fields = {**statement.model_dump(), "attributed": label.attributed, "probability": probability}
        return Verdict(**fields, reason=label.reason)

    def _count_foreign(self, sample: str, labels: Iterable[Label]) -> None:
        for one in labels:
            told = one.id if one.id is not None else one.text if one.text is not None else one.named
            self.foreign[f"the statement {short(told)} of the sample {short(sample)}"] += 1

    def found(self, scores: _Scores) -> Recorded:
        """What became of all labels, when all samples are recorded."""
        for sample, labels in self.labels.by_sample.items():
            if sample not in self._seen:
                self._count_foreign(sample, labels)
        return Recorded(
            judge=self.judge,
            hosted=self.labels.hosted,
            n_verdicts=sum(map(len, self.labels.by_sample.values())),
            n_taken=self.n_taken,
            n_undecided=self.n_undecided,
            n_foreign=self.foreign.total(),
            foreign_example=next(iter(self.foreign), None),
            n_samples_without=self.n_samples_without,
            n_scores=scores.n,
            n_scores_unfit=scores.n_unfit,
        )


def _rows_of_source(work: _Import, source: Source) -> Iterator[Row]:
    """A row for each place of a data set."""
    carried = RunSettings(keep=work.settings.keep, by=work.settings.by).carried
    source.check_carried(carried)
    for entry, sample in numbered_samples(source):
        if isinstance(sample, ScoredSample):
            yield Row(entry.place, sample)
            continue
        scored = work.recorded(sample, split_statements(sample, work.settings.statements))
        kept = {name: one for name, one in columns(sample).items() if name in carried}
        yield row_of(entry.place, sample, scored.model_copy(update={"metadata": kept}))


def _rows_of_labels(work: _Import, verdicts: Path) -> Iterator[Row]:
    """A row for each sample that has a verdict, where nothing else is known of it.

    Raises:
        InputError: If a statement is known by an id alone.
    """
    for place, (name, labels) in enumerate(work.labels.by_sample.items()):
        group = work.labels.groups.get(name)
        sample = Sample(id=name, user_input="", reference="", retrieved_contexts=(), group=group)
        yield Row(place, work.recorded(sample, _statements_of(labels, verdicts)))


def _statements_of(labels: Sequence[Label], verdicts: Path) -> list[Statement]:
    """The statements that labels are on; without ids of their own they are numbered from 1, as in a data set."""
    has_ids = all(one.id is not None for one in labels)
    statements = []
    for number, one in enumerate(labels, start=1):
        text = one.text if one.text is not None else one.named
        if text is None:
            msg = f"{verdicts} does not tell the text of the statement {short(one.id)} of {short(one.sample)}"
            raise InputError(msg, "Name the data set that the verdicts are on: --data FILE")
        statements.append(Statement(id=one.id if has_ids and one.id is not None else str(number), text=text))
    return statements


def _unjudged(sample: Sample, statements: Sequence[Statement]) -> ScoredSample:
    """A sample with its statements and no verdict: what labels are looked up for."""
    unruled = tuple(Verdict(id=one.id, text=one.text, attributed=None) for one in statements)
    return ScoredSample(id=sample.id, score=None, status="undefined", statements=unruled)


def _origin(found: Recorded, verdicts: Path, source: Source | None, *, settings: ImportSettings) -> Origin:
    digest = labels_digest(verdicts)
    told: dict[str, JsonValue] = {
        "statements": settings.statements,
        "keep": list[JsonValue](settings.keep),
        "by": list[JsonValue](settings.by),
        "recorded": {"file": verdicts.name, "sha256": digest, "from": settings.who, **found.model_dump(mode="json")},
    }
    signature = Signature(
        judge=found.judge,
        weights="unverified",
        method="recorded",
        prompt=UNKNOWN,
        statements=settings.statements,
        decoding=UNKNOWN,
        enforcement="none",
        server="recorded",
        airjudge=__version__,
    )
    return Origin(
        data=source.name if source else verdicts.name,
        data_sha256=source.digest() if source else digest,
        signature=signature,
        settings=told,
        mapping=dict(source.mapping) if source else {},
        inputs=[str(path) for path in source.paths] if source else [],
    )
