"""Context recall as a function that LangSmith and openevals take for an evaluator.

LangSmith needs no class for that, so nothing of it is imported here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from airjudge.errors import EvaluationError
from airjudge.integrations.recalling import Recalling, recalling, told
from airjudge.judge import Judge, JudgeSettings
from airjudge.metrics import RecallResult
from airjudge.resident import resident

Feedback = dict[str, object]
"""What an evaluator gives: `key`, `score`, `comment`, and by whom it was judged as `metadata`."""

KEY: Final = "context_recall"


class Evaluator(Protocol):
    """What LangSmith finds by the names of its parameters; openevals calls it by keyword."""

    def __call__(self, inputs: object, outputs: object, reference_outputs: object) -> Feedback:
        """Judge one example."""


class AsyncEvaluator(Protocol):
    """The same, awaited."""

    async def __call__(self, inputs: object, outputs: object, reference_outputs: object) -> Feedback:
        """Judge one example."""


@dataclass(frozen=True, slots=True)
class Fields:
    """Where a sample's fields are: in an example's inputs, in what the system put out, in its reference outputs.

    Where one of these is no mapping, as openevals allows, it is the field itself.
    """

    user_input: str = "user_input"
    retrieved_contexts: str = "retrieved_contexts"
    reference: str = "reference"


OURS: Final = Fields()


def context_recall_evaluator(
    model: str | Judge | None = None, *, settings: JudgeSettings | None = None, fields: Fields = OURS, key: str = KEY
) -> Evaluator:
    """An evaluator for `langsmith.evaluate(..., evaluators=[...])`, which calls it in threads.

    Its score is recall, 0 where nothing was retrieved. Of a sample that cannot be judged, or whose reference
    holds no statement, it is None, and the comment says why. A field that is missing is a ValueError, which LangSmith
    notes as an error of that example. Contexts are strings, or documents with their text in `page_content`.

    Args:
        model: The judge, or the name of one, as `airjudge.resident.resident` takes it.
        settings: How a judge that is named is asked.
        fields: The names of a sample's fields.
        key: What the score is called.
    """
    judge = resident(model, settings=settings)

    def context_recall(inputs: object, outputs: object, reference_outputs: object) -> Feedback:
        use = _recalling(fields, inputs, outputs=outputs, reference_outputs=reference_outputs)
        try:
            return _feedback(key, judge.call(use))
        except EvaluationError as error:
            return _without_score(key, error)

    return context_recall


def acontext_recall_evaluator(
    model: str | Judge | None = None, *, settings: JudgeSettings | None = None, fields: Fields = OURS, key: str = KEY
) -> AsyncEvaluator:
    """The same for `langsmith.aevaluate` and other event loops."""
    judge = resident(model, settings=settings)

    async def context_recall(inputs: object, outputs: object, reference_outputs: object) -> Feedback:
        use = _recalling(fields, inputs, outputs=outputs, reference_outputs=reference_outputs)
        try:
            return _feedback(key, await judge.acall(use))
        except EvaluationError as error:
            return _without_score(key, error)

    return context_recall


def _recalling(fields: Fields, inputs: object, *, outputs: object, reference_outputs: object) -> Recalling:
    contexts = _field(outputs, fields.retrieved_contexts, "outputs")
    if isinstance(contexts, Sequence) and not isinstance(contexts, str):
        contexts = [_text(one) for one in contexts]
    return recalling(
        _field(inputs, fields.user_input, "inputs"),
        contexts,
        _field(reference_outputs, fields.reference, "reference_outputs"),
    )


def _field(value: object, name: str, place: str) -> object:
    if not isinstance(value, Mapping):
        return value
    if name not in value:
        msg = f"{place} has no {name!r}: it has {', '.join(map(repr, value)) or 'nothing'}; name it by fields=Fields(…)"
        raise ValueError(msg)
    return value[name]


def _text(context: object) -> object:
    """The text of a document, in itself or as JSON; whatever else as it is."""
    if isinstance(context, Mapping):
        return context.get("page_content", context)
    return getattr(context, "page_content", context)


def _feedback(key: str, result: RecallResult) -> Feedback:
    return {
        "key": key,
        "score": result.value,
        "comment": told(result),
        "metadata": {"signature": str(result.signature)},
    }


def _without_score(key: str, error: EvaluationError) -> Feedback:
    return {"key": key, "score": None, "comment": f"{error.kind}: {error}"}
