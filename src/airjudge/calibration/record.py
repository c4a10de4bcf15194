"""What a calibration is: a map, a threshold and a band, bound to one judge; and what it does to a verdict."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import AwareDatetime, JsonValue, model_validator

from airjudge.calibration.maps import Probability, ProbabilityMap
from airjudge.schema import Record, Signature, Verdict
from airjudge.signature import differences, digest

ThresholdRule = Literal["prevalence", "balanced_accuracy"]

UNBOUND = "statements"
"""The field of a signature that a calibration is not bound to: who made a statement changes no verdict on it."""


class BrierParts(Record):
    """The mean squared error of probabilities, and what it is made of over bins.

    score = reliability - resolution + uncertainty + within_variance - 2 * within_covariance. The two within
    are the variance of the probabilities in a bin and their covariance with the labels there; they are 0 if
    each bin holds one probability.

    Source:
        Murphy (1973). doi:10.1175/1520-0450(1973)012<0595:ANVPOT>2.0.CO;2
        Stephenson, Coelho and Jolliffe (2008). doi:10.1175/2007WAF2006116.1
    """

    score: float
    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float


class Figures(Record):
    """How good probabilities and the verdicts by them are, against labels.

    `share_attributed` stands beside the labels' own share of 1; `ece` is the expected calibration error over
    bins with equally many statements.
    """

    balanced_accuracy: float
    share_attributed: float
    ece: float
    brier: BrierParts
    log_loss: float


class Gain(Record):
    """How far a figure of the calibrated verdicts is above that of the raw ones; intervals are over groups.

    The fits of the folds are held fixed in them: they tell what other statements would change, not what other
    labels to fit to would. For a Brier score below 0 is better.
    """

    before_ci95: tuple[float, float] | None
    after_ci95: tuple[float, float] | None
    gain: float
    gain_ci95: tuple[float, float] | None


class CrossValidated(Record):
    """Figures of statements whose group the calibration was not fitted to.

    Means over `n_repeats` divisions of the groups into `n_folds`. `auc` is that of the raw probabilities, which
    a map that only rises cannot change.
    """

    n_folds: int
    n_repeats: int
    seed: int
    n_bins: int
    auc: float | None
    before: Figures
    after: Figures
    balanced_accuracy: Gain
    brier: Gain


class LabelsUsed(Record):
    """What a calibration was fitted to, in numbers; `sha256` names the labels and the statements they are on.

    Left out are statements without label, those on which nobody decided, those whose verdict has no probability
    and those whose question failed; and labels that are on no statement of the run.
    """

    file: str
    sha256: str
    n_statements: int
    n_positive: int
    n_groups: int
    n_unlabelled: int
    n_undecided: int
    n_without_probability: int
    n_failed: int
    n_unused_labels: int


class Calibration(Record):
    """A calibration of one judge; the content of a calibration file.

    `signature` is the judge's without calibration. A statement is attributed if its mapped probability is at
    least `threshold`; inside `abstain`, ends included, a verdict is left to people, and stands all the same.
    `data_sha256` is the hash of the data set that the labelled run scored.
    """

    format: Literal["airjudge-calibration-1"] = "airjudge-calibration-1"
    signature: Signature
    probability_map: ProbabilityMap
    threshold: Probability
    by: ThresholdRule
    abstain: tuple[Probability, Probability] | None = None
    labels: LabelsUsed
    data_sha256: str
    cross_validated: CrossValidated | None
    warnings: tuple[str, ...] = ()
    created: AwareDatetime
    airjudge: str

    @model_validator(mode="after")
    def _has_a_band(self) -> Self:
        if self.abstain is not None and self.abstain[0] > self.abstain[1]:
            msg = "the abstain band begins above its end"
            raise ValueError(msg)
        return self

    @property
    def name(self) -> str:
        """Twelve hex digits that name what it does: two calibrations with one name rule alike on all verdicts."""
        rules = {"signature", "probability_map", "threshold", "abstain"}
        return digest(self.model_dump(mode="json", include=rules))

    def decoding(self) -> Mapping[str, JsonValue]:
        """What a signature tells of it, among the decoding settings."""
        return {"threshold": float(f"{self.threshold:.4g}"), "calibration": self.name}

    def apply(self, verdict: Verdict) -> Verdict:
        """The verdict by the mapped probability; as it is, where it has none.

        A reason and a support are dropped where they are of the opposite of what the verdict is now, and the support
        by the only context that was read, whose probability is the verdict's.
        """
        if verdict.probability is None:
            return verdict
        probability = self.probability_map(verdict.probability)
        attributed = probability >= self.threshold
        ruled = {"probability": probability, "attributed": attributed}
        if attributed != verdict.attributed:
            return verdict.model_copy(update={**ruled, "reason": None, "support": None})
        own = verdict.support is not None and len(verdict.support) == 1
        return verdict.model_copy(update={**ruled, **({"support": None} if own else {})})

    def unlike(self, signature: Signature) -> list[tuple[str, str, str]]:
        """Fields in which a judge's signature without calibration is not that of its judge: (field, its, theirs)."""
        return [one for one in differences(self.signature, signature) if one[0] != UNBOUND]


def abstains(verdict: Verdict, band: tuple[float, float] | None) -> bool:
    """Whether a verdict's probability lies in a band of those that are left to people, ends included."""
    if band is None or verdict.probability is None or verdict.attributed is None:
        return False
    return band[0] <= verdict.probability <= band[1]
