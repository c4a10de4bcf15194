"""`airjudge export`: a run's tables, made again from its journal."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class _Format(StrEnum):
    jsonl = "jsonl"
    parquet = "parquet"
    csv = "csv"


class _Table(StrEnum):
    samples = "samples"
    statements = "statements"
    abstained = "abstained"


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    *,
    fmt: Annotated[
        _Format | None, typer.Option("--format", help="One table in this format; without it, all files of the run.")
    ] = None,
    table: Annotated[
        _Table, typer.Option(help="A row a sample, a row a statement, or those that a calibration leaves to people.")
    ] = _Table.samples,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; without it, one in RUN.")
    ] = None,
) -> None:
    """Write a run's results again, or in another format; of an unfinished run those that are done."""
    from airjudge.run import Table, export_abstained, export_table, remake_exports

    if fmt is None:
        if output is not None or table is _Table.abstained:
            msg = "-o and --table abstained name one file: say which format with --format"
            raise typer.BadParameter(msg)
        print(f"{remake_exports(run)} samples written to {run}")
        return
    if table is _Table.abstained:
        path, n_verdicts = export_abstained(run, fmt.value, target=output)
        print(f"{n_verdicts} verdicts that are left to people written to {path}")
        return
    kind: Table = "samples" if table is _Table.samples else "statements"
    path, n_samples = export_table(run, fmt.value, kind, target=output)
    print(f"{n_samples} samples written to {path}")
