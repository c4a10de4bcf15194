"""The judge: a model behind a server, a method of asking, and the proof that the server enforces it."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from types import MappingProxyType, TracebackType
from typing import Final, Literal, Self, TypeGuard

from pydantic import Field

from airjudge import prompts, scoring
from airjudge.backends.vllm import Connection, VllmBackend
from airjudge.judge.asking import Asker
from airjudge.judge.enforcement import ServerFacts, prove
from airjudge.judge.methods import METHODS, Numbered, OnVerdicts, Outcome, explained
from airjudge.profiles import default_profile_name, load_profile, this_machine
from airjudge.schema import (
    ReasonsPolicy,
    Record,
    Sample,
    Signature,
    Statement,
    StatementMaker,
    Usage,
    Verdict,
)
from airjudge.server import Server, running, serve
from airjudge.signature import Provenance, make_signature
from airjudge.version import __version__
from airjudge.weights import Progress, silent


class JudgeSettings(Record):
    """How a judge is asked.

    `method` is pointwise or ragas; `concurrency` counts requests in flight; `timeout_s` is for one
    request; `cache_salt` keeps the server's prefix cache of this run apart from other tenants'.
    """

    method: Literal["pointwise", "ragas"] = "pointwise"
    concurrency: int = Field(default=16, ge=1, le=4096)
    timeout_s: float = Field(default=300.0, gt=0)
    cache_salt: str | None = None


NOTHING_KNOWN: Final[Numbered] = MappingProxyType({})
"""No statement has a verdict yet."""


def unheard(_: Numbered) -> None:
    """Let verdicts arrive unheard: they are in the outcomes too."""


class Judge:
    """Rules on statements. Enter it (`async with judge`) around many questions to keep its connections.

    The first entry proves that the server enforces our schemas and warms each of them up.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        model: str | None = None,
        settings: JudgeSettings | None = None,
        name: str | None = None,
        weights: str = "unverified",
    ) -> None:
        """Contact nothing yet; use `connect`, `serve` or `find`.

        Raises:
            InputError: If the base URL is not one.
            JudgeRemote: If it is an address outside and remote ones are not allowed.
        """
        self.settings = settings or JudgeSettings()
        self.weights = weights
        self._name = name
        self._backend = VllmBackend(connection, model=model)
        self._facts: ServerFacts | None = None
        self._asker: Asker | None = None
        self._entries = 0
        self._gate = asyncio.Lock()
        self._usage = Usage()

    @classmethod
    def connect(
        cls,
        base_url: str,
        model: str | None = None,
        *,
        api_key: str | None = None,
        allow_remote: bool = False,
        settings: JudgeSettings | None = None,
    ) -> Self:
        """A judge behind a server that runs already; without `model`, the only one it serves.

        Raises:
            InputError: If the base URL is not one.
            JudgeRemote: If it is an address outside and `allow_remote` is false.
        """
        settings = settings or JudgeSettings()
        connection = Connection(
            base_url,
            api_key=api_key,
            allow_remote=allow_remote,
            timeout_s=settings.timeout_s,
            concurrency=settings.concurrency,
            cache_salt=settings.cache_salt,
        )
        return cls(connection, model=model, settings=settings)

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
            yield cls._of_server(server, settings)

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
            yield cls._of_server(server, settings)
            return
        with cls.serve(name, settings=settings, on_progress=on_progress) as judge:
            yield judge

    @classmethod
    def _of_server(cls, server: Server, settings: JudgeSettings | None) -> Self:
        """A judge behind a server of ours, whose weights are known."""
        settings = settings or JudgeSettings()
        connection = Connection(
            server.base_url,
            api_key=server.api_key,
            timeout_s=settings.timeout_s,
            concurrency=settings.concurrency,
            cache_salt=settings.cache_salt,
            chat_template_kwargs=load_profile(server.profile).chat_template_kwargs,
        )
        return cls(connection, model=server.model, settings=settings, name=server.profile, weights=server.digest)

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
            await undo.enter_async_context(self._backend)
            self._facts = self._facts or await prove(self._backend, self.settings.method)
            undo.pop_all()
        return Asker(self._backend, concurrency=self.settings.concurrency, max_model_len=self._facts.max_model_len)

    def _forget_entry(self) -> None:
        self._entries -= 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections with the outermost block."""
        self._entries -= 1
        if self._entries == 0:
            self._usage = self.usage
            self._asker = None
            await self._backend.__aexit__(kind, error, trace)

    async def rule(
        self,
        sample: Sample,
        statements: Sequence[Statement],
        *,
        reasons: ReasonsPolicy = "none",
        known: Numbered = NOTHING_KNOWN,
        on_verdicts: OnVerdicts = unheard,
    ) -> list[Outcome]:
        """Rule on statements of a sample, whose contexts must not all be blank.

        Args:
            sample: Its contexts and question are shown to the judge.
            statements: What to rule on, with distinct ids.
            reasons: Which verdicts to explain: none, the misses, or all.
            known: Verdicts of an earlier call, which are not asked again; one whose id and text are not
                those of the statement with its number is ignored.
            on_verdicts: Told of verdicts as they arrive, and again of one that got its reason.

        Returns:
            One outcome a statement, in order: a verdict, or the error of that statement alone.

        Raises:
            JudgeError: If the server cannot judge any sample any more.
        """
        asker = self._open_asker()
        outcomes = await METHODS[self.settings.method](
            asker, sample, statements, known=fitting(known, statements), on_verdicts=on_verdicts
        )
        if reasons == "none":
            return outcomes
        for number, outcome in enumerate(outcomes):
            if _wants_reason(outcome, reasons):
                outcomes[number] = told = await explained(asker, sample, outcome)
                if told is not outcome:
                    on_verdicts({number: told})
        return outcomes

    def signature(self, statements: StatementMaker) -> Signature:
        """What makes this judge's scores comparable; known once the judge was entered.

        Raises:
            ValueError: If the judge was never entered: its server is not known yet.
        """
        facts = self._known_facts()
        provenance = Provenance(
            judge=self._name or facts.model,
            weights=self.weights,
            enforcement=facts.enforcement,
            server=f"vllm-{facts.version}" if facts.version else "unknown-server",
            airjudge=__version__,
        )
        return make_signature(
            provenance,
            self.settings.method,
            prompt=prompts.wording(self.settings.method),
            statements=statements,
            decoding={"temperature": 0, "threshold": scoring.THRESHOLD},
        )

    @property
    def usage(self) -> Usage:
        """Counts of all requests of the current entry, or of the last one."""
        return self._usage if self._asker is None else self._asker.usage

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


def fitting(known: Numbered, statements: Sequence[Statement]) -> Numbered:
    """The verdicts that are on these statements: by number, id and text."""
    return {
        number: known[number]
        for number, one in enumerate(statements)
        if number in known and (known[number].id, known[number].text) == (one.id, one.text)
    }


def _wants_reason(outcome: Outcome, reasons: ReasonsPolicy) -> TypeGuard[Verdict]:
    return isinstance(outcome, Verdict) and (reasons == "all" or outcome.attributed is False)
