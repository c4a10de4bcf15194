"""Context recall as an evaluator of LlamaIndex: `ContextRecallEvaluator()` alone or in a `BatchEvalRunner`."""

import asyncio
from collections.abc import Sequence

from airjudge.errors import EvaluationError
from airjudge.integrations.recalling import recalling, told
from airjudge.judge import Judge, JudgeSettings
from airjudge.metrics import RecallResult
from airjudge.resident import resident

try:
    from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
    from llama_index.core.prompts.mixin import PromptDictType
except ImportError as error:
    msg = "airjudge.integrations.llama_index needs llama-index-core: pip install 'airjudge[llama-index]'"
    raise ImportError(msg) from error


class ContextRecallEvaluator(BaseEvaluator):
    """The share of a reference's statements that the retrieved contexts support, with those missed as feedback."""

    def __init__(
        self,
        model: str | Judge | None = None,
        *,
        settings: JudgeSettings | None = None,
        score_threshold: float = 0.8,
    ) -> None:
        """Contact nothing yet.

        Args:
            model: The judge, or the name of one, as `airjudge.resident.resident` takes it.
            settings: How a judge that is named is asked.
            score_threshold: The recall from which on a sample passes, in [0, 1].
        """
        self._judge = resident(model, settings=settings)
        self._score_threshold = score_threshold

    def _get_prompts(self) -> PromptDictType:
        """Give none: what a judge is told is part of what its scores mean, and not edited here."""
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """Change none."""

    async def aevaluate(  # noqa: PLR0917 -- LlamaIndex's own signature, with its reference
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        reference: str | None = None,
        sleep_time_in_seconds: int = 0,
        **_: object,
    ) -> EvaluationResult:
        """Judge one sample; the response is passed on, and plays no part.

        Returns:
            `score` is recall, 0 where nothing was retrieved. A sample that cannot be judged, or whose reference
            holds no statement, is `invalid_result` with its `invalid_reason`, and neither passes nor fails.

        Raises:
            ValueError: If query, contexts or reference are missing, a text is blank, or contexts are no strings.
            JudgeError: If the judge cannot be used at all.
        """
        if query is None or contexts is None or reference is None:
            msg = "query, contexts and reference must be provided"
            raise ValueError(msg)
        use = recalling(query, list(contexts) if not isinstance(contexts, str) else contexts, reference)
        await asyncio.sleep(sleep_time_in_seconds)
        asked = {"query": query, "contexts": contexts, "response": response}
        try:
            result = await self._judge.acall(use)
        except EvaluationError as error:
            return EvaluationResult(**asked, invalid_result=True, invalid_reason=f"{error.kind}: {error}")
        return EvaluationResult(**asked, **self._ruled(result))

    def _ruled(self, result: RecallResult) -> dict[str, object]:
        if result.value is None:
            return {"invalid_result": True, "invalid_reason": f"no_statements: {told(result)}"}
        passing = result.value >= self._score_threshold
        return {"score": result.value, "passing": passing, "feedback": told(result)}
