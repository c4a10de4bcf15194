"""What the commands print: progress on stderr, tables and objects for stdout."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, groupby
from pathlib import Path

from pydantic import JsonValue
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from airjudge.gates import GateResult
from airjudge.run import RunHeader
from airjudge.schema import (
    Abstained,
    ChunkMeans,
    ClaimCounts,
    EchoCounts,
    Sample,
    ScoredSample,
    Signature,
    Slice,
    Summary,
    Suspected,
    Usage,
    Verdict,
)
from airjudge.summary import NONE, rates
from airjudge.weights import Progress


@contextmanager
def stages() -> Iterator[Progress]:
    """Show what is being done on stderr: a live line on a terminal, one line a stage elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield plain_stages()
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console, transient=True) as shown:
        task = shown.add_task("starting", total=None)

        def told(stage: str, done: int = 0, total: int = 0) -> None:
            count = f" {done}" if done and not total else ""
            shown.update(task, description=escape(stage + count), completed=done, total=total or None)

        yield told


def plain_stages() -> Progress:
    """A line for each stage when it begins, and every half minute how far it is: what a log can use."""
    last, printed = "", 0.0

    def told(stage: str, done: int = 0, total: int = 0) -> None:
        nonlocal last, printed
        if stage == last and time.monotonic() - printed < 30:
            return
        far = f" {done} of {total}" if total else f" {done}" if done else ""
        print_line(f"{stage}{far} ...")
        last, printed = stage, time.monotonic()

    return told


def columns_line(mapping: Mapping[str, str]) -> str:
    """Which column each field of a sample is read from."""
    pairs = (field if field == column else f"{field} from {column}" for field, column in mapping.items())
    return printable("columns: " + ", ".join(pairs))


def print_line(line: str) -> None:
    """Print a line on stderr, where nobody may be reading any more; a run does not end for that."""
    with suppress(OSError):
        print(printable(line), file=sys.stderr, flush=True)


def summary_object(header: RunHeader, gates: Sequence[GateResult] = ()) -> dict[str, JsonValue]:
    """A run's summary as `--json` prints it, with the gates it was held against if there were any."""
    speed = rates(header.summary, header.usage, seconds=header.seconds)
    told = {"gates": [gate.model_dump(include={"name", "limit", "value", "passed"}) for gate in gates]} if gates else {}
    return {
        **header.summary.model_dump(mode="json"),
        "signature": str(header.signature),
        "statements_by": header.statements_by,
        **header.usage.model_dump(),
        "cost": header.cost.model_dump() if header.cost else None,
        "seconds": round(header.seconds, 3),
        "n_taken_over": header.n_taken_over,
        "rates": speed.model_dump() if speed else None,
        **told,
    }


def facts_table() -> Table:
    """A table of names and what they stand for; a word that is too long, like a signature's, is folded, never cut."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column()
    table.add_column(overflow="fold")
    return table


def print_summary(header: RunHeader, out: Path) -> None:
    """Print a run's summary as a table on stdout, and its slices as another."""
    summary, console = header.summary, Console()
    table = facts_table()
    for name, mean in _means(header):
        table.add_row(name, mean)
    if summary.abstained is not None:
        table.add_row("left to people", _abstained(summary.abstained, summary.n_statements))
        table.add_row("recall with those", _range(summary.abstained.bounds))
        table.add_row("their list", Text(f"airjudge export {out} --format csv --table abstained"))
    table.add_row("samples", _sample_counts(header))
    if summary.failures:
        table.add_row("failures", ", ".join(f"{kind}: {count}" for kind, count in summary.failures.items()))
        table.add_row("bounds with the failed ones", _range(summary.bounds))
    if not header.signature.is_graded:
        table.add_row("statements", _statement_counts(summary))
    if summary.n_in_parts:
        table.add_row("contexts read in parts", f"for {summary.n_in_parts} statements")
    for name, told in _accounts(summary):
        table.add_row(name, told)
    if header.n_taken_over:
        table.add_row("taken over", f"verdicts of {header.n_taken_over} samples from {header.settings['fork']}")
    for name, text in chain(_spent(header), _origins(header, out)):
        table.add_row(name, Text(printable(text)))
    console.print(table)
    _print_slices(summary.slices, console)


def _spent(header: RunHeader) -> Iterator[tuple[str, str]]:
    """What a run took."""
    if header.usage.requests:
        yield "tokens", _tokens(header.usage)
    if header.cost:
        yield "cost", str(header.cost)
    if header.seconds:  # nobody timed verdicts that came as a file
        yield "time", _time(header)


def _origins(header: RunHeader, out: Path) -> Iterator[tuple[str, str]]:
    """What made a run, and where it is; who wrote its statements if that was another judge."""
    yield "signature", str(header.signature)
    if header.statements_by not in (None, str(header.signature)):
        yield "statements by", str(header.statements_by)
    yield "written to", str(out)


def _means(header: RunHeader) -> Iterator[tuple[str, str]]:
    summary, graded = header.summary, header.signature.is_graded
    yield f"{'grade' if graded else 'recall'} (mean of samples)", _with_interval(summary.mean, summary.ci95)
    if not graded:
        yield "recall (all statements)", _with_interval(summary.micro_mean, summary.micro_ci95)


