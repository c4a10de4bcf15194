"""`airjudge import-verdicts`: verdicts of any tool or person in, a run folder out."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airjudge.cli.options import Maker, Statements

if TYPE_CHECKING:
    from airjudge.recorded import Recorded


def import_verdicts(
    verdicts: Annotated[
        Path, typer.Argument(metavar="FILE", help="Samples with recorded verdicts, or one ruling a line.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the run; made.")],
    *,
    who: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="NAME", help="Whose verdicts: a judge in FILE, or annotator-N. [default: the label]"
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What to call the judge.", show_default="NAME, or the file's name")
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option(metavar="DATA", help="The data set that the verdicts are on; may be repeated.")
    ] = None,
    statements: Statements = Maker.given,
    keep: Annotated[list[str] | None, typer.Option(help="Column of the data to carry along; repeat it.")] = None,
    by: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Slice the summary by a column of the data (repeatable).")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Make a run of recorded verdicts, so that it can be verified, compared and reported like any other.

    FILE holds samples with statements, each with label, judges or annotators; or one ruling a line: id,
    statement_id or statement_text, attributed, and probability and reason if there are any. A statement without
    a verdict makes its sample failed (not_recorded).
    """
    from airjudge.cli.render import print_line, print_summary, summary_object
    from airjudge.recorded import ImportSettings, import_verdicts

    settings = ImportSettings(
        who=who,
        name=name,
        statements=statements.value,
        keep=tuple(keep or ()),
        by=tuple(by or ()),
        overwrite=overwrite,
    )
    header, found = import_verdicts(verdicts, out, data=data, settings=settings)
    for note in _notes(found):
        print_line(f"note: {note}")
    if as_json:
        print(json.dumps({**summary_object(header), "recorded": found.model_dump(mode="json")}))
    else:
        print_summary(header, out)


def _notes(found: "Recorded") -> list[str]:
    """What a person should know of an import."""
    notes = []
    if found.n_foreign:
        notes.append(f"{found.n_foreign} verdicts are on no statement of the data, like {found.foreign_example}")
    if found.n_samples_without:
        notes.append(f"{found.n_samples_without} samples have no verdict of {found.judge}")
    if found.n_undecided:
        notes.append(f"{found.n_undecided} verdicts are undecided")
    if found.n_scores_unfit:
        share = f"{found.n_scores_unfit} of {found.n_scores} scores"
        notes.append(f"no score is taken as a probability: {share} are outside [0, 1] or on the other side of .5")
    return notes
