"""Read a data set without a judge: what would be scored, what is wrong with it, and what asking would cost."""

from array import array
from bisect import insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, pairwise, takewhile
from operator import itemgetter
from typing import Protocol

import numpy as np

from airjudge import evidence, prompts
from airjudge.datasets import Entry, Source, duplicate_id
from airjudge.errors import DatasetError, DuplicateId
from airjudge.schema import (
    Message,
    Pointwise,
    Question,
    Record,
    Sample,
    Statement,
    StatementMaker,
    Suspicion,
    SuspicionKind,
)
from airjudge.screening import screen
from airjudge.statements import split_statements
from airjudge.weights import Progress, silent


class Encoder(Protocol):
    """Cuts chats into the units that are counted."""

    def encode(self, chats: Sequence[Sequence[Message]]) -> Sequence[Sequence[int]]:
        """The units of each chat, in order."""


class Utf8:
    """Counts bytes, where nobody has the judge's tokenizer: there are never more tokens than bytes."""

    def encode(self, chats: Sequence[Sequence[Message]]) -> Sequence[Sequence[int]]:
        """The bytes of each chat's messages, without what a chat template adds."""
        return ["".join(one.content for one in chat).encode() for chat in chats]


class BadLine(Record):
    """A row that cannot be scored: where it is, and why."""

    path: str
    line: int
    kind: str
    reason: str


class LongPrompt(Record):
    """A sample whose longest prompt does not fit the judge's context."""

    path: str
    line: int
    id: str
    length: int


class Marked(Record):
    """A mark on a text that looks as if it were aimed at the judge: of which sample, and where that is."""

    path: str
    line: int
    id: str
    suspicion: Suspicion


