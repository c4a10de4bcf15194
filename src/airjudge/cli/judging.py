"""Which judge the options name, and what contradicts itself among them."""

import math
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airjudge.calibration import Calibration
    from airjudge.cli.progress import Display
    from airjudge.datasets import Source
    from airjudge.judge import Judge, JudgeSettings
    from airjudge.metrics import ContextRecall, GradedContextRecall
    from airjudge.schema import Price, ReasonsPolicy, StatementMaker
    from airjudge.weights import Progress

HOSTED: Final = "hosted"
"""Stands in the place of a profile for a judge at a provider."""


@dataclass(frozen=True, slots=True)
class Named:
    """What the options say of the judge; BadParameter if they contradict each other."""

    judge: str | None
    base_urls: tuple[str, ...]
    model: str | None
    api_key_env: str | None
    allow_remote: bool

    def __post_init__(self) -> None:
        """Refuse what lacks its other half."""
        if self.hosted and (len(self.base_urls) != 1 or not self.model):
            msg = "--judge hosted needs one --base-url, and --model"
            raise typer.BadParameter(msg)
        if not self.base_urls and (self.model or self.api_key_env or self.allow_remote):
            msg = "--model, --api-key-env and --allow-remote need --base-url"
            raise typer.BadParameter(msg)

    @property
    def hosted(self) -> bool:
        """Whether a provider is asked."""
        return self.judge == HOSTED

    @property
    def profile(self) -> str | None:
        """The profile that the user's own servers are said to run; None if none is said."""
        return self.judge if self.base_urls and not self.hosted else None


@contextmanager
def judge_of(named: Named, settings: "JudgeSettings", on_progress: "Progress") -> "Iterator[Judge]":
    """The judge that the options name, for the block."""
    from airjudge.judge import Judge

    if not named.base_urls:
        with Judge.find(named.judge, settings=settings, on_progress=on_progress) as found:
            yield found
        return
    key, remote = key_in(named.api_key_env), named.allow_remote
    if named.hosted:
        url, model = named.base_urls[0], named.model or ""
        yield Judge.hosted(url, model, api_key=key, allow_remote=remote, settings=settings)
    else:
        yield Judge.connect(named.base_urls, named.model, api_key=key, allow_remote=remote, settings=settings)


@contextmanager
def judged(
    named: Named,
    settings: "JudgeSettings",
    source: "Source",
    *,
    statements: "StatementMaker",
    reasons: "ReasonsPolicy",
    evidence: bool,
    first: int | None,
    shown: "Display",
    quiet: bool,
) -> "Iterator[ContextRecall | GradedContextRecall]":
    """Recall or grades by the judge that the options name, for the block; what they cost is told first."""
    from airjudge.cli.cost import tell_estimate
    from airjudge.metrics import ContextRecall, GradedContextRecall

    with judge_of(named, settings, shown.stage) as found:
        looked_at = None if quiet else shown
        tell_estimate(
            source, statements, settings, first=first, evidence=evidence, hosted=named.hosted, shown=looked_at
        )
        if settings.method == "opik":
            yield GradedContextRecall(found)
        else:
            yield ContextRecall(found, statements=statements, reasons=reasons, evidence=evidence)


def price_of(
    price_in: float | None, price_out: float | None, *, currency: str, max_cost: float | None
) -> "Price | None":
    """The price that the options tell; None if they tell none.

    Raises:
        BadParameter: If only a part of it is told, or a limit without it, or something is no number.
    """
    from airjudge.schema import Price

    if not all(math.isfinite(one) for one in (price_in, price_out, max_cost) if one is not None):
        msg = "--price-in, --price-out and --max-cost are finite numbers"
        raise typer.BadParameter(msg)
    if price_in is not None and price_out is not None:
        return Price(input=price_in, output=price_out, currency=currency)
    if price_in is not None or price_out is not None or currency or max_cost is not None:
        msg = "a price needs both --price-in and --price-out; --currency and --max-cost need a price"
        raise typer.BadParameter(msg)
    return None


def calibration_in(file: Path | None) -> "Calibration | None":
    """The calibration in a file, which is read before anything is started; None without a file."""
    if file is None:
        return None
    from airjudge.calibrate import read_calibration

    return read_calibration(file)


def concurrency_of(text: str) -> int | Literal["auto"]:
    """The number of requests in flight, or auto; BadParameter if it is neither."""
    if text == "auto":
        return "auto"
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 4096):
        msg = f"{text!r} is neither auto nor a number from 1 to 4096"
        raise typer.BadParameter(msg, param_hint="--concurrency")
    return int(text)


def key_in(variable: str | None) -> str | None:
    """The API key in an environment variable, if one is named; on a command line it would show in process lists."""
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        msg = f"the environment variable {variable} is not set"
        raise typer.BadParameter(msg, param_hint="--api-key-env")
    return key
