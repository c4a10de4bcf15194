"""What goes wrong with providers: each an error with a next step, or a sample's own failure."""

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from airjudge import Judge
from airjudge.errors import (
    JudgeError,
    JudgeForeign,
    JudgeNotServed,
    JudgeQuota,
    JudgeUnauthorized,
    JudgeUnreachable,
)
from tests.providers import ABOUT_MIDDLE, THREE, hosted, refused, run
from tests.rows import kinds
from tests.stub import Fault, HostedStub, Stub
from tests.stub import faults as faults_of


@pytest.fixture
def provider() -> Iterator[HostedStub]:
    with HostedStub() as running:
        yield running


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": {"message": "Incorrect API key provided: sk-hosted-secret"}}, JudgeUnauthorized),
        (403, {"error": {"message": "The key sk-hosted-secret may not use this"}}, JudgeUnauthorized),
        (404, {"error": {"message": "The model `gpt-stub` does not exist", "code": "model_not_found"}}, JudgeNotServed),
        (404, "<html>not here</html>", JudgeForeign),
        (200, "<html>Welcome</html>", JudgeForeign),
        (200, {"error": {"message": "sk-hosted-secret"}}, JudgeForeign),
        (307, "", JudgeForeign),
        (400, {"error": {"message": "sk-hosted-secret: bad"}}, JudgeNotServed),
        (500, "sk-hosted-secret", JudgeUnreachable),
        (402, {"error": {"message": "Insufficient Balance"}}, JudgeQuota),
        (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}, JudgeQuota),
        (429, {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}}, JudgeQuota),
    ],
)
async def test_what_a_provider_says_before_the_run_becomes_an_error_with_a_next_step_and_without_the_key(
    provider: HostedStub, status: int, body: Any, kind: type[JudgeError]
) -> None:
    provider.faults.append(Fault(faults_of.respond(status, body, {"Location": "http://127.0.0.1:9"})))
    error = await refused(hosted(provider))
    assert type(error) is kind
    assert error.hint
    assert "sk-hosted-secret" not in repr(error) + str(error) + error.hint


async def test_a_model_that_is_not_there_is_named(provider: HostedStub) -> None:
    error = await refused(Judge.hosted(provider.base_url, "gpt-9", api_key=provider.api_key))
    assert isinstance(error, JudgeNotServed)
    assert "gpt-9" in str(error)


async def test_nobody_there_is_told_at_once() -> None:
    assert isinstance(await refused(Judge.hosted("http://127.0.0.1:9/v1", "m")), JudgeUnreachable)


async def test_a_port_without_tls_is_told_as_such(provider: HostedStub) -> None:
    error = await refused(Judge.hosted(provider.base_url.replace("http", "https"), "m"))
    assert isinstance(error, JudgeUnreachable)
    assert "TLS" in str(error)


@pytest.fixture
def self_signed(tmp_path: Path) -> ssl.SSLContext:
    """TLS of a server whose certificate nobody signed."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1")
    subject = ("-subj", "/CN=localhost", "-keyout", key, "-out", certificate)
    subprocess.run(["openssl", *made, *subject], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


async def test_a_certificate_that_nobody_here_trusts_is_told_with_what_to_do(self_signed: ssl.SSLContext) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def shake_hands() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError), self_signed.wrap_socket(connection, server_side=True):
                pass

        handshake = asyncio.create_task(asyncio.to_thread(shake_hands))
        error = await refused(Judge.hosted(f"https://127.0.0.1:{server.getsockname()[1]}/v1", "m"))
        await handshake
    assert isinstance(error, JudgeUnreachable)
    assert "certificate" in str(error)
    assert "SSL_CERT_FILE" in error.hint


async def test_a_vllm_server_may_be_asked_as_a_provider(tmp_path: Path) -> None:
    with Stub() as stub:
        judge = Judge.hosted(stub.base_url, stub.model, api_key=stub.api_key)
        header, records = await run(judge, THREE, tmp_path)
        assert [one.score for one in records] == [1, 1, 1]
        assert header.signature.enforcement == "json_schema"
        assert {one.path for one in stub.requests} == {"/v1/chat/completions"}


async def test_a_quota_that_runs_out_stops_the_run_and_what_is_done_is_kept(
    provider: HostedStub, tmp_path: Path
) -> None:
    body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    provider.faults.append(Fault(faults_of.respond(429, body), when=faults_of.mentions("Harbour South")))
    with pytest.raises(JudgeQuota):
        await run(hosted(provider, concurrency=1), THREE, tmp_path)
    provider.faults.clear()
    provider.clear()
    _, records = await run(hosted(provider, concurrency=1), THREE, tmp_path)
    assert [one.score for one in records] == [1, 1, 1]
    assert not provider.bodies("Harbour North opened pier one.")


async def test_a_busy_provider_is_asked_again_after_the_pause_that_it_asked_for(
    provider: HostedStub, tmp_path: Path
) -> None:
    busy = faults_of.respond(429, {"error": {"message": "Rate limit reached"}}, {"Retry-After": "0"})
    provider.faults.append(Fault(busy, when=ABOUT_MIDDLE, times=7))
    header, records = await run(hosted(provider), THREE, tmp_path)
    assert [one.score for one in records] == [1, 1, 1]
    assert header.servers[0].faults == {"busy": 7}


async def test_a_prompt_that_does_not_fit_fails_with_the_providers_numbers(
    provider: HostedStub, tmp_path: Path
) -> None:
    words = "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens."
    provider.faults.append(Fault(faults_of.respond(400, {"error": {"message": words}}), when=ABOUT_MIDDLE))
    _, records = await run(hosted(provider), THREE, tmp_path)
    assert kinds(records)["Middle"] == "prompt_too_long"
    assert records[1].error is not None
    assert records[1].error.message == "the prompt has 130001 tokens, the judge reads at most 128000"


async def test_a_provider_that_breaks_off_is_looked_at_and_asked_again(provider: HostedStub, tmp_path: Path) -> None:
    provider.faults.append(Fault(faults_of.close_in_reply(), when=ABOUT_MIDDLE, times=2))
    _, records = await run(hosted(provider), THREE, tmp_path)
    assert [one.score for one in records] == [1, 1, 1]
    assert "/v1/models" in {one.path for one in provider.requests}
