"""Gates: what a summary must show for a run to pass in continuous integration."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Final, Literal, Protocol

from airjudge.schema import Record, Summary

TOLERANCE: Final = 1e-9
"""A mean this close under its limit reaches it: the rest is how floats add up."""


class GateResult(Record):
    """Whether a gate let the run pass. `limit` and `value` have one unit; `value` is None where it is undefined.

    `reason` is a sentence for people, with both numbers.
    """

    name: str
    limit: float
    value: float | None
    passed: bool
    reason: str


class Gate(Protocol):
    """A limit that a summary is held against."""

    def check(self, summary: Summary) -> GateResult:
        """Hold a summary against the limit."""
        ...


@dataclass(frozen=True, slots=True)
class FailUnder:
    """Recall must reach a limit: the mean over samples, or the lower end of its 95 % interval.

    Raises:
        ValueError: If the limit is outside [0, 1].
    """

    limit: float
    on: Literal["mean", "low"] = "mean"

    def __post_init__(self) -> None:
        """Refuse a limit that no recall, or every one, would reach."""
        if not 0 <= self.limit <= 1:
            msg = f"a recall lies between 0 and 1: got {self.limit:g}"
            raise ValueError(msg)

    def check(self, summary: Summary) -> GateResult:
        """Undefined fails: a run that shows nothing has not shown enough."""
        value = summary.mean if self.on == "mean" else summary.ci95[0] if summary.ci95 else None
        passed = value is not None and value >= self.limit - TOLERANCE
        return GateResult(
            name=f"fail_under_{self.on}",
            limit=self.limit,
            value=value,
            passed=passed,
            reason=self._reason(summary, value, passed=passed),
        )

    def _reason(self, summary: Summary, value: float | None, *, passed: bool) -> str:
        if summary.mean is None:
            return "recall is undefined: no sample was scored"
        if value is None:
            return (
                f"the interval of recall (mean {summary.mean:.6g}) is undefined: "
                "it needs scored samples of two groups, or two without a group"
            )
        what = "mean recall" if self.on == "mean" else "the lower end of the 95 % interval of recall"
        beside = "" if self.on == "mean" else f" (mean {summary.mean:.6g})"
        return f"{what} is {value:.6g}{beside}, {'not ' if passed else ''}under {self.limit:.6g}"


@dataclass(frozen=True, slots=True)
class MaxFailed:
    """At most so many samples may have failed: a number, or a percentage of all samples."""

    limit: Decimal
    percent: bool

    def check(self, summary: Summary) -> GateResult:
        """Without any sample a percentage is undefined, which fails."""
        n_failed, n = summary.n_failed, summary.n
        share = Fraction(100 * n_failed, n) if n else None
        value = share if self.percent else Fraction(n_failed)
        passed = value is not None and value <= Fraction(self.limit)
        return GateResult(
            name="max_failed_percent" if self.percent else "max_failed",
            limit=float(self.limit),
            value=None if value is None else float(value),
            passed=passed,
            reason=self._reason(n_failed, n, passed=passed),
        )

    def _reason(self, n_failed: int, n: int, *, passed: bool) -> str:
        if self.percent and not n:
            return "the share of failed samples is undefined: there is no sample"
        share = f" ({100 * n_failed / n:.6g} %)" if self.percent else ""
        allowed = f"{self.limit.normalize():f}{' %' if self.percent else ''}"
        return f"{n_failed} of {n} samples failed{share}, {'not ' if passed else ''}more than {allowed}"


def parse_max_failed(text: str) -> MaxFailed:
    """Read `N` or `P%`; 0 and 0% allow no failed sample.

    Raises:
        ValueError: If it is neither a whole number nor a percentage from 0 to 100.
    """
    number, percent = text.strip(), text.strip().endswith("%")
    try:
        limit = Decimal(number.removesuffix("%").rstrip())
    except InvalidOperation as error:
        msg = f"give a number of samples (5) or a percentage (1%): got {text!r}"
        raise ValueError(msg) from error
    if percent and not (limit.is_finite() and 0 <= limit <= 100):
        msg = f"a percentage lies between 0% and 100%: got {text!r}"
        raise ValueError(msg)
    if not percent and not (limit.is_finite() and limit >= 0 and limit == int(limit)):
        msg = f"a number of samples is whole and not negative, a percentage ends in %: got {text!r}"
        raise ValueError(msg)
    return MaxFailed(limit, percent)


def check_all(gates: Sequence[Gate], summary: Summary) -> tuple[GateResult, ...]:
    """Hold a summary against each gate, in order."""
    return tuple(gate.check(summary) for gate in gates)
