"""`airjudge batch`: a hosted judge's share carried out of the air gap as a file, and its answers carried in."""

import json
import tempfile
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airjudge.cli.options import Columns, Currency, Maker, PriceIn, PriceOut, Statements
from airjudge.errors import InputError, RunDiffers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airjudge.batch import BatchReport, BatchSettings, OpenedPlan
    from airjudge.datasets import Source

app = typer.Typer(
    name="batch",
    help="Carry questions to a hosted judge out of an air gap, and its answers in, as OpenAI batch files.",
    no_args_is_help=True,
)


class _Method(StrEnum):
    pointwise = "pointwise"


class _Field(StrEnum):
    response_format = "response_format"
    logprobs = "logprobs"
    seed = "seed"
    temperature = "temperature"


class _LengthField(StrEnum):
    max_completion_tokens = "max_completion_tokens"
    max_tokens = "max_tokens"


Model = Annotated[str, typer.Option(help="The provider's name of the model.")]
LeaveOut = Annotated[
    list[_Field] | None, typer.Option(help="A field of a request that the provider does not take; may be repeated.")
]
LengthField = Annotated[_LengthField, typer.Option(help="What the provider calls the limit of a reply.")]
Thinking = Annotated[int, typer.Option(min=0, metavar="N", help="Tokens that the model may think before it replies.")]
Keep = Annotated[list[str] | None, typer.Option(help="Column of the data to carry into the records; repeat it.")]
By = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Slice the summary by a column (repeatable).")]


