"""What becomes of a finished run: its summary printed, its gates checked, its JUnit file written."""

import json
import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from airjudge.cli.render import print_summary, summary_object
from airjudge.gates import FailUnder, Gate, GateResult, check_all, parse_max_failed
from airjudge.junit import Suite, check_junit_path, write_junit
from airjudge.run import RunHeader, read_scored

if TYPE_CHECKING:
    from airjudge.compare.records import Repeats

_log = logging.getLogger("airjudge.cli")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked of a run's end; one that was `repeated` tells how often its judge contradicts itself."""

    gates: tuple[Gate, ...] = ()
    junit: Path | None = None
    as_json: bool = False
    quiet: bool = False
    repeated: bool = False


def gates_asked(
    fail_under: float | None, fail_on: Literal["mean", "low"] | None, *, max_failed: str | None
) -> tuple[Gate, ...]:
    """The gates that the options ask for.

    Raises:
        BadParameter: If an option's value cannot be a limit, or `--fail-on` has nothing to be held against.
    """
    if fail_on is not None and fail_under is None:
        msg = "--fail-on says which number --fail-under means, and that is not given"
        raise typer.BadParameter(msg)
    gates: list[Gate] = []
    try:
        if fail_under is not None:
            gates.append(FailUnder(fail_under, fail_on or "mean"))
        if max_failed is not None:
            gates.append(parse_max_failed(max_failed))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--max-failed" if gates else "--fail-under") from error
    return tuple(gates)


def check_wanted(wanted: Wanted) -> None:
    """Refuse at the start what could not be delivered at the end.

    Raises:
        InputError: If the JUnit file cannot be written.
    """
    if wanted.junit is not None:
        check_junit_path(wanted.junit)


def deliver(header: RunHeader, out: Path, wanted: Wanted) -> int:
    """Tell what a run found, and give the exit code: 0, or 1 if a gate did not let it pass.

    Raises:
        StorageFailed: If the JUnit file cannot be written; the rest was told before.
    """
    results = check_all(wanted.gates, header.summary)
    repeats = _repeats(out) if wanted.repeated and not header.signature.is_graded else None
    if wanted.as_json:
        told = {"repeats": repeats.model_dump(mode="json")} if repeats else {}
        print(json.dumps(summary_object(header, results) | told))
    elif not wanted.quiet:
        print_summary(header, out)
        if repeats:
            print(f"repeats: {repeats}")
    failed = [result for result in results if not result.passed]
    for result in failed:
        print(f"gate {result.name} failed: {result.reason}", file=sys.stderr)
    _log_end(header, results)
    if wanted.junit is not None:
        write_junit(wanted.junit, read_scored(out), _suite(header, results))
    return 1 if failed else 0


def _repeats(out: Path) -> "Repeats | None":
    """Read the repeats of a run; statistics load scipy, which a run without repeats does not need."""
    from airjudge.compare import repeats_of_run

    return repeats_of_run(out)


def _suite(header: RunHeader, results: tuple[GateResult, ...]) -> Suite:
    return Suite(header.data, header.summary, started=header.started, seconds=header.seconds, gates=results)


def _log_end(header: RunHeader, results: tuple[GateResult, ...]) -> None:
    for result in results:
        level = logging.INFO if result.passed else logging.WARNING
        _log.log(level, "gate_checked", extra={"event": result.model_dump(exclude={"reason"})})
    told = header.summary.model_dump(mode="json", exclude={"slices"})  # a slice's value is a text of the data
    _log.info("summary", extra={"event": told})
