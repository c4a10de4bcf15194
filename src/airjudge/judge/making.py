"""Statements that a judge makes: the claims of a reference, asked for once, before anything is ruled on."""

from typing import Final

from airjudge import claims, decoding, prompts
from airjudge.errors import PromptTooLong, ReplyRefused, ReplyRunaway, ReplyTruncated
from airjudge.judge.asking import Asker
from airjudge.schema import Made, Sample

_USELESS: Final = (PromptTooLong, ReplyRefused, ReplyTruncated, ReplyRunaway)
"""What this judge would say of this reference each time; a server that fails or is slow says nothing about it."""


async def made_by(asker: Asker, sample: Sample) -> Made:
    """The statements of a sample by the claims that a judge writes out of its reference.

    Where its reply is of no use the sentences are the statements, which they are for anybody; the record says so.

    Raises:
        EvaluationError: If there was no reply: to fall back on that would make scores depend on the load of a server.
        JudgeError: If no question can be answered any more.
    """
    try:
        completion = await asker.ask(asker.form(prompts.split_claims(sample)))
        return claims.statements_of(sample, decoding.read_claims(completion))
    except _USELESS as error:
        return claims.without_claims(sample, error.kind)
