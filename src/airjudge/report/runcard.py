"""The run card: all that makes a run's scores what they are, and what they took."""

import json
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from airjudge.report.markup import Element, Node, element
from airjudge.report.overview import Summed
from airjudge.report.tables import facts, folded, section, table
from airjudge.run import RunState
from airjudge.schema import Rates, ServerUse, Usage
from airjudge.summary import rates


def run_cards(runs: Sequence[Summed]) -> Element:
    """A card for each run."""
    return section("runs", "Run card" if len(runs) == 1 else "Run cards", *(_card(one) for one in runs))


def _card(one: Summed) -> Element:
    state = one.run.state
    return element(
        "article",
        {"class": "card"},
        element("h3", {"dir": "auto"}, one.name),
        element("p", {"class": "signature", "dir": "auto"}, str(state.signature)),
        facts(_made_of(state)),
        facts(_took(one)),
        folded("Signature, field by field", facts(_fields(state.signature.model_dump()))),
        folded("Settings", facts(_fields(_without(state.settings, "calibration")))),
        _calibration(state),
        folded("Columns", facts(_fields(state.mapping))),
        _servers(state.servers),
        _starts(state),
        folded("Files", facts(_fields(state.exports))) if state.exports else None,
    )


def _made_of(state: RunState) -> Iterator[tuple[str, Node]]:
    yield "State", state.state
    yield "Data", state.data
    yield "SHA-256 of the data", element("code", {}, state.data_sha256)
    if state.statements_by is not None:
        yield "Claims written by", state.statements_by
    yield "Started", f"{state.started:%Y-%m-%d %H:%M:%S} {state.started.tzname() or ''}".strip()
    yield "Versions", ", ".join(f"{name} {version}" for name, version in state.versions.items())


def _took(one: Summed) -> Iterator[tuple[str, Node]]:
    state = one.run.state
    n_starts = f"{len(state.starts)} start{'s' * (len(state.starts) != 1)}"
    yield (
        "Time",
        f"{state.seconds:,.1f} s in {n_starts}" if state.seconds else "not measured",
    )
    if state.usage.requests:
        yield "Tokens", _tokens(state.usage)
    speed = rates(one.summary, state.usage, seconds=state.seconds)
    if speed is not None:
        yield "A second", _speed(speed)
    if state.cost is not None:
        yield "Cost", str(state.cost)
    if state.n_taken_over:
        yield "Taken over", f"verdicts of {state.n_taken_over:,} samples from {state.settings.get('fork')}"


def _speed(speed: Rates) -> str:
    computed = _rate(speed.computed_prompt_tokens)
    verdicts = f"{_rate(speed.verdicts)} verdicts, " if speed.verdicts else ""
    return f"{verdicts}{_rate(speed.samples)} samples, {computed} prompt tokens computed"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _tokens(usage: Usage) -> str:
    return (
        f"{usage.prompt_tokens:,} in prompts ({usage.cached_tokens:,} from the cache), "
        f"{usage.completion_tokens:,} generated, {usage.requests:,} requests"
    )


def _fields(values: Mapping[str, object]) -> Iterator[tuple[str, Node]]:
    for name, value in values.items():
        yield name, value if isinstance(value, str) else _as_text(value)


def _as_text(value: object) -> str:
    if value is None or value in ([], ()):
        return "none"
    return json.dumps(value, ensure_ascii=False, default=str)


def _without(values: Mapping[str, JsonValue], name: str) -> dict[str, JsonValue]:
    return {key: value for key, value in values.items() if key != name}


def _calibration(state: RunState) -> Element | None:
    """What the probabilities and the threshold were calibrated by."""
    if state.calibration is None:
        return None
    return folded("Calibration", facts(_fields(state.calibration.model_dump(mode="json"))))


def _servers(servers: Sequence[ServerUse]) -> Element | None:
    if not servers:
        return None
    rows = [
        (one.base_url, f"{one.usage.requests:,}", _faults(one), f"{one.absences:,}", f"{one.in_flight:,}")
        for one in servers
    ]
    head = ("server", "requests", "faults", "absences", "in flight at the end")
    return folded("Servers", table("Servers of the last start", head, rows))


def _faults(server: ServerUse) -> str:
    return ", ".join(f"{kind}: {count}" for kind, count in server.faults.items()) or "none"


def _starts(state: RunState) -> Element:
    rows = [
        (f"{one.started:%Y-%m-%d %H:%M:%S}", one.runner, f"{one.seconds:,.1f} s", f"{one.usage.requests:,}", one.ended)
        for one in state.starts
    ]
    return folded("Starts", table("Starts of the run", ("when", "where", "time", "requests", "ended"), rows))
