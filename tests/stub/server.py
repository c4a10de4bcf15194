"""A loopback server that plays vLLM 0.32's OpenAI-compatible API.

It enforces reply schemas with outlines_core, counts tokens, keeps a prefix cache, records every
request and injects faults. What it does not play (streaming, tools, `structured_outputs`) it
refuses with 400 rather than ignore.
"""

import asyncio
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.stub import replies
from tests.stub.engine import Admission, Engine, Refusal, StubConfig
from tests.stub.faults import CHAT, Fault, RecordedRequest, Twist
from tests.stub.replies import Body

_UNAUTHORIZED: Body = {"error": "Unauthorized"}
_NOT_FOUND: Body = {"detail": "Not Found"}


@dataclass
class Call:
    """A recorded request on its way through the stub; `prompt` only of a chat."""

    stub: "Stub"
    record: RecordedRequest
    request: web.Request
    prompt: Admission | None = None

    async def reply(self, twist: Twist | None = None) -> web.StreamResponse:
        """Make the stub's own reply, a chat reply with a twist."""
        return self.stub.reply(self, twist or Twist())


class Stub:
    """A stub judge on 127.0.0.1; a context manager that serves from a thread of its own."""

    def __init__(self, config: StubConfig | None = None, *faults: Fault) -> None:
        """Start with an empty prefix cache and no thread."""
        self.config = config or StubConfig()
        self.faults = list(faults)
        self.requests: list[RecordedRequest] = []
        self.port = 0
        self._engine = Engine(self.config)
        self._open: dict[str, int] = {}
        self._totals: dict[str, int] = {}
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve()), name="stub-judge", daemon=True)

    def __enter__(self) -> Self:
        """Serve."""
        self._thread.start()
        if not self._up.wait(timeout=30) or not self.port:
            msg = "the stub did not come up"
            raise RuntimeError(msg)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop serving; open requests are dropped."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=30)

    @property
    def base_url(self) -> str:
        """The address as OpenAI clients take it."""
        return f"http://127.0.0.1:{self.port}{self.config.prefix}/v1"

    @property
    def api_key(self) -> str | None:
        """The key that /v1 wants; None if it wants none."""
        return self.config.api_key

    @property
    def model(self) -> str:
        """The name of the served model."""
        return self.config.model

    @property
    def chats(self) -> list[RecordedRequest]:
        """The chat requests so far, in order of arrival."""
        return [one for one in self.requests if one.path.endswith(CHAT)]

    @property
    def peak_in_flight(self) -> int:
        """The most chat requests that were open at once."""
        return max((one.in_flight for one in self.chats), default=0)

    def bodies(self, text: str = "") -> list[Mapping[str, object]]:
        """Give the bodies of the chat requests whose messages contain a text."""
        return [one.body for one in self.chats if text in one.text]

    def successor(self, **changes: Any) -> "Stub":
        """Give the stub that will come back on the same port, its configuration changed; it has to be entered."""
        return Stub(replace(self.config, port=self.port, **changes))

    def clear(self) -> None:
        """Forget the requests recorded so far; caches and counters stay."""
        self.requests.clear()

    async def serve(self) -> None:
        """Serve in this event loop until the context ends."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._places = asyncio.Semaphore(self.config.places or 2**30)
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.config.port)
        try:
            await site.start()
            self.port = runner.addresses[0][1]
            self._up.set()
            await self._stop.wait()
        finally:
            await site.stop()
            await asyncio.sleep(0.01)  # what was accepted last becomes a connection, which the runner closes
            await runner.cleanup()
            self._up.set()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        """Record a request, then let the first fault that applies act, else reply."""
        record = self._record(request, await request.read())
        try:
            call = Call(self, record, request)
            if record.path.endswith(CHAT):
                call.prompt = self._engine.admit(record.body)
                async with self._places:
                    await asyncio.sleep(self.config.latency_s)
            for fault in self.faults:
                if fault.applies(record):
                    return await fault.action(call)
            return await call.reply()
        except Refusal as refusal:
            return _json(refusal.body, refusal.status)
        finally:
            self._open[record.path] -= 1
            record.left_at = time.monotonic()

    def _record(self, request: web.Request, raw: bytes) -> RecordedRequest:
        path = request.path
        self._open[path] = self._open.get(path, 0) + 1
        self._totals[path] = self._totals.get(path, 0) + 1
        record = RecordedRequest(
            number=sum(self._totals.values()),
            path_number=self._totals[path],
            method=request.method,
            path=path,
            headers={name.lower(): value for name, value in request.headers.items()},
            raw=raw,
            body=_read_object(raw),
            in_flight=self._open[path],
            arrived_at=time.monotonic(),
        )
        self.requests.append(record)
        return record

    def reply(self, call: Call, twist: Twist) -> web.Response:
        """Reply as vLLM does.

        Raises:
            Refusal: If vLLM answers with an error.
        """
        path = call.record.path.removeprefix(self.config.prefix)
        if not call.record.path.startswith(self.config.prefix):
            raise Refusal(404, _NOT_FOUND)
        if path.startswith("/v1") and not self._has_key(call.record):
            raise Refusal(401, _UNAUTHORIZED)
        if path in {"/health", "/metrics"}:
            return web.Response(text=self._metrics() if path == "/metrics" else "", content_type="text/plain")
        return _json(self._body(call, path, twist))

    def _body(self, call: Call, path: str, twist: Twist) -> Body:
        match f"{call.record.method} {path}":
            case "POST /v1/chat/completions" if call.prompt:
                return self._engine.chat(call.record.body, call.prompt, twist)
            case "POST /tokenize":
                return self._engine.tokenize(call.record.body)
            case "GET /version":
                return {"version": self.config.version}
            case "GET /v1/models":
                return self._engine.models()
        raise Refusal(404, _NOT_FOUND)

    def _has_key(self, record: RecordedRequest) -> bool:
        return self.api_key is None or record.headers.get("authorization") == f"Bearer {self.api_key}"

    def _metrics(self) -> str:
        n_open = sum(n for path, n in self._open.items() if path.endswith(CHAT))
        running = min(n_open, self.config.places or n_open)
        values = {
            "vllm:num_requests_running": ("gauge", running),
            "vllm:num_requests_waiting": ("gauge", n_open - running),
            "vllm:prompt_tokens_total": ("counter", self._engine.prompt_tokens),
            "vllm:prompt_tokens_cached_total": ("counter", self._engine.cached_tokens),
            "vllm:generation_tokens_total": ("counter", self._engine.generated_tokens),
            "vllm:request_success_total": ("counter", self._engine.succeeded),
        }
        return replies.metrics(self.model, values)


def _read_object(raw: bytes) -> Mapping[str, object]:
    """Read a JSON object; anything else is an empty one."""
    try:
        found = json.loads(raw) if raw else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _json(body: object, status: int = 200) -> web.Response:
    return web.Response(body=json.dumps(body).encode(), status=status, content_type="application/json")
