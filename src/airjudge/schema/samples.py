"""Samples, their statements, and what a judge says of them."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue

from airjudge.schema.records import Record

Status = Literal["scored", "undefined", "failed"]
Splitter = Literal["given", "sentences"]
"""Makers of statements that ask no judge."""
StatementMaker = Literal[Splitter, "claims"]
ReasonsPolicy = Literal["none", "misses", "all"]
SuspicionKind = Literal["template_tokens", "hidden_characters", "instruction", "verdict", "section", "encoded"]
"""Tokens of a chat template; characters that nobody sees; orders to a judge or model; a reply like ours; a heading like
ours; one of these in base64 or hex."""


class Statement(Record):
    """One claim of a reference, the unit that a judge rules on."""

    id: str
    text: str


class Sample(Record):
    """One question with its reference and what the retriever brought back.

    `statements` are those the data set carries, None if it carries none; `group` is the unit
    of independence for intervals; `metadata` keeps the columns that we do not know. `response` is what the system
    under test answered; `reference_contexts` and the ids of contexts are what some metrics compare. These four
    are None, and the texts before them empty, where the metric does not read them.
    """

    id: str
    user_input: str
    reference: str
    retrieved_contexts: tuple[str, ...]
    statements: tuple[Statement, ...] | None = None
    response: str | None = None
    reference_contexts: tuple[str, ...] | None = None
    retrieved_context_ids: tuple[str, ...] | None = None
    reference_context_ids: tuple[str, ...] | None = None
    group: str | None = None
    metadata: Mapping[str, JsonValue] = {}


class Claims(Record):
    """How the statements of a sample came of the claims that a judge wrote out of its reference.

    Of its statements `n_claims` are claims, and `n_sentences` are sentences that no claims stand for.
    `n_invented` claims were dropped because they are not of the reference: the sample is worth a look.
    `error` is the kind of the first reply, in the order of sentences, that gave no claim which can be read.
    """

    n_claims: int = 0
    n_sentences: int = 0
    n_invented: int = 0
    error: str | None = None


class Echoes(Record):
    """How the items of a reply on all statements at once fit the statements of the reference.

    Of the statements `n_once` are told by one item, `n_split` by several that are parts of it, `n_repeated` by
    several of which one says nothing new, and `n_missing` by none, or too little of them: those are asked about one
    by one. Of the `n_items` items `n_invented` are none of the statements: made up, or several in one; each other
    item is a statement or a part of one. `coverage` is the share of statements that the items tell, in [0, 1]; None
    if there is no statement. `error` is the kind of what cut the reply or made it useless, which is no failure:
    the items that are whole count, and what they leave out is missing.
    """

    n_items: int = Field(ge=0)
    n_once: int = Field(ge=0)
    n_split: int = Field(ge=0)
    n_repeated: int = Field(ge=0)
    n_invented: int = Field(ge=0)
    n_missing: int = Field(ge=0)
    coverage: float | None
    error: str | None = None

    @property
    def n_statements(self) -> int:
        """Statements of the reference, each of which is one of four kinds."""
        return self.n_once + self.n_split + self.n_repeated + self.n_missing


class Made(Record):
    """The statements of a sample, before any is judged; `claims` is None if no judge was asked for them.

    `echoes` is the account of a single call that was made on all of them before: it is not made again.
    """

    statements: tuple[Statement, ...]
    claims: Claims | None = None
    echoes: Echoes | None = None


class Prior(Record):
    """How a judge's verdicts are freed of what it would say without contexts.

    `weight` is the share of that which is taken off, in (0, 1]; `log_odds` is what it comes to on average
    (natural log of p(1)/p(0)), which stays: only what is peculiar to a statement goes.
    """

    weight: float = Field(gt=0, le=1)
    log_odds: float


class Pointwise(Record):
    """What a judge is asked about one statement: the number of phrasings, whose verdicts are averaged, and a prior.

    More than one question buys a small judge accuracy; it is measured for each judge.
    """

    phrasings: Literal[1, 2] = 1
    prior: Prior | None = None


class Support(Record):
    """Whether one retrieved context, read alone, supports an attributed statement.

    `context` is its number among the sample's, from 1. `probability` is that of `attributed` being true, in [0, 1]: the
    judge's own, which no calibration maps; None where its reply gives none. `attributed` is None only if the
    question failed.
    """

    context: int = Field(ge=1)
    probability: float | None
    attributed: bool | None


class Verdict(Record):
    """What one judge ruled on one statement.

    `probability` is that of `attributed` being true, in [0, 1], conditional on the schema;
    None where the method's reply gives none. `attributed` is None only if the question failed.
    `support` has an entry for each context that the judge read for an attributed statement, by number; None where
    nobody asked. If none of several is attributed, it takes more than one of them to support the statement. A lone
    entry is the only context that the judge read: its probability is the verdict's own. `n_parts` is in how many
    parts the contexts were read where they exceed the judge together; None where they were read at once.
    """

    id: str
    text: str
    attributed: bool | None
    probability: float | None = None
    reason: str | None = None
    support: tuple[Support, ...] | None = None
    n_parts: int | None = Field(default=None, ge=2)

    @property
    def most_probable(self) -> Support | None:
        """The context that supports it with the highest probability, of equal ones the first; None if none has any."""
        known = [one for one in self.support or () if one.probability is not None]
        return max(known, key=lambda one: one.probability or 0.0, default=None)


class Chunks(Record):
    """How many of a sample's contexts support a statement alone, and how early they come.

    A context supports if it is attributed in the support of some statement. Of the `n_contexts` those under the
    numbers in `blank` say nothing and do not count; `n_supporting` of the others support. The figures are those
    of `airjudge.chunks`; None if no context counts, or if a question failed that could have changed them.
    """

    n_contexts: int = Field(ge=0)
    blank: tuple[int, ...] = ()
    n_supporting: int = Field(ge=0)
    precision: float | None
    average_precision: float | None
    reciprocal_rank: float | None


class GradedExample(Record):
    """A graded case that a judge is shown, under its title; of its grade the nearest step."""

    title: str
    user_input: str
    response: str
    reference: str
    retrieved_contexts: tuple[str, ...]
    value: float = Field(ge=0, le=1)
    reason: str


class SampleError(Record):
    """Why a sample has no score: a kind for machines, a message for people."""

    kind: str
    message: str


class Suspicion(Record):
    """A text of a sample that looks as if it were aimed at the judge: a mark for people, which changes no score.

    `place` is the text's field, such as `retrieved_contexts[2]`, counted from 0; `excerpt` is what stands there, in at
    most 80 characters on one line, all of which print.
    """

    kind: SuspicionKind
    place: str
    excerpt: str


class ScoredSample(Record):
    """One sample after judging; one line of `samples.jsonl`.

    `score` is recall in [0, 1], None unless `status` is `scored`. A failed sample keeps the
    verdicts that it has. `empty_contexts` marks a 0 that no judge was asked for. `claims` tells how a judge
    made the statements, None if none did. `echoes` is the account of its single call, None where none was made.
    `chunks` says what its contexts are worth, None unless it is scored and somebody asked.
    `metadata` holds the input columns that the run was told to keep. A graded sample has no statements: its `score` is
    a grade, no recall, with a `reason` of its own. `suspicions` are marks on its texts, which change nothing else.
    """

    id: str
    score: float | None
    status: Status
    error: SampleError | None = None
    statements: tuple[Verdict, ...] = ()
    group: str | None = None
    empty_contexts: bool = False
    claims: Claims | None = None
    echoes: Echoes | None = None
    chunks: Chunks | None = None
    metadata: Mapping[str, JsonValue] = {}
    reason: str | None = None
    suspicions: tuple[Suspicion, ...] = ()
