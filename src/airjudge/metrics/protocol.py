"""What a run needs of a metric, whether a judge rules in it or not."""

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol

from pydantic import JsonValue

from airjudge.calibration import Calibration
from airjudge.errors import EvaluationError
from airjudge.judge import NOTHING_KNOWN, Numbered, OnVerdicts, unheard
from airjudge.schema import (
    Made,
    ReasonsPolicy,
    Sample,
    ScoredSample,
    ServerUse,
    Signature,
    StatementMaker,
    Usage,
)


class Settings(Protocol):
    """How a ruling is made, as `run.json` tells it; a `JudgeSettings`, or a record of a metric's own."""

    @property
    def timeout_s(self) -> float:
        """Seconds that one question may take: for as long a run that is asked to stop waits."""

    @property
    def calibration(self) -> Calibration | None:
        """What maps probabilities; None if nothing does."""

    def model_dump(self, *, mode: str, exclude: set[str]) -> dict[str, JsonValue]:
        """All settings but the excluded ones, as JSON."""


class Ruler(Protocol):
    """Who rules, open for the time of an `async with`: a `Judge`, or what stands in the place of one."""

    @property
    def settings(self) -> Settings:
        """How it rules."""

    @property
    def max_in_flight(self) -> int:
        """Samples that are worth having open at once."""

    @property
    def usage(self) -> Usage:
        """What it was asked in this entry."""

    @property
    def servers(self) -> Sequence[ServerUse]:
        """The account of each server that was asked."""

    def signature(self, statements: StatementMaker) -> Signature:
        """What makes scores comparable; known once it was entered."""

    def uncalibrated_signature(self, statements: StatementMaker) -> Signature:
        """The same without a calibration."""

    def count_earlier(self, usage: Usage) -> None:
        """Count what earlier starts of a run used."""

    async def __aenter__(self) -> object:
        """Open it."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""


class Metric(Protocol):
    """Scores samples of a data set, as statements that are attributed or not.

    `required` names the fields of a sample that it reads; `statements` says where statements come from, and
    `reasons` which verdicts are explained, `evidence` whether contexts are asked about one by one.
    """

    @property
    def required(self) -> Sequence[str]:
        """Fields of a sample, for `open_source`."""

    @property
    def judge(self) -> Ruler:
        """Who rules."""

    @property
    def statements(self) -> StatementMaker:
        """Where statements come from."""

    @property
    def reasons(self) -> ReasonsPolicy:
        """Which verdicts are explained."""

    @property
    def evidence(self) -> bool:
        """Whether the support of attributed statements is asked for."""

    async def make(self, sample: Sample) -> Made | EvaluationError:
        """The statements of a sample."""

    async def score_sample(
        self,
        sample: Sample,
        *,
        made: Made | EvaluationError | None = None,
        zero_if_empty: bool = True,
        known: Numbered = NOTHING_KNOWN,
        on_verdicts: OnVerdicts = unheard,
    ) -> ScoredSample:
        """The record of a sample; what concerns this sample alone is in it, not raised.

        `made` is what `make` gave for the sample, or the statements of another run; `known` are verdicts that need
        not be made again, and `on_verdicts` is told of new ones.
        """
