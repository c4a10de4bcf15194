"""The proof, before a run, that a server constrains decoding by our schemas."""

import asyncio
import logging
import re
from collections.abc import Sequence

from airjudge import decoding, prompts
from airjudge.backends.faults import BACK_OFF_S, FAULTS, may_pass
from airjudge.backends.hosted import HostedBackend
from airjudge.backends.http import HttpFault
from airjudge.backends.vllm import FAILING_HINT, VllmBackend
from airjudge.errors import (
    EnforcementMissing,
    JudgeChanged,
    JudgeNotServed,
    JudgesDiffer,
    JudgeTooOld,
    JudgeUnreachable,
    RequestTimeout,
)
from airjudge.judge.facts import ServerFacts, Thinking, differences
from airjudge.judge.hosted import prove_hosted
from airjudge.judge.settings import JudgeSettings
from airjudge.schema import Completion, Question

_log = logging.getLogger("airjudge.judge")

OLDEST_VERSION = (0, 11)
"""The first vLLM with `--structured-outputs-config`; older engines could die of our probe."""

FREE_TOKENS = 8
"""Tokens of the one reply under no schema: enough for the first words of a thought."""

LONGEST_PAUSE_S = 5.0
"""Seconds between two looks at a server that is away."""


Backend = VllmBackend | HostedBackend
"""How a judge may be reached."""


async def prove(backend: Backend, method: str) -> ServerFacts:
    """Check version, model and enforcement, then warm up each schema of a method, one by one.

    A backend without a model name takes the only model that the server serves.

    Raises:
        JudgeError: If the server cannot be used; the error's kind and hint say why and what to do.
    """
    if isinstance(backend, HostedBackend):
        return await prove_hosted(backend, method)
    seen = await _identity(backend)
    enforcement = await _enforcement(backend) if seen.version else "unknown"
    thinking = await _thinking(backend, await _canary(backend))
    for question in prompts.warm_up(method):
        decoding.check_reply(question.schema, await first_use(backend, question))
    return seen.model_copy(update={"enforcement": enforcement, "thinking": thinking})


async def prove_when_up(backend: Backend, method: str, *, give_up_at: float) -> ServerFacts:
    """Prove a server that may still be loading; nothing else that is wrong passes by waiting.

    Args:
        backend: The server.
        method: Its schemas are warmed up.
        give_up_at: When to stop waiting, on the event loop's clock.

    Raises:
        JudgeError: As `prove`.
    """
    pause_s = BACK_OFF_S
    while True:
        try:
            return await prove(backend, method)
        except JudgeUnreachable:
            if asyncio.get_running_loop().time() + pause_s > give_up_at:
                raise
            _log.info("server_awaited", extra={"event": {"server": backend.connection.base_url}})
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


async def proved_alike(backends: Sequence[Backend], settings: JudgeSettings) -> ServerFacts:
    """Prove every server of a judge; those that are away are waited for only where that was asked for.

    Raises:
        JudgesDiffer: If they are not one judge.
        JudgeError: As `prove`.
    """
    give_up_at = asyncio.get_running_loop().time() + (settings.wait_for_server_s or 0.0)
    first, *others = backends
    known = await prove_when_up(first, settings.method, give_up_at=give_up_at)
    for backend in others:
        found = await prove_when_up(backend, settings.method, give_up_at=give_up_at)
        different = differences(known, found)
        if different:
            msg = f"{first.connection.base_url} and {backend.connection.base_url} are not one judge: {different}"
            raise JudgesDiffer(msg)
    return known


async def prove_again(backend: Backend, known: ServerFacts, method: str) -> None:
    """Prove a server that was away, and that it is the judge that it was; a provider need only be there again.

    Raises:
        JudgeChanged: If it is another one.
        JudgeError: As `prove`.
    """
    await check_identity(backend, known)
    if isinstance(backend, VllmBackend):
        _check_unchanged(backend, known, await prove(backend, method))


async def check_identity(backend: Backend, known: ServerFacts) -> None:
    """Check that a server lives and is the version and the model that it was; a provider does not tell.

    Raises:
        JudgeChanged: If it is another judge.
        JudgeError: If it cannot be used at all.
    """
    if isinstance(backend, HostedBackend):
        await backend.check_there()
        return
    await backend.check_health()
    try:
        seen = await _identity(backend)
    except (JudgeNotServed, JudgeTooOld) as error:
        msg = f"{backend.connection.base_url} is another judge now: {error}"
        raise JudgeChanged(msg) from error
    _check_unchanged(backend, known, seen.model_copy(update={"enforcement": known.enforcement}))


