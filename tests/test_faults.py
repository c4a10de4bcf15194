"""What a judge's server can do wrong, before a run and in it: typed errors, and the others go on."""

import itertools
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from airjudge import ContextRecall, Judge
from airjudge.backends import faults as rulings
from airjudge.backends import vllm
from airjudge.errors import (
    AirjudgeError,
    EnforcementMissing,
    JudgeError,
    JudgeForeign,
    JudgeNotServed,
    JudgeTooOld,
    JudgeUnauthorized,
    JudgeUnreachable,
    PromptTooLong,
    RequestFailed,
    RequestTimeout,
    SchemaNotCompiled,
)
from airjudge.judge import JudgeSettings
from tests.rows import connected, kinds, row, score_rows
from tests.stub import Fault, Stub, StubConfig
from tests.stub import faults as faults_of

THREE = [row("North"), row("Middle"), row("South")]
IN_MIDDLE = faults_of.mentions("Harbour Middle")
EIFFEL = {
    "user_input": "Where is the Eiffel Tower?",
    "retrieved_contexts": ["The Eiffel Tower stands in Paris."],
    "reference": "The Eiffel Tower stands in Paris.",
}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rulings, "BACK_OFF_S", 0.01)


async def enter(judge: Judge) -> None:
    async with judge:
        pass


# Before a run


async def test_nobody_at_the_address_fails_within_seconds_and_names_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    started = time.monotonic()
    with pytest.raises(JudgeUnreachable, match=url.removesuffix("/v1")) as caught:
        await enter(Judge.connect(url, "judge"))
    assert time.monotonic() - started < 5
    assert "airjudge serve" in caught.value.hint


async def test_a_server_that_accepts_and_stays_silent_is_unreachable(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm, "CHECK_TIMEOUT_S", 0.3)
    stub.faults.append(Fault(faults_of.hang(60), when=lambda _: True))
    with pytest.raises(JudgeUnreachable, match=r"127\.0\.0\.1"):
        await enter(connected(stub))


@pytest.mark.parametrize("key", [None, "wrong"])
async def test_a_missing_or_wrong_key_is_named_before_any_question(stub: Stub, key: str | None) -> None:
    with pytest.raises(JudgeUnauthorized) as caught:
        await enter(Judge.connect(stub.base_url, stub.model, api_key=key))
    assert "--api-key-env" in caught.value.hint
    assert not stub.chats


async def test_another_model_is_refused_with_the_served_names(stub: Stub) -> None:
    stub.config.other_models = ("second-model",)
    with pytest.raises(JudgeNotServed, match="judge, second-model") as caught:
        await enter(Judge.connect(stub.base_url, "gpt-4o", api_key=stub.api_key))
    assert "gpt-4o" in str(caught.value)
    assert not stub.chats


async def test_without_a_name_the_only_served_model_is_asked(stub: Stub) -> None:
    await enter(Judge.connect(stub.base_url, api_key=stub.api_key))
    assert {body["model"] for body in stub.bodies()} == {"judge"}


@pytest.mark.parametrize("version", ["0.6.3", "0.10.2"])
async def test_a_server_that_is_too_old_is_never_probed(stub: Stub, version: str) -> None:
    stub.config.version = version
    with pytest.raises(JudgeTooOld, match=version):
        await enter(connected(stub))
    assert not stub.chats


async def test_a_server_that_ignores_the_schema_is_refused_before_any_sample(tmp_path: Path) -> None:
    with Stub(StubConfig(backend="none", answer=lambda _: "hello")) as stub:
        with pytest.raises(EnforcementMissing) as caught:
            await score_rows(stub, THREE, tmp_path)
        assert "'hello'" in str(caught.value)
        assert "--structured-outputs-config" in caught.value.hint
        assert not stub.bodies("Harbour")
        # The probe for the backend and the canary, nothing else.
        assert len(stub.chats) == 2


async def test_a_server_that_rejects_response_format_is_refused_by_that_name(stub: Stub) -> None:
    words = "Unrecognized request argument supplied: response_format"
    stub.faults.append(Fault(faults_of.respond(400, {"error": {"message": words, "code": 400}})))
    with pytest.raises(EnforcementMissing, match="response_format"):
        await enter(connected(stub))
    assert not stub.bodies("Harbour")


