"""`airjudge check`: what a data set holds and what scoring it would cost, without a judge."""

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airjudge.cli.judging import HOSTED, price_of
from airjudge.cli.options import Columns, Currency, Data, Maker, PriceIn, PriceOut, Statements
from airjudge.errors import InputError, WeightsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from airjudge.check import Encoder, Report, Terms
    from airjudge.datasets import Source
    from airjudge.profiles import Profile
    from airjudge.schema import StatementMaker

SHOWN = 20
MARKS_SHOWN = 5
OF_CLAIMS = (
    "how many claims the judge will make is not known before: sentences are counted as statements, and the questions "
    "for claims; a reply with claims has at most a token for each byte of its reference"
)


OF_EVIDENCE = "evidence is counted as if every statement were supported: less will be asked"


def check(
    data: Data,
    *,
    columns: Columns = None,
    judge: Annotated[
        str | None,
        typer.Option(help="Count as this judge does; hosted: as a provider is asked. [default: one for this machine]"),
    ] = None,
    statements: Statements = Maker.given,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Count the questions of score --evidence, as if all were supported.")
    ] = False,
    rate: Annotated[
        float | None,
        typer.Option(min=0.001, metavar="TOKENS_PER_S", help="How many tokens the judge computes."),
    ] = None,
    like: Annotated[Path | None, typer.Option(metavar="RUN", help="Take the rate from a finished run.")] = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    currency: Currency = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Check only the first N samples.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, with all bad lines.")] = False,
) -> None:
    """Read a data set without a judge: columns, counts, bad lines, tokens, time and cost.

    Exit code 0 if every line is a sample, 1 if some are not, 2 if the data set cannot be read.
    """
    from airjudge.check import check_data
    from airjudge.cli.cost import priced
    from airjudge.cli.render import stages
    from airjudge.datasets import open_source, parse_mapping

    speed = _rate(rate, like)
    price = price_of(price_in, price_out, currency=currency, max_cost=None)
    with tempfile.TemporaryDirectory(prefix="airjudge-") as folder, stages() as told:
        source = open_source(data, mapping=parse_mapping(columns or ()), spool=Path(folder, "input"))
        profile = None if judge == HOSTED else _profile(judge)
        terms, note = _terms(profile, statements.value, evidence=evidence, max_listed=None if as_json else SHOWN)
        report = check_data(source, terms, first=limit, on_progress=told)
        found = _as_object(source, report, profile, terms=terms, rate=speed)
        part = "" if limit is None else f"nothing behind the first {limit:,} rows was read"
        most = OF_EVIDENCE if evidence else ""
        notes = [one for one in (part, note, OF_CLAIMS if statements is Maker.claims else "", most) if one]
        found |= {"note": "; ".join(notes)} if notes else {}
        cost = priced(report, price, terms).cost if price else None
        found["limit"] = limit
        found["cost"] = cost.model_dump() if cost else None
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        _print(source, found, report)
    if report.n_bad:
        raise typer.Exit(1)


def _rate(rate: float | None, like: Path | None) -> float | None:
    """Tokens in a second, as told or as a finished run had them; None if nobody knows."""
    if rate is not None and like is not None:
        msg = "--rate and --like both say how fast the judge is: give one of them"
        raise typer.BadParameter(msg)
    return rate if like is None else _rate_of_run(like / "run.json")


def _rate_of_run(header: Path) -> float:
    try:
        run = json.loads(header.read_bytes())
        usage = run["usage"]
        rate = (usage["prompt_tokens"] - usage["cached_tokens"]) / run["seconds"]
    except OSError as error:
        msg = f"{header} cannot be read: {error.strerror}"
        raise InputError(msg, "--like names the folder of a finished run.") from error
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        msg = f"{header} does not tell tokens and seconds"
        raise InputError(msg, "--like names the folder of a finished run.") from error
    if rate <= 0:
        msg = f"the run of {header} computed no prompt tokens"
        raise InputError(msg, "Name another run, or give --rate.")
    return float(rate)


def _profile(judge: str | None) -> "Profile":
    from airjudge.profiles import default_profile_name, load_profile, this_machine

    return load_profile(judge or default_profile_name("gpu" if this_machine().gpus else "cpu"))


def _terms(
    profile: "Profile | None", maker: "StatementMaker", *, evidence: bool, max_listed: int | None
) -> "tuple[Terms, str]":
    """How a judge's prompts are counted, and a note where that is not by its own tokens."""
    from airjudge import prompts
    from airjudge.check import Terms, Utf8

    if profile is None:
        note = "bytes are counted, not tokens: a provider tells them only when it is asked"
        return Terms(Utf8(), maker, form=prompts.as_object, max_listed=max_listed, evidence=evidence), note
    encoder, note = _encoder(profile)
    limit = None if note else profile.served_context
    return Terms(
        encoder, maker, limit=limit, pointwise=profile.pointwise, max_listed=max_listed, evidence=evidence
    ), note


