"""Judges at providers: what they are sent, what they take, what they enforce, and what goes wrong with them."""

import asyncio
import json
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from airjudge import ContextRecall, Judge, JudgeSettings
from airjudge.errors import (
    JudgeError,
    JudgeForeign,
    JudgeNotServed,
    JudgeQuota,
    JudgeRemote,
    JudgeUnauthorized,
    JudgeUnreachable,
)
from airjudge.run import RunHeader, read_scored, score_dataset
from airjudge.schema import ScoredSample
from tests.rows import Row, kinds, row
from tests.stub import Fault, HostedConfig, HostedStub, Stub
from tests.stub import faults as faults_of

THREE = [row("North"), row("Middle", 2), row("South")]
ABOUT_MIDDLE = faults_of.mentions("Harbour Middle")
OURS = {
    "model",
    "messages",
    "response_format",
    "max_completion_tokens",
    "temperature",
    "seed",
    "logprobs",
    "top_logprobs",
}


@pytest.fixture
def provider() -> Iterator[HostedStub]:
    with HostedStub() as running:
        yield running


def hosted(provider: HostedStub, *, base_url: str = "", **settings: Any) -> Judge:
    chosen = JudgeSettings.model_validate(settings)
    return Judge.hosted(base_url or provider.base_url, provider.model, api_key=provider.api_key, settings=chosen)


def asked(one: Row) -> Row:
    """What the metric takes of a row."""
    return {name: one[name] for name in ("user_input", "retrieved_contexts", "reference")}


async def run(judge: Judge, rows: Sequence[Row], folder: Path) -> tuple[RunHeader, list[ScoredSample]]:
    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps(one) + "\n" for one in rows))
    header = await score_dataset(data, ContextRecall(judge), folder / "run")
    return header, list(read_scored(folder / "run"))


async def test_a_hosted_judge_rules_with_probabilities_and_is_named_by_model_and_host(
    provider: HostedStub, tmp_path: Path
) -> None:
    header, records = await run(hosted(provider), THREE, tmp_path)
    assert [one.score for one in records] == [1, 1, 1]
    # The stub's model gives 1 to supported statements with .9.
    assert [one.probability for one in records[1].statements] == pytest.approx([0.9, 0.9], abs=1e-6)
    signature = header.signature
    assert (signature.judge, signature.weights, signature.enforcement) == ("gpt-stub", "unverified", "json_schema")
    assert signature.server == f"127.0.0.1:{provider.port}"
    assert signature.decoding == "temperature=0,threshold=0.5"


async def test_nothing_is_sent_but_standard_fields_and_nothing_asked_but_chats(
    provider: HostedStub, tmp_path: Path
) -> None:
    await run(hosted(provider), THREE, tmp_path)
    assert {one.path for one in provider.requests} == {"/v1/chat/completions"}
    assert set().union(*provider.bodies()) <= OURS
    (body,) = provider.bodies("Harbour North opened pier one.")
    assert body["response_format"]["json_schema"]["schema"]["properties"] == {  # type: ignore[index]
        "attributed": {"type": "integer", "enum": [0, 1]}
    }


async def test_the_single_call_and_reasons_are_asked_as_objects_too(provider: HostedStub) -> None:
    metric = ContextRecall(hosted(provider, method="ragas"), reasons="all")
    (found,) = await metric.abatch_score(
        [{name: THREE[1][name] for name in ("user_input", "retrieved_contexts", "reference")}]
    )
    assert found.value == 1
    names = {one.schema_name for one in provider.chats}
    assert names == {"canary", "attributed", "classifications"}
    metric = ContextRecall(hosted(provider), reasons="all")
    provider.faults.append(Fault(faults_of.want("because"), when=faults_of.schema_named("reason")))
    (found,) = await metric.abatch_score(
        [{name: THREE[0][name] for name in ("user_input", "retrieved_contexts", "reference")}]
    )
    assert found.statements[0].reason is not None


# What providers do not take