async def test_json_object_is_sent_once_after_the_version_check_and_never_with_a_sample(
    stub: Stub, tmp_path: Path
) -> None:
    await score_rows(stub, THREE, tmp_path)
    probes = [one for one in stub.chats if "json_object" in one.raw.decode()]
    assert len(probes) == 1
    assert "Harbour" not in probes[0].text
    versions = [one.number for one in stub.requests if one.path == "/version"]
    assert min(versions) < probes[0].number == stub.chats[0].number


@pytest.mark.parametrize(("backend", "named"), [("outlines", "outlines"), ("xgrammar", "other")])
async def test_the_enforcing_backend_stands_in_the_signature(stub: Stub, backend: str, named: str) -> None:
    stub.config.backend = "outlines" if backend == "outlines" else "xgrammar"
    judge = connected(stub)
    await enter(judge)
    assert judge.signature("given").enforcement == named


@pytest.mark.parametrize("path", ["/version", "/v1/models", "/chat/completions"])
async def test_a_web_page_instead_of_an_api_is_told_apart(stub: Stub, path: str) -> None:
    stub.faults.append(Fault(faults_of.html(), when=faults_of.on_path(path)))
    with pytest.raises(JudgeForeign, match="<!doctype html>"):
        await enter(connected(stub))


@pytest.mark.parametrize("action", [faults_of.close_before_reply(), faults_of.close_in_reply(), faults_of.respond(503)])
@pytest.mark.parametrize("path", ["/v1/models", "/chat/completions"])
async def test_a_server_that_fails_at_the_start_is_not_accused_of_missing_enforcement(
    stub: Stub, path: str, action: faults_of.Action
) -> None:
    stub.faults.append(Fault(action, when=faults_of.on_path(path)))
    with pytest.raises(JudgeError) as caught:
        await enter(connected(stub))
    assert not isinstance(caught.value, EnforcementMissing | SchemaNotCompiled)


async def test_a_proxy_that_hides_the_version_is_not_probed_but_has_to_pass_the_canary(stub: Stub) -> None:
    stub.faults.append(Fault(faults_of.respond(404), when=faults_of.on_path("/version")))
    judge = connected(stub)
    await enter(judge)
    assert judge.signature("given").enforcement == "unknown"
    # The one without a schema is free: it shows whether the model would think.
    assert [one.schema_name for one in stub.chats] == ["canary", None, "verdict"]
    assert not any("json_object" in str(one.body) for one in stub.chats)


async def test_a_schema_that_does_not_compile_is_not_asked_for_again(stub: Stub) -> None:
    stub.faults.append(Fault(faults_of.respond(500), when=faults_of.schema_named("verdict")))
    with pytest.raises(SchemaNotCompiled, match="verdict") as caught:
        await enter(connected(stub))
    assert "VLLM_REGEX_COMPILATION_TIMEOUT_S" in caught.value.hint
    assert [one.schema_name for one in stub.chats].count("verdict") == 1


async def test_each_schema_is_warmed_up_once_and_alone(stub: Stub, tmp_path: Path) -> None:
    stub.config.latency_s = 0.05
    await score_rows(stub, THREE, tmp_path, settings=JudgeSettings(method="ragas"))
    warm_up = [one for one in stub.chats if "Harbour" not in one.text]
    assert all(one.in_flight == 1 for one in warm_up)
    names = [one.schema_name for one in warm_up]
    # Two have no schema: the probe by json_object, and the free reply that shows whether the model would think.
    assert {name: names.count(name) for name in names} == {None: 2, "canary": 1, "verdict": 1, "classifications": 1}


async def test_a_judge_proves_enforcement_once_however_often_it_is_entered(stub: Stub) -> None:
    judge = connected(stub)
    await enter(judge)
    n_requests = len(stub.requests)
    await enter(judge)
    assert len(stub.requests) == n_requests


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
@pytest.mark.parametrize("prefix", ["", "/gateway/llm"])
async def test_a_base_url_may_have_v1_a_slash_and_a_path_before(prefix: str, end: str) -> None:
    with Stub(StubConfig(prefix=prefix)) as stub:
        root = stub.base_url.removesuffix("/v1")
        result = await ContextRecall(Judge.connect(root + end, api_key=stub.api_key)).ascore(**EIFFEL)  # type: ignore[arg-type]
        assert result.value == 1
        assert stub.chats[0].path == f"{prefix}/v1/chat/completions"


