"""What the judge is told, as an object that a script edits."""

import copy
from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import BaseModel

from airjudge.decoding import Classification
from airjudge.wordings import ENGLISH, Example, Wording, find_wording

Method = Literal["pointwise", "ragas"]
METHODS: Final[tuple[Method, ...]] = ("pointwise", "ragas")


class ContextRecallInput(BaseModel):
    """What an example is about; its contexts are the lines of `context`."""

    question: str
    context: str
    answer: str


class ContextRecallClassification(BaseModel):
    """How one statement of an example is to be ruled on."""

    statement: str
    reason: str
    attributed: int


class ContextRecallOutput(BaseModel):
    """How all statements of an example are to be ruled on."""

    classifications: list[ContextRecallClassification]


Pair = tuple[Any, Any]
"""Input and output of an example: ours, or objects with the same attributes."""


class ContextRecallPrompt:
    """The instruction and the examples that a metric asks with, from the next score on.

    With the method `ragas` they are those of the single call; an example whose answer is empty shows the form of
    a reply alone. With `pointwise` the instruction opens each question about one statement; there are no examples,
    and those that are added are shown as questions about their statements, each with its answer.
    """

    def __init__(self, method: Method = "pointwise", wording: Wording = ENGLISH) -> None:
        """Begin with the words of a language."""
        self.method, self._wording, self.language = method, wording, wording.language
        self.instruction = wording.single_call if method == "ragas" else wording.pointwise
        self.examples: list[Pair] = [_pair(one) for one in _examples(method, wording)]

    async def adapt(
        self, target_language: str, llm: object = None, adapt_instruction: bool = True
    ) -> "ContextRecallPrompt":
        """A prompt in another language, as `adapted` gives it; nobody is asked."""
        return self.adapted(target_language, llm, adapt_instruction)

    def adapted(
        self, target_language: str, llm: object = None, adapt_instruction: bool = True
    ) -> "ContextRecallPrompt":
        """A prompt in another language, from the words that are shipped for it.

        Args:
            target_language: Its English name, its own name or its tag: "chinese", "中文", "zh-CN".
            llm: Has no effect: the words are not translated by a model.
            adapt_instruction: False keeps all but the examples as it is.

        Raises:
            ValueError: If there are no words in that language, with the languages that there are.
        """
        there = ContextRecallPrompt(self.method, find_wording(target_language))
        if adapt_instruction:
            return there
        kept = copy.copy(self)
        kept.examples, kept.language = there.examples, there.language
        return kept

    def wording(self) -> Wording | None:
        """All words as they stand now; None if they are our own.

        Raises:
            ValueError: If the instruction is blank or an example is unusable.
        """
        examples = tuple(_example(number, one) for number, one in enumerate(self.examples, 1))
        edited: dict[str, object] = (
            {"single_call": self.instruction, "single_call_examples": examples}
            if self.method == "ragas"
            else {"pointwise": self.instruction, "pointwise_examples": examples}
        )
        found = Wording.model_validate({**dict(self._wording), **edited, "language": self.language})
        return None if found == ENGLISH else found


def _examples(method: Method, wording: Wording) -> Sequence[Example]:
    return wording.single_call_examples if method == "ragas" else wording.pointwise_examples


def _pair(example: Example) -> Pair:
    context = "\n".join(example.retrieved_contexts)
    asked = ContextRecallInput(question=example.user_input, context=context, answer=example.reference)
    items = [ContextRecallClassification(**dict(one)) for one in example.classifications]
    return asked, ContextRecallOutput(classifications=items)


def _example(number: int, pair: Pair) -> Example:
    try:
        asked, answered = pair
        return Example(
            user_input=asked.question,
            retrieved_contexts=tuple(line for line in asked.context.splitlines() if line.strip()),
            reference=asked.answer,
            classifications=tuple(
                Classification(statement=one.statement, reason=one.reason, attributed=one.attributed)
                for one in answered.classifications
            ),
        )
    except (AttributeError, TypeError, ValueError) as error:
        msg = f"example {number} of the prompt is no pair of ContextRecallInput and ContextRecallOutput: {error}"
        raise ValueError(msg) from error
