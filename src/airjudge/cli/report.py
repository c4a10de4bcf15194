"""`airjudge report`: runs, and what people ruled, as one HTML file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airjudge.cli.options import Columns, Labels, LabelsFrom, LabelsRandom

if TYPE_CHECKING:
    from airjudge.report import Written


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs; several are compared.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")],
    *,
    labels: Labels = None,
    labels_from: LabelsFrom = None,
    labels_random: LabelsRandom = False,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Slice agreement by a column that a run carries (repeatable)."),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATA", help="Where the texts are, if the input of the runs moved or changed; may be repeated."
        ),
    ] = None,
    columns: Columns = None,
    samples: Annotated[
        int, typer.Option(min=1, metavar="N", help="The N worst inside, N drawn at random, N that judges differ on.")
    ] = 500,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is no report; a report is replaced anyway.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write one HTML file with the figures of runs and their samples, down to each statement.

    It opens from a disk without a network, and asks nobody for anything.
    """
    from airjudge.cli.render import stages
    from airjudge.compare import CompareSettings
    from airjudge.datasets import open_source, parse_mapping, read_labels
    from airjudge.report import Evidence, ReportSettings, check_target, comparison_of, write_report
    from airjudge.report import named as named_runs
    from airjudge.run import open_run

    if labels is None and (labels_from is not None or labels_random):
        msg = "--labels-from and --labels-random need --labels"
        raise typer.BadParameter(msg)
    if columns and not data:
        msg = "--map tells the columns of --data, which is not given"
        raise typer.BadParameter(msg)
    check_target(output, overwrite=overwrite)
    known = None if labels is None else read_labels(labels, who=labels_from)
    named = open_source(data, mapping=parse_mapping(columns or ()), required=()) if data else None
    wanted = CompareSettings(by=tuple(by or ()), labels_random=labels_random)
    settings = ReportSettings(samples=samples, overwrite=overwrite)
    with stages() as told:
        told("reading", 0, 0)
        opened = named_runs([open_run(folder) for folder in runs])
        told("comparing", 0, 0)
        comparison = comparison_of(opened, known, settings=wanted)
        told("writing", 0, 0)
        written = write_report(opened, output, evidence=Evidence(known, named, comparison), settings=settings)
    if as_json:
        print(json.dumps(written.model_dump(mode="json"), ensure_ascii=False))
    else:
        _tell(written)


def _tell(written: "Written") -> None:
    from airjudge.cli.render import printable

    print(printable(f"{written.path}: {_size(written.n_bytes)}"))
    for note in written.notes:
        print(printable(note))
    print(f"seal {written.seal}, for: airjudge verify RUN --report {printable(str(written.path))}")


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.0f} kB"
