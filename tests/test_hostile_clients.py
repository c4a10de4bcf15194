"""A run on a server of ours while hostile clients do what they can at it: the run does not notice.

They are on the same machine, as any user of it may be; some of them have the key, as the run's own user has.
What a schema bomb with the key does is told in src/README.md: it takes minutes, and costs the run its time.
"""

import asyncio
import json
import math
import resource
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import aiohttp
import psutil
import pytest

from airjudge import ContextRecall, Judge
from airjudge.run import read_scored, score_dataset
from airjudge.server import Server

pytestmark = pytest.mark.server

MARK: Final = "Xylophones-from-Ulaanbaatar"
"""In every hostile text: neither the log nor a reply to anybody may hold it."""
PATTERN: Final = "(a|b)*a(a|b){18}"
"""Half a million states: over four minutes of a core, if a server began to compile it."""
SLOW_PATTERN: Final = "(a|b)*a(a|b){12}"
"""Seconds of a core, in which the server compiles nothing else."""
MB: Final = 2**20
N_CONNECTIONS: Final = 2000
PATIENCE_S: Final = 180.0
LEFT_OPEN: Final = b"- 0 neither answered nor closed"
MOST_STRANGERS: Final = 1024
NOISE: Final = 0.02
"""Between probabilities of one question in batches of different sizes."""

Pieces = AsyncIterator[bytes]


