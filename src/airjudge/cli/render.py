"""What the commands print: progress on stderr, tables and objects for stdout."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from airjudge.run import RunHeader
from airjudge.schema import Sample, ScoredSample, Signature, Verdict
from airjudge.weights import Progress


@contextmanager
def stages() -> Iterator[Progress]:
    """Show what is being done on stderr: a live line on a terminal, one line a stage elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain_stages(console)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console, transient=True) as shown:
        task = shown.add_task("starting", total=None)

        def told(stage: str, done: int = 0, total: int = 0) -> None:
            count = f" {done}" if done and not total else ""
            shown.update(task, description=escape(stage + count), completed=done, total=total or None)

        yield told


def _plain_stages(console: Console) -> Progress:
    """A line for each stage when it begins, and every half minute how far it is: what a log can use."""
    last, printed = "", 0.0

    def told(stage: str, done: int = 0, total: int = 0) -> None:
        nonlocal last, printed
        if stage == last and time.monotonic() - printed < 30:
            return
        far = f" {done} of {total}" if total else f" {done}" if done else ""
        console.print(Text(f"{stage}{far} ..."))
        last, printed = stage, time.monotonic()

    return told


def summary_object(header: RunHeader) -> dict[str, JsonValue]:
    """A run's summary as `--json` prints it."""
    summary = header.summary.model_dump(mode="json")
    usage = header.usage.model_dump()
    return {
        **summary,
        "signature": str(header.signature),
        **usage,
        "seconds": round(header.seconds, 3),
        "n_taken_over": header.n_taken_over,
    }


def print_summary(header: RunHeader, out: Path) -> None:
    """Print a run's summary as a table on stdout."""
    summary, console = header.summary, Console()
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("recall (mean of samples)", _with_interval(summary.mean, summary.ci95))
    table.add_row("recall (all statements)", _with_interval(summary.micro_mean, summary.micro_ci95))
    table.add_row("samples", _sample_counts(header))
    if summary.failures:
        table.add_row("failures", ", ".join(f"{kind}: {count}" for kind, count in summary.failures.items()))
        table.add_row("bounds with the failed ones", _range(summary.bounds))
    table.add_row("statements", str(summary.n_statements))
    if header.n_taken_over:
        table.add_row("taken over", f"verdicts of {header.n_taken_over} samples from {header.settings['fork']}")
    usage = header.usage
    table.add_row(
        "tokens",
        f"{usage.prompt_tokens} in prompts ({usage.cached_tokens} from the cache), "
        f"{usage.completion_tokens} generated, {usage.requests} requests, {header.seconds:.1f} s",
    )
    table.add_row("signature", Text(str(header.signature)))
    table.add_row("written to", Text(str(out)))
    console.print(table)


def _sample_counts(header: RunHeader) -> str:
    summary = header.summary
    empty = f" ({summary.n_empty_contexts} with an empty retrieval)" if summary.n_empty_contexts else ""
    return f"{summary.n}: {summary.n_scored} scored{empty}, {summary.n_undefined} undefined, {summary.n_failed} failed"


def _with_interval(value: float | None, interval: tuple[float, float] | None) -> str:
    return f"{_number(value)}, 95 % interval {_range(interval)}" if interval else _number(value)


def _range(interval: tuple[float, float] | None) -> str:
    return f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else "undefined"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def print_samples(samples: Sequence[tuple[Sample, ScoredSample]], signature: Signature) -> None:
    """Print each sample with its statements, verdicts and probabilities, and what was expected."""
    table = Table(show_lines=False, pad_edge=False)
    for name in ("sample", "recall", "expected"):
        table.add_column(name, no_wrap=True)
    table.add_column("statement", ratio=1, overflow="fold")
    for name in ("attributed", "probability"):
        table.add_column(name, justify="right", no_wrap=True)
    for sample, scored in samples:
        head = (sample.id, _outcome(scored), str(sample.metadata.get("expected", "")))
        for verdict in scored.statements or (None,):
            # Texts of a sample are data: as Text they are printed, never read as console markup.
            table.add_row(*(Text(one) for one in (*head, *_verdict_cells(verdict))))
            head = ("", "", "")
        table.add_section()
    console = Console()
    console.print(table)
    console.print(Text(f"signature: {signature}"))


def _outcome(scored: ScoredSample) -> str:
    return scored.error.kind if scored.error else _number(scored.score)


def _verdict_cells(verdict: Verdict | None) -> tuple[str, str, str]:
    if verdict is None:
        return "", "", ""
    said = {True: "yes", False: "no", None: "failed"}[verdict.attributed]
    return (
        printable(verdict.text),
        said,
        _number(verdict.probability) if verdict.probability is not None else "-",
    )


def printable(text: str) -> str:
    """A text without control characters, which could steer the terminal."""
    return "".join(character if character.isprintable() else " " for character in text)
