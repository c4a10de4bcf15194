"""Read a data set without a judge: what would be scored, what is wrong with it, and what asking would cost."""

from array import array
from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol

import numpy as np

from airjudge import prompts
from airjudge.datasets import Source
from airjudge.errors import DatasetError, DuplicateId
from airjudge.schema import Message, Record, Sample, StatementMaker
from airjudge.statements import split_statements

_SHOWN_LONG = 20


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


class Cost(Record):
    """What asking costs, in tokens or bytes.

    `computed` is what is left of `total` when the statements of a sample share the beginning of its first
    prompt, which the server computes once. `n_requests` is one a statement, none for an empty retrieval.
    """

    n_requests: int = 0
    total: int = 0
    computed: int = 0
    longest: int = 0
    longest_id: str | None = None
    n_too_long: int = 0
    too_long: tuple[LongPrompt, ...] = ()


class Report(Record):
    """What a data set holds; `bad_lines` are the first ones, `n_bad` counts all.

    `n_repeated` are samples whose texts are, word for word, those of an earlier one.
    """

    n_rows: int
    n_samples: int
    n_statements: int
    n_empty_contexts: int
    n_undefined: int
    n_repeated: int
    n_bad: int
    bad_lines: tuple[BadLine, ...]
    cost: Cost


def check_data(
    source: Source,
    encoder: Encoder,
    *,
    maker: StatementMaker,
    limit: int | None = None,
    max_bad_lines: int | None = None,
) -> Report:
    """Read all of a data set and say what it holds.

    Args:
        source: The data set; rows of which an id is used twice are read again.
        encoder: Counts the prompts.
        maker: How statements are made.
        limit: The longest prompt that the judge reads, in units of the encoder; None if it is not known.
        max_bad_lines: How many bad lines are listed; None lists all.
    """
    survey = _Survey(encoder, maker=maker, limit=limit, max_bad_lines=max_bad_lines)
    for entry in source.entries(lambda _place: False):
        survey.n_rows += 1
        if isinstance(entry.value, DatasetError):
            survey.refuse(entry.value)
        else:
            survey.add(entry.place, entry.path, line=entry.line, sample=entry.value)
    for error in _duplicates(source, survey.ids):
        survey.refuse(error)
    return survey.report()


class _Survey:
    """Counts while a data set passes by; of a sample, two digests of eight bytes stay."""

    def __init__(
        self, encoder: Encoder, *, maker: StatementMaker, limit: int | None, max_bad_lines: int | None
    ) -> None:
        self._encoder, self._maker, self._limit, self._max_bad_lines = encoder, maker, limit, max_bad_lines
        self.n_rows = self._n_samples = self._n_statements = self._n_empty = self._n_undefined = self._n_bad = 0
        self._bad_lines: list[BadLine] = []
        self._cost = Cost()
        self._texts = array("Q")
        self.ids = _Ids()

    def refuse(self, error: DatasetError) -> None:
        """Count a bad line, and list it if there is room."""
        self._n_bad += 1
        if self._max_bad_lines is None or len(self._bad_lines) < self._max_bad_lines:
            self._bad_lines.append(
                BadLine(path=error.path, line=error.line, kind=error.kind, reason=error.reason)
            )

    def add(self, place: int, path: str, *, line: int, sample: Sample) -> None:
        """Count a sample, its statements and its prompts."""
        self._n_samples += 1
        self.ids.add(place, sample.id)
        texts = (sample.user_input, sample.reference, *sample.retrieved_contexts)
        self._texts.append(_digest("\0".join(texts)))
        statements = split_statements(sample, self._maker)
        self._n_statements += len(statements)
        empty = not any(context.strip() for context in sample.retrieved_contexts)
        self._n_undefined += not statements
        self._n_empty += empty
        if statements and not empty:
            asked = [prompts.pointwise(sample, one) for one in statements]
            units = self._encoder.encode([one.messages for one in asked])
            self._cost = _with_sample(self._cost, units, sample=sample)
            reply = max(one.max_tokens for one in asked)
            self._note_length(max(map(len, units)) + reply, LongPrompt(path=path, line=line, id=sample.id, length=0))

    def _note_length(self, length: int, where: LongPrompt) -> None:
        if self._limit is None or length <= self._limit:
            return
        named = self._cost.too_long
        if len(named) < _SHOWN_LONG:
            named = (*named, where.model_copy(update={"length": length}))
        self._cost = self._cost.model_copy(update={"n_too_long": self._cost.n_too_long + 1, "too_long": named})

    def report(self) -> Report:
        """All of it as a record."""
        distinct = len(np.unique(np.frombuffer(self._texts, np.uint64))) if self._texts else 0
        return Report(
            n_rows=self.n_rows,
            n_samples=self._n_samples,
            n_statements=self._n_statements,
            n_empty_contexts=self._n_empty,
            n_undefined=self._n_undefined,
            n_repeated=len(self._texts) - distinct,
            n_bad=self._n_bad,
            bad_lines=tuple(sorted(self._bad_lines, key=lambda one: one.path)),
            cost=self._cost,
        )