# In a run


@pytest.mark.usefixtures("quick_retries")
async def test_a_passing_fault_is_tried_again_until_it_has_passed(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.respond(500), when=IN_MIDDLE, times=3))
    assert kinds(await score_rows(stub, THREE, tmp_path)) == {"North": None, "Middle": None, "South": None}
    assert len(stub.bodies("Harbour Middle")) == 4


async def test_a_lasting_500_on_a_warm_schema_is_tried_at_least_four_times_with_growing_pauses(
    stub: Stub, tmp_path: Path
) -> None:
    stub.faults.append(Fault(faults_of.respond(500), when=IN_MIDDLE))
    records = await score_rows(stub, THREE, tmp_path)
    assert kinds(records) == {"North": None, "Middle": RequestFailed.kind, "South": None}
    tries = [one for one in stub.chats if "Harbour Middle" in one.text]
    assert len(tries) >= 4
    assert len({one.raw for one in tries}) == 1
    pauses = [b.arrived_at - (a.left_at or 0) for a, b in itertools.pairwise(tries)]
    # Each pause is twice the one before; half of that leaves room for a busy machine.
    assert all(later > 1.4 * earlier for earlier, later in itertools.pairwise(pauses))
    assert records[1].error is not None
    assert "HTTP 500" in records[1].error.message


@pytest.mark.usefixtures("quick_retries")
async def test_retry_after_is_waited_for(stub: Stub, tmp_path: Path) -> None:
    busy = faults_of.respond(503, headers={"Retry-After": "1"})
    stub.faults.append(Fault(busy, when=IN_MIDDLE, times=1))
    assert set(kinds(await score_rows(stub, THREE, tmp_path)).values()) == {None}
    first, second = (one for one in stub.chats if "Harbour Middle" in one.text)
    assert second.arrived_at - first.arrived_at >= 0.99


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_gateway_that_is_busy_for_a_moment_costs_no_sample(stub: Stub, tmp_path: Path, status: int) -> None:
    stub.faults.append(Fault(faults_of.respond(status, "busy"), when=IN_MIDDLE, times=2))
    assert set(kinds(await score_rows(stub, THREE, tmp_path)).values()) == {None}


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize("action", [faults_of.close_before_reply(), faults_of.close_in_reply()])
async def test_a_connection_that_breaks_once_costs_no_sample(
    stub: Stub, tmp_path: Path, action: faults_of.Action
) -> None:
    stub.faults.append(Fault(action, when=IN_MIDDLE, times=1))
    assert set(kinds(await score_rows(stub, THREE, tmp_path)).values()) == {None}
    assert len(stub.bodies("Harbour Middle")) == 2


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize("action", [faults_of.close_before_reply(), faults_of.close_in_reply()])
async def test_a_connection_that_breaks_each_time_costs_that_sample_alone(
    stub: Stub, tmp_path: Path, action: faults_of.Action
) -> None:
    stub.faults.append(Fault(action, when=IN_MIDDLE))
    records = await score_rows(stub, THREE, tmp_path)
    assert kinds(records) == {"North": None, "Middle": RequestFailed.kind, "South": None}


@pytest.mark.usefixtures("quick_retries")
async def test_a_web_page_in_the_middle_of_a_run_costs_that_sample_alone(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.html(), when=IN_MIDDLE))
    records = await score_rows(stub, THREE, tmp_path)
    assert kinds(records) == {"North": None, "Middle": RequestFailed.kind, "South": None}


async def test_a_refused_request_is_not_sent_again(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.respond(422), when=IN_MIDDLE))
    records = await score_rows(stub, THREE, tmp_path)
    assert kinds(records) == {"North": None, "Middle": RequestFailed.kind, "South": None}
    assert len(stub.bodies("Harbour Middle")) == 1


async def test_a_key_that_stops_working_stops_the_run(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.respond(401), when=IN_MIDDLE))
    with pytest.raises(JudgeUnauthorized):
        await score_rows(stub, THREE, tmp_path)


