"""Ctrl-C and SIGTERM during a run: once drains what is in flight, twice aborts."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Literal


class Interrupts:
    """Whether somebody asked the run of the current task to stop.

    A signal cancels the task, but for two phases: while it asks, the first one only lets it drain; while it
    writes without giving way to the event loop, KeyboardInterrupt ends it.
    """

    def __init__(self) -> None:
        """Nobody asked yet."""
        self.received = False
        self._phase: Literal["asking", "writing"] | None = None
        self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()

    @contextmanager
    def asking(self, drain_s: float) -> Iterator[None]:
        """A block in which the first signal drains, for at most `drain_s` seconds."""
        self._phase, self._drain_s = "asking", drain_s
        try:
            yield
        finally:
            self._phase = None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A block in which nothing is awaited."""
        self._phase = "writing"
        try:
            yield
        finally:
            self._phase = None

    def receive(self, _number: int, _frame: FrameType | None) -> None:
        """Take a signal, between any two instructions of the main thread."""
        again, self.received = self.received, True
        if self._phase == "writing":
            raise KeyboardInterrupt
        drains = self._phase == "asking" and not again
        self._loop.call_soon_threadsafe(self._drain if drains else self._cancel)

    def _drain(self) -> None:
        self._loop.call_later(self._drain_s, self._abort)

    def _abort(self) -> None:
        """End a drain that takes too long."""
        if self._phase == "asking":
            self._cancel()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Take the signals for the block; outside of the main thread they stay with whoever has them."""
    taken = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield taken
        return
    before = {number: signal.signal(number, taken.receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield taken
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