def _encoder(profile: "Profile") -> "tuple[Encoder, str]":
    """The judge's tokenizer; where it is not here, bytes and a note that says so."""
    from airjudge.check import Utf8
    from airjudge.weights import JudgeTokenizer

    try:
        return JudgeTokenizer(profile), ""
    except WeightsError as error:
        return Utf8(), f"bytes are counted, not tokens: {error}; to count tokens: {error.hint}"


def _as_object(
    source: "Source", report: "Report", profile: "Profile | None", *, terms: "Terms", rate: float | None
) -> "dict[str, JsonValue]":
    """All that was found, as `--json` prints it."""
    counts: dict[str, JsonValue] = report.model_dump(mode="json", exclude={"prompt_units", "computed_units"})
    unit = "bytes" if terms.limit is None else "tokens"
    seconds = report.computed_units / rate if rate and unit == "tokens" else None
    return {
        "data": source.name,
        "data_sha256": source.digest(),
        "mapping": dict(source.mapping),
        "judge": profile.id if profile else HOSTED,
        "max_context": profile.served_context if profile else None,
        "statement_maker": terms.maker,
        "unit": unit,
        **counts,
        f"prompt_{unit}": report.prompt_units,
        f"computed_{unit}": report.computed_units,
        "rate": rate,
        "seconds": None if seconds is None else round(seconds, 3),
    }


def _print(source: "Source", found: "dict[str, JsonValue]", report: "Report") -> None:
    from rich.console import Console
    from rich.text import Text

    from airjudge.cli.render import columns_line, facts_table, printable

    table = facts_table()
    for title, text in (*_counts(report), *_costs(found, report)):
        table.add_row(title, Text(printable(text)))
    console = Console(soft_wrap=True)
    console.print(Text(printable(f"{source.name}: sha256 {found['data_sha256']}")))
    console.print(Text(columns_line(source.mapping)))
    console.print(table)
    for long in report.too_long:
        console.print(Text(printable(f"{long.path}:{long.line}: {long.id}: {long.length} tokens do not fit")))
    for one in report.marked[:MARKS_SHOWN]:
        told = f"{one.suspicion.kind} in {one.suspicion.place}: {one.suspicion.excerpt}"
        console.print(Text(printable(f"{one.path}:{one.line}: {one.id}: {told}")))
    for bad in report.bad_lines:
        console.print(Text(printable(f"{bad.path}:{bad.line}: {bad.reason}")))
    if report.n_bad > len(report.bad_lines):
        console.print(f"and {report.n_bad - len(report.bad_lines)} more bad lines; --json lists all")
    if "note" in found:
        console.print(Text(printable(f"note: {found['note']}")))


def _counts(report: "Report") -> "Sequence[tuple[str, str]]":
    bad = f", {report.n_bad} bad lines" if report.n_bad else ""
    rows = [
        ("samples", f"{report.n_samples}{bad}"),
        ("statements", f"{report.n_statements}"),
        ("empty contexts", f"{report.n_empty_contexts} (recall 0 without a request)"),
    ]
    if report.n_undefined:
        rows.append(("no statement", f"{report.n_undefined} (recall undefined)"))
    if report.n_marked:
        kinds = ", ".join(f"{kind}: {count}" for kind, count in report.marks.items())
        rows.append(("marked", f"{report.n_marked} hold text that looks aimed at a judge ({kinds})"))
    if report.n_repeated:
        rows.append(("repeated", f"{report.n_repeated} say word for word what an earlier one says"))
    return rows


def _costs(found: "dict[str, JsonValue]", report: "Report") -> "Sequence[tuple[str, str]]":
    from airjudge.schema import Cost

    unit = found["unit"]
    shared = f"{report.computed_units} after sharing within samples"
    reads = f"; {found['judge']} reads {found['max_context']} tokens" if found["max_context"] else ""
    rows = [
        ("requests", f"{report.n_requests}"),
        ("prompts", f"{report.prompt_units} {unit}, {shared}"),
        ("longest prompt", f"{report.longest_prompt} {unit}{reads}"),
    ]
    if report.n_too_long:
        rows.append(("too long", f"{report.n_too_long} samples (score --long-contexts split reads them in parts)"))
    if isinstance(found["cost"], dict):
        by_bytes = " (4 bytes a token)" if unit == "bytes" else ""
        rows.append(("cost", f"about {Cost.model_validate(found['cost'])}, without reasons{by_bytes}"))
    if found["seconds"] is not None:
        rows.append(("time", f"{found['seconds']:.1f} s at {found['rate']:.0f} tokens a second"))
    return rows
