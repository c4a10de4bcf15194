"""A ragas LLM that is our judge: `ContextRecall(llm=RagasJudge())`, and whatever else takes ragas' LLM.

Importing it turns ragas' telemetry off, unless RAGAS_DO_NOT_TRACK says otherwise.
"""

import os
from typing import Any, Final, TypeVar

from airjudge.enforceable import Narrowed
from airjudge.integrations.door import MISSING, Door, prompted
from airjudge.judge import Judge, JudgeSettings
from airjudge.structured import MAX_TOKENS

os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
try:
    from ragas.llms.base import InstructorBaseRagasLLM
except ImportError as error:
    raise ImportError(MISSING.format("ragas")) from error

T = TypeVar("T")

NARROWED: Final[Narrowed] = {
    **dict.fromkeys(
        (
            "ContextRecallClassification.attributed",
            "ContextPrecisionOutput.verdict",
            "Verification.verdict",
            "StatementFaithfulnessAnswer.verdict",
            "AnswerRelevanceOutput.noncommittal",
            "ResponseRelevanceOutput.noncommittal",
        ),
        (0, 1),
    ),
    **dict.fromkeys(("ContextRelevanceOutput.rating", "ResponseGroundednessOutput.rating"), (0, 1, 2)),
    "AnswerAccuracyOutput.rating": (0, 2, 4),
}
"""What ragas asks for in words and leaves to any integer in its models: an attributed of 7 made a recall of 7.0."""


class RagasJudge(InstructorBaseRagasLLM):
    """A judge that answers ragas' prompts, outlines holding each reply to the metric's own model."""

    is_async = True

    def __init__(
        self,
        model: str | Judge | None = None,
        *,
        settings: JudgeSettings | None = None,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        """Contact nothing yet; a model is named as `airjudge.resident` does it."""
        self._door = Door(model, settings=settings, max_tokens=max_tokens, library="ragas", narrowed=NARROWED)
        self.model = self._door.name

    def generate(self, prompt: str, response_model: type[T]) -> T:
        """Answer a prompt by an instance of a model; not inside a running event loop."""
        return self._door.judge.call(self._door.instance(prompted(prompt), response_model))

    async def agenerate(self, prompt: str, response_model: type[T]) -> T:
        """Answer a prompt by an instance of a model."""
        return await self._door.judge.acall(self._door.instance(prompted(prompt), response_model))

    def __deepcopy__(self, _memo: dict[int, Any]) -> "RagasJudge":
        """A judge is not copied with the metric that holds it."""
        return self
