"""Arguments and options that several commands take, said once."""

from enum import StrEnum
from typing import Annotated

import typer


class Maker(StrEnum):
    """Where statements come from; the values of `schema.StatementMaker`."""

    given = "given"
    sentences = "sentences"


Data = Annotated[list[str], typer.Argument(metavar="DATA...", help="Files, folders or patterns; - is standard input.")]
Columns = Annotated[
    list[str] | None, typer.Option("--map", metavar="FIELD=COLUMN", help="The column of a field; may be repeated.")
]
Statements = Annotated[Maker, typer.Option(help="Those of the sample where it has any, or the reference's sentences.")]

PriceIn = Annotated[
    float | None, typer.Option(min=0, metavar="X", help="Price of a million tokens of prompts; shows the cost.")
]
PriceOut = Annotated[float | None, typer.Option(min=0, metavar="X", help="Price of a million tokens of replies.")]
Currency = Annotated[str, typer.Option(metavar="NAME", help="What the prices are in; only printed.")]
