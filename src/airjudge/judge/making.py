"""Statements that a judge makes: the claims of a reference, asked for once, before anything is ruled on."""

from typing import Final

from airjudge import claims, decoding, prompts
from airjudge.errors import PromptTooLong, ReplyRefused, ReplyRunaway, ReplyTruncated
from airjudge.judge.asking import Asker
from airjudge.judge.methods import all_of
from airjudge.schema import Made, Sample
from airjudge.statements import split_statements

_USELESS: Final = (PromptTooLong, ReplyRefused, ReplyTruncated, ReplyRunaway)
"""What this judge would say of this reference each time; a server that fails or is slow says nothing about it."""


async def made_by(asker: Asker, sample: Sample) -> Made:
    """The statements of a sample by the claims that a judge writes out of its reference, sentence by sentence.

    The first sentence goes alone, the others follow on its cached prefix, which holds the whole reference. One whose
    reply is of no use is a statement itself, which it is for anybody; the record says so.

    Raises:
        EvaluationError: If there was no reply: to fall back on that would make scores depend on the load of a server.
        JudgeError: If no question can be answered any more.
    """
    sentences = split_statements(sample, "claims")
    told: dict[int, list[str]] = {}
    errors: dict[int, str] = {}

    async def split(number: int) -> None:
        try:
            completion = await asker.ask(asker.form(prompts.split_claims(sample, sentences[number].text)))
            told[number] = decoding.read_claims(completion)
        except _USELESS as error:
            told[number], errors[number] = [], error.kind

    for number in range(min(1, len(sentences))):
        await split(number)
    await all_of(split(number) for number in range(1, len(sentences)))
    first = errors[min(errors)] if errors else None
    return claims.statements_of(sample, [told[number] for number in range(len(sentences))], first)
