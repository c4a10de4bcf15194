"""`airjudge verify`: whether a run's scores follow from its verdicts, and its files are as they were written."""

import json
from pathlib import Path
from typing import Annotated

import typer


def verify(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Recompute every score from the stored verdicts, and check the journal and the hashes of all files.

    Exits with 1 if something does not hold.
    """
    from airjudge.cli.render import printable
    from airjudge.run import verify_run

    verified = verify_run(run)
    if as_json:
        print(json.dumps(verified.model_dump()))
    else:
        print(f"{verified.state}: {verified.n_samples} samples, {verified.n_statements} statements")
        for finding in verified.findings:
            print(printable(finding))
        print("something does not hold" if verified.findings else "everything holds")
    if verified.findings:
        raise typer.Exit(1)
