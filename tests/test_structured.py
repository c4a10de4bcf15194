"""Questions of others under their own models: the judge's servers enforce them, and a reply is whole or an error."""

import asyncio

import pytest
from pydantic import BaseModel, Field, field_validator

from airjudge import Judge
from airjudge.errors import (
    EnforcementMissing,
    PromptTooLong,
    ReplyInvalid,
    ReplyRefused,
    ReplyRunaway,
    ReplyTruncated,
    SchemaNotCompiled,
    SchemaRefused,
)
from airjudge.schema import Message
from airjudge.structured import Structured
from tests.rows import connected
from tests.stub import Fault, HostedStub, Stub
from tests.stub import faults as faults_of


class Scored(BaseModel):
    reason: str
    score: float = Field(ge=0, le=1)


class Honest(Scored):
    @field_validator("score")
    @classmethod
    def _is_not_sure(cls, score: float) -> float:
        if score == 1:
            msg = "nobody is so sure"
            raise ValueError(msg)
        return score


def asked(text: str = "How good?") -> list[Message]:
    return [Message("system", "You judge."), Message("user", text)]


@pytest.fixture
def scoring(stub: Stub) -> Stub:
    stub.config.answer = lambda _: '{"reason": "It is so.", "score": 0.7}'
    return stub


async def test_a_reply_is_an_instance_of_the_model(scoring: Stub) -> None:
    async with connected(scoring) as judge:
        assert await Structured(judge).ask(asked(), Scored) == Scored(reason="It is so.", score=0.7)
        text = await Structured(judge).ask_json(asked(), list[Scored])
    assert text.startswith("[")
    # The words go out as they stand.
    assert scoring.bodies("How good?")[-1]["messages"] == [
        {"role": "system", "content": "You judge."},
        {"role": "user", "content": "How good?"},
    ]


async def test_a_score_out_of_its_range_cannot_be_written(stub: Stub) -> None:
    stub.config.answer = lambda _: '{"reason": "r", "score": 7}'
    async with connected(stub) as judge:
        found = await Structured(judge).ask(asked(), Scored)
    assert 0 <= found.score <= 1


async def test_a_schema_is_compiled_once_and_before_anybody_asks_under_it(scoring: Stub) -> None:
    scoring.config.latency_s = 0.05
    async with connected(scoring) as judge:
        scoring.clear()
        await asyncio.gather(*(Structured(judge).ask(asked(f"n{n}"), Scored) for n in range(6)))
    first, *others = scoring.chats
    assert first.in_flight == 1
    assert len(others) == 6
    assert all(one.arrived_at >= (first.left_at or 0) for one in others)


async def test_what_a_server_cannot_compile_is_refused_and_not_asked_for_again(scoring: Stub) -> None:
    scoring.faults.append(Fault(faults_of.respond(500), when=faults_of.schema_named("Scored")))
    async with connected(scoring) as judge:
        scoring.clear()
        for _ in range(2):
            with pytest.raises(SchemaNotCompiled, match="first use of the Scored schema") as caught:
                await Structured(judge).ask(asked(), Scored)
            assert "VLLM_REGEX_COMPILATION_TIMEOUT_S" in caught.value.hint
    assert len(scoring.chats) == 1


async def test_a_schema_that_outlines_would_weaken_is_refused_without_a_request(scoring: Stub) -> None:
    class Counted(BaseModel):
        n: int = Field(ge=0)

    async with connected(scoring) as judge:
        scoring.clear()
        with pytest.raises(SchemaRefused, match="'minimum'"):
            await Structured(judge).ask(asked(), Counted)
    assert not scoring.requests


async def test_a_rule_that_no_schema_tells_is_checked_and_named(stub: Stub) -> None:
    stub.config.answer = lambda _: '{"reason": "r", "score": 1.0}'
    async with connected(stub) as judge:
        with pytest.raises(ReplyInvalid, match=r"Honest refuses the reply: score: .*nobody is so sure"):
            await Structured(judge).ask(asked(), Honest)


