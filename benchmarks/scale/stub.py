"""A lean judge for load: vLLM's routes with canned replies, a few microseconds each.

    python benchmarks/scale/stub.py [--port N] [--latency SECONDS] [--log FILE]

Prints one JSON line, {"base_url", "model", "api_key"}, and serves until it is ended. It reads a request as
far as it must: path, length, the name of the reply schema. A verdict is 1 or 0 by a checksum of the
request, so a run that is repeated, or resumed, has the same scores. With --log each verdict's checksum is
written as one line before its reply is, which shows afterwards what was asked twice; /metrics has their number
as `airjudge_stub_requests_total`. What enforces schemas for
real, and what goes wrong, is the business of tests/stub.
"""

import argparse
import asyncio
import contextlib
import json
import re
import signal
import sys
import zlib
from pathlib import Path
from typing import TextIO

MODEL = "lean"
VERSION = "0.32.0"
MAX_MODEL_LEN = 32768

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_SCHEMA = re.compile(rb'"json_schema": ?\{"name": ?"(\w+)"')
_REFUSED = "Outlines structured outputs backend does not support json_object specifications"


def completion(text: str, top: list[tuple[str, float]]) -> bytes:
    """The body of a chat reply, with as many alternatives as our questions ask for."""
    entries = [{"token": token, "logprob": value, "bytes": list(token.encode())} for token, value in top]
    logprobs = {"content": [{**entries[0], "top_logprobs": entries}]} if entries else None
    message = {"role": "assistant", "content": text, "refusal": None, "annotations": None, "audio": None}
    choice = {"index": 0, "message": {**message, "function_call": None, "reasoning": None}, "logprobs": logprobs}
    usage = {"prompt_tokens": 200, "total_tokens": 201, "completion_tokens": 1, "completion_tokens_details": None}
    body = {
        "id": "chatcmpl-lean",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{**choice, "finish_reason": "length", "stop_reason": None, "token_ids": None}],
        "service_tier": None,
        "system_fingerprint": f"vllm-{VERSION}-1ea40000",
        "usage": {**usage, "prompt_tokens_details": {"cached_tokens": 160}},
        "prompt_logprobs": None,
    }
    return json.dumps(body, separators=(",", ":")).encode()


def verdict(label: str, other: str) -> bytes:
    """A verdict of probability .9 for its label; forbidden tokens fill the list up, as in vLLM."""
    masked = [(chr(ord("a") + n), -9999.0) for n in range(18)]
    return completion(label, [(label, -0.1053605), (other, -2.3025851), *masked])


def whole(status: bytes, body: bytes, kind: bytes = b"application/json") -> bytes:
    """A response as it goes over the wire."""
    head = b"HTTP/1.1 %b\r\ndate: Mon, 30 Nov 2026 00:00:00 GMT\r\nserver: uvicorn\r\ncontent-length: %d\r\n"
    return head % (status, len(body)) + b"content-type: %b\r\n\r\n" % kind + body


VERDICTS = (whole(b"200 OK", verdict("0", "1")), whole(b"200 OK", verdict("1", "0")))
OTHERS = {
    b"canary": whole(b"200 OK", completion('"canary"', [])),
    b"reason": whole(b"200 OK", completion('"The contexts say so."', [])),
}
NO_OBJECT = whole(b"400 Bad Request", json.dumps({"error": {"message": _REFUSED, "code": 400}}).encode())
ROUTES = {
    b"/version": whole(b"200 OK", json.dumps({"version": VERSION}).encode()),
    b"/health": whole(b"200 OK", b""),
    b"/v1/models": whole(
        b"200 OK", json.dumps({"object": "list", "data": [{"id": MODEL, "max_model_len": MAX_MODEL_LEN}]}).encode()
    ),
    b"/tokenize": whole(b"200 OK", json.dumps({"count": 200, "max_model_len": MAX_MODEL_LEN}).encode()),
}
METRICS = b'vllm:num_requests_waiting{engine="0"} 0.0\nairjudge_stub_requests_total %d\n'
NOT_FOUND = whole(b"404 Not Found", b'{"detail":"Not Found"}')


class Lean(asyncio.Protocol):
    """One kept-alive connection of the client."""

    n_verdicts = 0  # of all connections

    def __init__(self, latency_s: float, log: TextIO | None) -> None:
        """Read nothing yet."""
        self._latency_s, self._log = latency_s, log
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that has come in whole."""
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(self._read, 0, end)
            after = end + 4 + (int(found[1]) if found else 0)
            if len(self._read) < after:
                return
            request, self._read = self._read[:after], self._read[after:]
            self._answer(request.split(b" ", 2)[1], request, end)

    def _answer(self, path: bytes, request: bytes, end: int) -> None:
        if path == b"/metrics":
            self._transport.write(whole(b"200 OK", METRICS % Lean.n_verdicts, b"text/plain"))
            return
        if path != b"/v1/chat/completions":
            self._transport.write(ROUTES.get(path, NOT_FOUND))
            return
        found = _SCHEMA.search(request, end)
        name = found[1] if found else b""
        if name != b"verdict":
            self._transport.write(OTHERS.get(name, NO_OBJECT))
            return
        Lean.n_verdicts += 1
        checksum = zlib.crc32(request[end:])
        if self._log:
            self._log.write(f"{checksum:08x}\n")
        reply = VERDICTS[checksum & 1]
        if self._latency_s:
            asyncio.get_running_loop().call_later(self._latency_s, self._transport.write, reply)
        else:
            self._transport.write(reply)


async def serve(port: int, latency_s: float, log: TextIO | None) -> None:
    """Serve on loopback until the task is cancelled."""
    server = await asyncio.get_running_loop().create_server(lambda: Lean(latency_s, log), "127.0.0.1", port)
    line = {"base_url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", "model": MODEL, "api_key": "none"}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
    await server.serve_forever()


def main() -> None:
    """Read the options and serve until a signal ends the process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each verdict")
    parser.add_argument("--log", type=Path, help="file for the checksums of the verdicts asked for")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(options.log.open("a", encoding="ascii")) if options.log else None
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        asyncio.run(serve(options.port, options.latency, log))


if __name__ == "__main__":
    main()
