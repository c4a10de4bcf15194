"""A hosted judge: any provider behind an OpenAI-compatible API, asked by standard fields alone.

Providers differ in the fields that they take. A form says which of them are sent; it begins with all, and the
proof before a run takes away what the provider refuses (`judge.hosted`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from airjudge.schema import Question

MOST_LOGPROBS = 20
"""OpenAI's own limit of `top_logprobs`."""
OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "response_format": ("response_format",),
    "logprobs": ("logprobs", "top_logprobs"),
    "seed": ("seed",),
    "temperature": ("temperature",),
}
"""What a form may leave out, each with the fields of a request that go with it."""


@dataclass(frozen=True, slots=True)
class HostedForm:
    """What a request looks like to one provider and model.

    `left_out` are keys of `OPTIONAL`; `length_field` is how the reply's limit is called; `thinking_tokens` is
    added to that limit, where a model thinks before it replies.
    """

    left_out: frozenset[str] = frozenset()
    length_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    thinking_tokens: int = 0
    most_logprobs: int = MOST_LOGPROBS


def hosted_body(question: Question, *, model: str, form: HostedForm | None = None) -> dict[str, JsonValue]:
    """The body of a request to `/v1/chat/completions`, also as a line of a batch file holds it.

    Args:
        question: In its object form, from `prompts.as_object`.
        model: The provider's name of the model.
        form: What the provider takes; all standard fields if it is not known.
    """
    form, schema = form or HostedForm(), question.schema
    inner: dict[str, JsonValue] = {"name": schema.name, "strict": True, "schema": dict(schema.json_schema)}
    body: dict[str, JsonValue] = {
        "model": model,
        "messages": [{"role": one.role, "content": one.content} for one in question.messages],
        "response_format": {"type": "json_schema", "json_schema": inner},
        form.length_field: question.max_tokens + form.thinking_tokens,
        "temperature": 0,
        "seed": 0,
    }
    if question.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": min(question.top_logprobs, form.most_logprobs)}
    for name in form.left_out:
        for field in OPTIONAL[name]:
            body.pop(field, None)
    return body


def encoded(body: Mapping[str, JsonValue]) -> bytes:
    """A body as it goes over the wire."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", errors="replace")
