"""How judges agree with each other: all of them, and pair by pair."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from airjudge.compare import PEOPLE, Comparison
from airjudge.compare.records import Disagreement, JudgeFigures, Pair, PairSlice, RecallDifference, Ruling
from airjudge.report.joining import JoinedSample
from airjudge.report.markup import Element, Node, element
from airjudge.report.plots import bland_altman, spread
from airjudge.report.tables import facts, folded, note, number, section, span, table, with_span

_MATRIX: Final = "Agreement of judges: Cohen's kappa, raw agreement, statements that both ruled on"
_OPEN_PAIRS: Final = 3
"""Up to so many pairs are shown unfolded."""


def judges(comparison: Comparison, samples: Sequence[JoinedSample]) -> Element:
    """All judges in one table, each against each, then pair by pair."""
    open_pairs = {"open": ""} if len(comparison.pairs) <= _OPEN_PAIRS else {}
    pairs = [_pair(pair, comparison, samples, attributes=open_pairs) for pair in comparison.pairs]
    return section(
        "judges",
        "Judges",
        *(note(text) for text in _scores_only(comparison)),
        element("ul", {"class": "notes"}, *(element("li", {}, text) for text in comparison.notes)),
        _all_judges(comparison.judges),
        _matrix(comparison),
        element("p", {"class": "lede"}, _alpha(comparison)),
        *(part for one in comparison.judges for part in _repeats(one)),
        *_decisions(comparison),
        *pairs,
    )


def shown(judge: str) -> str:
    """A judge's name; people are called people."""
    return "people" if judge == PEOPLE else judge


def _scores_only(comparison: Comparison) -> Iterator[str]:
    if comparison.scores_only and not comparison.differing:
        yield "Sample scores alone are compared."
    elif comparison.scores_only:
        yield (
            f"The runs hold other statements in {comparison.n_differing:,} samples, for example "
            f"{', '.join(comparison.differing)}: sample scores alone are compared."
        )


def _all_judges(figures: Sequence[JudgeFigures]) -> Element:
    rows: list[tuple[Node, ...]] = [
        (
            shown(one.name),
            with_span(one.mean, one.ci95),
            with_span(one.micro_mean, one.micro_ci95),
            f"{one.statements.n_ruled:,} of {one.statements.n:,}",
            number(one.prevalence),
            "–" if not one.seconds else f"{one.seconds:,.0f} s",
            "–" if one.usage is None or not one.usage.requests else f"{one.usage.requests:,}",
        )
        for one in figures
    ]
    head = ("judge", "recall, mean of samples", "recall, all statements", "ruled on", "attributed", "time", "requests")
    return table("What each judge says", head, rows)


def _matrix(comparison: Comparison) -> Element:
    names = [one.name for one in comparison.judges]
    found = {frozenset((pair.a, pair.b)): pair for pair in comparison.pairs}
    rows: list[list[Node]] = [[shown(a), *(_cell(found.get(frozenset((a, b)))) for b in names)] for a in names]
    return table(_MATRIX, ("", *(shown(name) for name in names)), rows, kind="matrix")


def _cell(pair: Pair | None) -> Element:
    """What two judges have in common; a step of shade for each .2 of kappa, beside the number."""
    if pair is None:
        return element("span", {"class": "self"}, "–")
    step = 0 if pair.kappa is None else max(0, min(4, int(pair.kappa * 5)))
    small = f"{number(pair.agreement)} of {pair.n:,}"
    parts = (element("b", {}, number(pair.kappa)), " ", element("small", {}, small))
    return element("span", {"class": f"cell shade{step}"}, *parts)


def _alpha(comparison: Comparison) -> str:
    interval = "" if comparison.alpha_ci95 is None else f" ({span(comparison.alpha_ci95)})"
    return (
        f"Krippendorff's alpha of all judges is {number(comparison.alpha)}{interval}, "
        f"on {comparison.alpha_n:,} statements that at least two ruled on."
    )


def _repeats(one: JudgeFigures) -> Iterator[Element]:
    if one.repeats is not None:
        yield element("p", {"class": "lede"}, f"{shown(one.name)} against itself: {one.repeats}.")


def _decisions(comparison: Comparison) -> Iterator[Element]:
    if comparison.gate is not None:
        flips = "The judges decide differently." if comparison.gate.flips else "All judges decide alike."
        said = {True: "passes", False: "fails"}
        passed = [(shown(one.judge), number(one.value), said[one.passed]) for one in comparison.gate.outcomes]
        caption = f"Gate: mean recall of at least {comparison.gate.limit:g}. {flips}"
        yield table(caption, ("judge", "recall", "gate"), passed)
    if comparison.ranking is not None:
        ranking = comparison.ranking
        flips = "The order differs between judges." if ranking.flips else "All judges give one order."
        means = [(shown(one.judge), *(number(mean) for mean in one.means)) for one in ranking.judges]
        yield table(f"Mean recall by {ranking.column}. {flips}", ("judge", *ranking.systems), means)


def _pair(
    pair: Pair, comparison: Comparison, samples: Sequence[JoinedSample], *, attributes: dict[str, str]
) -> Element:
    title = f"{shown(pair.a)} and {shown(pair.b)}"
    parts: list[Node] = [facts(_scores(pair.recall))]
    if not comparison.scores_only:
        parts = [element("div", {"class": "columns"}, _two_by_two(pair), facts(_agreement(pair))), *parts]
    names = [one.name for one in comparison.judges]
    parts += [*_plot(pair, names, samples), *_slices(pair.slices), *_disagreements(pair, samples)]
    heading = element("summary", {}, element("h3", {"dir": "auto"}, title))
    return element("details", {"class": "pair", **attributes}, heading, *parts)