def _check_unchanged(backend: VllmBackend, known: ServerFacts, seen: ServerFacts) -> None:
    changed = differences(known, seen)
    if changed:
        msg = f"{backend.connection.base_url} is another judge now: {changed}"
        raise JudgeChanged(msg)


async def _identity(backend: VllmBackend) -> ServerFacts:
    """What a server says that it is; nothing about enforcement, which nobody is believed."""
    version = await backend.version()
    _check_version(version)
    served = await backend.served_models()
    backend.model = _chosen(backend.model, sorted(served))
    return ServerFacts(model=backend.model, max_model_len=served[backend.model], version=version, enforcement="unknown")


def _check_version(version: str | None) -> None:
    numbers = tuple(int(part) for part in re.findall(r"\d+", version or "")[:2])
    if numbers and numbers < OLDEST_VERSION:
        oldest = ".".join(map(str, OLDEST_VERSION))
        msg = f"the server runs vLLM {version}; enforcement is only trusted from {oldest} on"
        raise JudgeTooOld(msg, f"Upgrade vLLM to {oldest} or newer, or start a judge here: airjudge serve")


def _chosen(model: str | None, served: list[str]) -> str:
    """The model to ask: the named one, or the only one."""
    names = ", ".join(served) or "none"
    if model is None:
        if len(served) == 1:
            return served[0]
        msg = f"the server serves several models or none: {names}"
        raise JudgeNotServed(msg, "Name one of them with --model.")
    if model not in served:
        msg = f"the server does not serve {model!r}; it serves: {names}"
        raise JudgeNotServed(msg, "Name a served model with --model.")
    return model


async def _enforcement(backend: VllmBackend) -> str:
    """Which backend constrains decoding, as far as the probe can tell."""
    refusal = await backend.refusal_of_json_object()
    return "outlines" if refusal is not None and "outlines" in refusal.lower() else "other"


async def check_canary(backend: Backend) -> None:
    """Refuse a server that lets through what the canary's schema forbids; of a provider no other process answers."""
    if isinstance(backend, VllmBackend):
        await _canary(backend)


async def _canary(backend: VllmBackend) -> Completion:
    completion = await first_use(backend, prompts.canary())
    if decoding.matches(decoding.CANARY, completion.text):
        return completion
    msg = (
        f"the server ignores the reply schema: asked under a schema that allows only "
        f'"canary", it replied {completion.text[:60]!r}'
    )
    if completion.reasoning and completion.reasoning == completion.text:
        msg += " in the field for its reasoning"
        raise EnforcementMissing(msg, "The model thinks before it replies: turn that off in its chat template.")
    raise EnforcementMissing(msg)


async def _thinking(backend: VllmBackend, canary: Completion) -> Thinking | None:
    """Whether a model that thinks when it is left free does so under a schema; a server that fails here says nothing.

    The schema is enforced from the first token, so most such models do not think then, and nobody is told.
    """
    if canary.reasoning and canary.reasoning != canary.text:
        return "on"
    try:
        free = await backend.free_reply(prompts.FREE, max_tokens=FREE_TOKENS)
    except FAULTS:
        return None
    kept_apart = bool(free.reasoning) and not canary.reasoning  # a proxy may move every reply to that field
    return "off" if kept_apart or free.text.lstrip().startswith("<think>") else None


async def first_use(backend: VllmBackend, question: Question) -> Completion:
    """Ask a question whose schema the server has to compile first.

    Raises:
        JudgeError: If it cannot, or is away.
    """
    try:
        return await backend.warm_up(question)
    except HttpFault as fault:
        if may_pass(fault):
            msg = f"the server fails on its first question: {fault}"
            raise JudgeUnreachable(msg, FAILING_HINT) from fault
        msg = f"the server refuses a request with response_format json_schema: {fault}"
        raise EnforcementMissing(msg) from fault
    except RequestTimeout as error:
        msg = f"the server does not answer its first question: {error}"
        raise JudgeUnreachable(msg, FAILING_HINT) from error
