"""Schemas beyond those of a method: each server compiles one by its first question, and none is asked twice for it."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from airjudge import decoding
from airjudge.backends.vllm import VllmBackend
from airjudge.errors import EnforcementMissing, JudgeUnreachable, SchemaNotCompiled
from airjudge.judge.enforcement import Backend, first_use
from airjudge.schema import Question, ReplySchema

HINT = (
    "Ask for less at once: no counts (max_length), fewer fields. Or start the server with a larger "
    "VLLM_REGEX_COMPILATION_TIMEOUT_S (seconds, default 5)."
)


class Warming:
    """Which schemas the servers of a judge have compiled, and which they cannot."""

    def __init__(self, backends: Iterable[Backend]) -> None:
        """Begin with none."""
        self._backends = tuple(backends)
        self._warm: set[ReplySchema] = set()
        self._failed: dict[ReplySchema, str] = {}

    async def warm(self, question: Question) -> None:
        """Let each server compile the schema of a question, one by one; to be called by one task at a time.

        A server that is away now compiles it when it is back and is asked. Providers compile as they like.

        Raises:
            SchemaNotCompiled: If one cannot compile it; it is not asked for it again.
        """
        schema = question.schema
        if schema in self._failed:
            raise SchemaNotCompiled(self._failed[schema], HINT)
        if schema in self._warm or not schema.json_schema:
            return
        for backend in self._backends:
            if isinstance(backend, VllmBackend):
                await self._first_use(backend, replace(question, max_tokens=min(question.max_tokens, 2)))
        self._warm.add(schema)

    async def _first_use(self, backend: VllmBackend, question: Question) -> None:
        try:
            with suppress(JudgeUnreachable):
                decoding.check_reply(question.schema, await first_use(backend, question))
        except (SchemaNotCompiled, EnforcementMissing) as error:
            self._failed[question.schema] = str(error)
            raise SchemaNotCompiled(str(error), HINT) from error
