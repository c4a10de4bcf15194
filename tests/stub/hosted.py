"""A stub provider: a hosted, OpenAI-compatible API that is no vLLM, strict about fields and schemas.

It has no /version, no /tokenize and no /metrics; a field that is not OpenAI's is refused by name, and a
`json_schema` has to be what OpenAI's strict mode takes. Decoding is the stub's own, under outlines_core.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from tests.stub.engine import Refusal, StubConfig
from tests.stub.faults import Fault, Twist
from tests.stub.replies import Body
from tests.stub.server import Call, Stub

STANDARD = {
    "model", "messages", "response_format", "max_completion_tokens", "max_tokens", "temperature", "top_p", "seed", "n",
    "logprobs", "top_logprobs", "presence_penalty", "frequency_penalty", "stop", "user",
}  # fmt: skip


@dataclass
class HostedConfig(StubConfig):
    """How the provider behaves; may be changed while it runs.

    `refuses` are fields that it answers 400 to, in OpenAI's words, or with `vague` in words that name
    nothing. `schema` says what becomes of a reply schema: enforced, ignored with HTTP 200, or refused.
    `snapshot` is the model that it says answers. `shows_logprobs` and `shows_usage` false leave them out
    with HTTP 200. `thinks` is the number of tokens that a reply takes before its first visible one. `path`
    is where the API lies.
    """

    api_key: str | None = "sk-hosted-secret"
    model: str = "gpt-stub"
    refuses: tuple[str, ...] = ()
    vague: bool = False
    schema: Literal["enforced", "ignored", "refused"] = "enforced"
    snapshot: str = ""
    shows_logprobs: bool = True
    shows_usage: bool = True
    thinks: int = 0
    path: str = "/v1"


class HostedStub(Stub):
    """A provider on 127.0.0.1."""

    config: HostedConfig

    def __init__(self, config: HostedConfig | None = None, *faults: Fault) -> None:
        """Start with no thread."""
        super().__init__(config or HostedConfig(), *faults)

    @property
    def base_url(self) -> str:
        """The address as the provider documents it."""
        return f"http://127.0.0.1:{self.port}{self.config.path}"

    def _body(self, call: Call, path: str, twist: Twist) -> Body:
        route = f"{call.record.method} {path.removeprefix(self.config.path)}"
        if not path.startswith(self.config.path) or route not in {"POST /chat/completions", "GET /models"}:
            nowhere = f"Invalid URL ({call.record.method} {path})"
            raise _refusal(404, nowhere)
        if not self._has_key(call.record):
            wrong = "Incorrect API key provided."
            raise _refusal(401, wrong, code="invalid_api_key")
        if route == "GET /models":
            return {"object": "list", "data": [{"id": self.config.model, "object": "model", "owned_by": "stub"}]}
        body = dict(call.record.body)
        self._check(body)
        if self.config.schema == "ignored":
            body.pop("response_format", None)
        if self._is_thought_short(body):
            twist = Twist(say="", finish_reason="length")
        assert call.prompt is not None
        return self._as_provider(self._engine.chat(body, call.prompt, twist))

    def _check(self, body: Mapping[str, object]) -> None:
        """Refuse what a strict provider refuses.

        Raises:
            Refusal: With OpenAI's words.
        """
        if body.get("model") != self.config.model:
            message = f"The model `{body.get('model')}` does not exist or you do not have access to it."
            raise _refusal(404, message, code="model_not_found")
        for name in body:
            if name not in STANDARD:
                unknown = f"Unrecognized request argument supplied: {name}"
                raise _refusal(400, unknown)
            if name in self.config.refuses:
                raise self._refused(name)
        wanted = body.get("response_format")
        if isinstance(wanted, dict):
            if self.config.schema == "refused":
                raise self._refused(name="response_format")
            _check_strict(cast("Mapping[str, Mapping[str, object]]", wanted))

    def _refused(self, name: str) -> Refusal:
        if self.config.vague:
            return _refusal(400, "Bad request.")
        instead = " Use 'max_tokens' instead." if name == "max_completion_tokens" else ""
        message = f"Unsupported parameter: '{name}' is not supported with this model.{instead}"
        return _refusal(400, message, code="unsupported_parameter")

    def _is_thought_short(self, body: Mapping[str, object]) -> bool:
        limit = body.get("max_completion_tokens", body.get("max_tokens"))
        return isinstance(limit, int) and limit <= self.config.thinks

    def _as_provider(self, reply: Body) -> Body:
        """A reply without what only vLLM writes."""
        reply["model"] = self.config.snapshot or self.config.model
        reply["system_fingerprint"] = None
        reply.pop("prompt_logprobs", None)
        (choice,) = cast("list[Body]", reply["choices"])
        choice.pop("stop_reason", None)
        choice.pop("token_ids", None)
        cast("Body", choice["message"]).pop("reasoning", None)
        if not self.config.shows_logprobs:
            choice["logprobs"] = None
        if not self.config.shows_usage:
            reply.pop("usage")
        return reply


def _refusal(status: int, message: str, *, code: str | None = None) -> Refusal:
    return Refusal(
        status, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    )


def _check_strict(wanted: Mapping[str, Mapping[str, object]]) -> None:
    """Refuse a schema that OpenAI's strict mode does not take: an object at the root, closed, all of it required."""
    inner = wanted.get("json_schema", {})
    schema = cast("Mapping[str, object]", inner.get("schema") or {})
    wrong = ""
    if not inner.get("name") or inner.get("strict") is not True:
        wrong = "Missing required parameter: 'response_format.json_schema.name'."
    elif schema.get("type") != "object":
        wrong = f"Invalid schema for response_format: schema must be of type 'object', got {schema.get('type')!r}."
    elif not all(_is_closed(one) for one in _objects(schema)):
        wrong = "Invalid schema for response_format: 'additionalProperties' has to be false, each key required."
    if wrong:
        raise _refusal(400, wrong)


def _is_closed(schema: Mapping[str, object]) -> bool:
    keys, required = schema.get("properties", {}), schema.get("required", [])
    return schema.get("additionalProperties") is False and set(cast("list[str]", required)) == set(cast("Body", keys))


def _objects(schema: object) -> list[Mapping[str, object]]:
    """All object schemas within a schema."""
    if isinstance(schema, list):
        return [found for one in schema for found in _objects(one)]
    if not isinstance(schema, dict):
        return []
    return [*([schema] if schema.get("type") == "object" else []), *_objects(list(schema.values()))]
