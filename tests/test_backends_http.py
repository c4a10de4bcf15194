"""Where data may go: base URLs, private addresses, redirects, and what a server may send back."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from airjudge.backends.http import MAX_REPLY_BYTES, HttpFault, HttpSession, parse_address
from airjudge.errors import InputError, JudgeForeign, JudgeRemote, JudgeUnauthorized
from tests.stub import Fault, Stub
from tests.stub import faults as faults_of


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.mark.parametrize(
    ("given", "base_url"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("https://[::1]:8443/judges/a/v1", "https://[::1]:8443/judges/a/v1"),
        (" http://localhost/gateway/ ", "http://localhost/gateway/v1"),
    ],
)
def test_a_base_url_is_read_with_or_without_v1_slash_and_prefix(given: str, base_url: str) -> None:
    assert parse_address(given, allow_remote=False).base_url == base_url


@pytest.mark.parametrize(
    "given", ["", "127.0.0.1:8000", "file:///etc/passwd", "http://", "http://a/v1?x=1", "http://u@a"]
)
def test_what_is_no_base_url_is_an_input_error(given: str) -> None:
    with pytest.raises(InputError):
        parse_address(given, allow_remote=True)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.9.9", "[::1]", "10.1.2.3", "172.16.0.1", "192.168.1.1", "[fd00::1]"]
)
def test_loopback_and_private_addresses_are_allowed(host: str) -> None:
    assert parse_address(f"http://{host}:8000", allow_remote=False).root == f"http://{host}:8000"


@pytest.mark.parametrize(
    "host", ["8.8.8.8", "172.32.0.1", "0.0.0.0", "[2001:db8::1]", "[::ffff:8.8.8.8]", "192.0.2.7", "100.64.0.1"]
)
def test_any_other_address_needs_allow_remote(host: str) -> None:
    with pytest.raises(JudgeRemote):
        parse_address(f"http://{host}:8000", allow_remote=False)
    assert parse_address(f"http://{host}:8000", allow_remote=True).root == f"http://{host}:8000"


async def test_a_name_is_refused_when_it_resolves_to_an_address_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        inside, outside = ("127.0.0.1", port), ("203.0.113.9", port)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in (inside, outside)]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    address = parse_address("http://judge.example:8000", allow_remote=False)
    async with HttpSession(address, api_key=None, allow_remote=False) as session:
        with pytest.raises(JudgeRemote, match=r"judge\.example"):
            await session.get(address.root, timeout_s=5)


async def test_a_name_of_this_machine_is_allowed(stub: Stub) -> None:
    address = parse_address(stub.base_url.replace("127.0.0.1", "localhost"), allow_remote=False)
    async with HttpSession(address, api_key=None, allow_remote=False) as session:
        assert b"0.32.0" in await session.get(f"{address.root}/version", timeout_s=5)


async def test_a_proxy_of_the_environment_is_not_used(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    address = parse_address(stub.base_url, allow_remote=False)
    async with HttpSession(address, api_key=None, allow_remote=False) as session:
        assert b"0.32.0" in await session.get(f"{address.root}/version", timeout_s=5)


async def test_a_redirect_is_not_followed(stub: Stub) -> None:
    stub.faults.append(
        Fault(faults_of.respond(302, "", {"Location": stub.base_url}), when=faults_of.on_path("/version"))
    )
    address = parse_address(stub.base_url, allow_remote=False)
    async with HttpSession(address, api_key=None, allow_remote=False) as session:
        with pytest.raises(JudgeForeign, match="redirects"):
            await session.get(f"{address.root}/version", timeout_s=5)
    assert len(stub.requests) == 1


async def test_the_key_is_sent_and_never_told(stub: Stub) -> None:
    address = parse_address(stub.base_url, allow_remote=False)
    async with HttpSession(address, api_key="very-secret", allow_remote=False) as session:
        with pytest.raises(JudgeUnauthorized) as caught:
            await session.get(f"{address.base_url}/models", timeout_s=5)
    assert stub.requests[0].headers["authorization"] == "Bearer very-secret"
    assert "very-secret" not in str(caught.value) + caught.value.hint


async def test_a_body_without_end_is_cut_off(stub: Stub) -> None:
    endless = faults_of.respond(200, "x" * (MAX_REPLY_BYTES + 2**20))
    stub.faults.append(Fault(endless, when=faults_of.on_path("/version")))
    address = parse_address(stub.base_url, allow_remote=False)
    async with HttpSession(address, api_key=None, allow_remote=False) as session:
        with pytest.raises(HttpFault, match="more than"):
            await session.get(f"{address.root}/version", timeout_s=30)
