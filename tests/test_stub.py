"""The stub judge enforces schemas for real, counts what it should, and fails as told."""

import asyncio
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from outlines_core.json_schema import build_regex_from_schema

from tests.stub import Fault, Stub, StubConfig, by_text
from tests.stub import faults as faults_of
from tests.stub.decoder import Wish, decode, free_grammar, schema_grammar

VERDICT = {"type": "integer", "enum": [0, 1]}
CANARY = {"type": "string", "enum": ["canary"]}
ITEMS = {
    "type": "object",
    "properties": {
        "classifications": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {"reason": {"type": "string"}, "attributed": VERDICT},
                "required": ["reason", "attributed"],
            },
        }
    },
    "required": ["classifications"],
}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


def chat_body(text: str, schema: Mapping[str, object] | None = None, **fields: object) -> dict[str, object]:
    body: dict[str, object] = {"model": "judge", "messages": [{"role": "user", "content": text}], **fields}
    if schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "wanted", "schema": schema}}
    return body


async def exchange(stub: Stub, path: str, body: object = None, *, key: str | None = "stub-key") -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    method = "GET" if body is None else "POST"
    root = stub.base_url.removesuffix("/v1")
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, root + path, json=body, headers=headers) as response,
    ):
        raw = await response.text()
        return response.status, json.loads(raw) if raw.startswith("{") else raw


async def ask(stub: Stub, text: str, schema: Mapping[str, object] | None = None, **fields: object) -> Any:
    status, reply = await exchange(stub, "/v1/chat/completions", chat_body(text, schema, **fields))
    assert status == 200, reply
    return reply["choices"][0]


def content(choice: Any) -> str:
    return str(choice["message"]["content"])


async def test_an_enum_comes_out_although_the_model_wants_to_say_hello(stub: Stub) -> None:
    stub.config.answer = lambda _: "hello"
    assert content(await ask(stub, "Say hello.", CANARY)) == '"canary"'


async def test_without_a_schema_the_model_says_what_it_wants(stub: Stub) -> None:
    stub.config.answer = lambda _: "hello, 世界"
    choice = await ask(stub, "Say hello.")
    assert (content(choice), choice["finish_reason"]) == ("hello, 世界", "stop")


async def test_a_server_without_enforcement_answers_200_with_free_text(stub: Stub) -> None:
    stub.config.answer, stub.config.backend = lambda _: "hello", "none"
    assert content(await ask(stub, "Say hello.", CANARY)) == "hello"


async def test_the_removed_guided_json_field_is_ignored(stub: Stub) -> None:
    stub.config.answer = lambda _: "hello"
    assert content(await ask(stub, "Say hello.", guided_json=CANARY)) == "hello"


async def test_a_chatty_preface_cannot_pass_the_schema(stub: Stub) -> None:
    wished = '{"classifications": [{"reason": "„ja“, 是的", "attributed": 1}]}'
    stub.config.answer = lambda _: "Sure: " + wished
    assert content(await ask(stub, "Judge.", ITEMS)) == wished


@pytest.mark.parametrize("wish", ["", "hello", "{}", '{"verdict": 1}', '{"classifications": []}', "[1, 2]"])
async def test_every_wish_ends_in_a_text_that_the_schema_accepts(stub: Stub, wish: str) -> None:
    stub.config.answer = lambda _: wish
    choice = await ask(stub, "Judge.", ITEMS)
    assert choice["finish_reason"] == "stop"
    assert re.fullmatch(build_regex_from_schema(json.dumps(ITEMS)), content(choice))


async def test_one_token_under_a_limit_of_one_is_whole_and_ends_with_length(stub: Stub) -> None:
    choice = await ask(stub, "Judge.", VERDICT, max_completion_tokens=1)
    assert (content(choice), choice["finish_reason"]) == ("0", "length")
    choice = await ask(stub, "Judge.", VERDICT, max_completion_tokens=2)
    assert (content(choice), choice["finish_reason"]) == ("0", "stop")


async def test_a_reply_cut_by_its_limit_is_a_prefix_of_a_valid_one(stub: Stub) -> None:
    stub.config.answer = lambda _: '{"classifications": [{"reason": "a b c", "attributed": 1}]}'
    whole = content(await ask(stub, "Judge.", ITEMS))
    cut = await ask(stub, "Judge.", ITEMS, max_completion_tokens=20)
    assert cut["finish_reason"] == "length"
    assert whole.startswith(content(cut))
    assert 0 < len(content(cut)) < len(whole)


