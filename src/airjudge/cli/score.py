"""`airjudge score`: a data set in, a run folder and its summary out."""

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from airjudge.cli.judging import Named, calibration_in, concurrency_of, judged, price_of
from airjudge.cli.metrics import (
    Distance,
    DistanceName,
    Metric,
    MetricName,
    Threshold,
    metric_without_judge,
    refuse_useless_options,
)
from airjudge.cli.options import Columns, Currency, Data, Maker, PriceIn, PriceOut, Statements


class _Method(StrEnum):
    pointwise = "pointwise"
    reasoned = "reasoned"
    ragas = "ragas"
    opik = "opik"


_METHODS = (
    "pointwise: a question a statement, answered by one token, whose probability is the verdict's. reasoned: the same, "
    "with a reason before the verdict: many more tokens, and probabilities close to 0 or 1. ragas: the seed's single "
    "call on all statements; what its reply leaves out is asked pointwise. opik: a grade of a "
    "response, which is no recall."
)


class _Reasons(StrEnum):
    none = "none"
    misses = "misses"
    all = "all"


class _Long(StrEnum):
    fail = "fail"
    in_parts = "split"


class _Empty(StrEnum):
    zero = "zero"
    error = "error"


class _BadLines(StrEnum):
    record = "record"
    stop = "stop"


class _FailOn(StrEnum):
    mean = "mean"
    low = "low"


