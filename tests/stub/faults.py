"""What can go wrong with a judge's server, each as a small object to put into `Stub.faults`.

A fault is an action (what happens instead of the stub's own reply) and a condition (to which
requests). The first fault of the list that applies to a request acts on it.
"""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from aiohttp import web

CHAT = "/chat/completions"


@dataclass(eq=False)
class RecordedRequest:
    """One request as it arrived.

    `number` counts all requests from 1, `path_number` those of the same path; `in_flight` is the
    number of requests of that path that were open on arrival, this one included. Times are of
    the monotonic clock; `left_at` is None while the request is open.
    """

    number: int
    path_number: int
    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: Mapping[str, object]
    in_flight: int
    arrived_at: float
    left_at: float | None = None

    @property
    def text(self) -> str:
        """The texts of all messages, joined by newlines."""
        messages = self.body.get("messages")
        contents = [one.get("content") for one in messages] if isinstance(messages, list) else []
        return "\n".join(str(content) for content in contents)

    @property
    def schema_name(self) -> str | None:
        """The name of the reply schema that the request asks for."""
        wanted = self.body.get("response_format")
        inner = wanted.get("json_schema") if isinstance(wanted, dict) else None
        return inner.get("name") if isinstance(inner, dict) else None


@dataclass(frozen=True, slots=True)
class Twist:
    """How a chat reply departs from the stub's own.

    `wish` replaces what the model wants to say, which the schema still constrains unless
    `enforce` is false. `say` is sent as it stands, whatever the schema; with `say_in` other than
    `content`, in that field, `content` being null.
    """

    wish: str | None = None
    enforce: bool = True
    say: str | None = None
    say_in: str = "content"
    finish_reason: str | None = None


class Call(Protocol):
    """A request that a fault acts on."""

    @property
    def record(self) -> RecordedRequest:
        """Give the request as recorded."""

    @property
    def request(self) -> web.Request:
        """Give the open request."""

    async def reply(self, twist: Twist | None = None) -> web.StreamResponse:
        """Make the stub's own reply, a chat reply with a twist."""


Action = Callable[[Call], Awaitable[web.StreamResponse]]
Condition = Callable[[RecordedRequest], bool]


def chat(request: RecordedRequest) -> bool:
    """Apply to all chat requests."""
    return request.path.endswith(CHAT)


def on_path(end: str) -> Condition:
    """Apply to all requests whose path ends so."""
    return lambda request: request.path.endswith(end)


def mentions(text: str) -> Condition:
    """Apply to chat requests whose messages contain a text."""
    return lambda request: chat(request) and text in request.text


def schema_named(name: str) -> Condition:
    """Apply to chat requests under one reply schema."""
    return lambda request: chat(request) and request.schema_name == name


def numbered(*numbers: int) -> Condition:
    """Apply to chat requests by their place among chat requests, from 1."""
    return lambda request: chat(request) and request.path_number in numbers


def all_of(*conditions: Condition) -> Condition:
    """Apply where all conditions are met."""
    return lambda request: all(condition(request) for condition in conditions)


@dataclass
class Fault:
    """An action on the requests that meet a condition, at most `times` of them.

    `after` lets that many of them pass first. `seen` counts those that met the condition.
    """

    action: Action
    when: Condition = chat
    times: int | None = None
    after: int = 0
    seen: int = field(default=0, init=False)

    def applies(self, request: RecordedRequest) -> bool:
        """Say whether this request is to be acted on, and count it."""
        if not self.when(request):
            return False
        self.seen += 1
        return self.after < self.seen <= self.after + (self.times or self.seen)


def respond(status: int, body: object = None, headers: Mapping[str, str] | None = None) -> Action:
    """Answer with a status; a string body is sent as text, None as vLLM's error of that status."""
    if body is None:
        message = "Internal server error" if status >= 500 else "Bad request"
        body = {"error": {"message": message, "type": "Error", "param": None, "code": status}}

    async def act(_: Call) -> web.StreamResponse:
        if isinstance(body, str):
            return web.Response(status=status, text=body, headers=headers)
        return web.Response(status=status, text=json.dumps(body), content_type="application/json", headers=headers)

    return act


def html(status: int = 200) -> Action:
    """Answer with a web page, as a gateway or a wrong port does."""
    page = "<!doctype html><html><head><title>Gateway</title></head><body>Welcome</body></html>"

    async def act(_: Call) -> web.StreamResponse:
        return web.Response(status=status, text=page, content_type="text/html")

    return act


def over_length(prompt_tokens: int, limit: int) -> Action:
    """Answer 400 as older vLLM does to prompt and output together; the number may mislead."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, you requested {prompt_tokens} "
        f"tokens ({prompt_tokens} in the messages, 0 in the completion). Please reduce the length of the "
        "messages or completion."
    )
    kind = {"type": "BadRequestError", "param": None, "code": 400}
    return respond(400, {"error": {"message": message, **kind}})


def close_before_reply() -> Action:
    """Close the connection without a byte."""

    async def act(call: Call) -> web.StreamResponse:
        if call.request.transport is not None:
            call.request.transport.abort()
        return web.Response()

    return act


def close_in_reply() -> Action:
    """Send the head and half of the stub's own reply, then close the connection."""

    async def act(call: Call) -> web.StreamResponse:
        whole = await call.reply()
        body = whole.body if isinstance(whole, web.Response) and isinstance(whole.body, bytes) else b"{}"
        half = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
        await half.prepare(call.request)
        await half.write(body[: len(body) // 2])
        if call.request.transport is not None:
            call.request.transport.close()
        return half

    return act


def hang(seconds: float) -> Action:
    """Reply after a delay; a client that gives up earlier ends the wait."""

    async def act(call: Call) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await call.reply()

    return act


def ignore_schema() -> Action:
    """Say what the model wants, unconstrained, with HTTP 200."""

    async def act(call: Call) -> web.StreamResponse:
        return await call.reply(Twist(enforce=False))

    return act


def want(*texts: str) -> Action:
    """Let the model want these texts in turn, from the first again after the last; the schema holds."""
    turns = itertools.cycle(texts)

    async def act(call: Call) -> web.StreamResponse:
        return await call.reply(Twist(wish=next(turns)))

    return act


def say(text: str, *, finish_reason: str = "stop", say_in: str = "content") -> Action:
    """Reply with a text as it stands, whatever the schema."""

    async def act(call: Call) -> web.StreamResponse:
        return await call.reply(Twist(say=text, finish_reason=finish_reason, say_in=say_in))

    return act


def runaway() -> Action:
    """Reply with a thousand spaces, cut by the token limit."""
    return say(" " * 1000, finish_reason="length")
