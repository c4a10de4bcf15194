"""What users of local judges reported in public, each as the smallest input that tests for it.

The issue that a case comes from stands above its test, here or in the file about what it concerns: G also in
test_compare_repeats, H in test_languages, I also in test_egress, test_doctor and oracles/test_telemetry.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from airjudge import ContextRecall
from airjudge.decoding import unenforced_keywords
from airjudge.errors import EnforcementMissing
from airjudge.judge import JudgeSettings
from airjudge.run import read_scored, score_dataset
from tests.commands import Command, options
from tests.rows import Row, connected, kinds, row, score_rows
from tests.runs import write
from tests.stub import Fault, Stub, StubConfig, by_text
from tests.stub import faults as faults_of

RAGAS = JudgeSettings(method="ragas")
THREE = [row("North"), row("Middle", 2), row("South")]
ASKED_ABOUT_MIDDLE = faults_of.mentions("Harbour Middle")
RAGAS_ABOUT_MIDDLE = faults_of.all_of(ASKED_ABOUT_MIDDLE, faults_of.schema_named("classifications"))


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


def item(statement: str, attributed: int = 1, reason: str = "said so") -> dict[str, object]:
    return {"statement": statement, "reason": reason, "attributed": attributed}


def reply_of(*items: dict[str, object]) -> str:
    return json.dumps({"classifications": list(items)}, ensure_ascii=False)


ONE, TWO = "Harbour Middle opened pier one.", "Harbour Middle opened pier two."


def pointwise_requests(stub: Stub, name: str) -> list[faults_of.RecordedRequest]:
    return [one for one in stub.chats if f"Harbour {name}" in one.text and one.schema_name == "verdict"]


def long_row(n_statements: int) -> Row:
    texts = [f"Harbour Middle opened pier {n}." for n in range(1, n_statements + 1)]
    statements = [{"id": str(n), "text": text} for n, text in enumerate(texts, 1)]
    return row("Middle") | {
        "reference": " ".join(texts),
        "retrieved_contexts": texts,
        "statements": statements,
    }


# A. Shape of the answer


# ragas#2075, #349, #1228, deepeval#872, #489, #499, vllm#19222
@pytest.mark.parametrize(
    "reply",
    ['{"verdict": 1}', "Sure: 1", "'1'", '"1"', "1,", "{1", "yes", "true", "7", "-1", "01", "１", "1\n", "[1]", ""],
)
async def test_a_verdict_in_another_shape_is_a_typed_failure_and_never_nan(
    stub: Stub, tmp_path: Path, reply: str
) -> None:
    stub.faults.append(Fault(faults_of.say(reply), when=ASKED_ABOUT_MIDDLE))
    records = await score_rows(stub, THREE, tmp_path)
    assert kinds(records) == {"North": None, "Middle": "reply_refused", "South": None}
    assert [one.score for one in records] == [1, None, 1]
    assert "NaN" not in (tmp_path / "run" / "samples.jsonl").read_text()


# ragas#775, #798, #2075, #2604, deepeval#872, #489, #499, outlines-core#147, router#186, vllm#19222
@pytest.mark.parametrize(
    "reply",
    [
        '{"classifications": []}',
        '[{"statement": "a", "reason": "b", "attributed": 1}]',
        reply_of({"statement": ONE, "reason": "so", "verdict": 1}),
        reply_of({"statement": ONE, "attributed": 1}),
        reply_of({"attributed": 1, "reason": "so", "statement": ONE}),
        reply_of(item(ONE, attributed=7)),
        reply_of(item(ONE), item(TWO)).replace("]", ",]"),
        reply_of(item(ONE)).replace('"', "'"),
        "{" + reply_of(item(ONE), item(TWO)),
        "Sure: " + reply_of(item(ONE), item(TWO)),
        "I think that both statements are supported.",
    ],
)
async def test_a_classification_in_another_shape_is_completed_one_statement_at_a_time(
    stub: Stub, tmp_path: Path, reply: str
) -> None:
    stub.faults.append(Fault(faults_of.say(reply), when=RAGAS_ABOUT_MIDDLE))
    records = await score_rows(stub, THREE, tmp_path, settings=RAGAS)
    assert set(kinds(records).values()) == {None}
    assert [one.attributed for one in records[1].statements] == [True, True]
    assert len(pointwise_requests(stub, "Middle")) == 2
    assert len(stub.bodies("Harbour Middle")) == 3
    # The proof at the start, and once more for the reply outside the automaton.
    assert [one.schema_name for one in stub.chats].count("canary") == 2


# ragas#1228
async def test_prose_and_a_hang_among_four_rows_cost_those_two_alone(stub: Stub, tmp_path: Path) -> None:
    rows = [row(name) for name in ("North", "East", "South", "West")]
    stub.faults.append(Fault(faults_of.say("I cannot tell."), when=faults_of.mentions("Harbour East")))
    stub.faults.append(Fault(faults_of.hang(60), when=faults_of.mentions("Harbour South")))
    records = await score_rows(stub, rows, tmp_path, settings=JudgeSettings(timeout_s=1))
    assert kinds(records) == {"North": None, "East": "reply_refused", "South": "timeout", "West": None}


# ragas#1997
@pytest.mark.parametrize("settings", [JudgeSettings(), RAGAS])
async def test_a_chinese_statement_with_full_width_quotes_is_judged(
    stub: Stub, tmp_path: Path, settings: JudgeSettings
) -> None:
    text = "他说：“这座桥建于1889年，名叫「长桥」。”"
    chinese = {"id": "桥", "user_input": "桥是什么时候建的？", "reference": text, "retrieved_contexts": [text]}
    (record,) = await score_rows(stub, [chinese], tmp_path, settings=settings)
    assert record.score == 1
    assert [one.text for one in record.statements] == [text]


# promptfoo#1506
async def test_a_heading_that_the_judge_adds_counts_for_nothing(stub: Stub, tmp_path: Path) -> None:
    reply = reply_of(item("Here is the classification:", 0), item(ONE), item(TWO))
    stub.faults.append(Fault(faults_of.say(reply), when=RAGAS_ABOUT_MIDDLE))
    records = await score_rows(stub, THREE, tmp_path, settings=RAGAS)
    assert records[1].score == 1
    assert [one.text for one in records[1].statements] == [ONE, TWO]


# B. Truncation and length


# ragas#1885, #2423
async def test_a_reference_of_forty_statements_is_judged_to_the_last_under_a_token_limit(
    stub: Stub, tmp_path: Path
) -> None:
    (record,) = await score_rows(stub, [long_row(40)], tmp_path, settings=RAGAS)
    assert record.score == 1
    assert [one.attributed for one in record.statements] == [True] * 40
    n_kept = sum(one.reason is not None for one in record.statements)
    assert 0 < n_kept < 40
    assert len(pointwise_requests(stub, "Middle")) == 40 - n_kept


# deepeval#929
async def test_a_cut_reply_keeps_its_whole_items_and_the_rest_is_asked(stub: Stub, tmp_path: Path) -> None:
    texts = [f"Harbour Middle opened pier {n}." for n in range(1, 6)]
    whole = reply_of(*(item(text, int(n != 2)) for n, text in enumerate(texts, 1)))
    cut = whole[: whole.index(texts[3]) + 9]
    stub.faults.append(Fault(faults_of.say(cut, finish_reason="length"), when=RAGAS_ABOUT_MIDDLE))
    (record,) = await score_rows(stub, [long_row(5)], tmp_path, settings=RAGAS)
    assert [one.attributed for one in record.statements] == [True, False, True, True, True]
    asked = "\n".join(one.text for one in pointwise_requests(stub, "Middle"))
    assert [f"Statement: {text}" in asked for text in texts] == [False, False, False, True, True]


# instructor#2210
async def test_a_reply_that_is_always_cut_is_never_asked_for_again(stub: Stub, tmp_path: Path) -> None:
    cut = '{"classifications": [{"statement": "Harbour'
    stub.faults.append(Fault(faults_of.say(cut, finish_reason="length"), when=RAGAS_ABOUT_MIDDLE))
    (record,) = await score_rows(stub, [long_row(5)], tmp_path, settings=RAGAS)
    assert record.score == 1
    names = [one.schema_name for one in stub.chats if "Harbour Middle" in one.text]
    assert (names.count("classifications"), names.count("verdict")) == (1, 5)
    # The broken text goes into no later request: all five are of one size.
    assert len({len(one.raw) for one in pointwise_requests(stub, "Middle")}) == 1


async def test_a_verdict_cut_before_its_token_is_named_so(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.say("", finish_reason="length"), when=ASKED_ABOUT_MIDDLE))
    records = await score_rows(stub, THREE, tmp_path)
    assert kinds(records) == {"North": None, "Middle": "reply_truncated", "South": None}


# ragas#955
async def test_contexts_beyond_the_model_fail_with_both_counts_and_no_request(tmp_path: Path) -> None:
    with Stub(StubConfig(max_model_len=2000)) as stub:
        rows = [row("North"), row("Middle") | {"retrieved_contexts": ["Harbour Middle pier " * 800]}]
        records = await score_rows(stub, rows, tmp_path, settings=RAGAS)
        assert kinds(records)["Middle"] == "prompt_too_long"
        assert not stub.bodies("Harbour Middle")
        assert records[1].error is not None
        # 2000 less the 1024 tokens of the reply.
        assert "at most 976" in records[1].error.message


# C. Thinking models


# vllm#16182, #41132, litellm#14917
@pytest.mark.parametrize("place", ["reasoning", "reasoning_content"])
async def test_a_verdict_that_lands_in_a_reasoning_field_is_read(stub: Stub, tmp_path: Path, place: str) -> None:
    stub.faults.append(Fault(faults_of.say("0", say_in=place), when=ASKED_ABOUT_MIDDLE))
    records = await score_rows(stub, THREE, tmp_path)
    assert [one.score for one in records] == [1, 0, 1]


# vllm#47027, #18255
@pytest.mark.parametrize(
    ("reply", "place", "told"),
    [
        ("Let me see: 17", "reasoning", 'thinking="off"'),
        ("Let me see: 17", "reasoning_content", 'thinking="off"'),
        ("<think>\nLet me", "content", 'thinking="off"'),
        ("It is 42.", "content", None),
    ],
)
async def test_a_schema_that_keeps_a_model_from_thinking_is_told_in_the_signature(
    stub: Stub, reply: str, place: str, told: str | None
) -> None:
    stub.faults.append(Fault(faults_of.say(reply, say_in=place), when=faults_of.mentions("17 + 25")))
    async with connected(stub) as judge:
        decoding = judge.signature("given").decoding
    assert ("thinking" in decoding) == (told is not None)
    assert told is None or told in decoding
    [free] = stub.bodies("17 + 25")
    assert "response_format" not in free


async def test_a_server_whose_thoughts_come_first_is_refused_with_what_to_turn_off(stub: Stub) -> None:
    thought = faults_of.say("Okay, the user", say_in="reasoning")
    stub.faults.append(Fault(thought, when=faults_of.schema_named("canary")))
    with pytest.raises(EnforcementMissing, match="field for its reasoning") as refused:
        async with connected(stub):
            pass
    assert "thinks before it replies" in refused.value.hint


# D. Constrained decoding on the server


# vllm#38696, #40080, #13260
@pytest.mark.parametrize("text", [" " * 1000, "1" * 1000, "no no " * 200])
async def test_an_endless_reply_is_named_a_runaway(stub: Stub, tmp_path: Path, text: str) -> None:
    stub.faults.append(Fault(faults_of.say(text, finish_reason="length"), when=ASKED_ABOUT_MIDDLE))
    records = await score_rows(stub, THREE, tmp_path)
    assert kinds(records) == {"North": None, "Middle": "reply_runaway", "South": None}


async def test_a_classification_that_runs_away_keeps_its_items_and_is_completed(stub: Stub, tmp_path: Path) -> None:
    reply = reply_of(item(ONE, 0)).removesuffix("]}") + "," + " " * 1000
    stub.faults.append(Fault(faults_of.say(reply, finish_reason="length"), when=RAGAS_ABOUT_MIDDLE))
    records = await score_rows(stub, THREE, tmp_path, settings=RAGAS)
    assert [one.attributed for one in records[1].statements] == [False, True]


# outlines-core#147, #193
@pytest.mark.parametrize("settings", [JudgeSettings(), RAGAS])
async def test_no_schema_on_the_wire_has_a_keyword_that_outlines_ignores_or_compiles_slowly(
    stub: Stub, tmp_path: Path, settings: JudgeSettings
) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text(json.dumps(row("North")))
    metric = ContextRecall(connected(stub, settings), reasons="all")
    await score_dataset(data, metric, tmp_path / "run")
    formats = [body.get("response_format") for body in stub.bodies()]
    schemas = [one["json_schema"]["schema"] for one in formats if isinstance(one, dict) and "json_schema" in one]
    assert len(schemas) >= 3
    assert [word for schema in schemas for word in unenforced_keywords(schema)] == []


# vllm#23138: nothing that samples may be left to the model's own settings
async def test_every_question_sets_all_that_samples(stub: Stub, tmp_path: Path) -> None:
    await score_rows(stub, THREE, tmp_path)
    wanted = {"temperature": 0, "top_p": 1, "seed": 0, "n": 1}
    assert all(wanted.items() <= body.items() for body in stub.bodies())


async def test_probability_is_summed_over_the_tokenisations_of_a_label(stub: Stub, tmp_path: Path) -> None:
    # P(1) = .7, of which a second token takes a quarter: the first alone, .525, is not the answer.
    stub.config.probability, stub.config.twin_share = lambda _: 0.7, 0.25
    (record,) = await score_rows(stub, [row("North")], tmp_path)
    assert record.statements[0].probability == pytest.approx(0.7)
    assert record.statements[0].attributed is True


# E. Empty and odd data


# ragas#813, deepeval#3168
@pytest.mark.parametrize("contexts", [[], [""], ["  ", "\n"]])
async def test_empty_retrieval_scores_zero_without_a_question(stub: Stub, tmp_path: Path, contexts: list[str]) -> None:
    empty = row("Middle", 2) | {"retrieved_contexts": contexts}
    records = await score_rows(stub, [row("North"), empty], tmp_path)
    assert [(one.score, one.status) for one in records] == [(1, "scored"), (0, "scored")]
    assert not stub.bodies("Harbour Middle")


@pytest.mark.parametrize("contexts", [[], [""], ["  "]])
def test_the_metric_object_refuses_empty_retrieval_before_any_request(stub: Stub, contexts: list[str]) -> None:
    metric = ContextRecall(connected(stub))
    with pytest.raises(ValueError, match="retrieved_contexts"):
        metric.score(user_input="Where?", retrieved_contexts=contexts, reference="Here.")
    assert not stub.requests


# F. Concurrency, time, crash


# ragas#1280, #1364, #1667, #2044
async def test_a_slow_third_row_is_the_only_one_lost(stub: Stub, tmp_path: Path) -> None:
    rows = [row(name) for name in ("North", "East", "South", "West", "Middle")]
    stub.faults.append(Fault(faults_of.hang(60), when=faults_of.mentions("Harbour South")))
    settings = JudgeSettings(timeout_s=1, concurrency=2)
    records = await score_rows(stub, rows, tmp_path, settings=settings)
    assert [one.score for one in records] == [1, 1, None, 1, 1]
    assert kinds(records)["South"] == "timeout"


# deepeval#805
async def test_a_malformed_line_in_the_middle_is_a_record_like_others(stub: Stub, tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text(f'{json.dumps(row("North"))}\n{{"id": "broken\n{json.dumps(row("South"))}\n')
    await score_dataset(data, ContextRecall(connected(stub)), tmp_path / "run")
    records = list(read_scored(tmp_path / "run"))
    assert kinds(records) == {"North": None, "line-2": "bad_line", "South": None}


# G. Trust in numbers


# opik#8134: failures may not vanish from averages
async def test_a_summary_says_how_many_failed_and_what_they_could_change(stub: Stub, tmp_path: Path) -> None:
    rows = [row(name) for name in ("North", "East", "South", "West")]
    for name in ("East", "West"):
        stub.faults.append(Fault(faults_of.say("?"), when=faults_of.mentions(f"Harbour {name}")))
    await score_rows(stub, rows, tmp_path)
    summary = json.loads((tmp_path / "run" / "run.json").read_text())["summary"]
    assert (summary["n"], summary["n_scored"], summary["n_failed"], summary["mean"]) == (4, 2, 2, 1)
    assert summary["failures"] == {"reply_refused": 2}
    # If both failed ones were missed the mean were 2 / 4, if both were supported 4 / 4.
    assert summary["bounds"] == pytest.approx([0.5, 1])
    assert not any(isinstance(one, float) and math.isnan(one) for one in summary.values())


def test_people_and_scripts_are_told_of_failures_beside_both_means(
    airjudge: Command, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # opik#8134 once more, by the command: East misses one of two statements, then two of four rows fail.
    monkeypatch.setenv("STUB_KEY", stub.api_key or "")
    stub.config.answer = by_text({"Statement: Harbour East opened pier two.": "0"}, default="1")
    for name in ("South", "West"):
        stub.faults.append(Fault(faults_of.say("?"), when=faults_of.mentions(f"Harbour {name}")))
    data, out = write(tmp_path, row("North"), row("East", 2), row("South"), row("West")), tmp_path / "run"
    told = json.loads(airjudge("score", data, *options(stub, out), "--json").out)
    assert (told["n"], told["n_scored"], told["n_failed"]) == (4, 2, 2)
    # The mean of samples is (1 + 1/2) / 2, that of statements 2 of 3.
    assert (told["mean"], told["micro_mean"]) == (0.75, pytest.approx(2 / 3))
    shown = airjudge("score", data, *options(stub, out)).out
    for words in ("0.750", "0.667", "2 scored, 0 undefined, 2 failed", "reply_refused: 2", "0.375 to 0.875"):
        assert words in shown


# I. Air gap and privacy


# vllm#16016
async def test_a_cache_salt_is_sent_unchanged_with_every_question(stub: Stub, tmp_path: Path) -> None:
    salt = "s4lt/+ü"
    await score_rows(stub, THREE, tmp_path, settings=JudgeSettings(cache_salt=salt))
    assert {body.get("cache_salt") for body in stub.bodies("Harbour")} == {salt}
