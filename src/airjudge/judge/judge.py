"""The judge: a model behind a server, a method of asking, and the proof that the server enforces it."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from types import TracebackType
from typing import Self

from pydantic import JsonValue

from airjudge import decoding, grading, prompts
from airjudge.backends.hosted import HostedBackend
from airjudge.backends.vllm import Connection, VllmBackend
from airjudge.judge.asking import Asker
from airjudge.judge.calibrated import refuse_calibration_of_another
from airjudge.judge.enforcement import Backend, proved_alike
from airjudge.judge.facts import ServerFacts
from airjudge.judge.limit import MOST
from airjudge.judge.making import made_by
from airjudge.judge.methods import METHODS, NOTHING_KNOWN, Numbered, OnVerdicts, Outcome, fitting, unheard, with_reasons
from airjudge.judge.pool import Pool, check_distinct, new_pool
from airjudge.judge.settings import JudgeSettings, check_method
from airjudge.judge.support import with_support
from airjudge.judge.warming import Warming
from airjudge.judge.watch import Watch
from airjudge.profiles import default_profile_name, load_profile, this_machine
from airjudge.schema import (
    Completion,
    GradedExample,
    Made,
    Question,
    ReasonsPolicy,
    Sample,
    ServerUse,
    Signature,
    StatementMaker,
    Usage,
)
from airjudge.server import Server, running, serve
from airjudge.signature import make_signature
from airjudge.weights import Progress, silent
from airjudge.wordings import ENGLISH


class Judge:
    """Rules on statements. Enter it (`async with judge`) around many questions to keep its connections.

    The first entry proves that the server enforces our schemas and warms each of them up.
    """

    def __init__(
        self,
        backends: Sequence[Backend],
        *,
        settings: JudgeSettings | None = None,
        name: str | None = None,
        weights: str = "unverified",
    ) -> None:
        """Contact nothing yet; use `connect`, `serve`, `find` or `hosted`.

        Raises:
            InputError: If none or the same server is given twice.
        """
        self.settings = settings or JudgeSettings()
        self.weights = weights
        self._name = name
        check_distinct([one.root for one in backends])
        self._backends = tuple(backends)
        self._form = prompts.as_object if isinstance(backends[0], HostedBackend) else prompts.plain
        self._earlier = Usage()
        self._facts: ServerFacts | None = None
        self._asker: Asker | None = None
        self._pool: Pool | None = None
        self._closing = AsyncExitStack()
        self._entries = 0
        self._gate = asyncio.Lock()
        self._warming = Warming(backends)

    @classmethod
    def connect(
        cls,
        base_url: str | Sequence[str],
        model: str | None = None,
        *,
        api_key: str | None = None,
        allow_remote: bool = False,
        settings: JudgeSettings | None = None,
    ) -> Self:
        """A judge behind vLLM servers that run already; without `model`, the only one they serve.

        Several base URLs make one pool: all must serve the same model, by the same vLLM, enforced alike. With
        `settings.profile` they are taken to run that profile's model, whose weights stay unverified.

        Raises:
            ProfileError: If there is no such profile.
            InputError: If a base URL is not one, or is given twice.
            JudgeRemote: If one is an address outside and `allow_remote` is false.
        """
        settings = settings or JudgeSettings()
        profile = load_profile(settings.profile) if settings.profile else None
        connections = [
            Connection(
                one,
                api_key=api_key,
                allow_remote=allow_remote,
                timeout_s=settings.timeout_s,
                cache_salt=settings.cache_salt,
                chat_template_kwargs=profile.chat_template_kwargs if profile else None,
            )
            for one in ([base_url] if isinstance(base_url, str) else base_url)
        ]
        if profile and settings.pointwise is None:
            settings = settings.model_copy(update={"pointwise": profile.pointwise})
        backends = [VllmBackend(one, model=model) for one in connections]
        return cls(backends, settings=settings, name=profile.id if profile else None)

    @classmethod
    def hosted(
        cls,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        allow_remote: bool = False,
        settings: JudgeSettings | None = None,
    ) -> Self:
        """A judge behind a provider's OpenAI-compatible API, asked by standard fields alone.

        The first entry finds out which of them the provider takes, and whether it keeps replies to their schema.

        Raises:
            InputError: If the base URL is not one.
            JudgeRemote: If it is an address outside and `allow_remote` is false.
        """
        settings = settings or JudgeSettings()
        connection = Connection(base_url, api_key=api_key, allow_remote=allow_remote, timeout_s=settings.timeout_s)
        return cls([HostedBackend(connection, model=model)], settings=settings)

    @classmethod
    @contextmanager
    def serve(
        cls,
        profile: str | None = None,
        *,
        settings: JudgeSettings | None = None,
        on_progress: Progress = silent,
    ) -> Iterator[Self]:
        """Start a profile's vLLM on this machine, and end it with the block.

        Raises:
            AirjudgeError: If the weights cannot be brought or the server does not come up.
        """
        with serve(
            profile or default_profile_name("gpu" if this_machine().gpus else "cpu"), on_progress=on_progress
        ) as server:
            yield cls.of_server(server, settings)

    @classmethod
    @contextmanager
    def find(
        cls,
        profile: str | None = None,
        *,
        settings: JudgeSettings | None = None,
        on_progress: Progress = silent,
    ) -> Iterator[Self]:
        """The judge that the environment names, else one that runs here, else one started for the block.

        The environment names one by AIRJUDGE_BASE_URL, AIRJUDGE_MODEL and AIRJUDGE_API_KEY; naming a
        profile here takes precedence.
        """
        base_url = os.environ.get("AIRJUDGE_BASE_URL")
        if profile is None and base_url:
            key = os.environ.get("AIRJUDGE_API_KEY")
            yield cls.connect(base_url, os.environ.get("AIRJUDGE_MODEL"), api_key=key, settings=settings)
            return
        name = profile or default_profile_name("gpu" if this_machine().gpus else "cpu")
        server = running(name)
        if server is not None:
            yield cls.of_server(server, settings)
            return
        with cls.serve(name, settings=settings, on_progress=on_progress) as judge:
            yield judge

    @classmethod
    def of_server(cls, server: Server, settings: JudgeSettings | None) -> Self:
        """A judge behind a server of ours that runs, whose weights are known.

        It is not waited for by default: it would come back with another address and another key.
        """
        settings, profile = settings or JudgeSettings(), load_profile(server.profile)
        defaults = {"wait_for_server_s": 0.0, "pointwise": profile.pointwise}
        unset = {name: value for name, value in defaults.items() if getattr(settings, name) is None}
        settings = settings.model_copy(update=unset)
        connection = Connection(
            server.base_url,
            api_key=server.api_key,
            timeout_s=settings.timeout_s,
            cache_salt=settings.cache_salt,
            chat_template_kwargs=profile.chat_template_kwargs,
        )
        backend = VllmBackend(connection, model=server.model)
        return cls([backend], settings=settings, name=server.profile, weights=server.digest)

    async def __aenter__(self) -> Self:
        """Connect, and at the first entry prove enforcement.

        Raises:
            JudgeError: If the server cannot be used.
        """
        if self._entries == 0:
            self._gate = asyncio.Lock()
        self._entries += 1
        async with AsyncExitStack() as undo:
            undo.callback(self._forget_entry)
            async with self._gate:  # of tasks that enter at once, one opens and the others wait for it
                self._asker = self._asker or await self._opened()
            undo.pop_all()
        return self

    async def _opened(self) -> Asker:
        async with AsyncExitStack() as undo:
            for backend in self._backends:
                await undo.enter_async_context(backend)
            self._facts = self._facts or await proved_alike(self._backends, self.settings)
            refuse_calibration_of_another(self.settings.calibration, self.uncalibrated_signature("given"))
            self._pool = new_pool(self._backends, self._facts, settings=self.settings)
            self._pool.allowance.count(self._earlier)
            watch = await undo.enter_async_context(Watch(self._pool, self.settings.method))
            self._closing = undo.pop_all()
        return Asker(self._pool, watch, settings=self.settings, form=self._form)

    def _forget_entry(self) -> None:
        self._entries -= 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections with the outermost block."""
        self._entries -= 1
        if self._entries == 0:
            self._asker = None
            await self._closing.aclose()

    async def make_claims(self, sample: Sample) -> Made:
        """The statements of a sample by the claims of its reference; asks once, of what is not stored yet.

        Raises:
            EvaluationError: If there was no reply on this sample.
            JudgeError: If the server cannot make claims of any sample.
        """
        asker = self._open_asker().about(sample)
        await self._warm(prompts.warm_up_claims())
        return await made_by(asker, sample)

    async def ask(self, question: Question) -> Completion:
        """The reply to a question of the caller's, under its schema, which the servers compile at its first use.

        It is asked as it stands, with the length check, the retries and the limits of any other.

        Raises:
            EvaluationError: If this question has no usable reply.
            JudgeError: If no question can be answered, or the schema not be compiled.
        """
        asker = self._open_asker().beside(question.messages[-1].content)
        await self._warm(question)
        return await asker.ask(question)

    async def _warm(self, question: Question) -> None:
        async with self._gate:
            await self._warming.warm(question)

    @property
    def is_hosted(self) -> bool:
        """Whether a provider answers, which takes objects alone, rather than a vLLM."""
        return isinstance(self._backends[0], HostedBackend)

    async def rule(
        self,
        sample: Sample,
        made: Made,
        *,
        reasons: ReasonsPolicy = "none",
        known: Numbered = NOTHING_KNOWN,
        on_verdicts: OnVerdicts = unheard,
    ) -> list[Outcome]:
        """Rule on statements of a sample, whose contexts must not all be blank.

        Args:
            sample: Its contexts and question are shown to the judge.
            made: The statements to rule on, with distinct ids; with the account of their single call, that is not
                made again.
            reasons: Which verdicts to explain: none, the misses, or all.
            known: Verdicts of an earlier call, which are not asked again; one whose id and text are not
                those of the statement with its number is ignored.
            on_verdicts: Told of verdicts as they arrive, and again of one that got its reason; with those of a single
                call of its account.

        Returns:
            One outcome a statement, in order: a verdict, or the error of that statement alone.

        Raises:
            JudgeError: If the server cannot judge any sample any more.
        """
        check_method(self.settings.method, grades=False)
        asker = self._open_asker().about(sample)
        outcomes = await METHODS[self.settings.method](
            asker, sample, made, known=fitting(known, made.statements), on_verdicts=on_verdicts
        )
        return await with_reasons(asker, sample, outcomes, reasons=reasons, on_verdicts=on_verdicts)

    async def support(
        self, sample: Sample, outcomes: Sequence[Outcome], *, on_verdicts: OnVerdicts = unheard
    ) -> list[Outcome]:
        """The outcomes that `rule` gave, with what each context says of an attributed statement; raises as it does."""
        return await with_support(self._open_asker().about(sample), sample, outcomes, on_verdicts=on_verdicts)

    async def grade(self, sample: Sample, *, examples: Sequence[GradedExample] | None = None) -> decoding.Grade:
        """Grade a sample's response, by one question; blank texts are shown as they are.

        Args:
            sample: With a response.
            examples: Graded cases that the judge is shown; None means ours.

        Raises:
            ValueError: If the sample has no response, or the judge is asked by another method.
            EvaluationError: If there is no grade of this sample.
            JudgeError: If the server cannot judge any sample any more.
        """
        check_method(self.settings.method, grades=True)
        asker = self._open_asker().about(sample)
        question = asker.form(grading.grade(sample, examples))
        return decoding.read_grade(question.schema, await asker.ask(question))

    def signature(self, statements: StatementMaker, *, examples: Sequence[GradedExample] | None = None) -> Signature:
        """What makes this judge's scores comparable, graded by these examples; known once the judge was entered.

        Raises:
            ValueError: If the judge was never entered: its server is not known yet.
        """
        calibration = self.settings.calibration
        return self._signature(
            statements, self._prompt(statements, examples), calibration.decoding() if calibration else {}
        )

    def uncalibrated_signature(self, statements: StatementMaker) -> Signature:
        """The signature of the same judge without its calibration, which is what a calibration is bound to."""
        return self._signature(statements, self._prompt(statements), {})

    def _prompt(self, statements: StatementMaker, examples: Sequence[GradedExample] | None = None) -> JsonValue:
        """All words that it is asked with."""
        how = self.settings
        words = how.wording or ENGLISH
        return prompts.wording(how.method, self._form, statements=statements, examples=examples, words=words)

    def _signature(
        self, statements: StatementMaker, prompt: JsonValue, calibrated: Mapping[str, JsonValue]
    ) -> Signature:
        facts, how = self._known_facts(), self.settings
        provenance = facts.provenance(self._name, self.weights)
        decoded = {**facts.decoding(), **how.decoding(facts.left_out), **calibrated}
        return make_signature(provenance, how.method, prompt=prompt, statements=statements, decoding=decoded)

    @property
    def max_in_flight(self) -> int:
        """Requests that may ever be in flight at once: more open samples than that have nothing to ask."""
        concurrency = self.settings.concurrency
        return MOST * len(self._backends) if concurrency == "auto" else concurrency

    def count_earlier(self, usage: Usage) -> None:
        """Count what earlier starts of a run used towards what it may cost."""
        self._earlier = usage
        if self._pool:
            self._pool.allowance.count(usage)

    @property
    def usage(self) -> Usage:
        """Counts of all requests of the current entry, or of the last one; the proof is not among them."""
        return self._pool.usage if self._pool else Usage()

    @property
    def servers(self) -> list[ServerUse]:
        """The account of each server in the current entry, or in the last one."""
        return [member.use() for member in self._pool.members] if self._pool else []

    def _known_facts(self) -> ServerFacts:
        if self._facts is None:
            msg = "the server is not known before 'async with judge'"
            raise ValueError(msg)
        return self._facts

    def _open_asker(self) -> Asker:
        if self._asker is None:
            msg = "the judge is not open: use 'async with judge'"
            raise ValueError(msg)
        return self._asker