class Attacker:
    """What one kind of hostile client sends over a connection of its own, and what came back."""

    def __init__(self, name: str, pieces: Callable[[], Pieces]) -> None:
        self.name, self.pieces = name, pieces
        self.got: list[bytes] = []

    async def attack(self, port: int) -> None:
        """Send all of it, whatever comes, then read until the server closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answer = asyncio.create_task(_all_of(reader))
        try:
            async for piece in self.pieces():
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            pass
        try:
            self.got.append(await asyncio.wait_for(answer, PATIENCE_S))
        except TimeoutError:
            self.got.append(LEFT_OPEN)
        finally:
            await _close(writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def _all_of(reader: asyncio.StreamReader) -> bytes:
    got = b""
    try:
        while chunk := await reader.read(MB):
            got += chunk
    except ConnectionError:
        pass
    return got


def head(line: str, *more: str) -> bytes:
    lines = (f"{line} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *more, "", "")
    return "\r\n".join(lines).encode()


def post(path: str, body: bytes, *more: str) -> bytes:
    return head(f"POST {path}", f"Content-Length: {len(body)}", *more) + body


def chat(model: str, content: str, **more: object) -> bytes:
    messages = [{"role": "user", "content": content}]
    return json.dumps({"model": model, "messages": messages, "max_tokens": 3, "temperature": 0, **more}).encode()


def schema_of(schema: Mapping[str, object]) -> dict[str, object]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}}


async def at_once(data: bytes) -> Pieces:
    yield data


async def filled(first: bytes, piece: bytes, count: int, last: bytes = b"") -> Pieces:
    yield first
    for _ in range(count):
        yield piece
    yield last


async def slowly(data: bytes) -> Pieces:
    """A byte a second, for as long as the test may last."""
    for byte in data[:30]:
        yield bytes([byte])
        await asyncio.sleep(1)


def strangers(server: Server) -> Iterator[Attacker]:
    """Those who have no key, or not the right one."""
    ask = chat(server.model, MARK)
    bomb = chat(server.model, MARK, **schema_of({"type": "string", "pattern": PATTERN}))
    wrong = ("Authorization: Bearer wrong", f"Authorization: Basic {server.api_key}", f"X-Api-Key: {server.api_key}")
    texts: dict[str, bytes] = {
        "no key": post("/v1/chat/completions", ask),
        **{f"wrong key {n}": post("/v1/chat/completions", ask, one) for n, one in enumerate(wrong)},
        "key in the query": post(f"/v1/chat/completions?api_key={server.api_key}", ask),
        **{f"bomb {one}": post(one, bomb) for one in ("/v1/chat/completions", "/invocations", "/v1/completions")},
        **{f"POST {one}": post(one, ask) for one in (*BESIDE, *PATH_TRICKS)},
        **{f"GET {one}": head(f"GET {one}") for one in READ},
        **{f"method {one}": head(f"{one} /v1/models") for one in ("OPTIONS", "HEAD", "TRACE", "CONNECT", "BREW")},
        "deep JSON": post("/v1/chat/completions", b"[" * MB),
        "two heads": post("/v1/chat/completions", b"x" * 7) + head("GET /v1/models", f"X: {MARK}") * 50,
        "both lengths": head("POST /tokenize", "Content-Length: 3", "Transfer-Encoding: chunked") + b"0\r\n\r\n" + ask,
        "negative length": head("POST /tokenize", "Content-Length: -1") + ask,
        "no HTTP": f"{MARK}\r\n\r\n".encode(),
        "a version to come": f"GET /v1/models HTTP/7.3\r\nX: {MARK}\r\n\r\n".encode(),
        "a header without end": head("GET /v1/models", "X: " + MARK * (MB // len(MARK))),
        "many headers": head("GET /v1/models", *[f"X-{n}: {MARK}" for n in range(20_000)]),
        "a head with NUL": head("GET /v1/models", f"X: {MARK}\0"),
        "a websocket": head("GET /v1/realtime", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: eA=="),
    }
    for name, text in texts.items():
        yield Attacker(name, lambda text=text: at_once(text))  # type: ignore[misc]
    yield from large("stranger", ())
    yield Attacker("slow head", lambda: slowly(head("GET /v1/models")))


BESIDE: Final = (
    *("/tokenize", "/detokenize", "/generative_scoring", "/pooling", "/classify", "/score", "/rerank", "/ping"),
    *("/scale_elastic_ep", "/inference/v1/abort_requests", "/v1/responses", "/v1/load_lora_adapter"),
)
READ: Final = ("/metrics", "/load", "/version", "/server_info", "/docs", "/ping", "/health/../v1/models")
PATH_TRICKS: Final = (
    *("//v1/chat/completions", "/v1/../v1/chat/completions", "/health/../v1/chat/completions", "/V1/chat/completions"),
    *("/v1%2fchat%2fcompletions", "/%76%31/chat/completions", "/v1/chat/completions/", "/health/", "/health%00"),
    *("/v1/chat/completions;.css", "http://localhost/v1/chat/completions", "/health?/../v1/models", "*"),
)


def large(who: str, keys: tuple[str, ...]) -> Iterator[Attacker]:
    """Fifty megabytes, with their length told and not told."""
    told = head("POST /v1/chat/completions", f"Content-Length: {50 * MB}", *keys)
    chunked = head("POST /v1/chat/completions", "Transfer-Encoding: chunked", *keys)
    yield Attacker(f"50 MB of a {who}", lambda: filled(told, b"x" * MB, 50))
    yield Attacker(
        f"50 MB in chunks of a {who}", lambda: filled(chunked, b"100000\r\n" + b"x" * MB + b"\r\n", 50, b"0\r\n\r\n")
    )


def holders(server: Server) -> Iterator[Attacker]:
    """Those who have the key and mean no good."""
    key = f"Authorization: Bearer {server.api_key}"
    yield from large("holder", (key,))
    yield Attacker("deep JSON", lambda: at_once(post("/v1/chat/completions", b"[" * 500_000, key, "Connection: close")))
    yield Attacker("slow body", lambda: slowly_after(head("POST /v1/chat/completions", "Content-Length: 99999", key)))
    heavy = chat(server.model, MARK, **schema_of({"type": "string", "pattern": SLOW_PATTERN}))
    yield Attacker("heavy schema", lambda: at_once(post("/v1/chat/completions", heavy, key, "Connection: close")))
    yield Attacker("elsewhere", lambda: at_once(post("/invocations", chat(server.model, MARK), key)))


async def slowly_after(first: bytes) -> Pieces:
    yield first
    async for byte in slowly(b"x" * 99999):
        yield byte


def rows(folder: Path) -> Path:
    contexts = ["The ferry departs at six.", "It carries no cars."]
    lines = [
        {"user_input": "When?", "retrieved_contexts": contexts, "reference": f"Ferry {n} departs at {n}."}
        for n in range(40)
    ]
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


async def verdicts(server: Server, data: Path, out: Path) -> list[tuple[str, bool | None, float | None]]:
    """A run from begin to end: each verdict, and its probability."""
    judge = Judge.connect(server.base_url, server.model, api_key=server.api_key)
    header = await score_dataset(data, ContextRecall(judge), out)
    assert (header.summary.n_scored, header.summary.failures) == (40, {})
    return [(one.text, one.attributed, one.probability) for sample in read_scored(out) for one in sample.statements]


def front(server: Server) -> psutil.Process:
    """The process that holds the server's port, and reads what clients send."""
    family = psutil.Process(server.pid).children(recursive=True)
    port = int(server.base_url.split(":")[2].removesuffix("/v1"))
    return next(
        one
        for one in family
        if any(held.status == "LISTEN" and held.laddr.port == port for held in one.net_connections("tcp"))
    )


