"""The guard as ASGI middleware: the key for everything, a few routes, bounded bodies.

Every request but a look at the health needs the key, and only what clients of a judge use is there at all:
no route by which one client could read what another asked, stop it, or change the engine. Nothing is logged,
and no answer quotes a request.
"""

import asyncio
import hmac
import json
import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from airjudge.guard.strangers import Bounds, Strangers

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

KEY_VARIABLE: Final = "VLLM_API_KEY"
MAX_BODY_VARIABLE: Final = "AIRJUDGE_MAX_BODY_BYTES"

HEALTH: Final = ("GET", "/health")
ROUTES: Final = (
    HEALTH,
    ("GET", "/metrics"),
    ("GET", "/v1/models"),
    ("GET", "/version"),
    ("POST", "/tokenize"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/completions"),
)
BODY_S: Final = 30.0
"""Seconds for a whole body: the longest is sent in a fraction of one, over a tunnel in a few."""

_NOT_SERVED: Final = f"this server answers {', '.join(' '.join(one) for one in ROUTES)} and nothing else"


@dataclass(frozen=True, slots=True)
class Terms:
    """The key, the most bytes of a body, the seconds that one may take, and what strangers may take."""

    key: str = field(repr=False)
    max_body_bytes: int
    body_s: float = BODY_S
    strangers: Bounds = field(default_factory=Bounds)

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Terms":
        """The terms that `airjudge.server` writes into a server's environment.

        Raises:
            KeyError: If they are not there: a server without a key must not start.
        """
        return cls(environment[KEY_VARIABLE], int(environment[MAX_BODY_VARIABLE]))


class Guard:
    """Lets through to `app` what the terms allow, and answers everything else itself."""

    def __init__(self, app: App, terms: Terms | None = None) -> None:
        """Guard an application by the terms of the environment, unless others are given.

        Raises:
            KeyError: If the environment has none.
        """
        self._app, self._terms = app, terms or Terms.of(os.environ)
        self._key = self._terms.key.encode()
        self.strangers = Strangers(self._terms.strangers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or begin with the server."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._begin(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _begin(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stand before the server's connections too; a server that hides them does not start."""
        try:
            self.strangers.take_over(scope["app"].state.server.config)
        except (KeyError, AttributeError):
            words = "airjudge's guard finds no uvicorn in this vLLM; install the version that airjudge was made for"
            await receive()
            await send({"type": "lifespan.startup.failed", "message": words})
            return
        await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = (scope["method"], scope["path"])
        if not self._has_key(scope):
            if asked == HEALTH:
                await self._app(scope, receive, _last(send))
            else:
                await _refuse(send, 401, "the API key is missing or wrong: Authorization: Bearer KEY")
            return
        self.strangers.trust(scope.get("client"))
        if asked not in ROUTES:
            await _refuse(send, 404, _NOT_SERVED)
            return
        body = _Body(self._terms.max_body_bytes)
        try:
            async with asyncio.timeout(self._terms.body_s):
                await body.read(receive)
        except TimeoutError:
            if not body.is_too_large:
                await _refuse(send, 408, f"the request did not arrive within {self._terms.body_s:g} s")
                return
        if body.is_too_large:
            await _refuse(send, 413, f"the request has more than {self._terms.max_body_bytes} bytes")
        elif body.is_whole:
            await self._app(scope, _replayed(body, receive), send)

    def _has_key(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token, self._key)


class _Body:
    """A request's body as it comes, up to the bound. What is too large is read to its end and forgotten.

    A client that is cut off while it sends learns of a broken connection, and would try again.
    """

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self.content = bytearray()
        self.is_too_large = self.is_whole = False

    async def read(self, receive: Receive) -> None:
        """Read until the end, or until the client is gone."""
        while (message := await receive())["type"] == "http.request":
            chunk = message.get("body", b"")
            if len(self.content) + len(chunk) > self._at_most:
                self.is_too_large = True
            else:
                self.content += chunk
            if not message.get("more_body", False):
                self.is_whole = True
                return


def _replayed(body: _Body, receive: Receive) -> Receive:
    """A `receive` that gives a body in one piece, and then what comes after it: that the client is gone."""
    left = [{"type": "http.request", "body": bytes(body.content), "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay


def _last(send: Send) -> Send:
    """A `send` whose response ends the connection, which nobody vouched for."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
        await send(message)

    return sent


async def _refuse(send: Send, status: int, words: str) -> None:
    """Answer as OpenAI's API does, and end the connection."""
    body = json.dumps({"error": {"message": words, "type": "refused", "code": status}}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *([(b"www-authenticate", b"Bearer")] if status == 401 else []),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