async def test_a_slow_reply_costs_its_sample_alone_and_is_not_asked_again(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.hang(60), when=IN_MIDDLE))
    records = await score_rows(stub, THREE, tmp_path, settings=JudgeSettings(timeout_s=1))
    assert kinds(records) == {"North": None, "Middle": RequestTimeout.kind, "South": None}
    assert len(stub.bodies("Harbour Middle")) == 1


async def test_a_failed_statement_leaves_the_other_verdicts_of_its_sample(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.hang(60), when=faults_of.mentions("Statement: Harbour Middle opened pier two")))
    rows = [row("North"), row("Middle", 3)]
    records = await score_rows(stub, rows, tmp_path, settings=JudgeSettings(timeout_s=1))
    assert kinds(records) == {"North": None, "Middle": RequestTimeout.kind}
    assert records[1].score is None
    assert [one.attributed for one in records[1].statements] == [True, None, True]


async def test_an_over_long_prompt_is_found_before_sending_with_both_counts(tmp_path: Path) -> None:
    with Stub(StubConfig(max_model_len=1000)) as stub:
        long = row("Middle") | {"retrieved_contexts": ["Harbour Middle " * 600]}
        records = await score_rows(stub, [row("North"), long, row("South")], tmp_path)
        assert kinds(records) == {"North": None, "Middle": PromptTooLong.kind, "South": None}
        assert not stub.bodies("Harbour Middle")
        counted = [one for one in stub.requests if one.path == "/tokenize"]
        assert len(counted) == 1
        error = records[1].error
        assert error is not None
        # 1200 words of context and the wording around them; 1000 less the token of the reply.
        numbers = [int(word) for word in error.message.replace(",", "").split() if word.isdigit()]
        assert 1200 < numbers[0] < 1400
        assert numbers[1] == 999


async def test_a_server_that_refuses_the_length_with_a_misleading_number_is_not_asked_again(
    stub: Stub, tmp_path: Path
) -> None:
    stub.faults.append(Fault(faults_of.over_length(8193, 8192), when=IN_MIDDLE))
    records = await score_rows(stub, THREE, tmp_path)
    assert kinds(records) == {"North": None, "Middle": PromptTooLong.kind, "South": None}
    assert len(stub.bodies("Harbour Middle")) == 1
    assert records[1].error is not None
    # The prompt was counted again: the server's own 8193 is not repeated as its length.
    assert "8193" not in records[1].error.message


async def test_a_server_that_stops_enforcing_stops_the_run(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.say("I think so."), when=IN_MIDDLE))
    stub.faults.append(Fault(faults_of.say("hello"), when=faults_of.schema_named("canary"), after=1))
    with pytest.raises(EnforcementMissing):
        await score_rows(stub, THREE, tmp_path)


async def test_one_reply_outside_the_automaton_costs_its_sample_and_a_second_canary(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.say("I think so."), when=IN_MIDDLE))
    assert kinds(await score_rows(stub, THREE, tmp_path)) == {"North": None, "Middle": "reply_refused", "South": None}
    names = [one.schema_name for one in stub.chats]
    assert names.count("canary") == 2
    assert len(stub.bodies("Harbour Middle")) == 1


def test_a_python_caller_gets_the_typed_error_of_one_sample(stub: Stub) -> None:
    stub.faults.append(Fault(faults_of.say("7"), when=faults_of.mentions("Eiffel")))
    with pytest.raises(AirjudgeError) as caught:
        ContextRecall(connected(stub)).score(**EIFFEL)  # type: ignore[arg-type]
    assert caught.value.kind == "reply_refused"
    assert caught.value.hint


def test_a_batch_keeps_its_order_and_goes_on_past_a_failure(stub: Stub) -> None:
    stub.faults.append(Fault(faults_of.say("7"), when=faults_of.mentions("Louvre")))
    louvre = json.loads(json.dumps(EIFFEL).replace("Eiffel Tower", "Louvre"))
    results = ContextRecall(connected(stub)).batch_score([EIFFEL, louvre, EIFFEL])
    assert [one.value for one in results] == [1, None, 1]
    assert results[1].error is not None
    assert results[1].error.kind == "reply_refused"
