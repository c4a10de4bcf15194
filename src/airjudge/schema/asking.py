"""A question to a judge, and what a backend brings back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from airjudge.schema.costs import Usage


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
class Sampling:
    """How a reply is drawn; at temperature 0 it is the most probable one."""

    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """One request to a judge: a chat, the schema of its reply, the reply's length limit, and how it is drawn."""

    messages: tuple[Message, ...]
    schema: ReplySchema
    max_tokens: int
    top_logprobs: int = 0
    sampling: Sampling = Sampling()


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
