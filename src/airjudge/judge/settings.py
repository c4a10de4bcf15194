"""How a judge is asked."""

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from airjudge.calibration import Calibration
from airjudge.prompts import RAGAS_TOKENS
from airjudge.schema import Pointwise, Price, Record
from airjudge.wordings import Wording

WAIT_S = 300.0
"""Seconds that a running run waits for its server: a restart takes one to four minutes, and the night is long."""
LEAST_WAIT_S = 4.0
"""Seconds that it waits at least: a gateway that reloads is no reason to stop."""


class JudgeSettings(Record):
    """How a judge is asked.

    `method` is pointwise or ragas; `concurrency` counts requests in flight, over all servers, and `auto`
    finds a number for each; `timeout_s` is for one request; `cache_salt` keeps the server's prefix cache of
    this run apart from other tenants'. `wait_for_server_s` is how long a server that is away is waited
    for: None means not at all before the first question, and `WAIT_S` once the run has begun. `pointwise` is
    what is asked about a statement: None means what the judge's profile says, and one phrasing without a
    prior behind a bare base URL; `profile` names the one that the user's servers run. `requests_per_minute` and
    `tokens_per_minute` hold requests back; `price` is what tokens cost, and `max_cost` what a run may cost, in
    the same currency, before it stops. `calibration` maps probabilities and sets the threshold; it must be
    this judge's. `wording` is what the judge is told, None our words in English; a prior and a calibration were
    measured with those. `single_call_tokens` is the most that the reply of the single call may have.
    """

    method: Literal["pointwise", "ragas"] = "pointwise"
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
    wording: Wording | None = None
    single_call_tokens: int = Field(default=RAGAS_TOKENS, ge=1)

    def single_call(self) -> dict[str, JsonValue]:
        """What a signature says of the single call's limit, where it is made and the limit is not ours."""
        if self.method != "ragas" or self.single_call_tokens == RAGAS_TOKENS:
            return {}
        return {"max_tokens": self.single_call_tokens}

    @model_validator(mode="after")
    def _a_limit_has_a_price(self) -> Self:
        if self.max_cost is not None and self.price is None:
            msg = "max_cost needs a price"
            raise ValueError(msg)
        return self
