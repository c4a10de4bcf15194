"""The judge behind a client's address, in the place of ragas' LLM."""

import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from airjudge.backends.http import is_local, parse_address
from airjudge.judge import Judge, JudgeSettings
from airjudge.resident import ResidentJudge, resident
from airjudge.server import running_model

_LIMITS: Final = ("max_tokens", "max_completion_tokens")
_SAMPLING: Final = ("temperature", "top_p")
"""Accepted in silence: the probability of a verdict is that at temperature 1, the reply that at 0."""


@dataclass(frozen=True)
class JudgeLLM:
    """A judge by its model and the address that a client names; without a client, by the model's name alone.

    `max_tokens` is the most that the reply of a single call may have; None means ours.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    allow_remote: bool = False
    max_tokens: int | None = None

    def judge(self, settings: JudgeSettings) -> ResidentJudge:
        """The judge asked by these settings, one for all callers with equal ones; contacted by its first use."""
        if self.max_tokens is not None:
            settings = settings.model_copy(update={"single_call_tokens": self.max_tokens})
        return _behind(self, settings.model_dump_json()) if self.base_url else resident(self.model, settings=settings)


def llm_factory(
    model: str,
    provider: str = "openai",  # noqa: ARG001 -- a foreign signature
    client: Any = None,
    adapter: str = "auto",  # noqa: ARG001 -- as above
    cache: Any = None,
    *,
    allow_remote: bool = False,
    **kwargs: Any,
) -> JudgeLLM:
    """The judge that a client's address serves under a name.

    Args:
        model: The name of the served model; without a client also that of a profile.
        provider: Has no effect.
        client: Any object with `base_url` and `api_key`, synchronous or not: OpenAI's, or one of yours. None means
            what `airjudge.resident` finds by the model's name.
        adapter: Has no effect.
        cache: Has no effect, of which a UserWarning tells: a run keeps its verdicts with their judge's signature.
        allow_remote: Whether the client's address may be outside; then its standard fields alone are used.
        kwargs: `max_tokens` bounds the reply of a single call. `temperature` and `top_p` have no effect; any other
            has none either, of which a UserWarning tells.

    Raises:
        ValueError: If there is no model, no address in the client, or `max_tokens` is no number above 0.
        InputError: If the address is no base URL.
        JudgeRemote: If it is outside and `allow_remote` is false; of a name that is found when it is contacted.
    """
    if not model:
        msg = "model parameter is required"
        raise ValueError(msg)
    ignored = [*(["cache"] if cache is not None else []), *sorted(set(kwargs) - {*_LIMITS, *_SAMPLING})]
    if ignored:
        warnings.warn(f"llm_factory: {', '.join(ignored)}: without effect here", UserWarning, stacklevel=2)
    base_url, api_key = _address(client, allow_remote=allow_remote)
    return JudgeLLM(model, base_url, api_key, allow_remote, _max_tokens(kwargs))


def _max_tokens(kwargs: Mapping[str, Any]) -> int | None:
    found = next((kwargs[name] for name in _LIMITS if kwargs.get(name) is not None), None)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        msg = f"max_tokens must be a whole number above 0: got {found!r}"
        raise ValueError(msg)
    return found


def _address(client: Any, *, allow_remote: bool) -> tuple[str | None, str | None]:
    if client is None:
        return None, None
    base_url, api_key = getattr(client, "base_url", None), getattr(client, "api_key", None)
    if not base_url:
        msg = f"client must have base_url and api_key, as openai's have: got {type(client).__name__}"
        raise ValueError(msg)
    parse_address(str(base_url), allow_remote=allow_remote)
    return str(base_url), api_key if isinstance(api_key, str) else None


@cache
def _behind(llm: JudgeLLM, settings: str) -> ResidentJudge:
    return ResidentJudge(lambda: nullcontext(_opening(llm, JudgeSettings.model_validate_json(settings))))


def _opening(llm: JudgeLLM, settings: JudgeSettings) -> Judge:
    """The judge at an address: what is known of it if `airjudge serve` runs it here."""
    base_url = llm.base_url or ""
    server = running_model(llm.model)
    if server is not None and server.api_key == llm.api_key and _root(server.base_url) == _root(base_url):
        return Judge.of_server(server, settings)
    if llm.allow_remote and not is_local(base_url):
        return Judge.hosted(base_url, llm.model, api_key=llm.api_key, allow_remote=True, settings=settings)
    return Judge.connect(base_url, llm.model, api_key=llm.api_key, allow_remote=llm.allow_remote, settings=settings)


def _root(base_url: str) -> str:
    return parse_address(base_url, allow_remote=True).root
