"""ragas' own ContextRecall and ours on the same replies: equal scores and errors, known differences."""

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import AsyncOpenAI
from ragas.llms import llm_factory as original_factory
from ragas.metrics.collections import ContextRecall as Original
from ragas.metrics.result import MetricResult as OriginalResult

from airjudge.compat.ragas import ContextRecall, LLMContextRecall, MetricResult, llm_factory
from tests.oracles.replaying import Replay, Reply

WORDS = ("whales", "ferries", "harbours", "埃菲尔铁塔", "señales", "Fähren", "lighthouses", "anchors")
ITEMS = st.lists(
    st.tuples(st.sampled_from([0, 1]), st.text('abc äé。"\\{}[]', max_size=12)), min_size=1, max_size=len(WORDS)
)
CASE: dict[str, Any] = {
    "user_input": "What is said?",
    "retrieved_contexts": ["Nothing of note."],
    "reference": "The whales are old. The ferries are blue.",
}
BAD: Sequence[Mapping[str, Any]] = (
    {"user_input": ""},
    {"user_input": None},
    {"reference": ""},
    {"reference": None},
    {"retrieved_contexts": []},
    {"retrieved_contexts": None},
    {"retrieved_contexts": ()},
    {"user_input": "", "reference": "", "retrieved_contexts": []},
    {"user_input": "", "reference": ""},
    {"reference": "", "retrieved_contexts": []},
    {"user_input": 7},
    {"unknown": 1},
    {"response": "x"},
)


def said(items: Sequence[tuple[str, Any, str]]) -> str:
    listed = [{"statement": text, "reason": reason, "attributed": label} for text, label, reason in items]
    return json.dumps({"classifications": listed}, ensure_ascii=False)


@cache
def runner() -> asyncio.Runner:
    """One event loop for all calls of the original, whose client lives as long as its loop."""
    return asyncio.Runner()


@cache
def original(base_url: str, api_key: str, model: str) -> Original:
    client = AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0)
    return Original(llm=original_factory(model, client=client))


def theirs(replay: Replay, fields: Mapping[str, Any] = CASE) -> OriginalResult:
    return runner().run(original(replay.base_url, replay.api_key, replay.model).ascore(**fields))


def ours(replay: Replay, fields: Mapping[str, Any] = CASE) -> MetricResult:
    client = AsyncOpenAI(base_url=replay.base_url, api_key=replay.api_key)
    return ContextRecall(llm_factory(replay.model, client=client), method="ragas").score(**fields)


@settings(max_examples=200)
@given(items=ITEMS)
def test_replies_with_one_item_a_sentence_score_as_by_the_original(replay: Replay, items: Any) -> None:
    sentences = [f"The {word} are old." for word in WORDS[: len(items)]]
    fields = CASE | {"reference": " ".join(sentences)}
    replay.replies = [said([(text, *item) for text, item in zip(sentences, items, strict=True)])]
    result = ours(replay, fields)
    assert result.value == theirs(replay, fields).value == sum(label for label, _ in items) / len(items)
    assert [one.attributed for one in result.statements] == [bool(label) for label, _ in items]


@pytest.mark.parametrize("changed", BAD, ids=str)
def test_bad_inputs_raise_the_same_type_and_name_the_same_field(replay: Replay, changed: Mapping[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)) as original:
        theirs(replay, {**CASE, **changed})
    with pytest.raises((ValueError, TypeError)) as mine:
        ours(replay, {**CASE, **changed})
    assert issubclass(mine.type, TypeError) == issubclass(original.type, TypeError)
    assert not replay.asked
    if original.type is ValueError:
        assert str(mine.value) == str(original.value)


def test_both_refuse_a_foreign_llm_and_a_running_loop(replay: Replay) -> None:
    for metric in (Original, ContextRecall):
        with pytest.raises(ValueError, match="llm"):
            metric(llm=object())  # type: ignore[arg-type] # that is what is refused
    client = AsyncOpenAI(base_url=replay.base_url, api_key=replay.api_key)
    made = (Original(llm=original_factory("m", client=client)), ContextRecall(llm_factory("m", client=client)))

    async def inside(call: Callable[[], object]) -> None:
        call()

    for one in made:
        for call in (lambda one=one: one.score(**CASE), lambda one=one: one.batch_score([CASE])):
            with pytest.raises(RuntimeError):
                asyncio.run(inside(call))
        assert one.batch_score([]) == []
        assert one.name == "context_recall"


