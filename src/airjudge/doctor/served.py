"""What a judge's server enforces, and to whom it opens which of its routes."""

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Final

import psutil

from airjudge.backends.faults import FAULTS
from airjudge.backends.http import Address, HttpFault, HttpSession, parse_address
from airjudge.backends.vllm import Connection, VllmBackend
from airjudge.doctor import installed, process
from airjudge.doctor.findings import Finding
from airjudge.errors import JudgeError, JudgeUnauthorized, JudgeUnreachable
from airjudge.judge import ServerFacts, prove

LOOK_S: Final = 5.0
"""How long a route is waited for, and a connection."""

_BESIDE_V1: Final = {
    "/invocations": b"{}",
    "/generative_scoring": b"{}",
    "/tokenize": b"{}",
    "/detokenize": b"{}",
    "/metrics": None,
    "/load": None,
}
"""Routes that vLLM's own key does not guard, with what is sent to each: nothing that one could answer."""
_DOCS: Final = ("/docs", "/redoc", "/openapi.json")
_DEVELOPER: Final = ("/server_info", "/is_sleeping")
"""Routes that vLLM has in developer mode alone, and that change nothing when they are read."""


async def of_server(connection: Connection, model: str | None) -> list[Finding]:
    """Everything that can be told of a server by asking it; nothing private is sent."""
    async with VllmBackend(connection, model=model) as backend:
        try:
            facts = await prove(backend, "pointwise")
        except JudgeUnreachable as error:
            return [_serious(error, "nothing can be scored")]
        except JudgeError as error:
            found = [_serious(error, "no score of it can be trusted")]
        else:
            found = list(_of_facts(facts))
    address = parse_address(connection.base_url, allow_remote=connection.allow_remote)
    exposed = await _exposed(address)
    found += _of_addresses(address, exposed)
    async with HttpSession(address, api_key=None, allow_remote=connection.allow_remote) as nobody:
        found += [one async for one in _of_key(nobody, reached_from_outside=bool(exposed))]
        found += [one async for one in _of_extras(nobody)]
    return found + list(_of_process(address))


def _of_facts(facts: ServerFacts) -> Iterator[Finding]:
    yield installed.of_server(facts.version)
    told = f"{facts.model} keeps to the reply schema"
    if facts.enforcement == "outlines":
        yield Finding(area="enforcement", level="ok", found=f"{told}; outlines enforces it (probe and canary)")
    else:
        which = "outlines does not enforce it" if facts.enforcement == "other" else "what enforces it is not told"
        yield Finding(
            area="enforcement",
            level="note",
            found=f"{told} (canary); {which}",
            consequence="scores are valid; the signature names it, so that they do not pass for those of outlines",
            fix="""vllm serve ... --structured-outputs-config '{"backend":"outlines"}', or: airjudge serve""",
        )
    if facts.thinking is not None:
        yield Finding(
            area="enforcement",
            level="note",
            found=f"the model thinks before it replies when it may; under a schema thinking is {facts.thinking}",
            consequence="its verdicts are those of a model that is kept from thinking"
            if facts.thinking == "off"
            else "verdicts cost many tokens each",
            fix="choose a model that does not think, or turn it off in its chat template",
        )


def _serious(error: JudgeError, consequence: str) -> Finding:
    return Finding(area="enforcement", level="serious", found=str(error), consequence=consequence, fix=error.hint)


async def _exposed(address: Address) -> list[str]:
    """Addresses of this machine, other than loopback, at which a server on it answers too."""
    if not await asyncio.to_thread(_is_here, address.host):
        return []
    own = [one for one in _own_addresses() if not ipaddress.ip_address(one).is_loopback]
    answers = await asyncio.gather(*(_answers(one, address.port) for one in own))
    return [one for one, answered in zip(own, answers, strict=True) if answered]


def _of_addresses(address: Address, exposed: Sequence[str]) -> Iterator[Finding]:
    if not _is_here(address.host):
        if not address.is_encrypted:
            yield Finding(
                area="exposure",
                level="warning",
                found=f"{address.host} is another machine, and the connection to it is not encrypted",
                consequence="whoever sits on the way reads contexts, references and verdicts",
                fix="use https, a tunnel (ssh -L), or run airjudge beside the server",
            )
    elif exposed:
        yield Finding(
            area="exposure",
            level="warning",
            found=f"port {address.port} answers beyond loopback, at {', '.join(exposed)}",
            consequence="whoever reaches this machine reaches the server",
            fix="start it with --host 127.0.0.1, or: airjudge serve",
        )
    else:
        yield Finding(area="exposure", level="ok", found=f"port {address.port} answers on loopback alone")


