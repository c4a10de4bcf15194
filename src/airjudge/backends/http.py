"""One HTTP exchange with a judge: where it may go, and what can go wrong with it.

Redirects are not followed and proxies of the environment are not used: data go to the address that
the user named, or nowhere. Unless remote addresses are allowed, a name is resolved and refused at the
moment of connecting, so that it cannot point elsewhere later.
"""

import asyncio
import ipaddress
import socket
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from airjudge.backends.refusal import asked_pause_s, read_refusal
from airjudge.errors import (
    InputError,
    JudgeForeign,
    JudgeRemote,
    JudgeUnauthorized,
    JudgeUnreachable,
    RequestTimeout,
)

MAX_REPLY_BYTES = 16 * 2**20
"""No reply to our questions comes near; a server that sends more is not a judge."""

SHORTEST_SECRET = 12
"""Characters of an API key from which on it is taken out of what a server says."""

PRIVATE = tuple(
    ipaddress.ip_network(network)
    for network in ("127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fe80::/10")
)
"""Loopback, RFC 1918, RFC 4193 and IPv6 link-local: where data may go without --allow-remote."""


class HttpFault(Exception):
    """A failed exchange that another try, or the caller's knowledge, may settle.

    `status` is the HTTP status, or 0 when the connection broke; `retry_after_s` is what the server asked for;
    `code` is its name for the error, if it has one.
    """

    def __init__(self, status: int, message: str, retry_after_s: float | None = None, *, code: str = "") -> None:
        """Keep status, the server's own words and code, and the pause it asked for in seconds."""
        super().__init__(status, message, retry_after_s)
        self.status, self.message, self.retry_after_s, self.code = status, message, retry_after_s, code

    def __str__(self) -> str:
        """Say what the server said."""
        return f"HTTP {self.status}: {self.message}" if self.status else self.message


@dataclass(frozen=True, slots=True)
class Address:
    """Where a judge is: `root` has the routes without key, `base_url` is root + /v1."""

    root: str

    @property
    def base_url(self) -> str:
        """The address as OpenAI clients take it."""
        return f"{self.root}/v1"

    @property
    def host(self) -> str:
        """The name or number of its machine."""
        return urlsplit(self.root).hostname or ""

    @property
    def port(self) -> int:
        """Its TCP port."""
        return urlsplit(self.root).port or (443 if self.is_encrypted else 80)

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection to it is."""
        return urlsplit(self.root).scheme == "https"


def parse_address(base_url: str, *, allow_remote: bool) -> Address:
    """Read a base URL, with or without /v1, a trailing slash or a path prefix.

    Raises:
        InputError: If it is no http(s) URL, or holds a user name, a query or a fragment.
        JudgeRemote: If it names an address that is neither loopback nor private.
    """
    text = base_url.strip()
    parts = urlsplit(text)
    hint = "A base URL looks like http://127.0.0.1:8000/v1"
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        msg = f"not an http(s) base URL: {text!r}"
        raise InputError(msg, hint)
    if parts.username or parts.password or parts.query or parts.fragment:
        msg = "a base URL has no user name, query or fragment"
        raise InputError(msg, hint)
    if not allow_remote and _is_ip(parts.hostname) and not _is_private(parts.hostname):
        raise JudgeRemote(_remote_message(parts.hostname))
    path = parts.path.rstrip("/").removesuffix("/v1")
    return Address(f"{parts.scheme}://{parts.netloc}{path}")


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_private(address: str) -> bool:
    """Whether an address is of this machine or of a network that the internet does not route."""
    ip = ipaddress.ip_address(address.split("%", maxsplit=1)[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return any(ip in network for network in PRIVATE)


def _remote_message(host: str) -> str:
    return f"{host} is neither a loopback nor a private address"


class _PrivateResolver(AbstractResolver):
    """Resolves as the system does, and refuses a name with an address outside."""

    def __init__(self) -> None:
        """Use the system's resolver, in a thread."""
        self._system = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Resolve a name.

        Raises:
            JudgeRemote: If any of its addresses is neither loopback nor private.
        """
        found = await self._system.resolve(host, port, family)
        if not all(_is_private(one["host"]) for one in found):
            raise JudgeRemote(_remote_message(host))
        return found

    async def close(self) -> None:
        """Close the system's resolver."""
        await self._system.close()