NUMBERS = st.sampled_from([0.0, 0.25, 0.5, 1.0])
ACTS: Sequence[Callable[[Any, Any], object]] = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a == b,
    lambda a, _: (float(a), int(a), repr(a), str(a), a.value, a.to_dict(), 1 + a, 1 - a, 2 * a),
)


@given(a=NUMBERS, b=NUMBERS)
def test_results_act_as_those_of_the_original(a: float, b: float) -> None:
    for act in ACTS:
        assert act(MetricResult(a), MetricResult(b)) == act(OriginalResult(a), OriginalResult(b))
        assert act(MetricResult(a), b) == act(OriginalResult(a), b)


def test_a_label_of_seven_is_a_score_there_and_no_verdict_here(replay: Replay) -> None:
    replay.replies = [said([("The whales are old.", 7, ""), ("The ferries are blue.", 7, "")])]
    assert theirs(replay).value == 7.0
    assert ours(replay).value in {0.0, 0.5, 1.0}  # asked again, one by one


def test_repeated_and_invented_items_change_the_score_there_alone(replay: Replay) -> None:
    first, second = ("The whales are old.", 1, ""), ("The ferries are blue.", 0, "")
    replay.replies = [said([first, second, first, first])]
    assert (theirs(replay).value, ours(replay).value) == (0.75, 0.5)
    replay.replies = [said([first, second, ("Submarines glow in green waters.", 1, ""), second])]
    assert (theirs(replay).value, ours(replay).value) == (0.5, 0.5)


def test_an_empty_list_is_nan_there_and_completed_here(replay: Replay) -> None:
    replay.replies = [said([])]
    assert math.isnan(theirs(replay).value)
    assert ours(replay).value is not None


def test_a_cut_reply_raises_there_and_is_completed_here(replay: Replay) -> None:
    whole = said([("The whales are old.", 1, ""), ("The ferries are blue.", 1, "")])
    replay.replies = [Reply(whole[: len(whole) // 2 + 20], "length")]
    with pytest.raises(Exception, match=r".+"):
        theirs(replay)
    result = ours(replay)
    assert [one.attributed is None for one in result.statements] == [False, False]
    assert result.statements[0].attributed is True


@pytest.mark.parametrize("contexts", ["a string", [""], ["  "]])
def test_a_string_or_blank_contexts_are_scored_there_and_refused_here(replay: Replay, contexts: object) -> None:
    replay.replies = [said([("The whales are old.", 1, ""), ("The ferries are blue.", 1, "")])]
    fields = CASE | {"retrieved_contexts": contexts}
    assert theirs(replay, fields).value == 1.0
    with pytest.raises(ValueError, match="retrieved_contexts"):
        ours(replay, fields)


def test_one_bad_row_loses_the_batch_there_and_itself_here(replay: Replay) -> None:
    replay.replies = [said([("The whales are old.", 1, ""), ("The ferries are blue.", 0, "")])]
    client = AsyncOpenAI(base_url=replay.base_url, api_key=replay.api_key)
    rows = [CASE, CASE | {"reference": ""}]
    there = Original(llm=original_factory(replay.model, client=client))
    with pytest.raises(ValueError, match="reference cannot be empty"):
        there.batch_score(rows)
    good, bad = ContextRecall(llm_factory(replay.model, client=client), method="ragas").batch_score(rows)
    assert (good.value, bad.value) == (0.5, None)


def test_samples_of_the_original_are_read(replay: Replay) -> None:
    from ragas import SingleTurnSample

    replay.replies = [said([("The whales are old.", 1, ""), ("The ferries are blue.", 0, "")])]
    client = AsyncOpenAI(base_url=replay.base_url, api_key=replay.api_key)
    metric = LLMContextRecall(llm=llm_factory(replay.model, client=client), method="ragas")
    assert metric.single_turn_score(SingleTurnSample(**CASE)) == 0.5
