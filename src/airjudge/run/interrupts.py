"""Ctrl-C and SIGTERM during a run: once drains what is in flight, twice aborts."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Whether somebody asked the run to stop."""

    def __init__(self) -> None:
        """Nobody asked yet."""
        self.draining = False
        self._task: asyncio.Task[object] | None = None

    @contextmanager
    def asking(self, drain_s: float) -> Iterator[None]:
        """While the current task asks, let the first signal drain, and the second or `drain_s` cancel the task.

        Outside of this block a signal ends the run at once, by KeyboardInterrupt.
        """
        self._task, self._loop, self._drain_s = asyncio.current_task(), asyncio.get_running_loop(), drain_s
        try:
            yield
        finally:
            self._task = None

    def _drain(self) -> None:
        """Begin to drain, in the event loop."""
        self._loop.call_later(self._drain_s, self._abort)

    def _abort(self) -> None:
        """Cancel the task, if it still asks."""
        if self._task is not None:
            self._task.cancel()

    def received(self, _number: int, _frame: FrameType | None) -> None:
        """Take a signal, between any two instructions of the main thread."""
        if self._task is None:
            raise KeyboardInterrupt
        self._loop.call_soon_threadsafe(self._abort if self.draining else self._drain)
        self.draining = True


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Take the signals for the block; outside of the main thread they stay with whoever has them."""
    taken = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield taken
        return
    before = {number: signal.signal(number, taken.received) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield taken
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
