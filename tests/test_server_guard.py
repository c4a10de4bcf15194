"""The guard before our vLLM: as an ASGI application, and under a real uvicorn, as vLLM runs it."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

import pytest

from airjudge.guard import Bounds, Guard
from airjudge.guard.asgi import ROUTES, App, Message, Receive, Scope, Send, Terms

KEY: Final = "the-key-of-this-test"
TERMS: Final = Terms(KEY, max_body_bytes=1000)
CHAT: Final = ("POST", "/v1/chat/completions")
BEARER: Final = {"authorization": f"Bearer {KEY}"}
AUTHORIZED: Final = [(b"authorization", f"Bearer {KEY}".encode())]


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that says what reached it: path and body."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = (await receive())["body"] if scope["method"] == "POST" else b""
    said = b"reached %b with %b" % (scope["path"].encode(), body)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(said))]})
    await send({"type": "http.response.body", "body": said})


class Exchange:
    """One request to a guard without a server: what it sent, and how much of the body it read."""

    def __init__(self, chunks: Iterable[bytes] = (b"",), *, ends: bool = True) -> None:
        self.chunks, self.ends = list(chunks), ends
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        if not self.chunks:
            if self.ends:
                return {"type": "http.disconnect"}
            await asyncio.sleep(3600)
        chunk = self.chunks.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(self.chunks) or not self.ends}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    async def asked(
        self, route: tuple[str, str], headers: Mapping[str, str] | list[tuple[str, str]], *, terms: Terms = TERMS
    ) -> tuple[int, str]:
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        raw = [(name.encode(), value.encode()) for name, value in pairs]
        scope = {"type": "http", "method": route[0], "path": route[1], "headers": raw, "client": ("127.0.0.1", 1)}
        await Guard(echo, terms)(scope, self.receive, self.send)
        [start, *bodies] = self.sent
        return start["status"], b"".join(one["body"] for one in bodies).decode()


@pytest.mark.parametrize("route", ROUTES)
async def test_with_the_key_the_routes_of_a_judge_are_open(route: tuple[str, str]) -> None:
    assert await Exchange().asked(route, BEARER) == (200, f"reached {route[1]} with ")


WRONG_KEYS: Final[Mapping[str, list[tuple[str, str]]]] = {
    "none": [],
    "empty": [("authorization", "")],
    "another": [("authorization", f"Bearer {KEY[:-1]}x")],
    "its beginning": [("authorization", f"Bearer {KEY[:-1]}")],
    "longer": [("authorization", f"Bearer {KEY}x")],
    "another scheme": [("authorization", f"Basic {KEY}")],
    "no scheme": [("authorization", KEY)],
    "another header": [("x-api-key", KEY), ("api-key", KEY)],
    "two": [("authorization", f"Bearer {KEY}"), ("authorization", "Bearer other")],
    "no ASCII": [("authorization", f"Bearer {KEY}é")],
}


@pytest.mark.parametrize("case", WRONG_KEYS)
@pytest.mark.parametrize("route", [*(one for one in ROUTES if one[1] != "/health"), ("POST", "/invocations")])
async def test_without_the_key_nothing_but_the_health_is_told(case: str, route: tuple[str, str]) -> None:
    exchange = Exchange([b"a secret of a stranger"])
    status, said = await exchange.asked(route, WRONG_KEYS[case])
    assert status == 401
    assert not [word for word in ("secret", KEY, route[1]) if word in said]
    assert (b"connection", b"close") in exchange.sent[0]["headers"]
    assert exchange.chunks == [b"a secret of a stranger"]  # nothing of it was read


async def test_the_health_is_told_to_everybody_once_a_connection() -> None:
    exchange = Exchange()
    assert (await exchange.asked(("GET", "/health"), {}))[0] == 200
    assert (b"connection", b"close") in exchange.sent[0]["headers"]
    assert (await Exchange().asked(("POST", "/health"), {}))[0] == 401


ELSEWHERE: Final = [
    *(("POST", path) for path in ("/invocations", "/detokenize", "/pooling", "/classify", "/score", "/rerank")),
    *(("POST", path) for path in ("/generative_scoring", "/scale_elastic_ep", "/inference/v1/abort_requests")),
    *(("POST", path) for path in ("/v1/responses", "/v1/chat/completions/batch", "/v1/load_lora_adapter", "/ping")),
    *(("GET", path) for path in ("/load", "/server_info", "/docs", "/openapi.json", "/v1/responses/resp_1", "/")),
    *(("POST", path) for path in ("//v1/chat/completions", "/V1/chat/completions", "/v1/../v1/chat/completions")),
    *(("POST", path) for path in ("/v1/chat/completions/", "/v1/chat/completions;x", "/v1%2Fchat/completions")),
    *((method, CHAT[1]) for method in ("GET", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECT", "post")),
]


@pytest.mark.parametrize("route", ELSEWHERE)
async def test_with_the_key_no_other_route_is_there(route: tuple[str, str]) -> None:
    status, said = await Exchange().asked(route, BEARER)
    assert status == 404
    assert "POST /v1/chat/completions" in json.loads(said)["error"]["message"]


async def test_a_body_up_to_the_bound_reaches_the_application_in_one_piece() -> None:
    body = bytes(range(125)) * 8
    chunks = [body[start : start + 7] for start in range(0, len(body), 7)]
    assert await Exchange(chunks).asked(CHAT, BEARER) == (200, f"reached {CHAT[1]} with {body.decode()}")


async def test_after_the_body_an_application_learns_that_its_client_is_gone() -> None:
    read: list[str] = []

    async def reads_on(scope: Scope, receive: Receive, send: Send) -> None:
        read.extend([(await receive())["type"] for _ in range(2)])

    exchange = Exchange([b"a", b"b"])
    scope = {"type": "http", "method": "POST", "path": CHAT[1], "headers": AUTHORIZED}
    await Guard(reads_on, TERMS)(scope, exchange.receive, exchange.send)
    assert read == ["http.request", "http.disconnect"]


@pytest.mark.parametrize("chunks", [[b"x" * 1001], [b"x" * 1000, b"x"], [b"x"] * 1001, [b"x" * 900] * 50])
async def test_a_longer_body_is_read_and_refused(chunks: list[bytes]) -> None:
    exchange = Exchange(chunks)
    status, said = await exchange.asked(CHAT, BEARER)
    assert (status, exchange.chunks) == (413, [])
    assert "more than 1000 bytes" in said


@pytest.mark.parametrize(("chunks", "status"), [([b"x"] * 3, 408), ([b"x" * 2000], 413)])
async def test_a_body_that_does_not_end_is_given_up(chunks: list[bytes], status: int) -> None:
    terms = replace(TERMS, body_s=0.05)
    assert (await Exchange(chunks, ends=False).asked(CHAT, BEARER, terms=terms))[0] == status


async def test_a_client_that_leaves_while_it_sends_is_answered_by_nobody() -> None:
    exchange = Exchange([])
    scope = {"type": "http", "method": "POST", "path": CHAT[1], "headers": AUTHORIZED}
    await Guard(echo, TERMS)(scope, exchange.receive, exchange.send)
    assert exchange.sent == []


async def test_websockets_are_closed() -> None:
    exchange = Exchange()
    await Guard(echo, TERMS)({"type": "websocket", "headers": []}, exchange.receive, exchange.send)
    assert exchange.sent == [{"type": "websocket.close", "code": 1008}]


async def test_a_server_whose_connections_cannot_be_guarded_does_not_start() -> None:
    exchange = Exchange()
    scope = {"type": "lifespan", "app": SimpleNamespace(state=SimpleNamespace())}
    await Guard(echo, TERMS)(scope, exchange.receive, exchange.send)
    assert [one["type"] for one in exchange.sent] == ["lifespan.startup.failed"]


def test_without_a_key_or_a_bound_there_is_no_guard() -> None:
    assert Terms.of({"VLLM_API_KEY": "k", "AIRJUDGE_MAX_BODY_BYTES": "7"}) == Terms("k", 7)
    assert "k-secret" not in repr(Terms("k-secret", 7))
    for one in ({"VLLM_API_KEY": "k"}, {"AIRJUDGE_MAX_BODY_BYTES": "7"}):
        with pytest.raises(KeyError):
            Terms.of(one)


def test_the_guard_loads_the_standard_library_alone() -> None:
    code = "import sys; old = set(sys.modules); import airjudge.guard; print(*sys.modules.keys() - old)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    packages = {name.partition(".")[0] for name in shown.split()}
    assert packages - sys.stdlib_module_names == {"airjudge"}


@asynccontextmanager
async def served(bounds: Bounds, guarded: App = echo) -> AsyncIterator[tuple[int, Guard]]:
    """The guard and an application under uvicorn and uvloop, as vLLM runs them; gives its port."""
    uvicorn, uvloop = pytest.importorskip("uvicorn"), pytest.importorskip("uvloop")
    guard = Guard(guarded, replace(TERMS, strangers=bounds))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await guard({**scope, "app": SimpleNamespace(state=SimpleNamespace(server=server))}, receive, send)

    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", timeout_keep_alive=60)
    server: Any = uvicorn.Server(config)
    running = asyncio.create_task(asyncio.to_thread(uvloop.run, server.serve()))
    async with asyncio.timeout(30):
        while not server.started:  # noqa: ASYNC110 -- uvicorn has no event for it
            await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1], guard
    finally:
        server.should_exit = True
        await running


def head(route: tuple[str, str] = CHAT, *more: str, key: str | None = KEY) -> bytes:
    lines = [" ".join((*route, "HTTP/1.1")), "Host: localhost", *more]
    return "".join(f"{one}\r\n" for one in (*lines, *([f"Authorization: Bearer {key}"] if key else []), "")).encode()


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the server closes, or resets, the connection."""
    got = b""
    try:
        while chunk := await asyncio.wait_for(reader.read(2**16), 30):
            got += chunk
    except ConnectionError:
        pass
    return got


