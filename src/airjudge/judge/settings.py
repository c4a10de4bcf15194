"""How a judge is asked."""

from collections.abc import Collection
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from airjudge.calibration import Calibration
from airjudge.prompts import RAGAS_TOKENS
from airjudge.schema import Pointwise, Price, Record, Sampling
from airjudge.scoring import THRESHOLD
from airjudge.wordings import Wording

WAIT_S = 300.0
"""Seconds that a running run waits for its server: a restart takes one to four minutes, and the night is long."""
LEAST_WAIT_S = 4.0
"""Seconds that it waits at least: a gateway that reloads is no reason to stop."""
LONG_CONTEXTS = "long_contexts"
"""What a signature calls the setting where it is not the usual one."""


class JudgeSettings(Record):
    """How a judge is asked.

    `method` is pointwise, reasoned, ragas, or opik, which grades; `concurrency` counts requests in flight, over all
    servers, and `auto` finds a number for each; `timeout_s` is for one request; `cache_salt` keeps the server's prefix
    cache of this run apart from other tenants'. `wait_for_server_s` is how long a server that is away is waited
    for: None means not at all before the first question, and `WAIT_S` once the run has begun. `pointwise` is
    what is asked about a statement: None means what the judge's profile says, and one phrasing without a
    prior behind a bare base URL; `profile` names the one that the user's servers run. `requests_per_minute` and
    `tokens_per_minute` hold requests back; `price` is what tokens cost, and `max_cost` what a run may cost, in
    the same currency, before it stops. `calibration` maps probabilities and sets the threshold; it must be
    this judge's. `temperature` and `seed` are sent with questions about samples, 0 for a seed of None; questions
    that prove something are always asked at temperature 0. `wording` is what the judge is told, None our words in
    English; a prior and a calibration were measured with those. `single_call_tokens` is the most that the reply of the
    single call may have. `long_contexts` says what becomes of a statement whose contexts exceed the judge
    together: it fails, or they are read in parts, any of which may support it.
    """

    method: Literal["pointwise", "reasoned", "ragas", "opik"] = "pointwise"
    concurrency: Annotated[int, Field(ge=1, le=4096)] | Literal["auto"] = "auto"
    timeout_s: float = Field(default=300.0, gt=0)
    wait_for_server_s: float | None = Field(default=None, ge=0)
    cache_salt: str | None = None
    pointwise: Pointwise | None = None
    profile: str | None = None
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    price: Price | None = None
    max_cost: float | None = Field(default=None, ge=0)
    calibration: Calibration | None = None
    temperature: float = Field(default=0.0, ge=0, le=2)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    wording: Wording | None = None
    single_call_tokens: int = Field(default=RAGAS_TOKENS, ge=1)
    long_contexts: Literal["fail", "split"] = "fail"

    @property
    def sampling(self) -> Sampling:
        """How replies about samples are drawn."""
        return Sampling(self.temperature, self.seed or 0)

    def decoding(self, left_out: Collection[str] = ()) -> dict[str, JsonValue]:
        """What of them can change a reply or a verdict, as a signature names it; without fields that are not sent."""
        how, sampling = self.pointwise or Pointwise(), self.sampling
        told: dict[str, JsonValue] = {
            **({"temperature": sampling.temperature} if sampling.temperature else {}),
            **({"seed": sampling.seed} if sampling.seed else {}),
        }
        drawn = {name: value for name, value in told.items() if name not in left_out}
        if self.method == "opik":
            return drawn
        limited = self.method == "ragas" and self.single_call_tokens != RAGAS_TOKENS
        return {
            **drawn,
            "threshold": THRESHOLD,
            **({"phrasings": how.phrasings} if how.phrasings > 1 else {}),
            **({"prior": f"{how.prior.weight:g}@{how.prior.log_odds:g}"} if how.prior else {}),
            **({"max_tokens": self.single_call_tokens} if limited else {}),
            **({LONG_CONTEXTS: self.long_contexts} if self.long_contexts != "fail" else {}),
        }

    @model_validator(mode="after")
    def _a_grade_is_of_all_contexts(self) -> Self:
        if self.method == "opik" and self.long_contexts == "split":
            msg = "a grade is of all contexts together: method opik cannot split them"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _a_limit_has_a_price(self) -> Self:
        if self.max_cost is not None and self.price is None:
            msg = "max_cost needs a price"
            raise ValueError(msg)
        return self


def check_method(method: str, *, grades: bool) -> None:
    """Refuse to have a judge grade that rules on statements, or the other way round.

    Raises:
        ValueError: With the settings that it takes.
    """
    if grades is not (method == "opik"):
        does = "rules on statements" if grades else "grades responses"
        wanted = 'GradedContextRecall needs JudgeSettings(method="opik")' if grades else "use GradedContextRecall"
        msg = f"a judge of method {method} {does}: {wanted}"
        raise ValueError(msg)
