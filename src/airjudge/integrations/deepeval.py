"""A deepeval model that is our judge: `ContextualRecallMetric(model=DeepEvalJudge())`.

Importing it turns deepeval's telemetry off, unless DEEPEVAL_TELEMETRY_OPT_OUT says otherwise.
"""

import os
from typing import TypeVar, overload

from airjudge.integrations.door import MISSING, Door, prompted
from airjudge.judge import Judge, JudgeSettings
from airjudge.structured import MAX_TOKENS

os.environ.setdefault("DEEPEVAL_TELEMETRY_OPT_OUT", "1")
try:
    from deepeval.models import DeepEvalBaseLLM
except ImportError as error:
    raise ImportError(MISSING.format("deepeval")) from error

T = TypeVar("T")


class DeepEvalJudge(DeepEvalBaseLLM):
    """A judge that answers deepeval's prompts, outlines holding each reply to the metric's own model.

    Without a schema a reply is free text, and nothing is enforced.
    """

    def __init__(
        self,
        model: str | Judge | None = None,
        *,
        settings: JudgeSettings | None = None,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        """Contact nothing yet; a model is named as `airjudge.resident` does it."""
        self._door = Door(model, settings=settings, max_tokens=max_tokens, library="deepeval")
        super().__init__(self._door.name)

    def load_model(self, *_args: object, **_kwargs: object) -> "DeepEvalJudge":
        """Itself: the judge's server holds the weights, and is found at the first question."""
        return self

    @overload
    def generate(self, prompt: str, schema: None = None) -> str: ...

    @overload
    def generate(self, prompt: str, schema: type[T]) -> T: ...

    def generate(self, prompt: str, schema: type[T] | None = None) -> T | str:
        """Answer a prompt by an instance of a schema, or by free text; not inside a running event loop."""
        messages = prompted(prompt)
        if schema is None:
            return self._door.judge.call(self._door.string(messages, None))
        return self._door.judge.call(self._door.instance(messages, schema))

    @overload
    async def a_generate(self, prompt: str, schema: None = None) -> str: ...

    @overload
    async def a_generate(self, prompt: str, schema: type[T]) -> T: ...

    async def a_generate(self, prompt: str, schema: type[T] | None = None) -> T | str:
        """The same inside an event loop."""
        messages = prompted(prompt)
        if schema is None:
            return await self._door.judge.acall(self._door.string(messages, None))
        return await self._door.judge.acall(self._door.instance(messages, schema))

    def get_model_name(self, *_args: object, **_kwargs: object) -> str:
        """The judge's name, as deepeval prints it."""
        return f"{self._door.name} (airjudge)"

    def supports_structured_outputs(self) -> bool:
        """It enforces schemas while decoding."""
        return True
