"""How many requests a server gets at once, found by watching it. Nothing here waits, sends or reads a clock.

The limit stands on one rung of a ladder. A rung is measured by the replies a second it brings while it is
used in full; then a neighbour is tried, and the higher of two rungs is kept only if its replies rise enough
to be worth it. So the limit grows while the server keeps up, stays where more requests only wait, and goes
down again when the load has changed. Long stretches on one rung lie between two trials. Below the modest start
nothing is tried: so few requests harm nobody, and where they do the server says so, by its queue or by 429.
"""

import bisect

LADDER = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
START, MOST = 8, 256
WORTH = 0.15
"""Share of a rung's growth that must come back as growth of replies: 12 over 8 is worth it from 7.5 % on."""
WINDOW_S = 0.25
"""A rung is measured for this long at least, and over twice as many replies as it has requests."""
FULL = 0.8
"""Share of a window's replies that must have left every place taken, or the window says nothing."""
STAY, STAY_LONGEST = 4, 32
"""Windows between two trials: at first, and at most after trials that changed nothing."""
COLLAPSE = 0.5
"""A rung whose replies fall to this share of what they were is left at once: latency has doubled."""
QUEUED = 0.25
"""A server's queue of up to this share of what is in flight keeps its batch full; a longer one only waits."""
LEAST_QUEUED = 2
"""A queue on the server does not take the limit below this: with one request it idles between two."""


class AdaptiveLimit:
    """A limit between 1 and a bound, moved by what is told of each reply, refusal and queue."""

    def __init__(self, *, start: int = START, most: int = MOST) -> None:
        """Stand on the highest rung that is neither above `start` nor above `most`.

        Raises:
            ValueError: If one of them is less than 1.
        """
        if min(start, most) < 1:
            msg = f"a limit is at least 1: got start {start}, most {most}"
            raise ValueError(msg)
        self._rungs = [rung for rung in LADDER if rung <= most]
        self._rung = self._rung_below(start)
        self._stay, self._left, self._upward = STAY, 0, True
        self._before: tuple[int, float] | None = None
        self._at_arrival: float | None = None
        self._queued_before = False
        self._quiet_until = 0.0
        self._begin(0.0)

    @property
    def now(self) -> int:
        """Requests that may be in flight."""
        return self._rungs[self._rung]

    def replied(self, at: float, latency_s: float, *, full: bool) -> None:
        """A reply came.

        Args:
            at: When, in seconds.
            latency_s: How long after its request. Of it comes the rate, by Little's law: so many requests in
                flight, each so long, bring so many replies a second, also where replies come in waves.
            full: Whether every place was taken until then.
        """
        if self._settling > 0:
            self._settling -= 1
            self._since = at
            return
        self._n += 1
        self._n_full += full
        self._latency_s += latency_s
        if self._n < max(8, 2 * self.now) or at - self._since < WINDOW_S:
            return
        rate = self.now * self._n / max(self._latency_s, 1e-9)
        worth_reading = self._n_full >= FULL * self._n
        self._begin(at)
        if worth_reading:
            self._measured(rate)

    def queued(self, n_waiting: float) -> None:
        """The server told how many requests wait for a place in its batch; too many twice in a row lower the limit."""
        too_many = n_waiting > QUEUED * self.now
        if not too_many or not self._queued_before:
            self._queued_before = too_many
            return
        self._queued_before = False
        wanted = max(LEAST_QUEUED, self.now - n_waiting, self.now / 2)
        if wanted < self.now:  # the rung at or above it: a short queue keeps the batch full
            self._retreat(self._rungs[bisect.bisect_left(self._rungs, wanted)])

    def refused(self, at: float, pause_s: float) -> None:
        """The server answered 429 and wants a pause; those that were in flight with it count once."""
        if at < self._quiet_until:
            return
        self._quiet_until = at + max(pause_s, 1.0)
        self._retreat(self.now / 2)

    def _measured(self, rate: float) -> None:
        """A rung brought so many replies a second: compare, leave, stay or try a neighbour."""
        if self._before is not None:
            self._judge_trial(*self._before, rate)
        elif self._at_arrival is not None and rate < COLLAPSE * self._at_arrival:
            self._retreat(self.now - 1)
        elif self._left > 0:
            self._left -= 1
            self._at_arrival = self._at_arrival or rate
        else:
            self._try_neighbour(rate)

    def _try_neighbour(self, rate: float) -> None:
        """Go one rung in the direction whose turn it is, and remember what the present one brought."""
        step = 1 if self._upward else -1
        too_low = step < 0 and self.now <= START
        if too_low or self._rung + step >= len(self._rungs):
            self._upward = not self._upward
            self._left = self._stay
            return
        self._before = (self._rung, rate)
        self._go_to(self._rung + step)

    def _judge_trial(self, rung_before: int, rate_before: float, rate: float) -> None:
        """Keep the better of two neighbours; go on in a direction that was worth it."""
        self._before = None
        upward = self._rung > rung_before
        (low, low_rate), (high, high_rate) = sorted([(rung_before, rate_before), (self._rung, rate)])
        growth = self._rungs[high] / self._rungs[low] - 1
        best = high if high_rate >= low_rate * (1 + WORTH * growth) else low
        if best != rung_before:
            self._stay, self._left, self._at_arrival = STAY, 0, rate
            return
        self._stay, self._left = min(2 * self._stay, STAY_LONGEST), self._stay
        self._upward, self._at_arrival = not upward, rate_before
        self._go_to(rung_before)

    def _retreat(self, wanted: float) -> None:
        """Go down to a limit, at least one rung if there is one, and stay there for a while."""
        lower = self._rung_below(wanted)
        self._before, self._at_arrival = None, None
        self._stay, self._left, self._upward = STAY, 2 * STAY, True
        self._go_to(max(0, min(lower, self._rung - 1)))

    def _rung_below(self, wanted: float) -> int:
        return max(0, bisect.bisect_right(self._rungs, wanted) - 1)

    def _go_to(self, rung: int) -> None:
        """Stand on another rung; replies to what was sent before say nothing about it."""
        settling = max(self.now, self._rungs[rung])
        self._rung = rung
        self._begin(0.0)
        self._settling = settling

    def _begin(self, at: float) -> None:
        """Begin a window at a time."""
        self._since, self._latency_s = at, 0.0
        self._n = self._n_full = self._settling = 0