def score(
    context: typer.Context,
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder of the run; made, or gone on with.")],
    *,
    columns: Columns = None,
    metric: Metric = MetricName.context_recall,
    distance: Distance = DistanceName.levenshtein,
    threshold: Threshold = 0.5,
    judge: Annotated[
        str | None,
        typer.Option(help="Judge profile to use, see airjudge models list; or hosted: a provider at --base-url."),
    ] = None,
    base_url: Annotated[
        list[str] | None,
        typer.Option(
            help="A vLLM server that runs already, which --judge may name the profile of; several make one pool. "
            "With --judge hosted a provider's OpenAI-compatible API."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model to ask there.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds its key.")] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Send data to an address outside this network.")
    ] = False,
    method: Annotated[_Method, typer.Option(help=_METHODS)] = _Method.pointwise,
    statements: Statements = Maker.given,
    statements_from: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Judge the statements of this finished run, sample by sample by id."),
    ] = None,
    reasons: Annotated[_Reasons, typer.Option(help="Which verdicts to explain.")] = _Reasons.none,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Ask which contexts support each supported statement: a question each.")
    ] = False,
    empty_contexts: Annotated[
        _Empty, typer.Option(help="An empty retrieval recalled nothing, or is an error.")
    ] = _Empty.zero,
    long_contexts: Annotated[
        _Long,
        typer.Option(
            help="A statement whose contexts exceed the judge together fails, or is ruled on part by part: what one "
            "part supports is supported."
        ),
    ] = _Long.fail,
    concurrency: Annotated[
        str, typer.Option(help="Requests in flight; auto finds what each server keeps up with.", metavar="auto|N")
    ] = "auto",
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds for one request.")] = 300.0,
    wait_for_server: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Wait that long for a server that is away, or loading.",
            show_default="0 to begin; 300 in a run, 0 for a server of ours",
        ),
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A calibration of this judge, by airjudge calibrate.")
    ] = None,
    requests_per_minute: Annotated[
        float | None, typer.Option(min=0.001, metavar="N", help="Send no more requests than that.")
    ] = None,
    tokens_per_minute: Annotated[
        float | None, typer.Option(min=0.001, metavar="N", help="Send for no more tokens, prompts and replies.")
    ] = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    currency: Currency = "",
    max_cost: Annotated[
        float | None, typer.Option(min=0, metavar="X", help="Stop, exit 3, before the run has cost more than that.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Score only the first N samples.")] = None,
    repeat: Annotated[
        int, typer.Option(min=1, metavar="K", help="Score K times, into OUT and OUT/repeat-2 ...: how often it flips.")
    ] = 1,
    bad_lines: Annotated[
        _BadLines, typer.Option(help="A line that is no sample becomes a record, or stops the run.")
    ] = _BadLines.record,
    keep: Annotated[list[str] | None, typer.Option(help="Input column to carry into the records; repeat it.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run in --out; without it, go on.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again what failed in --out.")] = False,
    fork: Annotated[Path | None, typer.Option(help="Folder of a run to take valid verdicts over from.")] = None,
    by: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Slice the summary by a column of the data (repeatable).")
    ] = None,
    fail_under: Annotated[
        float | None, typer.Option(metavar="X", help="Exit 1 if recall is under X, in [0, 1].")
    ] = None,
    fail_on: Annotated[
        _FailOn | None,
        typer.Option(help="Which recall: the mean of samples, or the lower end of its interval. [default: mean]"),
    ] = None,
    max_failed: Annotated[
        str | None, typer.Option(metavar="N|P%", help="Exit 1 if more samples failed: a number, or a share of all.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML, a case for each sample.")] = None,
    log: Annotated[Path | None, typer.Option(metavar="FILE", help="Append events as JSON lines.")] = None,
    log_data: Annotated[bool, typer.Option("--log-data", help="Log texts of the data too.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors alone, and what --json asks for.")] = (
        False
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Score each sample of a data set; the same command again goes on where it stopped.

    Context recall is ruled on by a judge; the other metrics ask none. Without --base-url that is a server that
    `airjudge serve` runs for the judge, else one started for this run.
    """
    from airjudge.cli.logs import logging_to
    from airjudge.cli.outcome import Wanted, check_wanted, deliver, gates_asked
    from airjudge.cli.progress import display
    from airjudge.datasets import open_source, parse_mapping
    from airjudge.judge import JudgeSettings
    from airjudge.metrics import ContextRecall, GradedContextRecall
    from airjudge.run import RunSettings, check_repeated, repeat_folders, score_repeatedly

    refuse_useless_options(context, metric, method.value)
    comparing = metric_without_judge(metric, distance, threshold=threshold)
    named = Named(judge, tuple(base_url or ()), model=model, api_key_env=api_key_env, allow_remote=allow_remote)
    gates = gates_asked(fail_under, None if fail_on is None else fail_on.value, max_failed=max_failed)
    wanted = Wanted(gates, junit=junit, as_json=as_json, quiet=quiet, repeated=repeat > 1)
    check_wanted(wanted)
    source = open_source(
        data,
        mapping=parse_mapping(columns or ()),
        required=(comparing or (GradedContextRecall if method is _Method.opik else ContextRecall)).required,
        spool=out / "input",
        overwrite=overwrite,
    )
    asked = JudgeSettings(
        method=method.value,
        concurrency=concurrency_of(concurrency),
        timeout_s=timeout,
        wait_for_server_s=wait_for_server,
        calibration=calibration_in(calibration),
        profile=named.profile,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        price=price_of(price_in, price_out, currency=currency, max_cost=max_cost),
        max_cost=max_cost,
        long_contexts=long_contexts.value,
    )
    settings = RunSettings(
        zero_if_empty=empty_contexts is _Empty.zero,
        limit=limit,
        keep=tuple(keep or ()),
        by=tuple(by or ()),
        bad_lines=bad_lines.value,
        overwrite=overwrite,
        retry_failed=retry_failed,
        fork=fork,
        statements_from=_unless_made(statements_from, statements),
    )
    check_repeated(source, folders := repeat_folders(out, repeat), settings)
    if not quiet:
        _tell_columns(source.mapping)
    with logging_to(log, with_data=log_data):
        with display(quiet=quiet) as shown, ExitStack() as stack:
            by_judge = judged(
                named,
                asked,
                source,
                statements=statements.value,
                reasons=reasons.value,
                evidence=evidence,
                first=limit,
                shown=shown,
                quiet=quiet,
            )
            scored_by = comparing or stack.enter_context(by_judge)
            shown.stage(f"scoring {source.name}", 0, 0)
            begun = score_repeatedly(source, scored_by, folders, settings=settings, on_counts=shown.counts)
            header = asyncio.run(begun)
        code = deliver(header, out, wanted)
    raise typer.Exit(code)


def _tell_columns(mapping: Mapping[str, str]) -> None:
    """Say which column each field is read from, where that is not told by its name."""
    from airjudge.cli.render import columns_line, print_line

    if any(field != column for field, column in mapping.items()):
        print_line(columns_line(mapping))


def _unless_made(statements_from: Path | None, statements: Maker) -> Path | None:
    """The run to take statements from, if they are not to be made too."""
    if statements_from is not None and statements is not Maker.given:
        msg = "--statements-from says where statements come from: leave --statements out"
        raise typer.BadParameter(msg)
    return statements_from
