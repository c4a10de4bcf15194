"""An opik model that is our judge: `Hallucination(model=OpikJudge())`, and whatever else takes opik's model.

Importing it turns opik's error reports and usage analytics off, unless OPIK_SENTRY_ENABLE and OPIK_ANALYTICS_ENABLE
say otherwise. Tracking is opik's own feature and stays as its user has set it (`track=False`, OPIK_TRACK_DISABLE).
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast, get_origin

from airjudge.enforceable import Narrowed
from airjudge.integrations.door import MISSING, Door, chat_of, prompted
from airjudge.judge import Judge, JudgeSettings
from airjudge.structured import MAX_TOKENS

os.environ.setdefault("OPIK_SENTRY_ENABLE", "false")
os.environ.setdefault("OPIK_ANALYTICS_ENABLE", "false")
try:
    from opik.evaluation.models import OpikBaseModel
except ImportError as error:
    raise ImportError(MISSING.format("opik")) from error

_STEPS: Final = tuple(step / 10 for step in range(11))

NARROWED: Final[Narrowed] = {
    **dict.fromkeys(
        (
            "AnswerRelevanceResponseFormat.answer_relevance_score",
            "ContextPrecisionResponseFormat.context_precision_score",
            "ContextRecallResponseFormat.context_recall_score",
            "FactualityResponseFormatClaim.score",
            "HallucinationResponseFormat.score",
            "ModerationResponseFormat.score",
            "SycEvalResponseFormat.score",
            "UsefulnessResponseFormat.score",
        ),
        _STEPS,
    ),
    "GEvalScoreFormat.score": tuple(range(11)),
}
"""What opik's parsers refuse outside a range that its models do not tell."""


@dataclass(frozen=True, slots=True)
class ProviderMessage:
    """A message as OpenAI's clients hold it."""

    content: str
    role: str = "assistant"


@dataclass(frozen=True, slots=True)
class ProviderChoice:
    """A choice as OpenAI's clients hold it."""

    message: ProviderMessage
    finish_reason: str = "stop"
    index: int = 0


@dataclass(frozen=True, slots=True)
class ProviderResponse:
    """A reply as OpenAI's clients hold it."""

    choices: tuple[ProviderChoice, ...]


class OpikJudge(OpikBaseModel):
    """A judge that answers opik's prompts, outlines holding each reply to the metric's own model.

    Without a response format a reply is free text, and nothing is enforced. How it is decoded is the judge's own:
    other keywords (temperature, seed) are taken and change nothing.
    """

    def __init__(
        self,
        model: str | Judge | None = None,
        *,
        settings: JudgeSettings | None = None,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        """Contact nothing yet; a model is named as `airjudge.resident` does it."""
        self._door = Door(model, settings=settings, max_tokens=max_tokens, library="opik", narrowed=NARROWED)
        super().__init__(self._door.name)

    def generate_string(self, input: str, response_format: type[object] | None = None, **_kwargs: object) -> str:  # noqa: A002 -- opik's name
        """The reply to a prompt: JSON that is valid under the response format, or free text."""
        return self._door.judge.call(self._door.string(prompted(input), response_format))

    async def agenerate_string(self, input: str, response_format: type[object] | None = None, **_kwargs: object) -> str:  # noqa: A002 -- opik's name
        """The same inside an event loop."""
        return await self._door.judge.acall(self._door.string(prompted(input), response_format))

    def generate_chat_completion(
        self, messages: Sequence[Mapping[str, Any]], response_format: type[object] | None = None, **kwargs: object
    ) -> dict[str, Any]:
        """The assistant's turn in a chat.

        Raises:
            NotImplementedError: If tools are offered, which a judge has none of.
        """
        _refuse_tools(kwargs)
        text = self._door.judge.call(self._door.string(chat_of(messages), response_format))
        return {"role": "assistant", "content": text}

    async def agenerate_chat_completion(
        self, messages: Sequence[Mapping[str, Any]], response_format: type[object] | None = None, **kwargs: object
    ) -> dict[str, Any]:
        """The same inside an event loop."""
        _refuse_tools(kwargs)
        text = await self._door.judge.acall(self._door.string(chat_of(messages), response_format))
        return {"role": "assistant", "content": text}

    def generate_provider_response(self, messages: Sequence[Mapping[str, Any]], **kwargs: object) -> ProviderResponse:
        """The same as OpenAI's clients hold it; opik reads it through `get_provider_response`."""
        return _provided(self.generate_chat_completion(messages, _format(kwargs), **kwargs))

    async def agenerate_provider_response(
        self, messages: Sequence[Mapping[str, Any]], **kwargs: object
    ) -> ProviderResponse:
        """The same inside an event loop."""
        return _provided(await self.agenerate_chat_completion(messages, _format(kwargs), **kwargs))


def _refuse_tools(kwargs: Mapping[str, Any]) -> None:
    if kwargs.get("tools"):
        msg = "a judge calls no tools"
        raise NotImplementedError(msg)


def _format(kwargs: dict[str, object]) -> type[object] | None:
    """Take the response format out of a provider's keywords; one that is no type asks for nothing that is known."""
    found = kwargs.pop("response_format", None)
    if found is not None and not isinstance(found, type) and get_origin(found) is None:
        msg = "a response_format is a pydantic model"
        raise ValueError(msg)
    return cast("type[object] | None", found)


def _provided(turn: Mapping[str, Any]) -> ProviderResponse:
    return ProviderResponse((ProviderChoice(ProviderMessage(turn["content"])),))