async def reply(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """One reply with a Content-Length."""
    top = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)).decode().lower()
    length = int(top.partition("content-length: ")[2].partition("\r\n")[0])
    return int(top.split()[1]), await asyncio.wait_for(reader.readexactly(length), 30)


async def test_a_connection_with_the_key_is_served_again_and_again_whatever_pieces_it_sends() -> None:
    async with served(Bounds(wait_s=0.3)) as (port, guard):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for body in (b"one", b"two", b"three"):
            sent = head(CHAT, f"Content-Length: {len(body)}") + body
            end = len(sent) - len(body) - 2  # in the middle of the end of the head
            for piece in (sent[:9], sent[9:end], sent[end:-1], sent[-1:]):
                writer.write(piece)
                await asyncio.sleep(0.02)  # so that pieces arrive one by one
            assert await reply(reader) == (200, b"reached /v1/chat/completions with " + body)
        assert len(guard.strangers) == 0
        await asyncio.sleep(0.5)  # longer than a stranger may stay
        writer.write(head(CHAT, "Content-Length: 4") + b"four" + head(CHAT, "Content-Length: 4") + b"five")
        assert [(await reply(reader))[1][-4:] for _ in range(2)] == [b"four", b"five"]
        writer.close()


async def test_a_chunked_body_with_the_key_arrives_and_one_too_long_is_refused() -> None:
    async with served(Bounds()) as (port, _):
        for n, status in ((10, 200), (11, 413)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head(CHAT, "Transfer-Encoding: chunked") + b"64\r\n%b\r\n" % (b"x" * 100) * n + b"0\r\n\r\n")
            assert (await reply(reader))[0] == status
            writer.close()


