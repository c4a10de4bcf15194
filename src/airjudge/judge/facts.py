"""What a judge's server showed of itself before a run."""

from typing import Literal

from pydantic import JsonValue

from airjudge.schema import Record
from airjudge.signature import Provenance
from airjudge.version import __version__

Thinking = Literal["on", "off"]


class ServerFacts(Record):
    """What a server showed of itself: nothing here is taken on trust but the version.

    `enforcement` is "outlines" if it refused the probe by that name, else "other"; "unknown" where a
    proxy hides the version, and with it whether the probe is safe. Of a hosted judge it is "json_schema" or
    "none", `host` names the provider, `answers_as` the model that it says answers if that is another name,
    `left_out` what it does not take, and `thinking_tokens` the room that replies get beside themselves.
    `thinking` says of a model that thinks before it replies whether it does so under a schema too; None of others.
    """

    model: str
    max_model_len: int | None
    version: str | None
    enforcement: str
    host: str | None = None
    answers_as: str | None = None
    left_out: tuple[str, ...] = ()
    thinking_tokens: int = 0
    thinking: Thinking | None = None

    @property
    def server(self) -> str:
        """The server in one word, as a signature names it."""
        if self.host is not None:
            return self.host
        return f"vllm-{self.version}" if self.version else "unknown-server"

    def provenance(self, name: str | None, weights: str) -> Provenance:
        """Who answers: a judge by its name, or by that of its model."""
        return Provenance(
            judge=name or self.model,
            weights=weights,
            enforcement=self.enforcement,
            server=self.server,
            airjudge=__version__,
        )

    def decoding(self) -> dict[str, JsonValue]:
        """How it decodes, as a signature names it: greedily, but for what a provider does otherwise."""
        told: dict[str, JsonValue] = {
            "answers_as": self.answers_as,
            "left_out": "+".join(self.left_out),
            "thinking": self.thinking or self.thinking_tokens,
        }
        temperature: JsonValue = "default" if "temperature" in self.left_out else 0
        return {"temperature": temperature, **{name: value for name, value in told.items() if value}}


def differences(a: ServerFacts, b: ServerFacts) -> str:
    """Where two servers differ, in words; empty if they rule alike."""
    ours, theirs = a.model_dump(), b.model_dump()
    return "; ".join(f"{name} {ours[name]} and {theirs[name]}" for name in ours if ours[name] != theirs[name])
