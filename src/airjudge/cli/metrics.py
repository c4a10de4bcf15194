"""Which metric the options of `airjudge score` name, and which of the others it has no use for."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from airjudge.metrics import IDBasedContextRecall, NonLLMContextRecall


class MetricName(StrEnum):
    """What is scored."""

    context_recall = "context_recall"
    non_llm_context_recall = "non_llm_context_recall"
    id_based_context_recall = "id_based_context_recall"


class DistanceName(StrEnum):
    """What similarity is measured by; the values of `similarity.Distance`."""

    levenshtein = "levenshtein"
    hamming = "hamming"
    jaro = "jaro"
    jaro_winkler = "jaro_winkler"


Metric = Annotated[
    MetricName,
    typer.Option(
        help="Context recall of the reference, by a judge; or without one, of reference_contexts by likeness to "
        "retrieved_contexts, or of reference_context_ids among retrieved_context_ids."
    ),
]
Distance = Annotated[DistanceName, typer.Option(help="What likeness is one minus, for non_llm_context_recall.")]
Threshold = Annotated[float, typer.Option(min=0, max=1, metavar="X", help="A reference context more alike is found.")]

_OF_LIKENESS: Final = frozenset({"distance", "threshold"})
_OF_JUDGES: Final = frozenset({
    "judge", "base_url", "model", "api_key_env", "allow_remote", "method", "statements", "reasons", "evidence",
    "long_contexts", "concurrency", "timeout", "wait_for_server", "calibration", "requests_per_minute",
    "tokens_per_minute", "price_in", "price_out", "currency", "max_cost",
})  # fmt: skip
_USELESS: Final = {
    MetricName.context_recall: _OF_LIKENESS,
    MetricName.non_llm_context_recall: _OF_JUDGES,
    MetricName.id_based_context_recall: _OF_JUDGES | _OF_LIKENESS,
}
_OF_STATEMENTS: Final = frozenset({
    "statements", "statements_from", "reasons", "evidence", "calibration", "fork", "long_contexts",
})  # fmt: skip
_WHY: Final = {
    MetricName.context_recall: "does not go by likeness",
    MetricName.non_llm_context_recall: "asks no judge",
    MetricName.id_based_context_recall: "compares ids and asks no judge",
}


def refuse_useless_options(context: typer.Context, metric: MetricName, method: str) -> None:
    """Refuse what was given and would change nothing.

    Raises:
        BadParameter: With the name of the option.
    """
    useless, why = _given(context, _USELESS[metric]), f"--metric {metric.value} {_WHY[metric]}"
    if not useless and method == "opik":
        useless = _given(context, _OF_STATEMENTS)
        why = "--method opik grades a response, with a reason, and rules on no statement"
    if useless:
        msg = f"{why}: leave {', '.join(useless)} out"
        raise typer.BadParameter(msg)


def _given(context: typer.Context, names: "AbstractSet[str]") -> list[str]:
    """The options of these parameters that stand on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    return [parameter.opts[0] for parameter in context.command.params if parameter.name in names & given]


def metric_without_judge(
    metric: MetricName, distance: DistanceName, *, threshold: float
) -> "NonLLMContextRecall | IDBasedContextRecall | None":
    """The metric of that name; None for the one that needs a judge.

    Raises:
        ExtraMissing: If it needs a package that is not installed.
    """
    from airjudge.metrics import IDBasedContextRecall, NonLLMContextRecall

    if metric is MetricName.non_llm_context_recall:
        return NonLLMContextRecall(threshold=threshold, distance=distance.value)
    return IDBasedContextRecall() if metric is MetricName.id_based_context_recall else None
