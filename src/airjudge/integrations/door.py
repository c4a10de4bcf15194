"""What the doors to other tools have in common: a judge that stays open, and the three ways to ask it."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar, get_args

from airjudge.enforceable import NOTHING_NARROWED, Narrowed
from airjudge.judge import Judge, JudgeSettings
from airjudge.resident import ResidentJudge, resident
from airjudge.schema import Message
from airjudge.structured import MAX_TOKENS, Structured

T = TypeVar("T")
Use = Callable[[Judge], Coroutine[Any, Any, T]]

MISSING = "airjudge.integrations.{0} needs {0}: pip install 'airjudge[{0}]'"
"""Said where a library is not installed."""


class Door:
    """A judge as one tool asks it; `judge.call(use)` and `judge.acall(use)` take what the methods here make."""

    def __init__(
        self,
        model: str | Judge | None,
        *,
        settings: JudgeSettings | None = None,
        max_tokens: int = MAX_TOKENS,
        library: str = "",
        narrowed: Narrowed = NOTHING_NARROWED,
    ) -> None:
        """Contact nothing yet; `narrowed` holds for models of the library's own, which say less than it means."""
        self.judge: ResidentJudge = resident(model, settings=settings)
        self.name = model if isinstance(model, str) else "airjudge"
        self._max_tokens, self._library, self._narrowed = max_tokens, library, narrowed

    def instance(self, messages: Sequence[Message], model: type[T]) -> Use[T]:
        """Ask for an instance of a model."""
        narrowed = self._narrowed_for(model)

        async def use(judge: Judge) -> T:
            return await Structured(judge, narrowed=narrowed).ask(messages, model, max_tokens=self._max_tokens)

        return use

    def string(self, messages: Sequence[Message], model: type[object] | None) -> Use[str]:
        """Ask for JSON that is valid under a model, or for free text where there is none."""
        narrowed = NOTHING_NARROWED if model is None else self._narrowed_for(model)

        async def use(judge: Judge) -> str:
            structured = Structured(judge, narrowed=narrowed)
            if model is None:
                return await structured.ask_text(messages, max_tokens=self._max_tokens)
            return await structured.ask_json(messages, model, max_tokens=self._max_tokens)

        return use

    def _narrowed_for(self, model: type[object]) -> Narrowed:
        """Of a user's own model nothing is narrowed, whatever its name is."""
        own = next(iter(get_args(model)), model)
        return self._narrowed if own.__module__.partition(".")[0] == self._library else NOTHING_NARROWED


def prompted(prompt: str) -> list[Message]:
    """A chat of one message."""
    return [Message("user", prompt)]


def chat_of(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """A chat as OpenAI's clients write it.

    Raises:
        ValueError: If a message is no text of system, user or assistant.
    """
    found = []
    for one in messages:
        role, content = one.get("role"), one.get("content")
        if role not in {"system", "user", "assistant"} or not isinstance(content, str):
            msg = f"a message of role {role!r} that is no text cannot be asked"
            raise ValueError(msg)
        found.append(Message(role, content))
    return found
