"""Method `reasoned`: a reason, then the verdict, one statement a call; each statement gets a verdict that parses."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge import ContextRecall, Judge, JudgeSettings, decoding, prompts
from airjudge.calibration import Calibration
from airjudge.compare import compare_runs
from airjudge.errors import ReplyRefused, ReplyRunaway, ReplyTruncated
from airjudge.run import open_run, read_scored, verify_run
from airjudge.schema import Completion, Sample, ScoredSample, Statement, TokenAlternatives, Usage
from tests.commands import Command
from tests.providers import hosted, obedient
from tests.rows import connected, row
from tests.runs import exports, numbered, run, stopped_at, write
from tests.stub import Fault, HostedConfig, HostedStub, Stub
from tests.stub import faults as faults_of
from tests.test_calibrate import made_by_hand

REASONED = JudgeSettings(method="reasoned", concurrency=1)
FERRY = Sample(
    id="s",
    user_input="When does the ferry leave, and from where?",
    retrieved_contexts=("The ferry departs at six.",),
    reference="The ferry departs at six. Whales sing.",
)
IS_REASONED = faults_of.schema_named("reasoned")


def said(reason: str, label: int) -> str:
    return json.dumps({"reason": reason, "attributed": label}, ensure_ascii=False)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


def judge_of(stub: Stub) -> Judge:
    return connected(stub, REASONED)


async def scored(judge: Judge, sample: Sample = FERRY, **settings: Any) -> ScoredSample:
    [found] = await ContextRecall(judge, **settings).score_samples([sample])
    return found


def asked_of(stub: Stub) -> list[str | None]:
    """Schemas of the questions about the sample, in order."""
    return [one.schema_name for one in stub.chats if "ferry departs" in one.text]


def wish(stub: Stub, text: str, *, about: str = "") -> None:
    stub.faults.append(Fault(faults_of.want(text), when=faults_of.all_of(IS_REASONED, faults_of.mentions(about))))


# What is asked


async def test_each_statement_is_asked_once_for_a_reason_and_then_a_verdict(stub: Stub) -> None:
    wish(stub, said("No context speaks of 10 whales.", 0), about="Statement: Whales")
    wish(stub, said("Context 1 says so.", 1), about="Statement: The ferry")
    found = await scored(judge_of(stub))
    assert [(one.attributed, one.reason) for one in found.statements] == [
        (True, "Context 1 says so."),
        (False, "No context speaks of 10 whales."),
    ]
    assert found.score == 0.5
    assert asked_of(stub) == ["reasoned", "reasoned"]


async def test_the_probability_is_that_of_the_digit_behind_the_reason(stub: Stub) -> None:
    stub.config.answer = lambda _messages: said("Of 0 and 1 it may be either.", 1)
    stub.config.probability = lambda _messages: 0.7
    found = await scored(judge_of(stub))
    assert [one.probability for one in found.statements] == pytest.approx([0.7, 0.7])


def test_all_before_the_ask_is_that_of_the_pointwise_question_and_cached() -> None:
    for text in ("Whales sing.", "At six."):  # a fragment is shown its question
        statement = Statement(id="1", text=text)
        ours, theirs = prompts.reasoned(FERRY, statement).messages, prompts.pointwise(FERRY, statement).messages
        assert ours[0] == theirs[0]
        shared = theirs[1].content.partition("Statement: ")[0] + f"Statement: {text}\n\n"
        assert ours[1].content.startswith(shared)
        assert theirs[1].content.startswith(shared)


def test_the_form_that_the_prompt_shows_is_one_that_the_schema_allows_and_the_reason_comes_first() -> None:
    question = prompts.reasoned(FERRY, Statement(id="1", text="Whales sing."))
    content = question.messages[1].content
    shown = content[content.index("{") :]
    assert decoding.matches(decoding.REASONED, shown)
    assert list(json.loads(shown)) == list(decoding.REASONED.json_schema["properties"])  # type: ignore[arg-type]
    assert list(json.loads(shown)) == ["reason", "attributed"]


async def test_the_reply_is_bounded_and_its_schema_warm_before_the_first_sample(stub: Stub) -> None:
    async with judge_of(stub):
        assert [one.schema_name for one in stub.chats if one.schema_name] == ["canary", "verdict", "reasoned"]
    (body,) = [one.body for one in stub.chats if one.schema_name == "reasoned"]
    assert body.get("max_completion_tokens") == prompts.REASONED_TOKENS


async def test_the_first_statement_goes_alone_and_the_others_follow(stub: Stub) -> None:
    reference = " ".join(f"Fact {n} holds." for n in range(6))
    judge = connected(stub, JudgeSettings(method="reasoned"))
    found = await scored(judge, FERRY.model_copy(update={"reference": reference}))
    assert len(found.statements) == 6
    asked = [one for one in stub.chats if "Fact" in one.text]
    assert "Fact 0 holds." in asked[0].text
    assert asked[0].in_flight == 1


# Replies without a verdict


@pytest.mark.parametrize(
    ("text", "finish_reason"),
    [
        ('{"reason": "It says that the', "length"),
        ('{"reason": "It is said.", "attributed": ', "length"),
        ("", "length"),
        (" " * 1000, "length"),
        ('{"reason": "' + "so it is, " * 100, "length"),
        ("Sure: 1", "stop"),
        ('{"attributed": 1, "reason": "order"}', "stop"),
        (said("seven", 7), "stop"),
    ],
)
async def test_a_reply_without_a_verdict_gives_way_to_the_one_token_question(
    stub: Stub, text: str, finish_reason: str
) -> None:
    about = faults_of.all_of(IS_REASONED, faults_of.mentions("Statement: The ferry"))
    stub.faults.append(Fault(faults_of.say(text, finish_reason=finish_reason), when=about))
    wish(stub, said("Nothing sings.", 0), about="Statement: Whales")
    found = await scored(judge_of(stub))
    assert [(one.attributed, one.reason) for one in found.statements] == [(True, None), (False, "Nothing sings.")]
    assert found.statements[0].probability == pytest.approx(0.9)
    assert asked_of(stub) == ["reasoned", "verdict", "reasoned"]


async def test_a_real_judge_that_talks_on_is_cut_at_the_limit_and_asked_for_the_verdict_alone(stub: Stub) -> None:
    talk = " ".join(f"And {n} is a number." for n in range(100))
    about = faults_of.mentions("First give the reason")
    stub.faults.append(Fault(faults_of.want(said(talk, 0)), when=about))
    found = await scored(judge_of(stub))
    assert [one.attributed for one in found.statements] == [True, False]
    assert [one.reason for one in found.statements] == [None, None]


async def test_a_prompt_that_leaves_no_room_for_a_reason_may_still_leave_room_for_a_verdict(stub: Stub) -> None:
    judge = judge_of(stub)
    async with judge:
        n_tokens = (await count(stub)) + 20
    stub.config.max_model_len = n_tokens
    found = await scored(connected(stub, REASONED))
    assert [one.attributed for one in found.statements] == [True, False]
    assert "reasoned" not in asked_of(stub)


async def count(stub: Stub) -> int:
    """Tokens of the longest question about the sample."""
    from tests.stub.prompt_tokens import chat_pieces

    statements = (Statement(id="1", text="The ferry departs at six."), Statement(id="2", text="Whales sing."))
    questions = [prompts.reasoned(FERRY, one) for one in statements]
    chats = [[{"role": one.role, "content": one.content} for one in question.messages] for question in questions]
    return max(len(chat_pieces(chat)) for chat in chats)


async def test_a_statement_whose_one_token_question_fails_too_fails_alone(stub: Stub) -> None:
    stub.faults.append(Fault(faults_of.say("{", finish_reason="length"), when=IS_REASONED))
    about = faults_of.all_of(faults_of.schema_named("verdict"), faults_of.mentions("Whales"))
    stub.faults.append(Fault(faults_of.respond(400), when=about))
    found = await scored(judge_of(stub))
    assert (found.status, [one.attributed for one in found.statements]) == ("failed", [True, None])


async def test_a_request_that_fails_is_no_reply_and_is_not_asked_otherwise(stub: Stub) -> None:
    stub.faults.append(Fault(faults_of.respond(400), when=faults_of.all_of(IS_REASONED, faults_of.mentions("Whales"))))
    found = await scored(judge_of(stub))
    assert found.error is not None
    assert found.error.kind == "request_failed"
    assert "verdict" not in asked_of(stub)


# Reasons, calibration, signature


@pytest.mark.parametrize("reasons", ["misses", "all"])
async def test_reasons_that_are_there_are_not_asked_for_and_others_are(stub: Stub, reasons: str) -> None:
    wish(stub, said("Context 1 says so.", 1), about="Statement: The ferry")
    cut = faults_of.say('{"reason": "I', finish_reason="length")
    stub.faults.append(Fault(cut, when=faults_of.all_of(IS_REASONED, faults_of.mentions("Statement: Whales"))))
    stub.faults.append(Fault(faults_of.want('"Nothing sings."'), when=faults_of.schema_named("reason")))
    found = await scored(judge_of(stub), reasons=reasons)
    assert [one.reason for one in found.statements] == ["Context 1 says so.", "Nothing sings."]
    assert asked_of(stub) == ["reasoned", "reasoned", "verdict", "reason"]


async def test_a_calibration_rules_and_a_reason_for_the_opposite_goes(stub: Stub) -> None:
    stub.config.answer = lambda _messages: said("So it is.", 1)
    stub.config.probability = lambda _messages: 0.7
    judge = judge_of(stub)
    async with judge:
        signature = judge.signature("given").model_dump()
    calibration = Calibration.model_validate(made_by_hand(signature, threshold=0.8))
    found = await scored(connected(stub, REASONED.model_copy(update={"calibration": calibration})))
    assert [(one.attributed, one.reason) for one in found.statements] == [(False, None), (False, None)]


async def test_the_signature_names_the_method_and_its_words(stub: Stub) -> None:
    judges = [connected(stub, JudgeSettings(method=method)) for method in ("pointwise", "reasoned")]
    signatures = []
    for judge in judges:
        async with judge:
            signatures.append(judge.signature("given"))
    assert signatures[1].method == "reasoned"
    assert signatures[0].prompt != signatures[1].prompt
    ask = prompts.reasoned(FERRY, Statement(id="1", text="Whales sing.")).messages[1].content.rpartition("\n\n")[2]
    assert json.dumps(ask)[1:-1] in json.dumps(prompts.wording("reasoned"))


# Runs


def test_a_run_in_two_starts_is_that_in_one_and_no_statement_is_asked_twice(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *(row(f"N{n}", 1 + n % 3) for n in range(5)))
    run(stub, data, tmp_path / "whole", asked=REASONED)
    stopped_at(stub, "Statement: Harbour N2 opened pier two.", data, tmp_path / "out", asked=REASONED)
    run(stub, data, tmp_path / "out", asked=REASONED)
    again = [one.text for one in stub.chats if IS_REASONED(one) and "Harbour" in one.text]
    assert [text.rpartition("Statement: ")[2].partition("\n")[0] for text in again] == [
        "Harbour N2 opened pier two.",
        "Harbour N2 opened pier three.",
        "Harbour N3 opened pier one.",
        "Harbour N4 opened pier one.",
        "Harbour N4 opened pier two.",
    ]
    assert exports(tmp_path / "out") == exports(tmp_path / "whole")
    assert verify_run(tmp_path / "out").findings == ()
    assert all(sample.echoes is None for sample in read_scored(tmp_path / "out"))


def test_two_methods_are_compared_statement_by_statement_and_reported_with_reasons(
    stub: Stub, tmp_path: Path, airjudge: Command
) -> None:
    data = write(tmp_path, *numbered(4))
    wish(stub, said("As context 1 tells us.", 1), about="Harbour")
    run(stub, data, tmp_path / "reasoned", asked=REASONED)
    run(stub, data, tmp_path / "pointwise")
    compared = compare_runs([open_run(tmp_path / name) for name in ("reasoned", "pointwise")], None)
    assert compared.pairs[0].n == 4
    ended = airjudge("report", tmp_path / "reasoned", "--output", tmp_path / "report.html")
    assert ended.code == 0
    assert "As context 1 tells us." in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("method", ["reasoned", "ragas"])
def test_a_batch_holds_one_question_a_statement_and_refuses_other_methods(
    airjudge: Command, tmp_path: Path, method: str
) -> None:
    data = write(tmp_path, *numbered(1))
    target = tmp_path / "batch.jsonl"
    ended = airjudge("batch", "export", data, "--model", "m", "-o", target, "--method", method)
    assert ended.code == 2
    assert all(words in ended.err for words in ("--method", f"'{method}'", "'pointwise'"))
    assert not target.exists()


def test_the_command_scores_by_it_and_its_help_says_what_each_method_is(
    airjudge: Command, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", stub.api_key or "")
    data, out = write(tmp_path, *numbered(2)), tmp_path / "out"
    server = ("--base-url", stub.base_url, "--model", stub.model, "--api-key-env", "STUB_KEY")
    ended = airjudge("score", data, "--out", out, *server, "--method", "reasoned", "--json")
    assert ended.code == 0
    assert " reasoned#" in json.loads(ended.out)["signature"]
    shown = " ".join(airjudge("score", "--help").out.replace("│", " ").split())
    for words in ("answered by one token", "probabilities close to 0 or 1", "the seed's single call"):
        assert words in shown


# Hosted judges


async def test_a_hosted_judge_takes_the_same_object_strictly() -> None:
    with HostedStub(HostedConfig(answer=obedient('{ "reason": "As \\"six\\".",\n "attributed": 1}'))) as provider:
        found = await scored(hosted(provider, method="reasoned"))
        (body, *_) = provider.bodies("Statement: Whales sing.")
        inner = body["response_format"]["json_schema"]  # type: ignore[index]
        assert inner["schema"] == decoding.REASONED.json_schema
        assert inner["strict"] is True
        assert [one.attributed for one in found.statements] == [True, True]
        assert {one.schema_name for one in provider.chats} == {"canary", "attributed", "reasoned"}


async def test_a_provider_that_enforces_nothing_is_asked_for_the_verdict_where_it_prefaces_its_reason() -> None:
    def answer(messages: Any) -> str:
        text = str(messages[-1]["content"])
        if "canary" in text or "hello" in text:
            return "hello"
        return 'Sure: {"reason": "x", "attributed": 0}' if "First give" in text else '{"attributed": 1}'

    with HostedStub(HostedConfig(answer=answer, schema="ignored")) as provider:
        found = await scored(hosted(provider, method="reasoned"))
        assert [(one.attributed, one.reason) for one in found.statements] == [(True, None), (True, None)]


# Reading


def completion(text: str, finish_reason: str = "stop", *, tokens: tuple[TokenAlternatives, ...] = ()) -> Completion:
    return Completion(text=text, finish_reason=finish_reason, tokens=tokens, usage=Usage(requests=1))


printed = st.text(alphabet=st.characters(blacklist_categories=("Cc", "Cs")), max_size=60)
FORMS = (decoding.REASONED, decoding.OBJECT_FORMS[decoding.REASONED])


@pytest.mark.parametrize("schema", FORMS)
@given(printed, st.sampled_from([0, 1]))
def test_what_was_written_is_read_and_a_reason_that_says_nothing_is_none(schema: Any, reason: str, label: int) -> None:
    told = decoding.read_reasoned(schema, completion(said(reason, label)))
    assert told == (reason.strip() or None, bool(label), None)


@given(printed, st.sampled_from([0, 1]), st.data())
def test_a_reply_that_is_cut_anywhere_gives_no_verdict(reason: str, label: int, data: st.DataObject) -> None:
    text = said(reason, label)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises((ReplyTruncated, ReplyRunaway)):
        decoding.read_reasoned(decoding.REASONED, completion(cut, "length"))
    with pytest.raises(ReplyRefused):
        decoding.read_reasoned(decoding.REASONED, completion(cut))


def test_digits_in_the_reason_are_not_the_verdict() -> None:
    tokens = [('{"reason": "', -0.1), ("1", -0.1), ('0 of 1", "attributed": ', -0.1), ("0", -0.7), ("}", -0.1)]
    made = tuple(TokenAlternatives(text.encode(), ((b"0", -0.7), (b"1", -0.7))) for text, _ in tokens)
    text = "".join(one for one, _ in tokens)
    reason, label, probability = decoding.read_reasoned(decoding.REASONED, completion(text, tokens=made))
    assert (reason, label) == ("10 of 1", False)
    assert probability == pytest.approx(0.5)
