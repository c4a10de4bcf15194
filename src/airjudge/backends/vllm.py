"""A vLLM server behind its OpenAI-compatible API, the user's or ours.

Facts about the server, with the version they were read on, are in src/README.md.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from pydantic import JsonValue

from airjudge.backends.faults import FAULTS, may_pass
from airjudge.backends.http import HttpFault, HttpSession, parse_address
from airjudge.backends.wire import ChatCompletion, ModelList, ServerVersion, TokenCount, read_reply
from airjudge.errors import (
    JudgeForeign,
    JudgeUnauthorized,
    JudgeUnreachable,
    PromptTooLong,
    RequestTimeout,
    SchemaNotCompiled,
)
from airjudge.schema import Completion, Message, Question, ReplySchema, Sampling

FAILING_HINT = "Look at the server's log; it may still be starting, or its engine may have died."
CHECK_TIMEOUT_S = 10.0
"""Seconds for the routes that a healthy server answers at once, however busy."""
GREEDY: Mapping[str, JsonValue] = {
    "temperature": 0,
    "top_p": 1,
    "top_k": 0,
    "min_p": 0,
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "seed": 0,
    "n": 1,
}
"""Everything that samples, set: a model's own generation config must not add to it."""

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_METRIC = re.compile(r"^(vllm:\w+)(?:\{[^}]*\})? (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Connection:
    """How a server is reached. `cache_salt` keeps a run's prefix cache apart from others'."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    allow_remote: bool = False
    timeout_s: float = 300.0
    cache_salt: str | None = field(default=None, repr=False)
    chat_template_kwargs: Mapping[str, JsonValue] | None = None


class VllmBackend:
    """Asks one vLLM server; must be entered before use, in the event loop that uses it."""

    def __init__(self, connection: Connection, *, model: str | None) -> None:
        """Read the address; nothing is contacted. Without a model it must be set before a question.

        Raises:
            InputError: If the base URL is not one.
            JudgeRemote: If it is an address outside and remote ones are not allowed.
        """
        self.connection, self.model = connection, model
        self._rests: dict[tuple[object, ...], bytes] = {}
        self._address = parse_address(connection.base_url, allow_remote=connection.allow_remote)
        self._http = HttpSession(
            self._address,
            api_key=connection.api_key,
            allow_remote=connection.allow_remote,
        )

    async def __aenter__(self) -> Self:
        """Open the connection pool."""
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection pool."""
        await self._http.__aexit__(kind, error, trace)

    @property
    def root(self) -> str:
        """The server's address without /v1: two that share it are one server."""
        return self._address.root

    async def version(self) -> str | None:
        """The server's version; None if it has no such route, as proxies have not.

        Raises:
            JudgeForeign: If the route answers something else.
            JudgeUnreachable: If the server fails or does not answer.
        """
        url = f"{self._address.root}/version"
        try:
            return read_reply(ServerVersion, await self._checked(url), url).version
        except HttpFault:
            return None

    async def check_health(self) -> None:
        """Ask whether the engine behind the server lives; a proxy without such a route passes.

        Raises:
            JudgeUnreachable: If it does not.
        """
        with suppress(HttpFault, JudgeForeign, JudgeUnauthorized):
            await self._checked(f"{self._address.root}/health")

    async def served_models(self) -> dict[str, int | None]:
        """The models that the server names, with the tokens each reads where the server says it.

        Raises:
            JudgeForeign: If the route does not list models.
        """
        url = f"{self._address.base_url}/models"
        try:
            raw = await self._checked(url)
        except HttpFault as fault:
            msg = f"{url} does not list models: {fault}"
            raise JudgeForeign(msg) from fault
        return {one.id: one.max_model_len for one in read_reply(ModelList, raw, url).data}

    async def _checked(self, url: str) -> bytes:
        """Fetch a route that a healthy server answers at once.

        Raises:
            JudgeUnreachable: If it fails, or accepts the connection and says nothing.
            HttpFault: If it refuses.
        """
        try:
            return await self._http.get(url, timeout_s=CHECK_TIMEOUT_S)
        except HttpFault as fault:
            if not may_pass(fault):
                raise
            msg = f"{url} fails: {fault}"
            raise JudgeUnreachable(msg, FAILING_HINT) from fault
        except RequestTimeout as error:
            msg = f"{url} accepts connections and does not answer: {error}"
            raise JudgeUnreachable(msg, FAILING_HINT) from error

    async def counters(self) -> dict[str, float]:
        """The server's own counters by name, summed over engines; empty if it shows none."""
        try:
            raw = await self._http.get(f"{self._address.root}/metrics", timeout_s=CHECK_TIMEOUT_S)
        except HttpFault:
            return {}
        totals: dict[str, float] = {}
        for name, value in _METRIC.findall(raw.decode()):
            totals[name] = totals.get(name, 0.0) + float(value)
        return totals

    async def n_waiting(self) -> float | None:
        """Requests that wait for a place in the server's batch; None if it does not say."""
        try:
            return (await self.counters()).get("vllm:num_requests_waiting")
        except FAULTS:
            return None

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of a chat under the model's own template, as the server counts them.

        Raises:
            Fault: If the server has no such route, or fails.
        """
        body = {"model": self.model, "messages": wire_messages(messages), **self._template()}
        url = f"{self._address.root}/tokenize"
        raw = await self._http.post(url, json.dumps(body).encode(), timeout_s=self.connection.timeout_s)
        return read_reply(TokenCount, raw, url).count

    async def refusal_of_json_object(self) -> str | None:
        """The server's words if it refuses `json_object`, else None; sent once, before any sample.

        The outlines backend is the only one that refuses it, and says its name; no route tells the
        backend. Old engines died of it, so the version is checked before.

        Raises:
            JudgeUnreachable: If the server fails for another reason.
        """
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": "Reply with {}"}],
            "response_format": {"type": "json_object"},
            "max_completion_tokens": 1,
            **GREEDY,
        }
        try:
            await self._post_chat(json.dumps(body).encode(), self.connection.timeout_s)
        except HttpFault as fault:
            if fault.status != 500 and may_pass(fault):
                msg = f"{self.connection.base_url} fails on its first question: {fault}"
                raise JudgeUnreachable(msg, FAILING_HINT) from fault
            return fault.message if fault.status == 400 else None
        except RequestTimeout as error:
            msg = f"{self.connection.base_url} does not answer its first question: {error}"
            raise JudgeUnreachable(msg, FAILING_HINT) from error
        return None

    async def free_reply(self, text: str, *, max_tokens: int) -> Completion:
        """What the model says to a text under no schema, by the template settings that questions have.

        Raises:
            Fault: As `backends.faults` tells them apart.
        """
        messages: list[JsonValue] = [{"role": "user", "content": text}]
        body = {"model": self.model, "messages": messages, "max_completion_tokens": max_tokens, **GREEDY}
        return await self._post_chat(json.dumps(body | self._template()).encode(), self.connection.timeout_s)

    async def ask(self, question: Question) -> Completion:
        """Ask a question whose schema is warm, once.

        Raises:
            Fault: As `backends.faults` tells them apart.
        """
        return await self._post_chat(self.body(question), self.connection.timeout_s)

    async def warm_up(self, question: Question) -> Completion:
        """Ask under a schema for the first time, once: the server compiles it now.

        Raises:
            SchemaNotCompiled: If the server fails: it could not compile the schema in its time, and
                each further try would leak a thread of it.
            HttpFault: If it refuses the request.
        """
        timeout_s = max(self.connection.timeout_s, 300.0)
        try:
            return await self._post_chat(self.body(question), timeout_s)
        except HttpFault as fault:
            if fault.status == 500:
                name = question.schema.name
                msg = f"the server failed on the first use of the {name} schema: {fault}"
                raise SchemaNotCompiled(msg) from fault
            raise

    def body(self, question: Question) -> bytes:
        """The request as it goes over the wire; the same question has the same bytes each time."""
        messages = _JSON.encode(wire_messages(question.messages))
        return b'{"messages":%b,%b' % (messages.encode("utf-8", errors="replace"), self._rest_of_body(question)[1:])

    def _rest_of_body(self, question: Question) -> bytes:
        """All of a request but its messages: the same for all questions of a kind, and encoded once."""
        key = (self.model, question.schema, question.max_tokens, question.top_logprobs, question.sampling)
        if key not in self._rests:
            self._rests[key] = _JSON.encode(self._settings_of(question)).encode()
        return self._rests[key]

    def _settings_of(self, question: Question) -> dict[str, JsonValue]:
        body: dict[str, JsonValue] = {
            "model": self.model,
            **response_format(question.schema),
            "max_completion_tokens": question.max_tokens,
            **GREEDY,
            **_drawn(question.sampling),
            **self._template(),
        }
        if question.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": question.top_logprobs}
        if self.connection.cache_salt:
            body["cache_salt"] = self.connection.cache_salt
        return body

    def _template(self) -> dict[str, JsonValue]:
        settings = self.connection.chat_template_kwargs
        return {"chat_template_kwargs": dict(settings)} if settings else {}

    async def _post_chat(self, body: bytes, timeout_s: float) -> Completion:
        url = f"{self._address.base_url}/chat/completions"
        return read_reply(ChatCompletion, await self._http.post(url, body, timeout_s=timeout_s), url).completion()

    async def too_long(self, question: Question, words: str) -> PromptTooLong:
        """What an over-length refusal amounts to; counted again, since the number in it may be of another limit."""
        limits = [int(number) for number in re.findall(r"maximum context length is (\d+)", words)]
        try:
            count: int | None = await self.count_tokens(question.messages)
        except FAULTS:
            count = None
        return PromptTooLong(count, limits[0] if limits else None)


def _drawn(sampling: Sampling) -> dict[str, JsonValue]:
    return {"temperature": sampling.temperature or 0, "seed": sampling.seed}


def response_format(schema: ReplySchema) -> dict[str, JsonValue]:
    """The field that asks for a reply under a schema; none for free text."""
    if not schema.json_schema:
        return {}
    inner: dict[str, JsonValue] = {"name": schema.name, "strict": True, "schema": dict(schema.json_schema)}
    return {"response_format": {"type": "json_schema", "json_schema": inner}}


def wire_messages(messages: Sequence[Message]) -> list[JsonValue]:
    """Messages as a request holds them."""
    return [{"role": one.role, "content": one.content} for one in messages]
