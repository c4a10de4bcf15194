"""The table that decides what becomes of a question whose request failed, kind by kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge.backends.faults import (
    BUSY_TRIES,
    MAX_WAIT_S,
    TABLE,
    TRIES,
    Fault,
    FaultKind,
    counts,
    error_of,
    kind_of,
    may_pass,
    pause_s,
    step_after,
)
from airjudge.backends.http import HttpFault
from airjudge.errors import (
    AirjudgeError,
    JudgeForeign,
    JudgeNotServed,
    JudgeUnauthorized,
    JudgeUnreachable,
    RequestFailed,
    RequestTimeout,
)

OVER_LENGTH = "This model's maximum context length is 8192 tokens. However, your prompt contains 9000 input tokens"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (HttpFault(400, OVER_LENGTH), FaultKind.over_length),
        (HttpFault(400, "Unrecognized request argument"), FaultKind.refused),
        (HttpFault(422, "Unprocessable"), FaultKind.refused),
        (HttpFault(413, "Payload Too Large"), FaultKind.over_length),
        (JudgeUnauthorized("401"), FaultKind.unauthorized),
        (HttpFault(404, "The model `judge` does not exist."), FaultKind.unknown),
        (HttpFault(408, "Request Timeout"), FaultKind.late),
        (HttpFault(429, "Too Many Requests", 3.0), FaultKind.busy),
        (HttpFault(500, "Internal server error"), FaultKind.failed),
        (HttpFault(507, "Insufficient Storage"), FaultKind.failed),
        (HttpFault(502, "Bad Gateway"), FaultKind.away),
        (HttpFault(503, "Service Unavailable"), FaultKind.away),
        (HttpFault(504, "Gateway Timeout"), FaultKind.away),
        (HttpFault(0, "the connection broke: in the middle of a body"), FaultKind.broken),
        (JudgeUnreachable("connection refused"), FaultKind.unreached),
        (JudgeForeign("redirects elsewhere"), FaultKind.foreign),
        (JudgeForeign("answers '<!doctype html>'"), FaultKind.foreign),
        (RequestTimeout(300), FaultKind.silent),
    ],
)
def test_faults_are_told_apart(fault: Fault, kind: FaultKind) -> None:
    assert kind_of(fault) is kind


@pytest.mark.parametrize("kind", [FaultKind.over_length, FaultKind.refused])
def test_what_is_wrong_with_the_question_fails_it_at_once_without_a_look_at_the_server(kind: FaultKind) -> None:
    assert step_after(kind, n_tries=1, server_away=False) == "fail"
    assert not TABLE[kind].suspect


@pytest.mark.parametrize("kind", [FaultKind.unauthorized, FaultKind.unknown])
def test_a_judge_that_cannot_be_asked_at_all_stops_the_run(kind: FaultKind) -> None:
    assert step_after(kind, n_tries=1, server_away=False) == "stop"


@pytest.mark.parametrize(
    ("kind", "n_tries"),
    [
        (FaultKind.late, TRIES),
        (FaultKind.failed, TRIES),
        (FaultKind.away, TRIES),
        (FaultKind.broken, TRIES),
        (FaultKind.unreached, TRIES),
        (FaultKind.foreign, TRIES),
        (FaultKind.busy, BUSY_TRIES),
    ],
)
def test_a_passing_fault_is_tried_again_so_often_and_then_fails_its_question(kind: FaultKind, n_tries: int) -> None:
    steps = [step_after(kind, n_tries=n, server_away=False) for n in range(1, n_tries + 1)]
    assert steps == ["again"] * (n_tries - 1) + ["fail"]


def test_a_question_without_reply_in_time_is_asked_again_only_if_its_server_is_gone() -> None:
    assert step_after(FaultKind.silent, n_tries=1, server_away=False) == "fail"
    assert step_after(FaultKind.silent, n_tries=1, server_away=True) == "again"


def test_refused_connections_of_a_server_that_is_away_never_use_up_a_question() -> None:
    assert not counts(FaultKind.unreached, server_away=True)
    assert step_after(FaultKind.unreached, n_tries=10**6, server_away=True) == "again"


@pytest.mark.parametrize("kind", [FaultKind.broken, FaultKind.failed, FaultKind.away, FaultKind.silent])
def test_a_question_that_brings_its_server_down_each_time_fails_in_the_end(kind: FaultKind) -> None:
    assert counts(kind, server_away=True)
    steps = [step_after(kind, n_tries=n, server_away=True) for n in range(1, TRIES + 1)]
    assert steps[:-1] == ["again"] * (TRIES - 1)
    assert steps[-1] == "fail"


@pytest.mark.parametrize("kind", list(FaultKind))
def test_no_kind_is_without_an_end_while_its_server_is_present(kind: FaultKind) -> None:
    assert step_after(kind, n_tries=BUSY_TRIES, server_away=False) != "again"


def test_pauses_double_from_a_quarter_second_and_have_an_end() -> None:
    fault = HttpFault(500, "")
    assert [pause_s(fault, n) for n in (1, 2, 3, 4)] == [0.25, 0.5, 1.0, 2.0]
    assert pause_s(fault, 30) == MAX_WAIT_S


def test_a_pause_is_what_the_server_asked_for_within_bounds() -> None:
    assert pause_s(HttpFault(429, "", 7.0), 1) == 7.0
    assert pause_s(HttpFault(503, "", 0.0), 4) == 0.0
    assert pause_s(HttpFault(429, "", 86_400.0), 1) == MAX_WAIT_S


@given(st.sampled_from(list(FaultKind)), st.integers(0, 10**6), st.booleans())
def test_the_table_has_an_answer_for_everything(kind: FaultKind, n_tries: int, away: bool) -> None:
    assert step_after(kind, n_tries=n_tries, server_away=away) in {"again", "fail", "stop"}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (HttpFault(500, "no"), RequestFailed),
        (HttpFault(429, "no"), RequestFailed),
        (HttpFault(422, "no"), RequestFailed),
        (HttpFault(404, "no"), JudgeNotServed),
        (JudgeForeign("page"), RequestFailed),
        (JudgeUnauthorized("key"), JudgeUnauthorized),
        (JudgeUnreachable("gone"), JudgeUnreachable),
        (RequestTimeout(1), RequestTimeout),
    ],
)
def test_a_fault_becomes_the_error_that_says_most(fault: Fault, error: type[AirjudgeError]) -> None:
    assert type(error_of(fault, 5)) is error


def test_only_faults_that_are_tried_again_may_pass() -> None:
    assert may_pass(HttpFault(503, ""))
    assert may_pass(HttpFault(0, ""))
    assert not may_pass(HttpFault(404, ""))
    assert not may_pass(HttpFault(400, ""))