class Report(Record):
    """What a data set holds, and what asking costs, in the units of the encoder: tokens or bytes.

    `n_samples` do not count bad lines, of which `bad_lines` may list the first ones only. `n_repeated` are
    samples whose texts are, word for word, those of an earlier one. Statements and prompts include those of
    samples that a run would refuse for an id used twice. `n_requests` is a few a statement, none for an
    empty retrieval. Where a judge makes claims their number is not known before: sentences stand for them, and the
    questions that ask for them are counted. `n_marked` samples hold text that looks aimed at the judge; `marks` counts
    them by kind, `marked` may list the first ones only. `prompt_units` is the length of all prompts; `computed_units`
    is what is left of it when each prompt shares its beginning with the sample's first one or with the one before it,
    which the server computes once. `longest_prompt` includes room for the reply.
    """

    n_samples: int
    n_statements: int
    n_empty_contexts: int
    n_undefined: int
    n_repeated: int
    n_bad: int
    bad_lines: tuple[BadLine, ...]
    n_requests: int
    prompt_units: int
    computed_units: int
    longest_prompt: int
    n_too_long: int
    too_long: tuple[LongPrompt, ...]
    n_marked: int
    marks: Mapping[SuspicionKind, int]
    marked: tuple[Marked, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """How a data set is counted.

    `limit` is the longest prompt with its reply that the judge reads, in units of the encoder; None if it
    is not known. `pointwise` is what the judge is asked about a statement, `form` in which form.
    `max_listed` bounds the lists of bad lines, of long prompts and of marks; None lists all. With `evidence` each
    context that is read for a statement is asked about too, as if every statement were supported: the most it can cost.
    """

    encoder: Encoder
    maker: StatementMaker
    limit: int | None = None
    pointwise: Pointwise = field(default_factory=Pointwise)
    form: prompts.Form = prompts.plain
    max_listed: int | None = None
    evidence: bool = False


def check_data(source: Source, terms: Terms, *, first: int | None = None, on_progress: Progress = silent) -> Report:
    """Read a data set, or its `first` rows, and say what it holds; samples that share an id are read twice."""
    survey = _Survey(terms)
    entries = takewhile(lambda entry: first is None or entry.place < first, source.entries(lambda _place: False))
    for n_rows, entry in enumerate(entries, start=1):
        if isinstance(entry.value, DatasetError):
            survey.refuse(entry.place, entry.value)
        else:
            survey.add(entry, entry.value)
        on_progress(f"reading {source.name}", n_rows, 0)
    for place, error in _duplicates(source, survey.ids, survey.places):
        survey.refuse(place, error)
    return survey.report()


class _Survey:
    """Counts while a data set passes by; of a sample, its place and two digests of eight bytes stay."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self.ids, self.places, self._texts = array("Q"), array("Q"), array("Q")
        self._counts: Counter[str] = Counter()
        self._bad: list[tuple[int, BadLine]] = []
        self._too_long: list[LongPrompt] = []
        self._marks: Counter[SuspicionKind] = Counter()
        self._marked: list[Marked] = []
        self._longest = 0
        self._last_split: Sequence[int] = ()

    def refuse(self, place: int, error: DatasetError) -> None:
        """Count a bad line, and keep it if it may be listed."""
        self._counts["bad"] += 1
        self._counts["duplicate"] += isinstance(error, DuplicateId)
        bad = BadLine(path=error.path, line=error.line, kind=error.kind, reason=error.reason)
        insort(self._bad, (place, bad), key=itemgetter(0))
        del self._bad[self._n_listed(self._bad) :]

    def add(self, entry: Entry, sample: Sample) -> None:
        """Count a sample, its statements and its prompts."""
        self.ids.append(_digest(sample.id))
        self.places.append(entry.place)
        self._texts.append(_digest("\0".join((sample.user_input, sample.reference, *sample.retrieved_contexts))))
        statements = split_statements(sample, self._terms.maker)
        empty = not any(context.strip() for context in sample.retrieved_contexts)
        self._counts["statements"] += len(statements)
        self._counts["undefined"] += not statements
        self._counts["empty"] += empty
        self._add_marks(entry, sample)
        if statements and not empty:
            asked = [prompts.asked(sample, one, self._terms.pointwise) for one in statements]
            beside = _of_evidence(sample, statements) if self._terms.evidence else ()
            posed = [self._terms.form(one) for one in chain(*asked, beside)]
            self._add_prompts(entry, posed, name=sample.id)
            if self._terms.maker == "claims":
                for one in statements:
                    self._add_split(self._terms.form(prompts.split_claims(sample, one.text)))

    def _add_marks(self, entry: Entry, sample: Sample) -> None:
        found = screen(sample)
        self._counts["marked"] += bool(found)
        self._marks.update({one.kind for one in found})
        self._marked += [Marked(path=entry.path, line=entry.line, id=sample.id, suspicion=one) for one in found]
        del self._marked[self._n_listed(self._marked) :]

    def _add_split(self, question: Question) -> None:
        """Count a question for claims; one that is too long costs its sample nothing but its claims."""
        [units] = self._terms.encoder.encode([question.messages])
        self._counts["requests"] += 1
        self._counts["prompt"] += len(units)
        self._counts["computed"] += len(units) - _n_shared(self._last_split, units)
        self._last_split = units

    def _add_prompts(self, entry: Entry, asked: Sequence[Question], *, name: str) -> None:
        units = self._terms.encoder.encode([one.messages for one in asked])
        lengths = [len(one) for one in units]
        self._counts["requests"] += len(asked)
        self._counts["prompt"] += sum(lengths)
        self._counts["computed"] += sum(lengths) - sum(
            max(_n_shared(first, one) for first in (units[0], before)) for before, one in pairwise(units)
        )
        longest = max(length + one.max_tokens for length, one in zip(lengths, asked, strict=True))
        self._longest = max(self._longest, longest)
        if self._terms.limit is not None and longest > self._terms.limit:
            self._counts["too_long"] += 1
            self._too_long.append(LongPrompt(path=entry.path, line=entry.line, id=name, length=longest))
            del self._too_long[self._n_listed(self._too_long) :]

    def _n_listed(self, listed: Sized) -> int:
        most = self._terms.max_listed
        return len(listed) if most is None else most

    def report(self) -> Report:
        """All of it as a record."""
        counts = self._counts
        return Report(
            n_samples=len(self.ids) - counts["duplicate"],
            n_statements=counts["statements"],
            n_empty_contexts=counts["empty"],
            n_undefined=counts["undefined"],
            n_repeated=len(self._texts) - len(np.unique(np.array(self._texts, np.uint64))),
            n_bad=counts["bad"],
            bad_lines=tuple(one for _, one in self._bad),
            n_requests=counts["requests"],
            prompt_units=counts["prompt"],
            computed_units=counts["computed"],
            longest_prompt=self._longest,
            n_too_long=counts["too_long"],
            too_long=tuple(self._too_long),
            n_marked=counts["marked"],
            marks=dict(sorted(self._marks.items())),
            marked=tuple(self._marked),
        )


def _of_evidence(sample: Sample, statements: Sequence[Statement]) -> Iterator[Question]:
    """Questions about the contexts that are read for each statement, context by context; about an only one none."""
    read = [[number for number, _ in evidence.read_for(sample.retrieved_contexts, one.text)] for one in statements]
    for context in range(1, len(sample.retrieved_contexts) + 1):
        for one, contexts in zip(statements, read, strict=True):
            if context in contexts and len(contexts) > 1:
                yield prompts.alone(sample, one, context)


def _duplicates(source: Source, ids: "array[int]", places: "array[int]") -> Iterator[tuple[int, DuplicateId]]:
    """An error for each sample whose id an earlier one has; only rows of like digest are read again."""
    digests = np.array(ids, np.uint64)
    _, where, counts = np.unique(digests, return_inverse=True, return_counts=True)
    suspects = set(np.array(places, np.uint64)[counts[where] > 1].tolist())
    if not suspects:
        return
    first_lines: dict[str, tuple[str, int]] = {}
    for entry in source.entries(lambda place: place not in suspects):
        if isinstance(entry.value, Sample):
            here = (entry.path, entry.line)
            first = first_lines.setdefault(entry.value.id, here)
            if first != here:
                yield entry.place, duplicate_id(entry.path, entry.line, name=entry.value.id, first=first)


def _n_shared(first: Sequence[int], other: Sequence[int]) -> int:
    """How many units two prompts have in common from their beginning, by halving."""
    low, high = 0, min(len(first), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