async def _of_key(nobody: HttpSession, *, reached_from_outside: bool) -> AsyncIterator[Finding]:
    """Whether a key is wanted, and where not."""
    if await _is_open(nobody, f"{nobody.address.base_url}/models"):
        yield Finding(
            area="exposure",
            level="serious" if reached_from_outside else "warning",
            found="it answers without an API key",
            consequence="whoever reaches it can use it, slow it down, and fill its cache"
            + ("" if reached_from_outside else "; here that is every user of this machine"),
            fix="start it with VLLM_API_KEY=SECRET, or: airjudge serve",
        )
        return
    yield Finding(area="exposure", level="ok", found="its /v1 routes want a key")
    beside = [one for one, body in _BESIDE_V1.items() if await _is_open(nobody, nobody.address.root + one, body)]
    if beside:
        yield Finding(
            area="exposure",
            level="serious" if reached_from_outside else "note",
            found=f"without a key it answers {', '.join(beside)}: vLLM's own guards /v1 alone",
            consequence="whoever reaches it can use these: ask the model, time what is in its cache, read its counters",
            fix="airjudge serve, which wants its key everywhere; or let a proxy pass /v1 alone",
        )
    else:
        yield Finding(area="exposure", level="ok", found="so do the routes beside them that were tried")


async def _of_extras(nobody: HttpSession) -> AsyncIterator[Finding]:
    """Routes that a server for scoring need not have."""
    docs = [one for one in _DOCS if await _is_open(nobody, nobody.address.root + one)]
    if docs:
        yield Finding(
            area="exposure",
            level="note",
            found=f"it shows its documentation: {', '.join(docs)}",
            consequence="strangers see what there is to try",
            fix="start it with --disable-fastapi-docs",
        )
    developer = [one for one in _DEVELOPER if await _is_open(nobody, nobody.address.root + one)]
    if developer:
        yield Finding(
            area="exposure",
            level="serious",
            found=f"it runs in developer mode: {', '.join(developer)}",
            consequence="whoever reaches it controls the engine",
            fix="start it without VLLM_SERVER_DEV_MODE",
        )


async def _is_open(nobody: HttpSession, url: str, body: bytes | None = None) -> bool:
    """Whether a route lets a request without a key in; what it thinks of the request itself does not matter."""
    try:
        if body is None:
            await nobody.get(url, timeout_s=LOOK_S)
        else:
            await nobody.post(url, body, timeout_s=LOOK_S)
    except HttpFault as fault:
        return body is not None and fault.status in {400, 415, 422}
    except (JudgeUnauthorized, *FAULTS):
        return False
    return True


def _of_process(address: Address) -> Iterator[Finding]:
    if not _is_here(address.host):
        return
    seen = process.listening_on(address.port)
    if seen is not None:
        yield from process.of_process(seen)
        return
    yield Finding(
        area=process.AREA,
        level="note",
        found=f"the process behind port {address.port} cannot be looked at from here",
        consequence="whether it logs requests, or sends usage statistics, cannot be told",
        fix="run airjudge doctor as the user who started it, outside of its container's bounds",
    )


def _is_here(host: str) -> bool:
    """Whether a host is this machine, by all of its addresses."""
    try:
        found = {one[4][0] for one in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except OSError:
        return False
    own = set(_own_addresses())
    return all(ipaddress.ip_address(one).is_loopback or one in own for one in map(str, found))


def _own_addresses() -> list[str]:
    """Addresses of this machine's interfaces, without those that need an interface's name beside them."""
    families = (socket.AF_INET, socket.AF_INET6)
    found = [one.address for many in psutil.net_if_addrs().values() for one in many if one.family in families]
    return sorted({one for one in found if "%" not in one})


async def _answers(host: str, port: int) -> bool:
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(LOOK_S):
            _, writer = await asyncio.open_connection(host, port)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return True
    return False
