"""`airjudge compare`: runs, and people, held against each other."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from airjudge.cli.options import Labels, LabelsFrom, LabelsRandom

if TYPE_CHECKING:
    from airjudge.compare import CompareSettings


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs of the same statements.")],
    *,
    labels: Labels = None,
    labels_from: LabelsFrom = None,
    labels_random: LabelsRandom = False,
    by: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Slice by a column that a run carries (repeatable).")
    ] = None,
    systems: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Does the ranking of this column's values depend on the judge?")
    ] = None,
    fail_under: Annotated[
        float | None, typer.Option(metavar="X", help="Does a gate at this recall depend on the judge?")
    ] = None,
    margin: Annotated[
        float, typer.Option(metavar="X", help="Difference of mean recall, above 0, that would not matter.")
    ] = 0.05,
    epsilon: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Alternative annotator test: .2 for experts, .15 for trained people, .1 for crowds."
        ),
    ] = 0.1,
    scores_only: Annotated[
        bool, typer.Option("--scores-only", help="Compare samples' scores alone, of runs whose statements differ.")
    ] = False,
    n_disagreements: Annotated[
        int, typer.Option("--disagreements", min=0, metavar="N", help="Disagreements shown, of each pair.")
    ] = 10,
    disagreements_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all disagreements as JSON lines.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show how far judges agree, with each other and with people, where not, and whether a decision changes.

    Only the same statements are compared. Intervals come from resampling samples, or groups where the data give them.
    """
    from airjudge.cli.compared import sections_of
    from airjudge.cli.sections import markdown_of, print_sections
    from airjudge.compare import compare_runs, write_disagreements
    from airjudge.datasets import read_labels
    from airjudge.run import open_run

    if markdown and as_json:
        msg = "--markdown and --json are two formats: give one of them"
        raise typer.BadParameter(msg)
    if labels is None and (labels_from is not None or labels_random):
        msg = "--labels-from and --labels-random need --labels"
        raise typer.BadParameter(msg)
    settings = _settings(
        by=tuple(by or ()),
        systems=systems,
        fail_under=fail_under,
        margin=margin,
        max_disagreements=n_disagreements if disagreements_out is None else None,
        scores_only=scores_only,
        labels_random=labels_random,
        epsilon=epsilon,
    )
    known = None if labels is None else read_labels(labels, who=labels_from)
    comparison = compare_runs([open_run(run) for run in runs], known, settings=settings)
    if disagreements_out is not None:
        comparison = write_disagreements(comparison, disagreements_out, keep=n_disagreements)
    if as_json:
        print(comparison.model_dump_json())
    elif markdown:
        print(markdown_of(sections_of(comparison)))
    else:
        print_sections(sections_of(comparison))


def _settings(**asked: object) -> "CompareSettings":
    """What was asked; a number that cannot be meant is refused by its option."""
    from airjudge.compare import CompareSettings

    try:
        return CompareSettings.model_validate(asked)
    except ValidationError as error:
        first = error.errors()[0]
        option = str(first["loc"][0]).replace("_", "-")
        raise typer.BadParameter(first["msg"], param_hint=f"--{option}") from error
