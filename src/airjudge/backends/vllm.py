"""A vLLM server behind its OpenAI-compatible API, the user's or ours.

Facts about the server, with the version they were read on, are in src/README.md.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pydantic import JsonValue

from airjudge.backends.http import HttpFault, HttpSession, parse_address
from airjudge.backends.wire import ChatCompletion, ModelList, ServerVersion, TokenCount, read_reply
from airjudge.errors import (
    AirjudgeError,
    JudgeForeign,
    JudgeNotServed,
    JudgeUnreachable,
    PromptTooLong,
    RequestFailed,
    RequestTimeout,
    SchemaNotCompiled,
)
from airjudge.schema import Completion, Message, Question

TRIES = 5
"""Tries for a passing fault, the first included."""
BACK_OFF_S = 0.25
"""Seconds before the second try; doubled before each further one."""
FAILING_HINT = "Look at the server's log; it may still be starting, or its engine may have died."
MAX_WAIT_S = 60.0
"""Seconds that we wait at most, whatever a Retry-After asks."""
PASSING = frozenset({0, 408, 429, 500, 502, 503, 504})
"""Statuses that another try may settle; 0 stands for a broken connection."""
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


@dataclass(frozen=True, slots=True)
class Connection:
    """How a server is reached. `cache_salt` keeps a run's prefix cache apart from others'."""

    base_url: str
    api_key: str | None = None
    allow_remote: bool = False
    timeout_s: float = 300.0
    concurrency: int = 16
    cache_salt: str | None = None
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
        self._address = parse_address(connection.base_url, allow_remote=connection.allow_remote)
        self._http = HttpSession(
            self._address,
            api_key=connection.api_key,
            allow_remote=connection.allow_remote,
            connections=connection.concurrency,
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

    async def version(self) -> str | None:
        """The server's version; None if it has no such route, as proxies have not.

        Raises:
            JudgeForeign: If the route answers something else.
        """
        url = f"{self._address.root}/version"
        try:
            return read_reply(ServerVersion, await self._checked(url), url).version
        except HttpFault:
            return None

    async def served_models(self) -> dict[str, int | None]:
        """The models that the server names, with the tokens each reads where the server says it.

        Raises:
            JudgeForeign: If the route does not list models.
        """
        url = f"{self._address.base_url}/models"
        try:
            raw = await self._checked(url)
        except HttpFault as fault:
            if fault.status in PASSING:
                msg = f"{url} fails: {fault}"
                raise JudgeUnreachable(msg, FAILING_HINT) from fault
            msg = f"{url} does not list models: {fault}"
            raise JudgeForeign(msg) from fault
        return {one.id: one.max_model_len for one in read_reply(ModelList, raw, url).data}

    async def _checked(self, url: str) -> bytes:
        """Fetch a route that a healthy server answers at once.

        Raises:
            JudgeUnreachable: If it accepts the connection and says nothing.
        """
        try:
            return await self._http.get(url, timeout_s=CHECK_TIMEOUT_S)
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
        for name, value in re.findall(r"^(vllm:\w+)(?:\{[^}]*\})? (\S+)", raw.decode(), re.MULTILINE):
            totals[name] = totals.get(name, 0.0) + float(value)
        return totals

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of a chat under the model's own template, as the server counts them.

        Raises:
            HttpFault: If the server has no such route.
        """
        body = {"model": self.model, "messages": _wire_messages(messages), **self._template()}
        url = f"{self._address.root}/tokenize"
        raw = await self._http.post(url, json.dumps(body).encode(), timeout_s=self.connection.timeout_s)
        return read_reply(TokenCount, raw, url).count

    async def refusal_of_json_object(self) -> str | None:
        """The server's words if it refuses `json_object`, else None; sent once, before any sample.

        The outlines backend is the only one that refuses it, and says its name; no route tells the
        backend. Old engines died of it, so the version is checked before.
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
            return fault.message if fault.status == 400 else None
        return None

    async def complete(self, question: Question) -> Completion:
        """Ask a question whose schema is warm, with several tries at a passing fault.

        Raises:
            RequestFailed: If every try failed, or the server refused the request.
            RequestTimeout: If no reply came in time; it is not asked again.
            PromptTooLong: If the server found the prompt too long.
            JudgeUnreachable: If no connection could be made in any try.
        """
        body = self.body(question)
        for attempt in range(1, TRIES + 1):
            try:
                return await self._post_chat(body, self.connection.timeout_s)
            except (HttpFault, JudgeUnreachable, JudgeForeign) as fault:
                final = await self._final_error(fault, question, attempt)
                if final is not None:
                    raise final from fault
                asked_s = fault.retry_after_s if isinstance(fault, HttpFault) else None
            wait_s = BACK_OFF_S * 2 ** (attempt - 1) if asked_s is None else asked_s
            await asyncio.sleep(min(wait_s, MAX_WAIT_S))
        raise AssertionError  # the last try returns or raises

    async def _final_error(
        self, fault: HttpFault | JudgeUnreachable | JudgeForeign, question: Question, attempt: int
    ) -> AirjudgeError | None:
        """What a fault amounts to; None if another try may settle it."""
        status = fault.status if isinstance(fault, HttpFault) else 0
        if status == 400 and _is_over_length(str(fault)):
            return await self._too_long(question, str(fault))
        if status == 404:
            return JudgeNotServed(f"the server no longer serves {self.model!r}: {fault}")
        if status in PASSING and attempt < TRIES:
            return None
        return fault if isinstance(fault, JudgeUnreachable) else RequestFailed(str(fault), attempt)

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
        """The request as it goes over the wire."""
        body: dict[str, JsonValue] = {
            "model": self.model,
            "messages": _wire_messages(question.messages),
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": question.schema.name,
                    "strict": True,
                    "schema": dict(question.schema.json_schema),
                },
            },
            "max_completion_tokens": question.max_tokens,
            **GREEDY,
            **self._template(),
        }
        if question.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": question.top_logprobs}
        if self.connection.cache_salt:
            body["cache_salt"] = self.connection.cache_salt
        return json.dumps(body, ensure_ascii=False).encode("utf-8")

    def _template(self) -> dict[str, JsonValue]:
        settings = self.connection.chat_template_kwargs
        return {"chat_template_kwargs": dict(settings)} if settings else {}

    async def _post_chat(self, body: bytes, timeout_s: float) -> Completion:
        url = f"{self._address.base_url}/chat/completions"
        return read_reply(ChatCompletion, await self._http.post(url, body, timeout_s=timeout_s), url).completion()

    async def _too_long(self, question: Question, words: str) -> PromptTooLong:
        """Count again: the number in the server's message may be of another limit."""
        limits = [int(number) for number in re.findall(r"maximum context length is (\d+)", words)]
        try:
            count = await self.count_tokens(question.messages)
        except (HttpFault, JudgeForeign):
            count = 0
        return PromptTooLong(count, (limits or [0])[0])


def _wire_messages(messages: Sequence[Message]) -> list[JsonValue]:
    return [{"role": one.role, "content": one.content} for one in messages]


def _is_over_length(words: str) -> bool:
    return re.search(r"maximum context length|max_model_len|longer than the maximum model length", words) is not None
