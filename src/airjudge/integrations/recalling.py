"""One sample's recall as other tools ask for it: what a judge is to do, and what a person is told of it."""

from collections.abc import Callable, Coroutine
from typing import Any

from airjudge.judge import Judge
from airjudge.metrics import ContextRecall, RecallResult, has_no_context, readable_sample
from airjudge.schema import Verdict

Recalling = Callable[[Judge], Coroutine[Any, Any, RecallResult]]
"""What a resident judge's `call` and `acall` take."""


def recalling(user_input: object, retrieved_contexts: object, reference: object) -> Recalling:
    """The recall of one sample, which is 0 if nothing was retrieved: who evaluates many must not lose those.

    The coroutine raises an EvaluationError if a statement could not be judged.

    Raises:
        ValueError: If a text is empty or blank, or the contexts are not a list of strings.
    """
    sample = readable_sample(user_input, reference, retrieved_contexts)

    async def use(judge: Judge) -> RecallResult:
        metric = ContextRecall(judge)
        if has_no_context(sample):
            scored = await metric.score_sample(sample)
            signature = judge.signature(metric.statements)
            return RecallResult(value=scored.score, statements=scored.statements, signature=signature)
        return await metric.ascore(
            user_input=sample.user_input,
            retrieved_contexts=sample.retrieved_contexts,
            reference=sample.reference,
        )

    return use


def told(result: RecallResult) -> str:
    """How many statements were missed, and on lines of their own which, each with its probability where it has one."""
    if not result.statements:
        return "the reference holds no statement: recall is undefined"
    missed = [one for one in result.statements if not one.attributed]
    return "\n".join([f"{len(missed)} of {len(result.statements)} statements missed", *map(_told, missed)])


def _told(verdict: Verdict) -> str:
    text = "".join(character if character.isprintable() else " " for character in verdict.text)
    probability = "" if verdict.probability is None else f" (probability {verdict.probability:.2f})"
    return f"  missed{probability}: {text}"