def _two_by_two(pair: Pair) -> Element:
    (no_no, no_yes), (yes_no, yes_yes) = pair.table
    a, b = shown(pair.a), shown(pair.b)
    rows = [
        (f"{a}: attributed", _count(yes_yes, agree=True), _count(yes_no, agree=False)),
        (f"{a}: not attributed", _count(no_yes, agree=False), _count(no_no, agree=True)),
    ]
    head = ("", f"{b}: attributed", f"{b}: not attributed")
    return table(f"The {pair.n:,} statements that both ruled on", head, rows, kind="two")


def _count(count: int, *, agree: bool) -> Element:
    return element("span", {"class": "agree" if agree else "disagree"}, f"{count:,}")


def _agreement(pair: Pair) -> Iterator[tuple[str, Node]]:
    yield "Raw agreement", with_span(pair.agreement, pair.agreement_ci95)
    yield "Cohen's kappa", with_span(pair.kappa, pair.kappa_ci95)
    yield "Gwet's AC1", with_span(pair.ac1, pair.ac1_ci95)
    shares = f"{number(pair.prevalence_a)} by {shown(pair.a)}, {number(pair.prevalence_b)} by {shown(pair.b)}"
    yield "Attributed", shares
    yield (
        "Do they lean differently",
        (
            f"{_p(pair.permutation_p)} by permuting samples; {_p(pair.mcnemar_p)} by McNemar's exact test, "
            "which takes statements for independent"
        ),
    )
    if pair.n_left_out:
        yield "Left out", f"{pair.n_left_out:,} statements that one of them did not rule on"


def _p(value: float | None) -> str:
    return "p < 0.001" if value is not None and value < 0.001 else f"p {number(value)}"


def _scores(recall: RecallDifference) -> Iterator[tuple[str, Node]]:
    means = f"{number(recall.mean_a)} less {number(recall.mean_b)}, {recall.n:,} samples in {recall.n_groups:,} groups"
    yield (
        "Difference of mean recall",
        element("span", {}, with_span(recall.difference, recall.ci95), element("small", {}, f" ({means})")),
    )
    words = {True: "equivalent", False: "not shown to be equivalent", None: "undefined"}[recall.equivalent]
    yield f"Within {recall.margin:g}", f"{words} (90 % interval {span(recall.ci90)}, {_p(recall.equivalence_p)})"
    yield "Correlation of sample scores", f"Pearson {number(recall.pearson)}, Spearman {number(recall.spearman)}"


def _plot(pair: Pair, names: Sequence[str], samples: Sequence[JoinedSample]) -> Iterator[Element]:
    scores = list(_paired(names.index(pair.a), names.index(pair.b), samples, people=_place_of_people(names)))
    found = spread(scores)
    if found is None:
        return
    limits = f"{found.low:+.3f} to {found.high:+.3f}"
    caption = (
        f"Recall of a sample by {shown(pair.a)} less that by {shown(pair.b)}, over their mean (Bland and Altman): "
        f"{found.n:,} samples, mean difference {found.mean:+.3f}, limits of agreement {limits}. "
        "A larger dot is more samples."
    )
    yield element("figure", {}, element("figcaption", {"dir": "auto"}, caption), bland_altman(scores, found))


def _place_of_people(names: Sequence[str]) -> int | None:
    return names.index(PEOPLE) if PEOPLE in names else None


def _paired(a: int, b: int, samples: Iterable[JoinedSample], *, people: int | None) -> Iterator[tuple[float, float]]:
    """Scores of samples that both judges have one for."""
    for sample in samples:
        first, second = (sample.score_by_people if at == people else sample.score_by(at) for at in (a, b))
        if first is not None and second is not None:
            yield first, second


def _slices(slices: Sequence[PairSlice]) -> Iterator[Element]:
    if slices:
        head = ("slice", "statements", "agreement", "kappa", "AC1", "difference of recall")
        yield folded("Slices", table("Agreement by slice", head, map(_slice_row, slices)))


def _slice_row(one: PairSlice) -> tuple[str, ...]:
    figures = (one.agreement, one.kappa, one.ac1, one.recall_difference)
    return f"{one.column} = {one.value}", f"{one.n:,}", *(number(figure) for figure in figures)


def _disagreements(pair: Pair, samples: Sequence[JoinedSample]) -> Iterator[Element]:
    if not pair.disagreements:
        return
    place = {sample.id: sample.number for sample in reversed(samples)}
    rows = [(_link(one, place), one.text, _ruling(one.a), _ruling(one.b)) for one in pair.disagreements]
    head = ("sample", "statement", shown(pair.a), shown(pair.b))
    title = f"Disagreements, the most confident {len(rows):,} of {pair.n_disagreements:,}"
    yield folded(title, table(title, head, rows, kind="disagreements"))


def _link(one: Disagreement, place: dict[str, int]) -> Node:
    """A link to the sample, which opens it if it is in the report."""
    return element("a", {"href": f"#sample-{place[one.sample]}"}, one.sample) if one.sample in place else one.sample


def _ruling(ruling: Ruling) -> Element:
    kind, mark, word = ("yes", "✓", "attributed") if ruling.attributed else ("no", "✗", "not attributed")
    probability = "" if ruling.probability is None else f" {ruling.probability:.2f}"
    sign = element("span", {"class": "mark", "aria-hidden": "true"}, mark)
    return element("span", {"class": f"chip {kind}"}, sign, f"{word}{probability}")