class HttpSession:
    """Kept-alive connections to one judge, of one event loop."""

    def __init__(self, address: Address, *, api_key: str | None, allow_remote: bool) -> None:
        """Open nothing yet; who asks bounds the number of connections."""
        self.address = address
        # A short key may be a word of any reply; those of providers are longer.
        self._secret = api_key.encode() if api_key and len(api_key) >= SHORTEST_SECRET else None
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._allow_remote = allow_remote
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Make the connection pool."""
        resolver = None if self._allow_remote else _PrivateResolver()
        connector = aiohttp.TCPConnector(limit=0, resolver=resolver)
        self._session = aiohttp.ClientSession(connector=connector, trust_env=False, auto_decompress=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session:
            await session.close()

    async def get(self, url: str, *, timeout_s: float) -> bytes:
        """Fetch a body.

        Raises:
            AirjudgeError: As `post`.
        """
        return await self._exchange("GET", url, None, timeout_s=timeout_s)

    async def post(self, url: str, body: bytes, *, timeout_s: float) -> bytes:
        """Send a JSON body and read a body back, once.

        Raises:
            HttpFault: If the status is not 2xx, or the connection broke on the way.
            JudgeUnreachable: If no connection can be made.
            JudgeUnauthorized: If the status is 401 or 403.
            JudgeForeign: If the server redirects.
            RequestTimeout: If nothing came in time.
        """
        return await self._exchange("POST", url, body, timeout_s=timeout_s)

    async def _exchange(self, method: str, url: str, body: bytes | None, *, timeout_s: float) -> bytes:
        if self._session is None:
            msg = "the judge is not open: use 'async with judge:'"
            raise ValueError(msg)
        headers = self._headers | ({"Content-Type": "application/json"} if body is not None else {})
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._session.request(
                    method,
                    url,
                    data=body,
                    headers=headers,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(),
                ) as response,
            ):
                received = bytearray(await response.content.read(MAX_REPLY_BYTES + 1))
                while received and not response.content.at_eof() and len(received) <= MAX_REPLY_BYTES:
                    received += await response.content.read(MAX_REPLY_BYTES + 1 - len(received))
        except TimeoutError as error:
            raise RequestTimeout(timeout_s) from error
        except aiohttp.ClientConnectorError as error:
            raise _unreachable(url, error) from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise HttpFault(0, f"the connection broke: {str(error) or type(error).__name__}") from error
        raw = bytes(received)
        if len(raw) > MAX_REPLY_BYTES:
            raise HttpFault(response.status, f"more than {MAX_REPLY_BYTES} bytes came back")
        if self._secret:  # an error may quote it, and errors are shown and logged
            raw = raw.replace(self._secret, b"***")
        _check_status(response, raw, url)
        return raw


def _check_status(response: aiohttp.ClientResponse, raw: bytes, url: str) -> None:
    """Raise for a status that is not 2xx, in the server's own words."""
    if 200 <= response.status < 300:
        return
    said = read_refusal(raw)
    if response.status in {401, 403}:
        # What is said to a wrong key may quote it; what is said to a right one tells what it may not do.
        why = f": {said.words}" if response.status == 403 else ""
        msg = f"{url} refuses the API key (HTTP {response.status}){why}"
        raise JudgeUnauthorized(msg)
    if 300 <= response.status < 400:
        msg = f"{url} redirects elsewhere; redirects are not followed"
        raise JudgeForeign(msg)
    raise HttpFault(response.status, said.words, asked_pause_s(response.headers), code=said.code)


def _unreachable(url: str, error: aiohttp.ClientConnectorError) -> JudgeUnreachable:
    """Nobody there, or somebody whose TLS this machine does not accept."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
        msg = f"the certificate of {url} is not accepted: {why}"
        return JudgeUnreachable(msg, "Check the address; trust an authority of your own with SSL_CERT_FILE=FILE.")
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        reason = getattr(error.os_error, "reason", None) or error.os_error
        msg = f"no TLS connection to {url}: {reason}"
        return JudgeUnreachable(msg, "Check whether the port speaks https or http.")
    msg = f"nobody answers at {url}: {error.os_error.strerror or error}"
    return JudgeUnreachable(msg)
