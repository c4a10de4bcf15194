"""What a judge is told, in one language: the records."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from airjudge.decoding import Classification
from airjudge.schema import Record

Words = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]


class Example(Record):
    """A sample that was ruled on well, statement by statement.

    One without reference shows the form of a reply alone.
    """

    user_input: str = ""
    retrieved_contexts: tuple[str, ...] = ()
    reference: str = ""
    classifications: Annotated[tuple[Classification, ...], Field(min_length=1)]


class Phrasing(Record):
    """What stands before a statement in a question about it, up to its first letter, and behind it."""

    before: Words
    behind: Words


class Wording(Record):
    """All that a judge is told but the texts of a sample.

    `contexts`, `question` and `reference` are headings. `pointwise` opens a question about one statement, which
    is asked in the first one or two of `phrasings`; `pointwise_examples` are shown before it, one turn a statement.
    `why_attributed` and `why_missed` ask for a verdict's reason. `single_call` opens the question about a whole
    reference, before which `single_call_examples` are shown. The words that ask for claims are none of them.
    """

    language: Words
    contexts: Words
    question: Words
    reference: Words
    pointwise: Words
    phrasings: tuple[Phrasing, Phrasing]
    pointwise_examples: tuple[Example, ...] = ()
    why_attributed: Words
    why_missed: Words
    single_call: Words
    single_call_examples: tuple[Example, ...] = ()

    @field_validator("pointwise_examples")
    @classmethod
    def _are_whole(cls, examples: Sequence[Example]) -> Sequence[Example]:
        if not all(one.reference.strip() for one in examples):
            msg = "an example of a pointwise question needs contexts and a reference"
            raise ValueError(msg)
        return examples
