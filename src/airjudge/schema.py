"""The records that all layers share: frozen, and strict about fields that are ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

Status = Literal["scored", "undefined", "failed"]
Splitter = Literal["given", "sentences"]
"""Makers of statements that ask no judge."""
StatementMaker = Literal[Splitter, "claims"]
ReasonsPolicy = Literal["none", "misses", "all"]


class Record(BaseModel):
    """A frozen record of ours; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


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
    `error` is the kind of what kept the judge from writing any claim that can be read.
    """

    n_claims: int = 0
    n_sentences: int = 0
    n_invented: int = 0
    error: str | None = None


class Made(Record):
    """The statements of a sample, before any is judged; `claims` is None if no judge was asked for them."""

    statements: tuple[Statement, ...]
    claims: Claims | None = None


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


class Verdict(Record):
    """What one judge ruled on one statement.

    `probability` is that of `attributed` being true, in [0, 1], conditional on the schema;
    None where the method's reply gives none. `attributed` is None only if the question failed.
    """

    id: str
    text: str
    attributed: bool | None
    probability: float | None = None
    reason: str | None = None


class SampleError(Record):
    """Why a sample has no score: a kind for machines, a message for people."""

    kind: str
    message: str


class ScoredSample(Record):
    """One sample after judging; one line of `samples.jsonl`.

    `score` is recall in [0, 1], None unless `status` is `scored`. A failed sample keeps the
    verdicts that it has. `empty_contexts` marks a 0 that no judge was asked for. `claims` tells how a judge
    made the statements, None if none did. `metadata` holds the input columns that the run was told to keep.
    """

    id: str
    score: float | None
    status: Status
    error: SampleError | None = None
    statements: tuple[Verdict, ...] = ()
    group: str | None = None
    empty_contexts: bool = False
    claims: Claims | None = None
    metadata: Mapping[str, JsonValue] = {}


class Usage(Record):
    """Token and request counts of one or more requests, as the server reported them."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Add counts field by field."""
        return Usage(
            requests=self.requests + other.requests,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


class Cost(Record):
    """An amount of money, in a currency that may stay unnamed."""

    amount: float
    currency: str = ""

    def __str__(self) -> str:
        """Give the amount to four digits, and the currency."""
        return f"{self.amount:.4g} {self.currency}".rstrip()


class Price(Record):
    """What a million tokens cost, in a currency that may stay unnamed; cached ones are counted in full."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    currency: str = ""

    def cost(self, usage: Usage) -> Cost | None:
        """What a usage costs; None for requests of which the server told no tokens."""
        if usage.requests and not usage.prompt_tokens:
            return None
        millionths = usage.prompt_tokens * self.input + usage.completion_tokens * self.output
        return Cost(amount=millionths / 1e6, currency=self.currency)


class ServerUse(Record):
    """What one server of a judge was asked in one entry, and what went wrong with it.

    `faults` are by kind and count tries, not questions: most were asked again. `absences` counts how often
    it was away, `in_flight` is the limit that it stood at in the end.
    """

    base_url: str
    usage: Usage = Usage()
    faults: Mapping[str, int] = {}
    absences: int = 0
    in_flight: int = 0


class RunCounts(Record):
    """How far a run is: what a display or a log line needs, and no text of the data.

    `n_samples` counts all finished samples, of which `n_restored` came from an earlier start of the run;
    `n_statements` counts their statements, and those of samples under way that have a verdict. `n_total` is
    None where the input does not tell its length. `failures` are by kind. `usage` is that of this start
    alone, as is `seconds`.
    """

    n_samples: int = 0
    n_restored: int = 0
    n_total: int | None = None
    n_statements: int = 0
    failures: Mapping[str, int] = {}
    usage: Usage = Usage()
    seconds: float = 0.0


class Signature(Record):
    """What makes two scores comparable: everything that can change a verdict but the data."""

    judge: str
    weights: str
    method: str
    prompt: str
    statements: StatementMaker
    decoding: str
    enforcement: str
    server: str
    airjudge: str

    def __str__(self) -> str:
        """Give all parts in one line, in a fixed order; of the weights' hash the first twelve digits."""
        return (
            f"{self.judge}@{self.weights[:12]} {self.method}#{self.prompt} statements={self.statements} "
            f"{self.decoding} enforced={self.enforcement} {self.server} airjudge-{self.airjudge}"
        )


class Rates(Record):
    """How fast a run went, per second of wall time; computed prompt tokens are those not in the server's cache."""

    verdicts: float
    samples: float
    computed_prompt_tokens: float


class Slice(Record):
    """The samples that share one value of a metadata column; the fields mean what they mean in `Summary`.

    `value` is the column's value as text; `(none)` where a sample has none, `(other)` for the samples
    of all values beyond the first fifty.
    """

    column: str
    value: str
    n: int
    n_scored: int
    n_undefined: int
    n_failed: int
    mean: float | None
    ci95: tuple[float, float] | None
    micro_mean: float | None
    n_statements: int


class ClaimCounts(Record):
    """How the statements of all samples came of claims that a judge wrote; the fields mean what they mean in `Claims`.

    Of the `n_samples` whose claims were asked for, `n_without` have none: they are judged by their sentences.
    """

    n_samples: int
    n_without: int
    n_claims: int
    n_sentences: int
    n_invented: int
    errors: Mapping[str, int]


class Abstained(Record):
    """Verdicts that a calibration leaves to people, and the range that they allow recall; of scored samples alone.

    `band` holds their probabilities, ends included. `bounds` are what the summary's `mean` would be if all of them
    were missed, and if all were attributed; `micro_bounds` the same of its `micro_mean`.
    """

    band: tuple[float, float]
    n_statements: int
    n_samples: int
    bounds: tuple[float, float] | None
    micro_bounds: tuple[float, float] | None


class Summary(Record):
    """Many samples in a few numbers; `mean` and its interval are over scored samples. Undefined is None.

    `ci95` is a bootstrap interval over groups. `bounds` are what `mean` would be if every
    statement without verdict were missed, and if every one were attributed. `n_statements` are those
    of the scored samples, which `micro_mean` is over; `n_verdicts` and `n_unjudged` are statements of
    all samples, with and without a verdict. `sample_coverage` is the share of samples that are scored,
    `statement_coverage` the share of known statements that have a verdict; `abstained` is there if the
    run's calibration has a band. It is made of samples
    alone: what they cost stands beside it, so that runs with equal results have equal summaries.
    """

    n: int
    n_scored: int
    n_undefined: int
    n_failed: int
    mean: float | None
    ci95: tuple[float, float] | None
    micro_mean: float | None
    micro_ci95: tuple[float, float] | None
    bounds: tuple[float, float] | None
    n_statements: int
    n_verdicts: int
    n_unjudged: int
    sample_coverage: float | None
    statement_coverage: float | None
    n_empty_contexts: int
    failures: Mapping[str, int]
    claims: ClaimCounts | None = None
    abstained: Abstained | None = None
    slices: tuple[Slice, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, eq=False)
class ReplySchema:
    """A JSON schema with a name; there are few, none depends on a sample, and each is itself alone.

    An empty schema asks for nothing: the reply is free text. With `by_provider` a hosted provider writes the
    reply, with white space and escapes of its own.
    """

    name: str
    json_schema: Mapping[str, JsonValue]
    by_provider: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """One request to a judge: a chat, the schema of its reply and the reply's length limit."""

    messages: tuple[Message, ...]
    schema: ReplySchema
    max_tokens: int
    top_logprobs: int = 0


@dataclass(frozen=True, slots=True)
class TokenAlternatives:
    """One generated token and the most probable ones in its place, as (bytes, logprob)."""

    token: bytes
    alternatives: tuple[tuple[bytes, float], ...]


@dataclass(frozen=True, slots=True)
class Completion:
    """What a backend brought back: raw text, why it ended, its tokens, its cost, and which model says it wrote it.

    `reasoning` is what a server keeps apart from the text, or moved it to: then both are the same.
    """

    text: str
    finish_reason: str
    tokens: tuple[TokenAlternatives, ...]
    usage: Usage
    model: str = ""
    reasoning: str = ""
