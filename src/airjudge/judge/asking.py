"""One question to a judge: whether it fits, where it is asked and how often, whether its reply is enforced."""

import asyncio
from copy import copy
from dataclasses import replace

from airjudge import decoding, prompts
from airjudge.backends import faults
from airjudge.backends.faults import FAULTS, TABLE, Fault, FaultKind, kind_of
from airjudge.errors import AirjudgeError, EnforcementMissing, PromptTooLong, ReplyRefused
from airjudge.judge.pool import Member, Pool, Seat
from airjudge.judge.settings import JudgeSettings
from airjudge.judge.watch import Watch
from airjudge.prompts import Form
from airjudge.schema import Completion, Pointwise, Question, Sample, Verdict
from airjudge.wordings import ENGLISH

TEMPLATE_TOKENS = 256
"""Room for what a chat template adds to a prompt when its length is bounded by its bytes."""


class Asker:
    """Asks questions whose schemas are warm; one of its own for each sample, from `about`."""

    def __init__(
        self,
        pool: Pool,
        watch: Watch,
        *,
        settings: JudgeSettings,
        form: Form = prompts.plain,
    ) -> None:
        """Ask the servers of a pool; `settings` tell a method what to ask about a statement, `form` in which form."""
        self._pool, self._watch, self.form, self._seat = pool, watch, form, Seat()
        self._settings, self.method, self.pointwise = settings, settings.method, settings.pointwise or Pointwise()
        self.words, self.single_call_tokens = settings.wording or ENGLISH, settings.single_call_tokens
        self.splits = settings.long_contexts == "split"

    def about(self, sample: Sample) -> "Asker":
        """An asker that keeps to one server, whose cache then holds the sample's prefix."""
        return self.beside(sample.retrieved_contexts[0] if sample.retrieved_contexts else "")

    def beside(self, context: str) -> "Asker":
        """An asker that begins where a text is cached, if it is anywhere."""
        found = copy(self)
        found._seat = Seat(context)  # noqa: SLF001 -- of its own class
        return found

    def calibrated(self, verdict: Verdict) -> Verdict:
        """A verdict as the judge's calibration has it, where there is one."""
        calibration = self._settings.calibration
        return verdict if calibration is None else calibration.apply(verdict)

    async def ask(self, question: Question) -> Completion:
        """Ask, and check the reply against the schema's automaton.

        Raises:
            EvaluationError: If this question has no usable reply.
            JudgeError: If no question can be answered any more.
        """
        await self._check_length(question)
        completion = await self._completed(replace(question, sampling=self._settings.sampling))
        try:
            decoding.check_reply(question.schema, completion)
        except ReplyRefused:
            if self._pool.facts.enforcement != "none":
                await self._canary_again()
            raise
        return completion

    async def _completed(self, question: Question) -> Completion:
        """Ask until there is a reply or no further try is worth it; the request is the same each time."""
        n_tries = 0
        while True:
            member = await self._pool.claim(self._seat)
            try:
                return await self._sent(member, question)
            except FAULTS as fault:
                kind = kind_of(fault)
                away = await self._is_away(member, kind)
                n_tries += faults.counts(kind, server_away=away)
                step = faults.step_after(kind, n_tries=n_tries, server_away=away)
                if step != "again":
                    raise await _error_of(fault, n_tries, member=member, question=question) from fault
                pause_s = 0.0 if away else faults.pause_s(fault, n_tries)
            finally:
                self._pool.release(member)
            if kind is FaultKind.busy:
                self._pool.slow_down(member, pause_s)
            else:
                await asyncio.sleep(pause_s)

    async def _sent(self, member: Member, question: Question) -> Completion:
        """Send a question once, and tell the server's account and limit what came of it."""
        clock = asyncio.get_running_loop().time
        # Held back by an allowance counts as latency: more places would not bring more replies.
        sent_at, allowance = clock(), self._pool.allowance
        estimate = await allowance.turn(question)
        completion = await member.backend.ask(question)
        came_at = clock()
        allowance.used(estimate, completion.usage)
        member.replied(completion.usage, came_at, latency_s=came_at - sent_at)
        return completion

    async def _is_away(self, member: Member, kind: FaultKind) -> bool:
        """Whether a fault was the server's own, which is then away; its place is kept while we look."""
        member.blame(kind)
        if not TABLE[kind].suspect:
            return False
        now = asyncio.get_running_loop().time()
        return await self._watch.is_away(member, since=now, restarted=TABLE[kind].restarted)

    async def _check_length(self, question: Question) -> None:
        """Refuse a prompt that does not fit, before it is sent.

        No token is shorter than a byte, so most prompts are known to fit by their bytes alone, and
        only a long one is counted by the server.
        """
        max_model_len = self._pool.facts.max_model_len
        if max_model_len is None:
            return
        limit = max_model_len - question.max_tokens
        # A character has at most four bytes: short prompts need not be encoded to be measured.
        n_characters = sum(len(message.content) for message in question.messages)
        if 4 * n_characters + TEMPLATE_TOKENS <= limit or _n_bytes(question) + TEMPLATE_TOKENS <= limit:
            return
        try:
            async with self._pool.place(self._seat) as member:
                count = await member.backend.count_tokens(question.messages)
        except FAULTS:
            return  # the server cannot count; it will refuse the prompt itself
        if count > limit:
            raise PromptTooLong(count, limit)

    async def _canary_again(self) -> None:
        """After a reply outside its automaton: one question that an enforcing server cannot fail."""
        async with self._watch.recheck:
            canary = self.form(prompts.canary())
            completion = await self._completed(canary)
            if not decoding.matches(canary.schema, completion.text):
                msg = f"the server stopped enforcing reply schemas: the canary gave {completion.text!r}"
                raise EnforcementMissing(msg)


def _n_bytes(question: Question) -> int:
    return sum(len(message.content.encode("utf-8", errors="replace")) for message in question.messages)


async def _error_of(fault: Fault, n_tries: int, *, member: Member, question: Question) -> AirjudgeError:
    """The error of a question that is not asked again."""
    if kind_of(fault) is FaultKind.over_length:
        return await member.backend.too_long(question, str(fault))
    return faults.error_of(fault, n_tries)