@pytest.mark.parametrize("vague", [False, True])
@pytest.mark.parametrize("field", ["seed", "temperature", "logprobs"])
async def test_a_field_that_the_provider_refuses_is_left_out_from_then_on_and_told(
    field: str, vague: bool, tmp_path: Path
) -> None:
    with HostedStub(HostedConfig(refuses=(field,), vague=vague)) as provider:
        header, records = await run(hosted(provider), THREE, tmp_path)
        assert [one.score for one in records] == [1, 1, 1]
        assert f'left_out="{field}"' in header.signature.decoding
        assert header.signature.enforcement == "json_schema"
        bodies = provider.bodies("Harbour")
        assert bodies
        assert not any(field in body for body in bodies)
        assert ('temperature="default"' in header.signature.decoding) == (field == "temperature")
        if field == "logprobs":
            assert not any("top_logprobs" in body for body in bodies)
            assert {one.probability for record in records for one in record.statements} == {None}


async def test_a_provider_that_calls_the_limit_by_its_old_name_is_asked_by_that(tmp_path: Path) -> None:
    with HostedStub(HostedConfig(refuses=("max_completion_tokens",))) as provider:
        header, _ = await run(hosted(provider), THREE, tmp_path)
        assert all("max_tokens" in body for body in provider.bodies("Harbour"))
        assert header.signature.decoding == "temperature=0,threshold=0.5"


async def test_several_refused_fields_are_all_left_out(tmp_path: Path) -> None:
    refuses = ("max_completion_tokens", "seed", "top_logprobs", "temperature")
    with HostedStub(HostedConfig(refuses=refuses)) as provider:
        header, records = await run(hosted(provider), THREE, tmp_path)
        assert [one.score for one in records] == [1, 1, 1]
        assert 'left_out="logprobs+seed+temperature"' in header.signature.decoding


async def test_a_provider_that_shows_no_logprobs_gives_verdicts_without_probability(tmp_path: Path) -> None:
    with HostedStub(HostedConfig(shows_logprobs=False)) as provider:
        _, records = await run(hosted(provider), THREE, tmp_path)
        assert [one.attributed for one in records[1].statements] == [True, True]
        assert {one.probability for record in records for one in record.statements} == {None}


async def test_a_provider_that_tells_no_usage_has_no_cost_rather_than_none_to_pay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with HostedStub(HostedConfig(shows_usage=False)) as provider:
        header, _ = await run(hosted(provider, price={"input": 2, "output": 10}, max_cost=1), THREE, tmp_path)
        assert header.cost is None
        assert "provider_tells_no_usage" in caplog.messages


async def test_a_model_that_thinks_first_gets_room_for_it(tmp_path: Path) -> None:
    with HostedStub(HostedConfig(thinks=900)) as provider:
        header, records = await run(hosted(provider), THREE, tmp_path)
        assert [one.score for one in records] == [1, 1, 1]
        assert "thinking=4096" in header.signature.decoding


async def test_the_snapshot_that_answers_stands_in_the_signature(tmp_path: Path) -> None:
    with HostedStub(HostedConfig(snapshot="gpt-stub-2026-11-30")) as provider:
        header, _ = await run(hosted(provider), THREE, tmp_path)
        assert header.signature.judge == "gpt-stub"
        assert 'answers_as="gpt-stub-2026-11-30"' in header.signature.decoding


# Enforcement. ragas#2560, #349, #2604, opik#1352, #670


def obedient(text: str) -> Callable[[Any], str]:
    """Say the same to every question."""
    return lambda _messages: text


