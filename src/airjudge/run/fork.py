"""Another run whose verdicts are taken over: those of the same judge, or raw ones that a calibration maps."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from airjudge.calibration import Calibration
from airjudge.journal import Reader
from airjudge.judge import Numbered
from airjudge.metrics import Metric
from airjudge.run.identity import (
    Identity,
    differences_of_judge,
    held_identity,
    identity_of_judge,
    refuse_foreign_verdicts,
)


@dataclass(frozen=True, slots=True)
class Fork:
    """The journal of a run to take verdicts over from.

    With `evidence` they keep their support; `calibration` is what they still lack where they are raw.
    """

    journal: Reader
    evidence: bool
    calibration: Calibration | None = None

    def verdicts(self, place: int) -> Numbered:
        """Verdicts on the sample at a place of it, as this run's judge would give them."""
        found = self.journal.verdicts(place)
        if not self.evidence:
            found = {number: one.model_copy(update={"support": None}) for number, one in found.items()}
        if self.calibration is None:
            return found
        return {number: self.calibration.apply(one) for number, one in found.items()}


@contextmanager
def opened_fork(folder: Path, metric: Metric, wanted: Identity) -> Iterator[Fork]:
    """A run to take verdicts over from, open for reading.

    Args:
        folder: Where it is.
        metric: That of the run which takes them over; its judge is known.
        wanted: The identity of the run which takes them over.

    Raises:
        RunDiffers: If its verdicts are another judge's.
    """
    with Reader(folder) as journal:
        held, judge = held_identity(journal), metric.judge
        signature = judge.uncalibrated_signature(metric.statements).model_dump()
        raw = identity_of_judge(signature, metric.reasons, evidence=metric.evidence)
        if judge.settings.calibration is not None and not differences_of_judge(held, raw):
            yield Fork(journal, metric.evidence, judge.settings.calibration)
            return
        refuse_foreign_verdicts(folder, held, wanted)
        yield Fork(journal, metric.evidence)
