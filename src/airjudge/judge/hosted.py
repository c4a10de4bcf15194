"""The proof of a hosted judge: which fields its provider takes, and whether it keeps replies to a schema.

A few questions, one after the other, before the first sample. What is left out is told, and stands in the signature.
"""

import asyncio
import logging
from dataclasses import replace

from airjudge import decoding, prompts
from airjudge.backends.faults import TRIES, FaultKind, error_of, is_quota, kind_of, may_pass, pause_s
from airjudge.backends.hosted import THINKING_TOKENS, HostedBackend, one_less, without_refused
from airjudge.backends.http import HttpFault
from airjudge.errors import AirjudgeError, JudgeForeign, JudgeNotServed, JudgeUnreachable, RequestTimeout
from airjudge.judge.facts import ServerFacts
from airjudge.schema import Completion, Question

_log = logging.getLogger("airjudge.judge")

REFUSED = {400, 422}
"""What a provider says to a field that it does not take."""
NO_ROUTE = {404, 405}
STATUS_HINT = "Look at the provider's status page."


async def prove_hosted(backend: HostedBackend, method: str) -> ServerFacts:
    """Find the API and the form of a provider's requests, and whether it keeps replies to their schema.

    Raises:
        JudgeError: If no question can be asked; the error's kind and hint say why and what to do.
    """
    canary = prompts.as_object(prompts.canary())
    completion = await _ended(backend, canary)
    kept = decoding.matches(canary.schema, completion.text)
    for question in map(prompts.as_object, prompts.warm_up(method)):
        completion = await _ended(backend, question)
        if not decoding.matches(question.schema, completion.text):
            extra = {"event": {"server": backend.host}, "data": {"reply": completion.text[:200]}}
            _log.warning("first_reply_outside_its_schema", extra=extra)
    left_out = tuple(sorted(backend.form.left_out))
    facts = ServerFacts(
        model=backend.model,
        max_model_len=None,
        version=None,
        enforcement="json_schema" if kept and "response_format" not in left_out else "none",
        host=backend.host,
        answers_as=completion.model if completion.model not in {"", backend.model} else None,
        left_out=left_out,
        thinking_tokens=backend.form.thinking_tokens,
    )
    _tell(facts)
    if not completion.usage.prompt_tokens:
        unknown = {"server": facts.host, "so": "tokens and cost stay unknown, and no maximal cost is held"}
        _log.warning("provider_tells_no_usage", extra={"event": unknown})
    return facts


def _tell(facts: ServerFacts) -> None:
    """Warn of what a person would want to know before the run is paid for."""
    if facts.left_out:
        event = {"server": facts.host, "without": " and ".join(facts.left_out)}
        _log.warning("provider_asked_without_fields_it_refuses", extra={"event": event})
    if facts.enforcement == "none":
        event = {"server": facts.host, "model": facts.model, "so": "a reply that is not exactly the JSON is a failure"}
        _log.warning("reply_schema_not_enforced", extra={"event": event})
    if facts.thinking_tokens:
        event = {"model": facts.model, "room_in_tokens": str(facts.thinking_tokens)}
        _log.warning("model_thinks_before_it_replies", extra={"event": event})


async def _ended(backend: HostedBackend, question: Question) -> Completion:
    """A reply that ended by itself if more room is all that it takes; such a model gets that room from now on."""
    completion = await _taken(backend, question)
    cut = completion.finish_reason == "length" and not decoding.matches(question.schema, completion.text)
    if not cut or backend.form.thinking_tokens:
        return completion
    short, backend.form = backend.form, replace(backend.form, thinking_tokens=THINKING_TOKENS)
    longer = await _taken(backend, question)
    thought = not completion.text.strip() and longer.finish_reason != "length"
    if not thought and not decoding.matches(question.schema, longer.text):
        backend.form = short  # it only talks, and each further word would be paid for
    return longer


async def _taken(backend: HostedBackend, question: Question) -> Completion:
    """The reply to a question, asked again without each thing that the provider says it does not take."""
    while True:
        try:
            return await _asked(backend, question)
        except HttpFault as fault:
            if _is_about_model(fault) and fault.code:
                raise _error(backend, fault) from fault
            form = without_refused(backend.form, fault.message)
            if form is None:
                return await _without_one(backend, question, fault)
            backend.form = form


async def _without_one(backend: HostedBackend, question: Question, refused: HttpFault) -> Completion:
    """The reply to a question without one thing, whichever it is that an unnamed refusal is about."""
    before = backend.form
    for form in one_less(before):
        backend.form = form
        try:
            return await _asked(backend, question)
        except HttpFault:
            continue
    backend.form = before
    raise _error(backend, refused) from refused


async def _asked(backend: HostedBackend, question: Question) -> Completion:
    """The reply to a question at the first address that has the API; a provider that is busy is waited for.

    Raises:
        HttpFault: If the provider refuses the request.
        JudgeError: If it cannot be used at all.
    """
    for n_tries in range(1, TRIES + 1):
        try:
            return await _at_an_address(backend, question)
        except HttpFault as fault:
            if fault.status in REFUSED:
                raise
            if kind_of(fault) is not FaultKind.busy or n_tries == TRIES:
                raise _error(backend, fault) from fault
            await asyncio.sleep(pause_s(fault, n_tries))
        except RequestTimeout as error:
            msg = f"{backend.host} does not answer its first question: {error}"
            raise JudgeUnreachable(msg, STATUS_HINT) from error
    raise AssertionError  # the last try returns or raises


async def _at_an_address(backend: HostedBackend, question: Question) -> Completion:
    while len(backend.bases) > 1:
        try:
            return await backend.ask(question)
        except HttpFault as fault:
            if fault.status not in NO_ROUTE or _is_about_model(fault):
                raise
        except JudgeForeign:
            pass
        del backend.bases[0]
    return await backend.ask(question)


def _is_about_model(fault: HttpFault) -> bool:
    return "model" in fault.code or (fault.status in NO_ROUTE and "model" in fault.message.lower())


def _error(backend: HostedBackend, fault: HttpFault) -> AirjudgeError:
    """What a fault before the run amounts to."""
    if is_quota(fault):
        return error_of(fault, 1)
    if may_pass(fault):
        msg = f"{backend.host} fails on its first question: {fault}"
        return JudgeUnreachable(msg, STATUS_HINT)
    if fault.status in NO_ROUTE and not _is_about_model(fault):
        return JudgeForeign(f"there is no {backend.bases[0]}/chat/completions: {fault}")
    msg = f"{backend.host} does not serve {backend.model!r} to us: {fault}"
    return JudgeNotServed(msg, "Check --model against the provider's list, and that it takes chat completions.")
