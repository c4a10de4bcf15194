"""`airjudge verify`: whether a run's scores follow from its verdicts, and its files are as they were written."""

import json
from pathlib import Path
from typing import Annotated

import typer


def verify(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    *,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Check a report too: unchanged, and of this run as it is.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Recompute every score from the stored verdicts, and check the journal and the hashes of all files.

    With --report also that a report is as it was written and of this run: its data, weights, versions and verdicts.

    Exits with 1 if something does not hold.
    """
    from airjudge.cli.render import printable
    from airjudge.report import wrong_with
    from airjudge.run import open_state, verify_run

    verified = verify_run(run)
    if report is not None:
        wrong = wrong_with(report, open_state(run))
        verified = verified.model_copy(update={"findings": (*verified.findings, *wrong)})
    if as_json:
        print(json.dumps(verified.model_dump()))
    else:
        print(f"{verified.state}: {verified.n_samples} samples, {verified.n_statements} statements")
        for finding in verified.findings:
            print(printable(finding))
        print("something does not hold" if verified.findings else "everything holds")
    if verified.findings:
        raise typer.Exit(1)
