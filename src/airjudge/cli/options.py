"""Arguments and options that several commands take, said once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Splitter(StrEnum):
    """Where statements come from without a judge; the values of `schema.Splitter`."""

    given = "given"
    sentences = "sentences"


class Maker(StrEnum):
    """Where statements come from; the values of `schema.StatementMaker`."""

    given = "given"
    sentences = "sentences"
    claims = "claims"


Data = Annotated[list[str], typer.Argument(metavar="DATA...", help="Files, folders or patterns; - is standard input.")]
Columns = Annotated[
    list[str] | None, typer.Option("--map", metavar="FIELD=COLUMN", help="The column of a field; may be repeated.")
]
Splits = Annotated[Splitter, typer.Option(help="Those of the sample where it has any, or the reference's sentences.")]
Statements = Annotated[
    Maker,
    typer.Option(
        help="Those given with a sample, or its reference's sentences if none are; sentences; or atomic claims of the "
        "reference, which the judge writes once."
    ),
]

PriceIn = Annotated[
    float | None, typer.Option(min=0, metavar="X", help="Price of a million tokens of prompts; shows the cost.")
]
PriceOut = Annotated[float | None, typer.Option(min=0, metavar="X", help="Price of a million tokens of replies.")]
Currency = Annotated[str, typer.Option(metavar="NAME", help="What the prices are in; only printed.")]

Labels = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="What people ruled: our data format, or lines {id, statement, attributed}."),
]
LabelsFrom = Annotated[
    str | None, typer.Option(metavar="NAME", help="Whose rulings of FILE: a judge in it, or annotator-N.")
]
LabelsRandom = Annotated[
    bool,
    typer.Option(
        "--labels-random",
        help="The labelled samples were drawn at random from the runs', and not used to calibrate: correct recall.",
    ),
]
