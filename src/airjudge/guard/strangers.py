"""Connections that have not shown the key yet: how many, how long, and how much of them is read.

uvicorn keeps a connection that sends nothing for ever, collects a head of any size, and begins on requests
that are sent behind the first before that is answered. An ASGI application sees none of this, so a protocol
of ours stands between the socket and uvicorn's. Of a stranger it hands on one head, and holds back the rest
until the key was in it; a connection that has shown the key is uvicorn's alone.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

Peer = tuple[str, int]
Maker = Callable[..., asyncio.Protocol]

_HEAD_END: Final = b"\r\n\r\n"
_HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What strangers may take: bytes of a head, seconds until they have shown the key, connections at a time.

    An airjudge opens at most 256 connections at once, and each shows the key as soon as it is there.
    """

    head_bytes: int = 16 * 1024
    wait_s: float = 30.0
    n_connections: int = 1024


class UvicornConfig(Protocol):
    """The part of `uvicorn.Config` that is used: what is made for each connection, and for websockets."""

    http_protocol_class: Any
    ws_protocol_class: Any


class Strangers:
    """All connections that have not shown the key, oldest first."""

    def __init__(self, bounds: Bounds) -> None:
        """Begin with none."""
        self.bounds = bounds
        self._waiting: dict[Peer, Connection] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._waiting)

    def take_over(self, config: UvicornConfig) -> None:
        """Stand before each connection that a uvicorn accepts from now on; websockets are none of a judge's."""
        made: Maker = config.http_protocol_class
        config.http_protocol_class = lambda **given: Connection(made(**given), self)
        config.ws_protocol_class = None

    def add(self, connection: "Connection") -> None:
        """Take one in; if there are too many the oldest goes, for an honest one is no stranger for long."""
        self._waiting[connection.peer] = connection
        if len(self._waiting) > self.bounds.n_connections:
            next(iter(self._waiting.values())).drop()

    def discard(self, connection: "Connection") -> None:
        """Let one go, because it showed the key or is closed."""
        if self._waiting.get(connection.peer) is connection:
            del self._waiting[connection.peer]

    def trust(self, peer: Peer | None) -> None:
        """A request from there held the key."""
        connection = self._waiting.get(peer) if peer else None
        if connection is not None:
            connection.trust()


class Connection(asyncio.Protocol):
    """One connection, before the protocol of the server that is to serve it."""

    def __init__(self, inner: asyncio.Protocol, among: Strangers) -> None:
        """Begin as a stranger."""
        self._inner, self._among = inner, among
        self._held = bytearray()
        self._is_stranger, self._has_asked = True, False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the key."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are one without being of this class
        name = transport.get_extra_info("peername")
        self.peer: Peer = (name[0], name[1]) if name else ("", id(self))
        self._end = asyncio.get_running_loop().call_later(self._among.bounds.wait_s, self.drop)
        self._inner.connection_made(transport)
        self._among.add(self)

    def data_received(self, data: bytes) -> None:
        """Hand on what a known one sends; of a stranger one head, unless it is too large."""
        if not self._is_stranger:
            self._inner.data_received(data)
            return
        searched = max(0, len(self._held) - len(_HEAD_END) + 1)
        self._held += data
        if self._has_asked:
            return  # what comes after reading was paused waits too
        at_most = self._among.bounds.head_bytes
        end = self._held.find(_HEAD_END, searched, at_most)
        if end >= 0:
            head = bytes(self._held[: end + len(_HEAD_END)])
            del self._held[: len(head)]
            self._has_asked = True
            self._transport.pause_reading()
            self._inner.data_received(head)
        elif len(self._held) >= at_most:
            self._transport.write(_HEAD_TOO_LARGE)
            self._transport.close()
            self._held.clear()

    def trust(self) -> None:
        """Hand on what was held back, and from now on everything."""
        self._is_stranger = False
        self._end.cancel()
        self._among.discard(self)
        if not self._transport.is_closing():
            self._transport.resume_reading()
            if self._held:
                self._inner.data_received(bytes(self._held))
                self._held.clear()

    def drop(self) -> None:
        """Close it, whatever it is doing."""
        self._among.discard(self)
        self._transport.abort()

    def eof_received(self) -> bool | None:
        """Hand on."""
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._end.cancel()
        self._among.discard(self)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Hand on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Hand on."""
        self._inner.resume_writing()