async def test_logprobs_are_those_of_the_masked_distribution(stub: Stub) -> None:
    stub.config.answer = lambda _: "1"
    free = (await ask(stub, "Judge.", logprobs=True, top_logprobs=5))["logprobs"]["content"][0]
    held = (await ask(stub, "Judge.", VERDICT, logprobs=True, top_logprobs=5))["logprobs"]["content"][0]
    # Before the mask the two labels share .8 of the probability, and the label 1 has .9 of that.
    assert free["logprob"] == pytest.approx(math.log(0.72))
    assert held["logprob"] == pytest.approx(math.log(0.9))
    alternatives = {one["token"]: one["logprob"] for one in held["top_logprobs"][:2]}
    assert alternatives == pytest.approx({"1": math.log(0.9), "0": math.log(0.1)})
    # The other ids of the two labels have no share here, and no other token is allowed.
    assert [one["logprob"] for one in held["top_logprobs"][2:]] == [-9999.0] * 3


async def test_a_label_may_be_spread_over_two_token_ids(stub: Stub) -> None:
    stub.config.probability, stub.config.twin_share = lambda _: 0.7, 0.25
    choice = await ask(stub, "Judge.", VERDICT, logprobs=True, top_logprobs=20)
    top = [(one["token"], math.exp(one["logprob"])) for one in choice["logprobs"]["content"][0]["top_logprobs"]]
    assert content(choice) == "1"
    assert len(top) == 20
    # .7 is split into .525 and .175, .3 into .225 and .075.
    assert sorted(p for token, p in top if token == "1") == pytest.approx([0.175, 0.525])
    assert sorted(p for token, p in top if token == "0" and p) == pytest.approx([0.075, 0.225])


async def test_a_set_probability_decides_the_label(stub: Stub) -> None:
    stub.config.answer, stub.config.probability = lambda _: "1", lambda _: 0.49
    assert content(await ask(stub, "Judge.", VERDICT)) == "0"


async def test_the_same_request_gets_the_same_reply(stub: Stub) -> None:
    replies = [await ask(stub, "Judge.", ITEMS, logprobs=True, top_logprobs=3) for _ in range(3)]
    assert replies[0] == replies[1] == replies[2]


async def test_json_object_is_refused_by_name_under_outlines_alone(stub: Stub) -> None:
    body = chat_body("Judge.") | {"response_format": {"type": "json_object"}}
    status, refused = await exchange(stub, "/v1/chat/completions", body)
    assert status == 400
    assert "Outlines" in refused["error"]["message"]
    stub.config.backend = "xgrammar"
    status, reply = await exchange(stub, "/v1/chat/completions", body)
    assert status == 200
    assert isinstance(json.loads(content(reply["choices"][0])), dict)


async def test_a_schema_that_outlines_cannot_read_is_refused(stub: Stub) -> None:
    status, refused = await exchange(stub, "/v1/chat/completions", chat_body("Judge.", {"type": "nonsense"}))
    assert status == 400
    assert "regex" in refused["error"]["message"]


async def test_what_the_stub_does_not_play_is_refused_not_ignored(stub: Stub) -> None:
    status, _ = await exchange(stub, "/v1/chat/completions", chat_body("Judge.", stream=True))
    assert status == 400


async def test_only_v1_wants_the_key(stub: Stub) -> None:
    open_routes = ("/health", "/version", "/metrics")
    assert [(await exchange(stub, path, key=None))[0] for path in open_routes] == [200, 200, 200]
    assert (await exchange(stub, "/tokenize", {"prompt": "a"}, key=None))[0] == 200
    assert (await exchange(stub, "/v1/models", key=None))[0] == 401
    assert (await exchange(stub, "/v1/models", key="wrong"))[0] == 401
    assert (await exchange(stub, "/v1/models"))[1]["data"][0]["max_model_len"] == 8192


async def test_another_model_is_not_found(stub: Stub) -> None:
    status, refused = await exchange(stub, "/v1/chat/completions", chat_body("Judge.") | {"model": "other"})
    assert (status, refused["error"]["type"]) == (404, "NotFoundError")


