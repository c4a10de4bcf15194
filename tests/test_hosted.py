"""Judges at providers: what they are sent, what they take, what they enforce, and what goes wrong with them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airjudge import ContextRecall, Judge
from airjudge.errors import (
    JudgeRemote,
)
from tests.providers import ABOUT_MIDDLE, THREE, hosted, obedient, run
from tests.rows import kinds
from tests.stub import Fault, HostedConfig, HostedStub
from tests.stub import faults as faults_of

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


async def test_a_model_that_only_talks_gets_no_more_room_for_it(provider: HostedStub, tmp_path: Path) -> None:
    provider.config.schema = "ignored"
    provider.config.answer = obedient('{"attributed": 1} because ' + "so it says and " * 40)
    header, records = await run(hosted(provider), THREE, tmp_path)
    assert set(kinds(records).values()) == {"reply_truncated"}
    assert "thinking" not in header.signature.decoding


async def test_the_snapshot_that_answers_stands_in_the_signature(tmp_path: Path) -> None:
    with HostedStub(HostedConfig(snapshot="gpt-stub-2026-11-30")) as provider:
        header, _ = await run(hosted(provider), THREE, tmp_path)
        assert header.signature.judge == "gpt-stub"
        assert 'answers_as="gpt-stub-2026-11-30"' in header.signature.decoding


# Enforcement. ragas#2560, #349, #2604, opik#1352, #670


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
