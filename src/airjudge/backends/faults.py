"""What becomes of a question whose request failed: the one place that decides about retries.

A fault is first told apart by its kind, then the table says what follows. What looks like the server's own
trouble is *suspect*: the server is looked at before anything else, and while it is away no question fails.
Nothing here waits or sends.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from airjudge.backends.http import HttpFault
from airjudge.errors import (
    AirjudgeError,
    JudgeForeign,
    JudgeNotServed,
    JudgeQuota,
    JudgeUnauthorized,
    JudgeUnreachable,
    RequestFailed,
    RequestTimeout,
)

Fault = HttpFault | JudgeForeign | JudgeUnauthorized | JudgeUnreachable | RequestTimeout
FAULTS = (HttpFault, JudgeForeign, JudgeUnauthorized, JudgeUnreachable, RequestTimeout)
"""Everything that one request can end with beside a reply."""

TRIES = 5
"""Tries of a question that meets a passing fault, the first included."""
BUSY_TRIES = 20
"""Tries of a question that the server puts off: it is busy, not broken, and says so."""
BACK_OFF_S = 0.25
"""Seconds before the second try; doubled before each further one."""
MAX_WAIT_S = 60.0
"""Seconds between two tries at most, whatever a Retry-After asks."""

Step = Literal["again", "fail", "stop"]


class FaultKind(StrEnum):
    """The kinds of fault that are treated differently."""

    over_length = "over_length"
    refused = "refused"
    unauthorized = "unauthorized"
    unknown = "unknown"
    quota = "quota"
    late = "late"
    busy = "busy"
    failed = "failed"
    away = "away"
    broken = "broken"
    unreached = "unreached"
    foreign = "foreign"
    silent = "silent"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What follows a fault.

    `then` is what to do: ask `again`, up to `tries` times in all, then fail; `fail` this question alone;
    `stop` the run. With `suspect` the server is looked at first, and while it is away the question
    waits; such a try does not count, unless `counts_when_away` says that the question itself may have
    brought the server down. `restarted` marks faults after which another process may be answering.
    """

    then: Step
    tries: int = 1
    suspect: bool = False
    restarted: bool = False
    counts_when_away: bool = False


TABLE: Mapping[FaultKind, Ruling] = {
    FaultKind.over_length: Ruling("fail"),
    FaultKind.refused: Ruling("fail"),
    FaultKind.unauthorized: Ruling("stop"),
    FaultKind.unknown: Ruling("stop", suspect=True),
    FaultKind.quota: Ruling("stop"),
    FaultKind.late: Ruling("again", TRIES),
    FaultKind.busy: Ruling("again", BUSY_TRIES),
    FaultKind.failed: Ruling("again", TRIES, suspect=True, counts_when_away=True),
    FaultKind.away: Ruling("again", TRIES, suspect=True, counts_when_away=True),
    FaultKind.broken: Ruling("again", TRIES, suspect=True, restarted=True, counts_when_away=True),
    FaultKind.unreached: Ruling("again", TRIES, suspect=True, restarted=True),
    FaultKind.foreign: Ruling("again", TRIES, suspect=True),
    # Not asked again: the server may still be at work on the first try, unless it is gone.
    FaultKind.silent: Ruling("fail", TRIES, suspect=True, counts_when_away=True),
}


def kind_of(fault: Fault) -> FaultKind:
    """Tell a fault apart by its type and status; of a 400 also by the server's words."""
    match fault:
        case JudgeUnreachable():
            return FaultKind.unreached
        case JudgeUnauthorized():
            return FaultKind.unauthorized
        case JudgeForeign():
            return FaultKind.foreign
        case RequestTimeout():
            return FaultKind.silent
    return FaultKind.quota if is_quota(fault) else _kind_of_status(fault.status, fault.message)


def is_quota(fault: HttpFault) -> bool:
    """Whether an account has nothing left to spend, which no waiting brings back."""
    spent = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
    return fault.status == 402 or (fault.status == 429 and fault.code in spent)


def _kind_of_status(status: int, words: str) -> FaultKind:
    by_status = {
        0: FaultKind.broken,
        404: FaultKind.unknown,
        408: FaultKind.late,
        413: FaultKind.over_length,
        429: FaultKind.busy,
    }
    if status in by_status:
        return by_status[status]
    if status in {502, 503, 504}:
        return FaultKind.away
    if status >= 500:
        return FaultKind.failed
    return FaultKind.over_length if status == 400 and is_over_length(words) else FaultKind.refused


_OVER_LENGTH = (
    r"maximum context length|max_model_len|longer than the maximum model length"
    r"|prompt is too long|exceeds the maximum number of tokens"
)


def is_over_length(words: str) -> bool:
    """Whether a server's words say that a prompt is too long for its model."""
    return re.search(_OVER_LENGTH, words) is not None


def may_pass(fault: Fault) -> bool:
    """Whether the same request may succeed later."""
    return TABLE[kind_of(fault)].then == "again"


def step_after(kind: FaultKind, *, n_tries: int, server_away: bool) -> Step:
    """What to do with a question.

    Args:
        kind: What the last try ended with.
        n_tries: Tries that count so far, the last one included if it does.
        server_away: Whether the server, looked at, turned out to be away.
    """
    ruling = TABLE[kind]
    if server_away and (not ruling.counts_when_away or n_tries < ruling.tries):
        return "again"
    if ruling.then == "again" and n_tries >= ruling.tries:
        return "fail"
    return ruling.then


def counts(kind: FaultKind, *, server_away: bool) -> bool:
    """Whether a failed try is one of those that a question has."""
    return not server_away or TABLE[kind].counts_when_away


def pause_s(fault: Fault, n_tries: int) -> float:
    """Seconds before the next try: what the server asked for, else twice as long as the last time."""
    asked_s = fault.retry_after_s if isinstance(fault, HttpFault) else None
    return min(BACK_OFF_S * 2.0 ** max(0, n_tries - 1) if asked_s is None else asked_s, MAX_WAIT_S)


def error_of(fault: Fault, n_tries: int) -> AirjudgeError:
    """The error that a fault amounts to once no further try is made."""
    match fault:
        case JudgeUnauthorized() | RequestTimeout() | JudgeUnreachable():
            return fault
        case HttpFault() if is_quota(fault):
            return JudgeQuota(f"the account has nothing left to spend: {fault}")
        case HttpFault(status=404):
            return JudgeNotServed(f"the server no longer serves the model: {fault}")
    return RequestFailed(str(fault), n_tries)