async def test_of_a_stranger_neither_body_nor_second_request_is_looked_at() -> None:
    async with served(Bounds()) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(CHAT, "Content-Length: 7", key=None) + b"garbage" + head() * 50)
        got = await until_closed(reader)
        assert got.startswith(b"HTTP/1.1 401 ")
        assert got.count(b"HTTP/1.1") == 1
        assert KEY.encode() not in got
        writer.close()


async def test_of_what_a_stranger_sends_behind_its_head_one_read_at_most_is_held() -> None:
    held: list[int] = []

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await asyncio.sleep(0.3)  # the stranger has time to send more
            held.extend(len(one._held) for one in guard.strangers._waiting.values())
        await echo(scope, receive, send)

    async with served(Bounds(), slow) as (port, guard):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(("GET", "/health"), key=None) + b"x" * 2**25)
        assert (await until_closed(reader)).startswith(b"HTTP/1.1 200")
        writer.close()
    assert len(held) == 1
    assert 0 < held[0] < 2**20


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\n", b"\r\n\r\n", b"\x16\x03\x01" * 9])
async def test_a_stranger_who_asks_nothing_is_let_go(sent: bytes) -> None:
    async with served(Bounds(wait_s=0.2)) as (port, guard):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        assert not (await until_closed(reader)).startswith(b"HTTP/1.1 200")
        writer.close()
        assert len(guard.strangers) == 0


@pytest.mark.parametrize("key", [None, KEY])
async def test_a_head_that_is_too_large_is_refused_while_it_comes(key: str | None) -> None:
    async with served(Bounds(head_bytes=1000)) as (port, _):
        for head_bytes, refused in ((1000, False), (1001, True)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            short = head(("GET", "/version"), "X: ", key=key)
            writer.write(short.replace(b"X: ", b"X: " + b"x" * (head_bytes - len(short))))
            status = int((await asyncio.wait_for(reader.readline(), 30)).split()[1])
            assert (status == 431) == refused
            writer.close()


async def test_of_many_strangers_the_oldest_go_and_who_has_the_key_is_served() -> None:
    async with served(Bounds(n_connections=20)) as (port, guard):
        known, to_known = await asyncio.open_connection("127.0.0.1", port)
        to_known.write(head(("GET", "/version")))
        assert (await reply(known))[0] == 200
        strangers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
        closed = await asyncio.gather(*(until_closed(reader) for reader, _ in strangers[:30]))
        assert closed == [b""] * 30
        assert len(guard.strangers) == 20
        to_known.write(head(("GET", "/version")))
        assert (await reply(known))[0] == 200
        for writer in (to_known, *(one for _, one in strangers)):
            writer.close()


async def test_a_websocket_is_no_way_in() -> None:
    upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eA==")
    async with served(Bounds()) as (port, _):
        for key, status in ((None, 401), (KEY, 404)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head(("GET", "/v1/realtime"), *upgrade, key=key))
            assert (await reply(reader))[0] == status
            writer.close()