@pytest.mark.parametrize("schema", ["ignored", "refused"])
async def test_a_provider_without_schemas_is_told_so_and_read_strictly(
    schema: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with HostedStub(HostedConfig(schema=schema, answer=obedient('{"attributed": 1}'))) as provider:
        header, records = await run(hosted(provider), THREE, tmp_path)
        assert [one.score for one in records] == [1, 1, 1]
        assert header.signature.enforcement == "none"
        assert "reply_schema_not_enforced" in caplog.messages
        bodies = provider.bodies("Harbour")
        assert all(("response_format" in body) == (schema == "ignored") for body in bodies)
        assert ('left_out="response_format"' in header.signature.decoding) == (schema == "refused")


@pytest.mark.parametrize(
    "reply",
    [
        "1",
        "Sure: 1",
        'Sure: {"attributed": 1}',
        '```json\n{"attributed": 1}\n```',
        '{"attributed": 1} because context 1 says so',
        '{"attributed": true}',
        '{"attributed": "1"}',
        '{"attributed": 1.0}',
        '{"attributed": 7}',
        '{"verdict": 1}',
        '{"attributed": 1, "reason": "so"}',
        "{'attributed': 1}",
        '{"attributed": 1,}',
        '[{"attributed": 1}]',
        '{"attributed": 0} {"attributed": 1}',
        "",
    ],
)
async def test_a_reply_that_is_not_exactly_the_object_is_a_typed_failure(
    provider: HostedStub, reply: str, tmp_path: Path
) -> None:
    provider.config.schema = "ignored"
    provider.config.answer = obedient('{"attributed": 1}')
    provider.faults.append(Fault(faults_of.say(reply), when=ABOUT_MIDDLE))
    _, records = await run(hosted(provider), THREE, tmp_path)
    assert kinds(records) == {"North": None, "Middle": "reply_refused", "South": None}
    # Nothing enforces, so there is no canary to ask again.
    assert [one.schema_name for one in provider.chats].count("canary") == 1


@pytest.mark.parametrize(
    "reply", ['{"attributed":0}', '{ "attributed" : 0 }', '{\n  "attributed": 0\n}\n', '\t{"attributed":\r\n0}']
)
async def test_white_space_of_a_providers_own_changes_nothing(provider: HostedStub, reply: str, tmp_path: Path) -> None:
    provider.faults.append(Fault(faults_of.say(reply), when=ABOUT_MIDDLE))
    _, records = await run(hosted(provider), THREE, tmp_path)
    assert [one.score for one in records] == [1, 0, 1]


async def test_a_refusal_of_one_sample_costs_that_one_while_the_canary_holds(
    provider: HostedStub, tmp_path: Path
) -> None:
    provider.faults.append(Fault(faults_of.say("I cannot help with that."), when=ABOUT_MIDDLE))
    _, records = await run(hosted(provider), THREE, tmp_path)
    assert kinds(records)["Middle"] == "reply_refused"
    assert [one.score for one in records] == [1, None, 1]


# Addresses. opik#663


@pytest.mark.parametrize("path", ["/v1", "/openai/v1", "/v1beta/openai", "/api/paas/v4", "", "/gateway"])
@pytest.mark.parametrize("end", ["", "/", "/chat/completions"])
async def test_the_api_is_found_at_the_address_that_the_provider_documents(path: str, end: str, tmp_path: Path) -> None:
    with HostedStub(HostedConfig(path=path)) as provider:
        _, records = await run(hosted(provider, base_url=provider.base_url + end), THREE, tmp_path)
        assert [one.score for one in records] == [1, 1, 1]


@pytest.mark.parametrize("path", ["/v1", "/openai/v1"])
async def test_a_version_that_was_left_away_is_found(path: str, tmp_path: Path) -> None:
    with HostedStub(HostedConfig(path=path)) as provider:
        _, records = await run(hosted(provider, base_url=provider.base_url.removesuffix("/v1")), THREE, tmp_path)
        assert [one.score for one in records] == [1, 1, 1]


def test_an_address_outside_is_refused_unless_it_is_allowed() -> None:
    with pytest.raises(JudgeRemote):
        Judge.hosted("https://8.8.8.8/v1", "m")
    Judge.hosted("https://8.8.8.8/v1", "m", allow_remote=True)


# What goes wrong


async def refused(judge: Judge) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        async with judge:
            pass
    return caught.value


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
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=self_signed)
    async with server:
        port = server.sockets[0].getsockname()[1]
        error = await refused(Judge.hosted(f"https://127.0.0.1:{port}/v1", "m"))
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
