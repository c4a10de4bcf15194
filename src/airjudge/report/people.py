"""How judges do where people have ruled: accuracy, reliability of probabilities, corrected recall."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from airjudge.calibration.reliability import Bin, brier_parts, calibration_error, reliability
from airjudge.compare import Comparison
from airjudge.compare.records import Accuracy, CorrectedRecall, JudgeFigures
from airjudge.report.joining import JoinedSample
from airjudge.report.markup import Element, Node, element
from airjudge.report.plots import reliability_diagram
from airjudge.report.tables import folded, note, number, section, table, with_span

_HEAD: Final = (
    "judge", "statements", "balanced accuracy", "sensitivity", "specificity", "F1", "kappa", "AUC",
)  # fmt: skip
_PASSED: Final = {True: "It may stand in for one of them.", False: "It may not stand in for one of them.", None: ""}


def people(comparison: Comparison, samples: Sequence[JoinedSample]) -> Element | None:
    """Every judge against the labels; None without labels."""
    figures = [one for one in comparison.judges if one.people is not None]
    if not figures:
        return None
    rows = [_row(one.name, one.people.all) for one in figures if one.people]
    return section(
        "people",
        "Against people",
        table("All labelled statements", _HEAD, rows, kind="stacked-figures"),
        *_without_partial(figures),
        element("div", {"class": "panels"}, *_reliability(comparison, samples)),
        *_corrected(figures),
        *(part for one in figures for part in _annotators(one)),
    )


def _row(name: str, one: Accuracy) -> tuple[Node, ...]:
    return (
        name,
        f"{one.n:,} ({one.n_positive:,} attributed)",
        with_span(one.balanced_accuracy, one.balanced_accuracy_ci95),
        with_span(one.sensitivity, one.sensitivity_ci95),
        with_span(one.specificity, one.specificity_ci95),
        with_span(one.f1, one.f1_ci95),
        with_span(one.kappa, one.kappa_ci95),
        with_span(one.auc, one.auc_ci95),
    )


def _without_partial(figures: Sequence[JudgeFigures]) -> Iterator[Element]:
    rows = [_row(one.name, one.people.without_partial) for one in figures if one.people and one.people.without_partial]
    if rows:
        caption = "The same without statements that are supported in part"
        yield folded(caption, table(caption, _HEAD, rows, kind="stacked-figures"))


def _reliability(comparison: Comparison, samples: Sequence[JoinedSample]) -> Iterator[Element]:
    for place, judge in enumerate(comparison.judges):
        if judge.people is not None:
            yield _diagram(judge.name, *_labelled(place, samples))


def _labelled(place: int, samples: Sequence[JoinedSample]) -> tuple[list[float], list[bool]]:
    """Probabilities of a judge on the statements that people labelled, and the labels."""
    pairs = [
        (verdict.probability, one.label.attributed)
        for sample in samples
        for one in sample.statements
        if one.label is not None and one.label.attributed is not None and (verdict := one.verdicts[place]) is not None
    ]
    known = [(probability, label) for probability, label in pairs if probability is not None]
    return [probability for probability, _ in known], [label for _, label in known]


def _diagram(name: str, probabilities: list[float], labels: list[bool]) -> Element:
    heading = element("h3", {"dir": "auto"}, f"Reliability of {name}")
    if not probabilities:
        return element("article", {"class": "panel"}, heading, note("It gives no probabilities."))
    p, y = np.array(probabilities), np.array(labels, dtype=bool)
    bins, brier = reliability(p, y), brier_parts(p, y)
    caption = (
        f"{len(probabilities):,} statements in {len(bins)} bins: what people say, over the probability that the judge "
        f"gives. On the diagonal both are the same. Expected calibration error {number(calibration_error(p, y))}, "
        f"Brier score {number(None if brier is None else brier.score)}."
    )
    return element(
        "article",
        {"class": "panel"},
        heading,
        element("figure", {}, reliability_diagram(bins), element("figcaption", {}, caption), _in_numbers(bins)),
    )


def _in_numbers(bins: Sequence[Bin]) -> Element:
    rows = [
        (f"{one.low:.3f} to {one.high:.3f}", f"{one.n:,}", number(one.mean_probability), number(one.share_positive))
        for one in bins
    ]
    head = ("probability", "statements", "mean probability", "share by people")
    return folded("The same in numbers", table("Reliability by bin", head, rows, kind="numbers"))


def _corrected(figures: Sequence[JudgeFigures]) -> Iterator[Element]:
    rows = [_corrected_row(one.name, words, found) for one in figures for words, found in _corrections(one)]
    if rows:
        caption = "Recall corrected for the judge's errors, from labelled samples drawn at random"
        yield table(caption, ("judge", "as judged", "corrected", "labelled", "groups"), rows)


def _corrected_row(name: str, words: str, found: CorrectedRecall) -> tuple[Node, ...]:
    corrected = with_span(found.value, found.ci95)
    return f"{name}, {words}", number(found.raw), corrected, f"{found.n_labelled:,}", f"{found.n_groups:,}"


def _corrections(one: JudgeFigures) -> Iterator[tuple[str, CorrectedRecall]]:
    if one.people is not None and one.people.corrected is not None:
        yield "all statements (Rogan and Gladen)", one.people.corrected.micro
        yield "mean of samples (prediction-powered)", one.people.corrected.macro


def _annotators(one: JudgeFigures) -> Iterator[Element]:
    test = one.people.annotators if one.people else None
    if test is None:
        return
    told = (
        f"{one.name} among {test.n_annotators} annotators, on {test.n:,} statements: "
        f"winning rate {number(test.winning_rate)}, advantage {number(test.advantage)} at epsilon {test.epsilon:g}. "
        f"{_PASSED[test.passed]}"
    )
    assumptions = element("ul", {}, *(element("li", {}, text) for text in test.assumptions))
    yield element("p", {"class": "lede"}, told)
    yield folded("What this test assumes", assumptions)
