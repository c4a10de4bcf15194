"""One question to a judge: how many are in flight, whether it fits, whether its reply is enforced."""

import asyncio

from airjudge import decoding, prompts
from airjudge.backends.http import HttpFault
from airjudge.backends.vllm import VllmBackend
from airjudge.errors import EnforcementMissing, JudgeForeign, PromptTooLong, ReplyRefused
from airjudge.schema import Completion, Question, Usage

TEMPLATE_TOKENS = 256
"""Room for what a chat template adds to a prompt when its length is bounded by its bytes."""


class Asker:
    """Asks questions whose schemas are warm, with a bounded number in flight, and keeps the count."""

    def __init__(self, backend: VllmBackend, *, concurrency: int, max_model_len: int | None) -> None:
        """Ask `backend`; `max_model_len` is in tokens, None if the server does not say."""
        self._backend, self._max_model_len = backend, max_model_len
        self._free = asyncio.Semaphore(concurrency)
        self._recheck = asyncio.Lock()
        self.usage = Usage()

    async def ask(self, question: Question) -> Completion:
        """Ask, and check the reply against the schema's automaton.

        Raises:
            EvaluationError: If this question has no usable reply.
            EnforcementMissing: If the reply shows that the server stopped enforcing schemas.
        """
        async with self._free:
            await self._check_length(question)
            completion = await self._backend.complete(question)
        self.usage += completion.usage
        try:
            decoding.check_reply(question.schema, completion)
        except ReplyRefused:
            await self._canary_again()
            raise
        return completion

    async def _check_length(self, question: Question) -> None:
        """Refuse a prompt that does not fit, before it is sent.

        No token is shorter than a byte, so most prompts are known to fit by their bytes alone, and
        only a long one is counted by the server.
        """
        if self._max_model_len is None:
            return
        limit = self._max_model_len - question.max_tokens
        n_bytes = sum(len(message.content.encode("utf-8", errors="replace")) for message in question.messages)
        if n_bytes + TEMPLATE_TOKENS <= limit:
            return
        try:
            count = await self._backend.count_tokens(question.messages)
        except (HttpFault, JudgeForeign):
            return  # the server cannot count; it will refuse the prompt itself
        if count > limit:
            raise PromptTooLong(count, limit)

    async def _canary_again(self) -> None:
        """After a reply outside its automaton: one question that an enforcing server cannot fail."""
        async with self._recheck, self._free:
            completion = await self._backend.complete(prompts.canary())
            self.usage += completion.usage
            if not decoding.matches(decoding.CANARY, completion.text):
                msg = f"the server stopped enforcing reply schemas: the canary gave {completion.text!r}"
                raise EnforcementMissing(msg)