def _print_slices(slices: Sequence[Slice], console: Console) -> None:
    """Print a table with a block for each column; texts of the data are shortened and printed as they are."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("slice", overflow="fold", min_width=16)
    for name in ("mean of samples", "all statements", "scored", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    empty = []
    for column, found in groupby(slices, key=lambda one: one.column):
        parts = list(found)
        if all(one.value == NONE for one in parts):
            empty.append(printable(column))
            continue
        for one in parts:
            table.add_row(Text(f"{printable(column)} = {_shortened(printable(one.value))}"), *_slice_cells(one))
        table.add_section()
    if table.row_count:
        console.print(table)
    for column in empty:
        console.print(Text(f"no sample has a column {column}"))


def _slice_cells(one: Slice) -> tuple[str, str, str, str]:
    if one.mean is None:
        mean = "-"
    else:
        mean = _number(one.mean) + (f" ({one.ci95[0]:.3f} to {one.ci95[1]:.3f})" if one.ci95 else "")
    micro = "-" if one.micro_mean is None else f"{one.micro_mean:.3f} of {one.n_statements}"
    return mean, micro, f"{one.n_scored} of {one.n}", str(one.n_failed)


def _abstained(told: Abstained, n_statements: int) -> str:
    """How many verdicts lie in the band, and where that is."""
    return f"{told.n_statements} of {n_statements} verdicts, of probability {_range(told.band)}"


def _statement_counts(summary: Summary) -> str:
    n_known = summary.n_verdicts + summary.n_unjudged
    share = "" if summary.statement_coverage is None else f" ({summary.statement_coverage:.1%})"
    return f"{summary.n_verdicts} of {n_known} have a verdict{share}"


def _accounts(summary: Summary) -> Iterator[tuple[str, str]]:
    """What came of asking for claims and of single calls, where the run did, and of screening."""
    if summary.claims:
        yield "claims", _claim_counts(summary.claims)
    if summary.echoes:
        yield "told by the single call", _share_told(summary.echoes)
        yield "items of its replies", _item_counts(summary.echoes)
    if summary.suspected:
        yield "marked", _suspected(summary.suspected)
    if summary.chunks:
        yield from _worths(summary.chunks)


def _worths(told: ChunkMeans) -> Iterator[tuple[str, str]]:
    """What the retrieved contexts are worth, by what each supports alone."""
    n_unknown = told.n_supported - told.n_alone - told.n_together
    unknown = f", {n_unknown} unknown" if n_unknown else ""
    yield (
        "supported statements",
        f"{told.n_supported}: {told.n_alone} by one context alone, {told.n_together} only together{unknown}",
    )
    without = f", over {told.n_samples} samples; {told.n_without} have none" if told.n_without else ""
    yield "contexts that support (precision)", _with_interval(told.precision, told.precision_ci95) + without
    yield "average precision", _with_interval(told.average_precision, told.average_precision_ci95)
    yield "reciprocal rank of the first", _with_interval(told.reciprocal_rank, told.reciprocal_rank_ci95)


def _claim_counts(claims: ClaimCounts) -> str:
    kinds = ", ".join(f"{kind}: {count}" for kind, count in claims.errors.items())
    return (
        f"{claims.n_claims} of {claims.n_samples} references, beside {claims.n_sentences} sentences as they are; "
        f"{claims.n_without} samples without claims{f' ({kinds})' if kinds else ''}, "
        f"{claims.n_invented} invented claims dropped"
    )


def _share_told(told: EchoCounts) -> str:
    """How many statements the single calls told, and how."""
    n_told = told.n_once + told.n_split + told.n_repeated
    share = "" if told.coverage is None else f" ({told.coverage:.1%})"
    how = f"{told.n_once} once, {told.n_split} in parts, {told.n_repeated} repeated"
    return f"{n_told} of {n_told + told.n_missing} statements{share}: {how}; {told.n_missing} asked one by one"


def _item_counts(told: EchoCounts) -> str:
    kinds = ", ".join(f"{kind}: {count}" for kind, count in told.errors.items())
    short = f"; not whole: {kinds}" if kinds else ""
    return f"{told.n_items} in {told.n_samples} replies, {told.n_invented} of them no statement of the reference{short}"


def _suspected(told: Suspected) -> str:
    """How many samples are marked, and what the mean is without them."""
    hold = "sample holds" if told.n_samples == 1 else "samples hold"
    kinds = ", ".join(f"{kind}: {count}" for kind, count in told.kinds.items())
    return f"{told.n_samples} {hold} text aimed at a judge ({kinds}); mean without them {_number(told.mean_without)}"


def _tokens(usage: Usage) -> str:
    return (
        f"{usage.prompt_tokens} in prompts ({usage.cached_tokens} from the cache), "
        f"{usage.completion_tokens} generated, {usage.requests} requests"
    )


def _time(header: RunHeader) -> str:
    speed = rates(header.summary, header.usage, seconds=header.seconds)
    verdicts = f"{speed.verdicts:.3g} verdicts, " if speed and speed.verdicts else ""
    told = f", a second: {verdicts}{speed.samples:.3g} samples" if speed else ""
    computed = f", {speed.computed_prompt_tokens:.3g} prompt tokens computed" if speed and header.usage.requests else ""
    return f"{header.seconds:.1f} s{told}{computed}"


def _sample_counts(header: RunHeader) -> str:
    summary = header.summary
    empty = f" ({summary.n_empty_contexts} with an empty retrieval)" if summary.n_empty_contexts else ""
    share = "" if summary.sample_coverage is None else f" ({summary.sample_coverage:.1%} scored)"
    counts = f"{summary.n_scored} scored{empty}, {summary.n_undefined} undefined, {summary.n_failed} failed"
    return f"{summary.n}: {counts}{share}"


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
    console.print(Text(printable(f"signature: {signature}")))


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


def _shortened(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
