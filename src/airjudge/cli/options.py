"""Arguments and options that several commands take, said once."""

from enum import StrEnum
from typing import Annotated

import typer


class Maker(StrEnum):
    """Where statements come from; the values of `schema.StatementMaker`."""

    given = "given"
    sentences = "sentences"
    claims = "claims"


Data = Annotated[list[str], typer.Argument(metavar="DATA...", help="Files, folders or patterns; - is standard input.")]
Columns = Annotated[
    list[str] | None, typer.Option("--map", metavar="FIELD=COLUMN", help="The column of a field; may be repeated.")
]
Statements = Annotated[
    Maker,
    typer.Option(
        help="Those given with a sample, or its reference's sentences if none are; sentences; or atomic claims of the "
        "reference, which the judge writes once."
    ),
]