@app.command(name="export")
def export_questions(
    data: Annotated[list[str], typer.Argument(metavar="DATA...|RUN", help="A data set; or a run, with --data.")],
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The batch; its key is FILE.key.")],
    *,
    of_run: Annotated[
        list[str] | None, typer.Option("--data", metavar="DATA", help="The data set of RUN: a run holds no contexts.")
    ] = None,
    columns: Columns = None,
    method: Annotated[_Method, typer.Option(help="How it is asked: one question a statement.")] = _Method.pointwise,
    statements: Statements = Maker.given,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask about the first N samples only.")] = None,
    leave_out: LeaveOut = None,
    length_field: LengthField = _LengthField.max_completion_tokens,
    thinking_tokens: Thinking = 0,
    keep: Keep = None,
    by: By = None,
    most_lines: Annotated[int, typer.Option(min=1, help="Lines of one file; the rest goes into FILE-2, ….")] = 50_000,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files that are there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write the questions of a data set as OpenAI batch lines, which `vllm run-batch` reads too.

    FILE leaves: it holds questions, contexts and statements. FILE.key stays, and is needed for the import. With
    a RUN its statements are asked about, so that both judges rule on the same ones.
    """
    from airjudge.batch import BatchSettings, Target, export_batch

    settings = BatchSettings(
        method=method.value,
        statements=statements.value,
        limit=limit,
        left_out=tuple(one.value for one in leave_out or ()),
        length_field=length_field.value,
        thinking_tokens=thinking_tokens,
        keep=tuple(keep or ()),
        by=tuple(by or ()),
    )
    with _opened(data, of_run, columns=columns, settings=settings) as (source, asked):
        written = export_batch(source, Target(output, most_lines, overwrite), model=model, settings=asked)
    if as_json:
        print(json.dumps(written.model_dump(mode="json")))
        return
    print(f"{written.n_questions} questions about {written.n_samples} samples, {written.n_bytes} bytes")
    if written.n_failed:
        print(f"{written.n_failed} lines are no samples and were not asked about")
    if written.n_empty_contexts:
        print(f"{written.n_empty_contexts} retrievals are empty: recall 0 without a question")
    for name in written.files:
        print(f"to send: {name}")
    print(f"to keep: {written.key}")


@app.command(name="import")
def import_answers(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What the batch brought back, errors too.")],
    key: Annotated[Path, typer.Option("--for", metavar="EXPORT|DATA", help="The exported FILE, its key, or the data.")],
    out: Annotated[Path, typer.Option(help="Folder of the run; made.")],
    *,
    model: Annotated[str | None, typer.Option(help="With DATA: the model that was asked.")] = None,
    columns: Columns = None,
    statements: Statements = Maker.given,
    limit: Annotated[int | None, typer.Option(min=1, help="With DATA: the first N samples were asked about.")] = None,
    keep: Keep = None,
    by: By = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    currency: Currency = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Make a run of the answers to an exported batch, whatever order they came in.

    A question without a usable answer fails by its kind; lines that are repeated, cut or of another batch are
    counted and told. The key knows how the questions were made; with DATA the options say it again.
    """
    from airjudge.batch import BatchSettings, import_batch
    from airjudge.cli.judging import price_of
    from airjudge.cli.render import print_line, print_summary, summary_object

    settings = BatchSettings(statements=statements.value, limit=limit, keep=tuple(keep or ()), by=tuple(by or ()))
    price = price_of(price_in, price_out, currency=currency, max_cost=None)
    with _plan(key, model, columns=columns, settings=settings) as plan:
        header, report = import_batch(files, out, plan=plan, price=price, overwrite=overwrite)
    for note in _notes(report):
        print_line(f"note: {note}")
    if as_json:
        print(json.dumps({**summary_object(header), "batch": report.model_dump(mode="json")}))
    else:
        print_summary(header, out)


@contextmanager
def _opened(
    data: list[str], of_run: list[str] | None, *, columns: list[str] | None, settings: "BatchSettings"
) -> "Iterator[tuple[Source, BatchSettings]]":
    """The data set to ask about, and how; for a run its own data and statements."""
    from airjudge.datasets import open_source, parse_mapping

    with tempfile.TemporaryDirectory(prefix="airjudge-") as folder:
        spool, mapping = Path(folder, "input"), parse_mapping(columns or ())
        if len(data) == 1 and Path(data[0], "journal.sqlite").is_file():
            yield _of_run(Path(data[0]), of_run, mapping=mapping, settings=settings)
            return
        if of_run:
            msg = "--data names the data set of a RUN, and no run is named"
            raise typer.BadParameter(msg)
        yield open_source(data, mapping=mapping, spool=spool), settings


def _of_run(
    run: Path, data: list[str] | None, *, mapping: dict[str, str], settings: "BatchSettings"
) -> "tuple[Source, BatchSettings]":
    """The data set of a run, held against its hash, and the run's own way to make statements.

    Raises:
        InputError: If the data set is not named.
        RunDiffers: If it is another one.
    """
    from airjudge.datasets import open_source
    from airjudge.journal import Reader
    from airjudge.run.folder import state_of

    if not data:
        msg = f"{run} is a run, which holds no contexts"
        raise InputError(msg, "Name the data set that it is of: --data DATA")
    with Reader(run) as journal:
        state = state_of(journal)
    source = open_source(data, mapping={**state.mapping, **mapping})
    if source.digest() != state.data_sha256:
        msg = f"{source.name} is not the data set of the run in {run}, or has changed since"
        raise RunDiffers(msg, f"The run is of {state.data}, SHA-256 {state.data_sha256[:12]}…")
    limit = state.settings.get("limit")
    made = {"statements": state.signature.statements, "limit": settings.limit or limit}
    return source, settings.model_copy(update=made)


@contextmanager
def _plan(
    key: Path, model: str | None, *, columns: list[str] | None, settings: "BatchSettings"
) -> "Iterator[OpenedPlan]":
    """What was asked: from the key of the export, or from the data set again."""
    from airjudge.batch import key_of, opened_plan, read_key

    if model is None:
        yield read_key(key_of(key) if key_of(key).is_file() else key)
        return
    with _opened([str(key)], None, columns=columns, settings=settings) as (source, asked):
        yield opened_plan(source, model=model, settings=asked)


def _notes(report: "BatchReport") -> list[str]:
    """What a person should know of an import."""
    notes = [f"{report.n_verdicts} of {report.n_questions} questions have a usable answer"]
    notes += [f"{one.kind}: {one.n}, like {one.example}" for one in report.problems]
    if len(report.models) > 1:
        notes.append(f"several models answered: {', '.join(f'{name} {n}' for name, n in report.models.items())}")
    return notes
