"""The bodies that vLLM 0.32 sends, field by field."""

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.stub.decoder import MASKED, TOKENS, Decoded, Step, token_text

Body = dict[str, object]

JSON_OBJECT_REFUSED = "Outlines structured outputs backend does not support json_object specifications"

_serial = itertools.count(1)


@dataclass(frozen=True, slots=True)
class PromptCost:
    """The tokens of a prompt, and how many of them the prefix cache had; None if that is not shown."""

    prompt_tokens: int
    cached_tokens: int | None


@dataclass(frozen=True, slots=True)
class ReplyMessage:
    """What stands where in a reply's message; a thinking model's answer may miss `content`."""

    content: str | None
    finish_reason: str
    reasoning: str | None = None
    reasoning_content: str | None = None


def error_body(message: str, code: int, kind: str, *, param: str | None = None) -> Body:
    """Build an error as vLLM words it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def over_length_message(prompt_tokens: int, max_model_len: int) -> str:
    """Say that a prompt does not fit, in vLLM's words."""
    return (
        f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains "
        f"{prompt_tokens} input tokens, which exceeds this limit even without any output tokens. "
        "Please reduce the length of the input prompt."
    )


def model_list(names: tuple[str, ...], max_model_len: int) -> Body:
    """Build the reply of /v1/models."""
    cards: list[Body] = [
        {
            "id": name,
            "object": "model",
            "created": int(time.time()),
            "owned_by": "vllm",
            "root": name,
            "parent": None,
            "max_model_len": max_model_len,
            "permission": [],
        }
        for name in names
    ]
    return {"object": "list", "data": cards}


def completion(model: str, version: str, *, message: ReplyMessage, cost: PromptCost, made: Decoded) -> Body:
    """Build the reply of /v1/chat/completions, without logprobs."""
    content: Body = {"role": "assistant", "content": message.content, "refusal": None, "annotations": None}
    content |= {"audio": None, "function_call": None, "reasoning": message.reasoning}
    if message.reasoning_content is not None:
        content["reasoning_content"] = message.reasoning_content
    details = None if cost.cached_tokens is None else {"cached_tokens": cost.cached_tokens}
    return {
        "id": f"chatcmpl-stub-{next(_serial)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": content,
                "logprobs": None,
                "finish_reason": message.finish_reason,
                "stop_reason": None,
                "token_ids": None,
            }
        ],
        "service_tier": None,
        "system_fingerprint": f"vllm-{version}-5tub0000",
        "usage": {
            "prompt_tokens": cost.prompt_tokens,
            "total_tokens": cost.prompt_tokens + len(made.steps),
            "completion_tokens": len(made.steps),
            "prompt_tokens_details": details,
            "completion_tokens_details": None,
        },
        "prompt_logprobs": None,
    }


def logprobs(made: Decoded, top: int) -> Body:
    """Build a choice's `logprobs`; forbidden tokens fill up the list, as they do in vLLM."""
    # Long replies repeat few steps: each is worked out once. An automaton's states outlive the reply.
    worked_out: dict[tuple[int, int, float | None], Body] = {}
    content = []
    for step in made.steps:
        key = (step.token, id(step.allowed), step.yes)
        if key not in worked_out:
            worked_out[key] = _step_logprobs(step, top)
        content.append(worked_out[key])
    return {"content": content}


def _step_logprobs(step: Step, top: int) -> Body:
    known = dict(step.logprobs())
    best = [step.token, *(token for token in itertools.islice(known, top) if token != step.token)][:top]
    forbidden = (token for token in TOKENS if token not in known)
    best += itertools.islice(forbidden, top - len(best))
    entry = _logprob(step.token, known[step.token])
    entry["top_logprobs"] = [_logprob(token, known.get(token, MASKED)) for token in best]
    return entry


def _logprob(token: int, value: float) -> Body:
    text = token_text(token)
    return {"token": text, "logprob": value, "bytes": list(text.encode())}


def metrics(model: str, values: Mapping[str, tuple[str, float]]) -> str:
    """Build the reply of /metrics: name to (type, value), in Prometheus' text form."""
    lines = []
    for name, (kind, value) in values.items():
        lines += [f"# HELP {name} As in vLLM.", f"# TYPE {name} {kind}"]
        lines.append(f'{name}{{engine="0",model_name="{model}"}} {float(value)}')
    return "\n".join(lines) + "\n"
