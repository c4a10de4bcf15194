"""Statements on which two judges differ, the most confident first."""

import json
from pathlib import Path

import numpy as np

from airjudge.compare.frame import Floats, Frame, Unit
from airjudge.compare.judges import Judge
from airjudge.compare.records import Comparison, Disagreement, Ruling
from airjudge.journal import written_whole


def disagreements(a: Judge, b: Judge, *, frame: Frame, most: int | None) -> tuple[Disagreement, ...]:
    """Statements on which two judges differ, at most so many; those without any probability come last, in order."""
    of_a, of_b = a.rulings.verdicts, b.rulings.verdicts
    different = np.flatnonzero(~np.isnan(of_a + of_b) & (of_a != of_b))
    # A disagreement is as telling as the less sure of the two; fmin takes the other where one gave no probability.
    confidence = np.fmin(*(_own_probability(one)[different] for one in (a, b)))
    order = np.argsort(-np.nan_to_num(confidence, nan=-1.0), kind="stable")[:most]
    return tuple(_told((a, b), frame, int(different[place]), confidence=float(confidence[place])) for place in order)


def _own_probability(judge: Judge) -> Floats:
    """The probability that a judge gives to what it ruled."""
    rulings = judge.rulings
    return np.where(rulings.verdicts == 1, rulings.probabilities, 1 - rulings.probabilities)


def _told(pair: tuple[Judge, Judge], frame: Frame, statement: int, *, confidence: float) -> Disagreement:
    sample, unit = frame.unit(statement)
    return Disagreement(
        sample=sample,
        statement=unit[0],
        text=unit[1],
        a=_ruling(pair[0], statement, sample=sample, unit=unit),
        b=_ruling(pair[1], statement, sample=sample, unit=unit),
        confidence=None if np.isnan(confidence) else confidence,
    )


def _ruling(judge: Judge, statement: int, *, sample: str, unit: Unit) -> Ruling:
    """What a judge said of a statement that it ruled on."""
    probability = float(judge.rulings.probabilities[statement])
    held = judge.records[sample].statements if sample in judge.records else ()
    return Ruling(
        attributed=bool(judge.rulings.verdicts[statement]),
        probability=None if np.isnan(probability) else probability,
        reason=next((one.reason for one in held if (one.id, one.text.strip()) == unit), None),
    )


def write_disagreements(comparison: Comparison, path: Path, *, keep: int) -> Comparison:
    """Write the disagreements of all pairs as JSON lines; give the comparison with `keep` of each pair.

    Raises:
        StorageFailed: If the file cannot be written.
    """
    with written_whole(path) as file:
        for pair in comparison.pairs:
            names = {"judge_a": pair.a, "judge_b": pair.b}
            file.writelines(
                json.dumps(names | one.model_dump(mode="json"), ensure_ascii=False).encode() + b"\n"
                for one in pair.disagreements
            )
    kept = [pair.model_copy(update={"disagreements": pair.disagreements[:keep]}) for pair in comparison.pairs]
    return comparison.model_copy(update={"pairs": tuple(kept)})