class Assault:
    """Every attacker at once, before two thousand connections that say nothing, again and again until it is ended."""

    def __init__(self, server: Server) -> None:
        self.port = int(server.base_url.split(":")[2].removesuffix("/v1"))
        self.front = front(server)
        self.strangers, self.holders = list(strangers(server)), list(holders(server))
        self.begun, self.enough = threading.Event(), threading.Event()
        self.memory_at_first, self.most_memory, self.most_connections = self.front.memory_info().rss, 0, 0

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        silent = [(await asyncio.open_connection("127.0.0.1", self.port))[1] for _ in range(N_CONNECTIONS)]
        looking = asyncio.create_task(self._look())
        self.begun.set()
        while True:
            await asyncio.gather(*(one.attack(self.port) for one in (*self.strangers, *self.holders)))
            if self.enough.is_set():
                break
        looking.cancel()
        await asyncio.gather(*map(_close, silent))

    async def _look(self) -> None:
        while True:
            self.most_memory = max(self.most_memory, self.front.memory_info().rss)
            open_now = [one for one in self.front.net_connections("tcp") if one.status == "ESTABLISHED"]
            self.most_connections = max(self.most_connections, len(open_now))
            await asyncio.sleep(0.5)


def statuses(attacker: Attacker) -> set[int]:
    """What it was answered: nothing where the server closed without a word, 0 where it did not even close."""
    return {int(got.split()[1]) for got in attacker.got if got}


@pytest.fixture
def many_files() -> Iterator[None]:
    """Room for the connections of all attackers in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * N_CONNECTIONS)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.timeout(1200)
async def test_a_run_gives_the_same_verdicts_while_hostile_clients_do_what_they_can(
    smollm_server: Server, many_files: None, tmp_path: Path
) -> None:
    data = rows(tmp_path)
    in_peace = await verdicts(smollm_server, data, tmp_path / "peace")
    assault = Assault(smollm_server)
    attacking = asyncio.create_task(asyncio.to_thread(assault.run))
    try:
        assert await asyncio.to_thread(assault.begun.wait, 120)
        under_attack = await verdicts(smollm_server, data, tmp_path / "attack")
    finally:
        assault.enough.set()
        await attacking
    for (text, attributed, p), (other_text, other_attributed, other_p) in zip(in_peace, under_attack, strict=True):
        assert text == other_text
        assert math.isclose(p or 0, other_p or 0, abs_tol=NOISE)
        assert attributed == other_attributed or abs((p or 0) - 0.5) < NOISE

    assert {one.name: statuses(one) for one in assault.strangers if not statuses(one) <= {400, 401, 431}} == {}
    told = {one.name: statuses(one) for one in assault.holders}
    assert told == {
        "50 MB of a holder": {413},
        "50 MB in chunks of a holder": {413},
        "deep JSON": {400},
        "slow body": {408},
        "heavy schema": {200},
        "elsewhere": {404},
    }
    everything = b"".join(got for one in (*assault.strangers, *assault.holders) for got in one.got)
    log = smollm_server.log.read_bytes()
    for secret in (MARK.encode(), smollm_server.api_key.encode(), b"departs at"):
        assert secret not in everything
        assert secret not in log
    assert assault.most_connections <= MOST_STRANGERS + 256
    assert assault.most_memory - assault.memory_at_first < 200 * MB


@pytest.mark.timeout(600)
async def test_two_clients_with_the_key_get_their_own_replies_and_refusals(smollm_server: Server) -> None:
    async def client(name: str) -> None:
        headers = {"Authorization": f"Bearer {smollm_server.api_key}"}
        url = f"{smollm_server.base_url}/chat/completions"
        async with aiohttp.ClientSession(headers=headers) as session:
            for n in range(20):
                words = [f"{name}-{n}-yes", f"{name}-{n}-no"]
                body = chat(
                    smollm_server.model, f"Say {words[0]}.", **schema_of({"enum": words}), max_completion_tokens=30
                )
                async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
                    said = json.loads((await response.json())["choices"][0]["message"]["content"])
                assert said in words
                wrong = chat(smollm_server.model, f"Say {words[0]}.", n=f"{name}-{n}")
                async with session.post(url, data=wrong, headers={"Content-Type": "application/json"}) as response:
                    assert response.status == 400
                    refusal = await response.text()
                assert not [other for other in CLIENTS if other != name and other in refusal]

    await asyncio.gather(*(client(name) for name in CLIENTS))


CLIENTS: Final = ("Aardvark", "Bumblebee", "Cormorant")