async def test_tokens_are_counted_by_the_documented_rule(stub: Stub) -> None:
    # "Paris", "is", "in", "法", "国", "." are six tokens; the message's frame has three, the
    # opening of the reply two.
    _, plain = await exchange(stub, "/tokenize", {"prompt": "Paris is in 法国."})
    _, framed = await exchange(stub, "/tokenize", chat_body("Paris is in 法国."))
    assert (plain["count"], framed["count"], len(framed["tokens"])) == (6, 11, 11)
    _, reply = await exchange(stub, "/v1/chat/completions", chat_body("Paris is in 法国.", VERDICT))
    assert reply["usage"]["prompt_tokens"] == 11


async def test_a_prompt_beyond_the_context_is_refused_with_both_counts(stub: Stub) -> None:
    stub.config.max_model_len = 50
    status, refused = await exchange(stub, "/v1/chat/completions", chat_body("word " * 60, VERDICT))
    assert status == 400
    assert "maximum context length is 50 tokens" in refused["error"]["message"]
    assert "65 input tokens" in refused["error"]["message"]


async def test_the_prefix_cache_knows_full_blocks_of_ended_requests(stub: Stub) -> None:
    async def cached(text: str, **fields: object) -> int:
        _, reply = await exchange(stub, "/v1/chat/completions", chat_body(text, VERDICT, **fields))
        return int(reply["usage"]["prompt_tokens_details"]["cached_tokens"])

    prefix = " ".join(f"w{i}" for i in range(40))
    # Two tokens open the message, so 42 are shared: two full blocks of 16.
    assert [await cached(f"{prefix} one"), await cached(f"{prefix} two")] == [0, 32]
    assert await cached(f"{prefix} two", cache_salt="other") == 0
    # 27 words and the 5 of the frame are two blocks; the last token is always computed, so one is cached.
    even = " ".join(f"u{i}" for i in range(27))
    assert [await cached(even), await cached(even)] == [0, 16]
    stub.config.latency_s = 0.2
    # Two that are open at once do not help each other.
    fresh = " ".join(f"v{i}" for i in range(40))
    assert sum(await asyncio.gather(cached(f"{fresh} one"), cached(f"{fresh} two"))) == 0
    _, shown = await exchange(stub, "/metrics")
    assert re.search(r"^vllm:prompt_tokens_cached_total\{.*\} 48\.0$", shown, re.MULTILINE)


async def test_every_request_is_recorded_with_headers_body_and_order(stub: Stub) -> None:
    await exchange(stub, "/version", key=None)
    await ask(stub, "first", VERDICT)
    await ask(stub, "second", VERDICT)
    assert [one.path for one in stub.requests] == ["/version", *["/v1/chat/completions"] * 2]
    assert [one.number for one in stub.requests] == [1, 2, 3]
    assert [one.text for one in stub.chats] == ["first", "second"]
    assert stub.chats[0].headers["authorization"] == "Bearer stub-key"
    assert stub.chats[0].schema_name == "wanted"
    left_at = stub.chats[0].left_at
    assert left_at is not None
    assert stub.chats[0].arrived_at <= left_at <= stub.chats[1].arrived_at
    assert stub.bodies("second") == [chat_body("second", VERDICT)]


@pytest.mark.parametrize("n", [1, 7])
async def test_the_peak_in_flight_is_what_the_client_had_open(stub: Stub, n: int) -> None:
    stub.config.latency_s = 0.3
    await asyncio.gather(*(ask(stub, f"question {i}", VERDICT) for i in range(n)))
    assert stub.peak_in_flight == n
    await ask(stub, "alone", VERDICT)
    assert stub.chats[-1].in_flight == 1


async def test_a_client_that_gives_up_is_no_longer_in_flight() -> None:
    with Stub(None, Fault(faults_of.hang(60), times=1)) as stub:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(stub, "slow", VERDICT), 0.3)
        await ask(stub, "quick", VERDICT)
        assert stub.chats[-1].in_flight == 1


async def test_faults_hit_only_the_requests_that_they_name() -> None:
    broken = Fault(faults_of.respond(503, headers={"Retry-After": "1"}), when=faults_of.mentions("second"), times=1)
    with Stub(None, broken) as stub:
        statuses = []
        for text in ("first", "second", "second"):
            status, _ = await exchange(stub, "/v1/chat/completions", chat_body(text, VERDICT))
            statuses.append(status)
        assert statuses == [200, 503, 200]


