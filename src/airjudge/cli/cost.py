"""What asking a judge about a data set will cost, told before it is asked."""

from typing import Final

from airjudge import prompts
from airjudge.check import Encoder, Report, Terms, Utf8, check_data
from airjudge.cli.progress import Display
from airjudge.cli.render import print_line
from airjudge.datasets import Source
from airjudge.errors import WeightsError
from airjudge.judge import JudgeSettings
from airjudge.judge.allowance import BYTES_PER_TOKEN
from airjudge.profiles import load_profile
from airjudge.schema import Cost, Pointwise, Price, Record, StatementMaker, Usage
from airjudge.weights import JudgeTokenizer, Progress, silent

OBJECT_TOKENS: Final = 8
"""Tokens of a reply such as {"attributed": 1}."""
BY_BYTES: Final = f"bytes / {BYTES_PER_TOKEN}"
"""How tokens are counted where nobody has the tokenizer."""


class Estimate(Record):
    """What a verdict on each statement will cost; `counted` says how prompts were counted, `of` in what data.

    `beside` is what is left out, or taken at its most.
    """

    usage: Usage
    cost: Cost | None
    counted: str
    of: str = "the whole data set"
    beside: str = "without reasons"

    def line(self, max_cost: float | None) -> str:
        """The estimate for a person, and whether it goes beyond what the run may cost."""
        usage = self.usage
        told = (
            f"cost: about {self.cost} for {self.of}, {self.beside}: {usage.requests:,} requests, "
            f"{usage.prompt_tokens:,} tokens in prompts ({self.counted}), {usage.completion_tokens:,} generated"
        )
        beyond = max_cost is not None and self.cost is not None and self.cost.amount > max_cost
        return f"{told}; the run will stop at --max-cost {max_cost:g}" if beyond else told


def tell_estimate(
    source: Source,
    maker: StatementMaker,
    settings: JudgeSettings,
    *,
    first: int | None,
    evidence: bool,
    hosted: bool,
    shown: Display | None,
) -> None:
    """Tell a person what a run over a data set, or its `first` samples, will cost, if there is a price and a reader."""
    if shown is None:
        return
    found = estimate(source, maker, settings, first=first, evidence=evidence, hosted=hosted, on_progress=shown.stage)
    if found is not None:
        print_line(found.line(settings.max_cost))


def estimate(
    source: Source,
    maker: StatementMaker,
    settings: JudgeSettings,
    *,
    first: int | None = None,
    evidence: bool = False,
    hosted: bool,
    on_progress: Progress = silent,
) -> Estimate | None:
    """Count a data set's prompts as `check` does; None without a price, and where replies have no known length."""
    if settings.price is None or settings.method != "pointwise":
        return None
    encoder, counted = _encoder(settings.profile)
    form = prompts.as_object if hosted else prompts.plain
    terms = Terms(encoder, maker, pointwise=_pointwise(settings), form=form, max_listed=0, evidence=evidence)
    report = check_data(source, terms, first=first, on_progress=on_progress)
    found = priced(report, settings.price, terms, counted=counted)
    if first is None or report.n_samples + report.n_bad < first:
        return found
    return found.model_copy(update={"of": "the first sample" if first == 1 else f"the first {first:,} samples"})


def priced(report: Report, price: Price, terms: Terms, *, counted: str = BY_BYTES) -> Estimate:
    """What the prompts of a report will cost, with a verdict on each; `counted` says how they were counted."""
    bytes_each = BYTES_PER_TOKEN if isinstance(terms.encoder, Utf8) else 1
    usage = Usage(
        requests=report.n_requests,
        prompt_tokens=report.prompt_units // bytes_each,
        completion_tokens=report.n_requests * (1 if terms.form is prompts.plain else OBJECT_TOKENS),
    )
    return Estimate(usage=usage, cost=price.cost(usage), counted=counted, beside=beside(terms))


def beside(terms: Terms) -> str:
    """What an estimate leaves out, and what it takes at its most."""
    return "without reasons, with evidence as if all were supported" if terms.evidence else "without reasons"


def _encoder(profile: str | None) -> tuple[Encoder, str]:
    """The judge's tokenizer where it is here, else bytes; and how that counts."""
    if profile is None:
        return Utf8(), BY_BYTES
    try:
        return JudgeTokenizer(load_profile(profile)), f"as {profile} counts"
    except WeightsError:
        return Utf8(), BY_BYTES


def _pointwise(settings: JudgeSettings) -> Pointwise:
    told = load_profile(settings.profile).pointwise if settings.profile else None
    return settings.pointwise or told or Pointwise()
