"""What a person sees of a run on stderr: a live display on a terminal, elsewhere a line every ten seconds."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from airjudge.cli import pace
from airjudge.cli.render import plain_stages, print_line, printable
from airjudge.schema import RunCounts
from airjudge.weights import Progress, silent

EVERY_S: Final = 10.0
TICK_S: Final = 0.25

_log = logging.getLogger("airjudge.cli")


@dataclass(frozen=True, slots=True)
class Display:
    """Where a command tells what it does (`stage`) and a run how far it is (`counts`); both return at once."""

    stage: Progress
    counts: Callable[[RunCounts], None]


class _Watch:
    """The latest counts, looked at by one thread, so that a stalled run is still seen to stand still."""

    def __init__(self, shown: Callable[[RunCounts, pace.Reading], None], lined: Callable[[str], None]) -> None:
        self._shown, self._lined = shown, lined
        self._latest: RunCounts | None = None
        self._last_told: RunCounts | None = None
        self._pace = pace.Pace()
        self._ended = threading.Event()

    def counts(self, counts: RunCounts) -> None:
        self._latest = counts

    @contextmanager
    def watching(self, every_s: float, tick_s: float) -> Iterator[None]:
        thread = threading.Thread(target=self._run, args=(every_s, tick_s), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
            self._look()
            if self._latest is not self._last_told:
                self._tell()

    def _run(self, every_s: float, tick_s: float) -> None:
        told = time.monotonic()
        while not self._ended.wait(tick_s):
            self._look()
            if time.monotonic() - told >= every_s:
                told = time.monotonic()
                self._tell()

    def _look(self) -> None:
        if self._latest is not None:
            self._pace.saw(self._latest, time.monotonic())
            self._shown(self._latest, self._pace.reading())

    def _tell(self) -> None:
        if self._latest is None:
            return
        self._last_told, reading = self._latest, self._pace.reading()
        self._lined(pace.counts_line(self._latest, reading))
        _log.info("progress", extra={"event": self._latest.model_dump(mode="json") | {"eta_s": reading.eta_s}})


@contextmanager
def display(*, quiet: bool = False, every_s: float = EVERY_S, tick_s: float = TICK_S) -> Iterator[Display]:
    """Show a command's stages, its run's counts, and what its modules warn of while the block runs.

    Args:
        quiet: Show nothing; the log is still told.
        every_s: Seconds between lines, and between events of the log.
        tick_s: Seconds between two looks at the counts.
    """
    console = Console(stderr=True)
    if quiet:
        watch = _Watch(_unseen, _unread)
        with watch.watching(every_s, tick_s), _noticed(_unread):
            yield Display(silent, watch.counts)
    elif not console.is_terminal or console.is_dumb_terminal:
        watch = _Watch(_unseen, print_line)
        with watch.watching(every_s, tick_s), _noticed(print_line):
            yield Display(plain_stages(), watch.counts)
    else:
        screen = _Screen(console)
        watch = _Watch(screen.counts, _unread)
        live = Live(get_renderable=screen.content, console=console, transient=True, redirect_stdout=False)
        with live, watch.watching(every_s, tick_s), _noticed(screen.notice):
            yield Display(screen.stage, watch.counts)


def _unseen(_counts: RunCounts, _reading: pace.Reading) -> None:
    """Show nothing."""


def _unread(_line: str) -> None:
    """Print nothing."""


@contextmanager
def _noticed(told: Callable[[str], None]) -> Iterator[None]:
    """Tell a person what the modules warn of, such as a server that went away."""
    logger, handler = logging.getLogger("airjudge"), _Notices(told)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Notices(logging.Handler):
    """Events from warnings on, in words; their `data` may quote the data set and are left out."""

    def __init__(self, told: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        fields = getattr(record, "event", {})
        words = ", ".join(f"{name} {value}" for name, value in fields.items())
        self._told(record.getMessage().replace("_", " ") + (f": {words}" if words else ""))


class _Screen:
    """The live display: what is being done, and below it how far the run is; drawn when the terminal is."""

    def __init__(self, console: Console) -> None:
        self._console, self._spinner = console, Spinner("dots")
        self._rows: tuple[Table | Text, ...] = ()

    def stage(self, stage: str, done: int = 0, total: int = 0) -> None:
        far = f" {done:,} of {total:,}" if total else f" {done:,}" if done else ""
        # Names of files may hold what reads like markup: as Text they are printed, never read.
        self._spinner.update(text=Text(stage + far))

    def notice(self, line: str) -> None:
        self._console.print(Text(printable(line)))

    def counts(self, counts: RunCounts, reading: pace.Reading) -> None:
        self._rows = tuple(_rows(counts, reading))

    def content(self) -> Group:
        return Group(self._spinner, *self._rows)


def _rows(counts: RunCounts, reading: pace.Reading) -> Iterator[Table | Text]:
    """The lines of the display below the stage."""
    bar = Table.grid(padding=(0, 1))
    left = f"{pace.duration(reading.eta_s)} left" if reading.eta_s is not None else ""
    known = counts.n_total or None  # without a total the bar would be an animation of nothing
    cells = (ProgressBar(total=known, completed=counts.n_samples, width=30),) if known else ()
    bar.add_row(*cells, Text(pace.samples_done(counts)), Text(left))
    yield bar
    told = f"{counts.n_statements:,} statements, {pace.speed(reading)}; " if pace.has_statements(counts) else ""
    yield Text(f"{told}{pace.tokens(counts)}")
    if counts.failures:
        yield Text(pace.failures(counts))