async def test_a_fault_can_let_requests_pass_first() -> None:
    later = Fault(faults_of.respond(500), when=faults_of.schema_named("wanted"), after=1, times=2)
    with Stub(None, later) as stub:
        statuses = [(await exchange(stub, "/v1/chat/completions", chat_body("a", VERDICT)))[0] for _ in range(4)]
        assert statuses == [200, 500, 500, 200]


async def test_a_request_can_be_counted_by_its_place() -> None:
    with Stub(None, Fault(faults_of.html(), when=faults_of.numbered(2))) as stub:
        replies = [await exchange(stub, "/v1/chat/completions", chat_body("a", VERDICT)) for _ in range(3)]
        assert [isinstance(reply, str) for _, reply in replies] == [False, True, False]
        assert replies[1][1].startswith("<!doctype html>")


@pytest.mark.parametrize("action", [faults_of.close_before_reply(), faults_of.close_in_reply()])
async def test_a_closed_connection_reaches_the_client_as_one(action: faults_of.Action) -> None:
    with Stub(None, Fault(action, times=1)) as stub:
        with pytest.raises(aiohttp.ClientError):
            await ask(stub, "Judge.", VERDICT)
        assert content(await ask(stub, "Judge.", VERDICT)) == "0"


async def test_a_text_can_be_sent_as_it_stands_whatever_the_schema() -> None:
    with Stub(None, Fault(faults_of.say('Sure: {"verdict": 1}'))) as stub:
        assert content(await ask(stub, "Judge.", VERDICT)) == 'Sure: {"verdict": 1}'


async def test_a_runaway_reply_is_a_thousand_spaces_cut_by_length() -> None:
    with Stub(None, Fault(faults_of.runaway())) as stub:
        choice = await ask(stub, "Judge.", VERDICT)
        assert (content(choice), choice["finish_reason"]) == (" " * 1000, "length")


@pytest.mark.parametrize("place", ["reasoning", "reasoning_content"])
async def test_an_answer_can_land_in_a_reasoning_field(place: str) -> None:
    with Stub(None, Fault(faults_of.say("1", say_in=place))) as stub:
        message = (await ask(stub, "Judge.", VERDICT))["message"]
        assert (message["content"], message[place]) == (None, "1")


async def test_wishes_can_alternate_under_the_schema() -> None:
    with Stub(None, Fault(faults_of.want("1", "0"))) as stub:
        assert [content(await ask(stub, "Judge.", VERDICT)) for _ in range(3)] == ["1", "0", "1"]


async def test_one_request_can_escape_the_schema() -> None:
    stub_config = StubConfig(answer=lambda _: "hello")
    with Stub(stub_config, Fault(faults_of.ignore_schema(), times=1)) as stub:
        assert [content(await ask(stub, "Judge.", CANARY)) for _ in range(2)] == ["hello", '"canary"']


async def test_the_server_may_stand_behind_a_path_prefix() -> None:
    with Stub(StubConfig(prefix="/gateway/llm")) as stub:
        assert stub.base_url.endswith("/gateway/llm/v1")
        assert content(await ask(stub, "Judge.", VERDICT)) == "0"


async def test_the_default_judge_rules_by_the_words_of_the_last_line(stub: Stub) -> None:
    contexts = "[1] The Eiffel Tower stands in Paris.\n\n"
    assert content(await ask(stub, f"{contexts}Statement: The tower stands in Paris.", VERDICT)) == "1"
    assert content(await ask(stub, f"{contexts}Statement: Mount Everest is high.", VERDICT)) == "0"


async def test_answers_can_be_scripted_by_text(stub: Stub) -> None:
    stub.config.answer = by_text({"Paris": "1"}, default="0")
    assert [content(await ask(stub, text, VERDICT)) for text in ("Paris?", "Rome?")] == ["1", "0"]


def test_decoding_does_not_depend_on_what_was_decoded_before() -> None:
    grammar = schema_grammar(VERDICT)
    first = decode(Wish("1"), grammar, 5)
    decode(Wish("0"), grammar, 5)
    assert decode(Wish("1"), grammar, 5).text == first.text == "1"
    assert decode(Wish("no"), free_grammar(), 5).text == "no"


def test_the_stub_runs_as_a_process_of_its_own() -> None:
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-m", "tests.stub", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            assert process.stdout is not None
            line = json.loads(process.stdout.readline())
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", line["base_url"])
            assert {"model", "api_key"} <= line.keys()
        finally:
            process.terminate()
        assert process.wait(timeout=30) == 0
