"""What goes over the wire, as OpenAI-compatible servers write it; fields that we do not use are skipped."""

from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from airjudge.errors import JudgeForeign
from airjudge.schema import Completion, TokenAlternatives, Usage

Reply = TypeVar("Reply", bound=BaseModel)


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


@dataclass(slots=True)
class _TopLogprob:
    """One of twenty in each reply, so a plain class: a model would take twice the time to build."""

    token: str
    logprob: float
    octets: Annotated[list[int] | None, Field(alias="bytes")] = None

    def raw(self) -> bytes:
        """The token's bytes; a token that is part of a character has no text of its own."""
        return self.token.encode("utf-8", errors="surrogatepass") if self.octets is None else bytes(self.octets)


@dataclass(slots=True)
class _TokenLogprob(_TopLogprob):
    top_logprobs: list[_TopLogprob] | None = field(default_factory=list)


class _Logprobs(_Wire):
    content: list[_TokenLogprob] | None = None


class _Message(_Wire):
    content: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class _Choice(_Wire):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _PromptDetails(_Wire):
    cached_tokens: int | None = None


class _Usage(_Wire):
    prompt_tokens: int = 0
    completion_tokens: int | None = 0
    prompt_tokens_details: _PromptDetails | None = None


class ChatCompletion(_Wire):
    """The reply of /v1/chat/completions."""

    choices: list[_Choice] = Field(min_length=1)
    model: str = ""
    usage: _Usage | None = None

    def completion(self) -> Completion:
        """Its first choice; where `content` is empty, a refusal, or what a reasoning parser moved away from it."""
        choice = self.choices[0]
        message, usage = choice.message, self.usage or _Usage()
        reasoning = message.reasoning or message.reasoning_content or ""
        listed = (choice.logprobs.content if choice.logprobs else None) or []
        return Completion(
            model=self.model,
            text=message.content or message.refusal or reasoning,
            reasoning=reasoning,
            finish_reason=choice.finish_reason or "",
            tokens=tuple(
                TokenAlternatives(one.raw(), tuple((top.raw(), top.logprob) for top in one.top_logprobs or ()))
                for one in listed
            ),
            usage=Usage(
                requests=1,
                prompt_tokens=usage.prompt_tokens,
                cached_tokens=(usage.prompt_tokens_details or _PromptDetails()).cached_tokens or 0,
                completion_tokens=usage.completion_tokens or 0,
            ),
        )


class _Model(_Wire):
    id: str
    max_model_len: int | None = None


class ModelList(_Wire):
    """The reply of /v1/models; `max_model_len` is vLLM's own."""

    data: list[_Model]


class ServerVersion(_Wire):
    """The reply of vLLM's /version."""

    version: str


class TokenCount(_Wire):
    """The reply of vLLM's /tokenize."""

    count: int


def read_reply(kind: type[Reply], raw: bytes, url: str) -> Reply:
    """Read a body as one of the replies above.

    Raises:
        JudgeForeign: If it is something else; the message shows how it begins.
    """
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        start = raw[:60].decode("utf-8", errors="replace")
        msg = f"{url} answers {start!r}, not what an OpenAI-compatible server answers"
        raise JudgeForeign(msg) from error
