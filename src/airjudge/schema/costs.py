"""What questions cost, and how far a run is with them."""

from collections.abc import Mapping

from pydantic import Field

from airjudge.schema.records import Record


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
