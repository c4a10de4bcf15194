"""How fast a run goes and when it ends, from a short history of its counts; the clock is passed in."""

from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from airjudge.schema import RunCounts

WINDOW_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Reading:
    """Rates per second, over the last seconds and since the start, and seconds to the end; None where unknown."""

    statements_recent: float | None = None
    statements_overall: float | None = None
    samples_recent: float | None = None
    eta_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Mark:
    """What was counted at one moment of a clock that never runs backwards."""

    at: float
    n_samples: int
    n_statements: int


class Pace:
    """A short history of a run's counts."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        """Rates are recent over the last `window_s` seconds."""
        self._window_s = window_s
        self._marks: deque[_Mark] = deque()
        self._first: _Mark | None = None
        self._elapsed = 0.0
        self._now: float | None = None
        self._n_left: int | None = None

    def saw(self, counts: RunCounts, now: float) -> None:
        """Note the counts at a moment.

        Args:
            counts: The latest ones, changed or not: that nothing happens is news too.
            now: Seconds of any clock; where it jumps backwards, no time has passed.
        """
        self._elapsed += max(0.0, now - self._now) if self._now is not None else 0.0
        self._now = now
        mark = _Mark(self._elapsed, counts.n_samples, counts.n_statements)
        self._first = self._first or mark
        self._marks.append(mark)
        # The oldest one kept is the last from before the window, so that the window is filled.
        while len(self._marks) > 2 and self._marks[1].at <= mark.at - self._window_s:
            self._marks.popleft()
        self._n_left = None if counts.n_total is None else max(0, counts.n_total - counts.n_samples)

    def reading(self) -> Reading:
        """What the history says; nothing of it is negative."""
        if self._first is None:
            return Reading()
        oldest, last = self._marks[0], self._marks[-1]
        samples = _rate(last.n_samples - oldest.n_samples, last.at - oldest.at)
        return Reading(
            statements_recent=_rate(last.n_statements - oldest.n_statements, last.at - oldest.at),
            statements_overall=_rate(last.n_statements - self._first.n_statements, last.at - self._first.at),
            samples_recent=samples,
            eta_s=self._eta(samples),
        )

    def _eta(self, samples_per_s: float | None) -> float | None:
        """None while nothing moves: the end is as far away as before, not at an infinite date."""
        if self._n_left == 0:
            return 0.0
        return self._n_left / samples_per_s if self._n_left is not None and samples_per_s else None


def counts_line(counts: RunCounts, reading: Reading) -> str:
    """One line for a log: how far a run is."""
    parts = [samples_done(counts)]
    if has_statements(counts):
        parts.append(f"{counts.n_statements:,} statements")
        parts += [speed(reading)] if reading.statements_recent is not None else []
    if counts.usage.requests:
        parts.append(tokens(counts))
    if counts.failures:
        parts.append(failures(counts))
    if reading.eta_s:
        parts.append(f"{duration(reading.eta_s)} left")
    return ", ".join(parts)


def has_statements(counts: RunCounts) -> bool:
    """Whether there is something to tell of statements: graded samples have none."""
    return counts.n_statements > 0 or counts.n_samples == 0


def samples_done(counts: RunCounts) -> str:
    """Finished samples of all, and how many of them an earlier start had finished."""
    total = "" if counts.n_total is None else f" of {counts.n_total:,}"
    restored = f" ({counts.n_restored:,} from an earlier start)" if counts.n_restored else ""
    return f"{counts.n_samples:,}{total} samples{restored}"


def speed(reading: Reading) -> str:
    """Statements per second, lately and since the start."""
    if reading.statements_recent is None or reading.statements_overall is None:
        return "no rate yet"
    return f"{reading.statements_recent:.3g}/s now, {reading.statements_overall:.3g}/s since the start"


def tokens(counts: RunCounts) -> str:
    """Tokens of this start's prompts, and the share that the server had in its cache."""
    usage = counts.usage
    cached = f" ({usage.cached_tokens / usage.prompt_tokens:.0%} cached)" if usage.prompt_tokens else ""
    return f"{_short(usage.prompt_tokens)} prompt tokens{cached}"


def failures(counts: RunCounts) -> str:
    """Failed samples by kind, the most frequent first."""
    kinds = sorted(counts.failures.items(), key=lambda item: (-item[1], item[0]))
    return f"{sum(counts.failures.values()):,} failed ({', '.join(f'{kind} {n:,}' for kind, n in kinds)})"


def duration(seconds: float) -> str:
    """Hours, minutes and seconds."""
    return str(timedelta(seconds=round(seconds)))


def _rate(n: int, seconds: float) -> float | None:
    return max(0, n) / seconds if seconds > 0 else None


def _short(n: int) -> str:
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if n >= 10 * size:
            return f"{n / size:.1f} {letter}"
    return str(n)
