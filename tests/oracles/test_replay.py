"""The judge that replays: one script for originals and ours, proofs answered beside it, and nobody else contacted."""

import json

from openai import AsyncOpenAI, OpenAI

from airjudge import ContextRecall, Judge, JudgeSettings
from airjudge.schema import Sample
from tests.oracles.replaying import Replay, Reply

SAMPLE = Sample(
    id="s", user_input="Where?", reference="It is red. Whales sing loudly.", retrieved_contexts=("It is red.",)
)
ITEMS = [
    {"statement": "It is red.", "reason": "said", "attributed": 1},
    {"statement": "Whales sing loudly.", "reason": "not said", "attributed": 0},
]


def judge(replay: Replay) -> Judge:
    return Judge.connect(replay.base_url, replay.model, api_key=replay.api_key, settings=JudgeSettings(method="ragas"))


async def test_an_openai_client_gets_the_replies_in_order_under_any_format(replay: Replay) -> None:
    replay.replies = ["first", Reply("sec", "length")]
    client = AsyncOpenAI(base_url=replay.base_url, api_key=replay.api_key)
    heard = []
    for wanted in ({"type": "json_object"}, {"type": "text"}, {"type": "json_object"}):
        reply = await client.chat.completions.create(
            model=replay.model,
            messages=[{"role": "user", "content": "Well?"}],
            response_format=wanted,
        )
        heard.append((reply.choices[0].message.content, reply.choices[0].finish_reason))
    assert heard == [("first", "stop"), ("sec", "length"), ("sec", "length")]
    assert [one.text for one in replay.asked] == ["Well?"] * 3


def test_a_reply_may_depend_on_the_request(replay: Replay) -> None:
    replay.replies = lambda body: str(body["temperature"])
    client = OpenAI(base_url=replay.base_url, api_key=replay.api_key)
    reply = client.chat.completions.create(
        model=replay.model, messages=[{"role": "user", "content": "Well?"}], temperature=0.25
    )
    assert reply.choices[0].message.content == "0.25"


async def test_our_judge_proves_its_server_and_then_hears_the_reply(replay: Replay) -> None:
    replay.replies = [json.dumps({"classifications": ITEMS})]
    [scored] = await ContextRecall(judge(replay)).score_samples([SAMPLE])
    assert [one.attributed for one in scored.statements] == [True, False]
    assert len(replay.asked) == 1
    assert len(replay.stub.chats) > 3


async def test_what_a_cut_reply_leaves_out_is_ruled_on_by_the_stub(replay: Replay) -> None:
    replay.replies = [Reply(json.dumps({"classifications": ITEMS})[:-40], "length")]
    [scored] = await ContextRecall(judge(replay)).score_samples([SAMPLE])
    assert [one.attributed for one in scored.statements] == [True, False]
    assert len(replay.asked) == 1
