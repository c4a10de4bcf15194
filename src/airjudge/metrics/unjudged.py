"""What stands in the place of a judge in a metric that compares by itself: nothing is asked, opened or paid for."""

from typing import Final, Self

from airjudge.schema import Record, Signature, StatementMaker, Usage
from airjudge.similarity import Distance
from airjudge.version import __version__

NONE: Final = "none"


class Comparing(Record):
    """How a metric without a judge compares, as `run.json` tells it; None is what it does not have."""

    metric: str
    distance: Distance | None = None
    threshold: float | None = None

    @property
    def timeout_s(self) -> float:
        """Seconds to the end of what a run has begun; one sample takes a moment."""
        return 10.0

    @property
    def calibration(self) -> None:
        """Nothing: there are no probabilities."""


class NoJudge:
    """A comparison by rule, where others have a judge: no server, no requests, a signature of its own."""

    max_in_flight: Final = 1
    usage: Final = Usage()
    servers: Final = ()

    def __init__(self, name: str, settings: Comparing) -> None:
        """Rule by what `name` says, which is all that can change a verdict but the data."""
        self.name, self.settings = name, settings

    async def __aenter__(self) -> Self:
        """Open nothing."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close nothing."""

    def signature(self, statements: StatementMaker) -> Signature:
        """What makes scores of this comparison comparable."""
        return Signature(
            judge=self.name,
            weights=NONE,
            method=self.settings.metric,
            prompt=NONE,
            statements=statements,
            decoding=NONE,
            enforcement=NONE,
            server=NONE,
            airjudge=__version__,
        )

    uncalibrated_signature = signature

    def count_earlier(self, usage: Usage) -> None:
        """Count nothing: an earlier start asked nobody either."""