@pytest.mark.parametrize(("loop", "most"), [("and so on ", 160), ("abcdefghij", 160), ("一", 60)])
async def test_a_reply_that_is_cut_is_asked_for_once_more_in_brief(stub: Stub, loop: str, most: int) -> None:
    stub.config.answer = lambda _: '{"reason": "' + loop * 200
    async with connected(stub) as judge:
        stub.clear()
        found = await Structured(judge).ask(asked(), Scored, max_tokens=300)
    assert len(found.reason) == most
    names = [one.schema_name for one in stub.chats if one.body["max_completion_tokens"] == 300]
    assert names == ["Scored", "Scored_brief"]
    assert len({str(one.body["messages"]) for one in stub.chats}) == 1


class Told(BaseModel):
    first: str
    second: str
    third: str


async def test_many_texts_end_after_some_words_where_characters_would_not_compile(stub: Stub) -> None:
    stub.config.answer = lambda _: '{"first": "' + "é e e e " * 100
    async with connected(stub) as judge:
        found = await Structured(judge).ask(asked(), Told, max_tokens=300)
    assert 3 <= len(found.first.split()) <= 24


async def test_a_reply_that_is_cut_in_brief_too_is_an_error_and_never_half_a_model(stub: Stub) -> None:
    stub.config.answer = lambda _: '{"first": "' + "é" * 400
    async with connected(stub) as judge:
        stub.clear()
        with pytest.raises((ReplyRunaway, ReplyTruncated)) as caught:
            await Structured(judge).ask(asked(), Told, max_tokens=100)
    assert "max_tokens" in caught.value.hint
    assert len([one for one in stub.chats if one.body["max_completion_tokens"] == 100]) == 2


async def test_free_text_asks_for_no_schema_and_a_cut_one_is_an_error(stub: Stub) -> None:
    stub.config.answer = lambda _: "Well, it depends."
    async with connected(stub) as judge:
        assert await Structured(judge).ask_text(asked()) == "Well, it depends."
        assert "response_format" not in stub.chats[-1].body
        with pytest.raises(ReplyTruncated):
            await Structured(judge).ask_text(asked(), max_tokens=3)


async def test_a_reply_outside_its_automaton_is_refused_while_the_canary_holds(scoring: Stub) -> None:
    async with connected(scoring) as judge:
        await Structured(judge).ask(asked(), Scored)
        scoring.faults.append(Fault(faults_of.say('{"score": 7}'), when=faults_of.schema_named("Scored")))
        with pytest.raises(ReplyRefused):
            await Structured(judge).ask(asked(), Scored)
        scoring.faults.append(Fault(faults_of.ignore_schema()))
        with pytest.raises(EnforcementMissing):
            await Structured(judge).ask(asked(), Scored)


async def test_passing_faults_are_tried_again_and_long_prompts_are_not_sent(scoring: Stub) -> None:
    async with connected(scoring) as judge:
        await Structured(judge).ask(asked(), Scored)
        scoring.clear()
        scoring.faults.append(Fault(faults_of.respond(500), when=faults_of.numbered(1)))
        with pytest.raises(PromptTooLong):
            await Structured(judge).ask(asked("long " * 9000), Scored)
    assert not scoring.chats


async def test_a_provider_is_asked_in_the_strict_form_and_its_own_spaces_are_read() -> None:
    with HostedStub() as provider:
        provider.config.answer = lambda _: '{"reason": "r", "score": 0.5}'
        judge = Judge.hosted(provider.base_url, provider.model, api_key=provider.api_key)
        async with judge:
            assert (await Structured(judge).ask(asked(), Scored)).score == 0.5
            wanted = provider.chats[-1].body["response_format"]
            assert isinstance(wanted, dict)
            assert wanted["json_schema"]["schema"]["additionalProperties"] is False
            assert wanted["json_schema"]["schema"]["required"] == ["reason", "score"]
            spaced = '{\n  "reason": "caf\\u00e9",\n  "score": 0.5\n}'
            provider.faults.append(Fault(faults_of.say(spaced), when=faults_of.schema_named("Scored")))
            assert (await Structured(judge).ask(asked(), Scored)).reason == "café"
            with pytest.raises(SchemaRefused, match="an object alone at the root"):
                await Structured(judge).ask(asked(), list[Scored])
