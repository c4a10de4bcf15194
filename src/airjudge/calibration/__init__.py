"""A judge's probabilities made to mean what they say, from labels: what a calibration is and does.

What fits one stands in `calibration.fitting`, `folds` and `reliability`, which need numpy; a judge does not.
"""

from airjudge.calibration.maps import IsotonicMap, LogisticMap, MapKind, ProbabilityMap
from airjudge.calibration.record import (
    BrierParts,
    Calibration,
    CrossValidated,
    Figures,
    Gain,
    LabelsUsed,
    ThresholdRule,
    abstains,
)

__all__ = [
    "BrierParts",
    "Calibration",
    "CrossValidated",
    "Figures",
    "Gain",
    "IsotonicMap",
    "LabelsUsed",
    "LogisticMap",
    "MapKind",
    "ProbabilityMap",
    "ThresholdRule",
    "abstains",
]
