"""The commands, and what becomes of an error: a line, a next step, an exit code, no traceback.

Exit codes: 0 done; 1 a gate failed; 2 usage or input; 3 server or incomplete run; 130 interrupted.
"""

import sys
from typing import Annotated

import typer

from airjudge.cli import batch, models
from airjudge.cli.bundle import bundle
from airjudge.cli.calibrate import calibrate
from airjudge.cli.check import check
from airjudge.cli.compare import compare
from airjudge.cli.demo import demo
from airjudge.cli.doctor import doctor
from airjudge.cli.export import export
from airjudge.cli.recorded import import_verdicts
from airjudge.cli.report import report
from airjudge.cli.score import score
from airjudge.cli.serve import serve
from airjudge.cli.verify import verify
from airjudge.errors import AirjudgeError, EvaluationError, InputError, ProfileError, RunInterrupted
from airjudge.version import __version__

app = typer.Typer(
    name="airjudge",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.add_typer(models.app, name="models")
app.command()(serve)
app.command()(check)
app.command()(score)
app.command()(compare)
app.command()(import_verdicts)
app.add_typer(batch.app, name="batch")
app.command()(export)
app.command()(report)
app.command()(verify)
app.command()(calibrate)
app.command()(doctor)
app.command()(bundle)


def _print_version(value: bool) -> None:
    if value:
        print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Context recall by a judge that never leaves your box."""


def main() -> None:
    """Run the command line; the entry point of the `airjudge` command."""
    try:
        app()
    except AirjudgeError as error:
        sys.exit(_tell(error))


def _tell(error: AirjudgeError) -> int:
    """Print an error and its next step on stderr, and give its exit code."""
    print(f"error: {error}", file=sys.stderr)
    if error.hint:
        print(f"hint: {error.hint}", file=sys.stderr)
    if isinstance(error, RunInterrupted):
        return 130
    return 2 if isinstance(error, InputError | ProfileError | EvaluationError) else 3
