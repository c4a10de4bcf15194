"""A score that acts as its number."""

from typing import Any, Final

from airjudge.schema import SampleError, Signature, Verdict

_TRACES: Final = {"input", "output"}


class MetricResult:
    """A score with all that it stands on; in arithmetic and comparisons it is its number.

    `value` is None where a score is undefined or its row failed: then `error` has the kind, `reason` the text, and
    whatever needs the number raises TypeError. `statements` are the verdicts, in the order of the reference.
    """

    def __init__(
        self,
        value: float | None,
        reason: str | None = None,
        traces: dict[str, Any] | None = None,
        *,
        statements: tuple[Verdict, ...] = (),
        signature: Signature | None = None,
        error: SampleError | None = None,
    ) -> None:
        """Keep them.

        Raises:
            ValueError: If traces have other keys than input and output.
        """
        foreign = sorted(set(traces or {}) - _TRACES)
        if foreign:
            msg = f"traces have input and output, not {', '.join(foreign)}"
            raise ValueError(msg)
        self._value = value
        self.reason = reason or (f"{error.kind}: {error.message}" if error else None)
        self.traces, self.statements, self.signature, self.error = traces, statements, signature, error

    @property
    def value(self) -> float | None:
        """The number itself; None if there is none."""
        return self._value

    def to_dict(self) -> dict[str, Any]:
        """The number as `result`, and the reason."""
        return {"result": self._value, "reason": self.reason}

    def _number(self) -> float:
        if self._value is None:
            msg = f"this result has no value: {self.reason or 'it is undefined'}"
            raise TypeError(msg)
        return self._value

    def __repr__(self) -> str:
        told = f", reason={self.reason!r}" if self.reason else ""
        return f"MetricResult(value={self._value}{told})"

    def __format__(self, spec: str) -> str:
        return format(self._number(), spec) if spec else str(self)

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __bool__(self) -> bool:
        return bool(self._number())

    def __hash__(self) -> int:
        return hash(self._value)

    def __round__(self, digits: int | None = None) -> float:
        return round(self._number(), digits)

    def __abs__(self) -> float:
        return abs(self._number())

    def __neg__(self) -> float:
        return -self._number()

    def __add__(self, other: Any) -> Any:
        return self._number() + _plain(other)

    def __radd__(self, other: Any) -> Any:
        return other + self._number()

    def __sub__(self, other: Any) -> Any:
        return self._number() - _plain(other)

    def __rsub__(self, other: Any) -> Any:
        return other - self._number()

    def __mul__(self, other: Any) -> Any:
        return self._number() * _plain(other)

    def __rmul__(self, other: Any) -> Any:
        return other * self._number()

    def __truediv__(self, other: Any) -> Any:
        return self._number() / _plain(other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / self._number()

    def __eq__(self, other: object) -> bool:
        return self._value == (other.value if isinstance(other, MetricResult) else other)

    def __lt__(self, other: Any) -> bool:
        return bool(self._number() < _plain(other))

    def __le__(self, other: Any) -> bool:
        return bool(self._number() <= _plain(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self._number() > _plain(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self._number() >= _plain(other))


def _plain(other: Any) -> Any:
    return float(other) if isinstance(other, MetricResult) else other
