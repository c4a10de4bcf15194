"""What a report says first of each run: recall with its interval, coverage, distribution, slices, failures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final, Self

from airjudge.errors import AirjudgeError
from airjudge.metrics import IDBasedContextRecall, NonLLMContextRecall
from airjudge.report.charts import N_BINS, histogram, interval, score_bins, stacked
from airjudge.report.joining import JoinedSample
from airjudge.report.markup import Element, Node, element
from airjudge.report.tables import facts, folded, note, number, section, span, table, with_span
from airjudge.run import OpenedRun, summed_up
from airjudge.schema import ChunkMeans, ScoredSample, Slice, Summary
from airjudge.summary import NONE

N_WORST: Final = 10
N_MARKED: Final = 50
_BY_JUDGE: Final = (
    "Recall of a sample is the share of the reference's statements that the retrieved contexts support, as the judge "
    "rules."
)
_OTHERWISE: Final = {
    NonLLMContextRecall.name: "Recall of a sample is the share of its reference contexts that a retrieved context is "
    "like, letter by letter; no judge rules.",
    IDBasedContextRecall.name: "Recall of a sample is the share of its reference context ids that were retrieved; no "
    "judge rules.",
    "opik": "The grade of a sample is how well the response says what the expected answer says, by what the contexts "
    "tell: one number of the judge's, in steps of 0.1. It is no share of statements, and not comparable with recall.",
}
_INTERVAL: Final = "The interval comes from resampling whole groups; without groups, samples."


@dataclass(frozen=True, slots=True)
class Summed:
    """A run with its summary, of an unfinished one that of the samples that are done."""

    run: OpenedRun
    summary: Summary

    @classmethod
    def of(cls, run: OpenedRun) -> Self:
        """A run with its summary, computed where it has none yet."""
        by = run.state.settings.get("by")
        columns = [str(column) for column in by] if isinstance(by, list) else []
        band = run.state.calibration.abstain if run.state.calibration else None
        return cls(run, run.state.summary or summed_up(run.samples, by=columns, band=band))

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        return self.run.name

    @property
    def is_graded(self) -> bool:
        """Whether its scores are grades, not recall."""
        return self.run.state.signature.is_graded


def headline(runs: Sequence[Summed]) -> Element:
    """Mean recall of each run, with what it is a mean of."""
    parts: list[Node] = [_panel(one, alone=len(runs) == 1) for one in runs]
    states = [note(_unfinished(one.run)) for one in runs if one.run.state.state != "finished"]
    meant = dict.fromkeys(_OTHERWISE.get(one.run.state.signature.method, _BY_JUDGE) for one in runs)
    definition = element("p", {"class": "lede"}, " ".join([*meant, _INTERVAL]))
    title = "Grades" if all(one.is_graded for one in runs) else "Context recall"
    return section("recall", title, *states, element("div", {"class": "panels"}, *parts), definition)


def _panel(one: Summed, *, alone: bool) -> Element:
    summary = one.summary
    figure = [
        element("p", {"class": "big"}, number(summary.mean)),
        element("p", {"class": "under"}, _under(summary)),
        element("div", {"class": "range"}, interval(summary.mean, summary.ci95), _ends()),
    ]
    name = None if alone else element("h3", {"dir": "auto"}, one.name)
    counts = facts(_counts(one))
    return element(
        "article",
        {"class": "panel"},
        name,
        element("div", {"class": "figure-side"}, *figure),
        coverage(summary),
        counts,
    )


def _under(summary: Summary) -> str:
    if summary.mean is None:
        return "no sample has a score"
    scored = f"mean over {summary.n_scored:,} scored samples"
    return f"95 % interval {span(summary.ci95)}, {scored}" if summary.ci95 else f"{scored}, too few for an interval"


def _ends() -> Element:
    return element(
        "p", {"class": "ends", "aria-hidden": "true"}, *(element("span", {}, at) for at in ("0", "0.5", "1"))
    )


def coverage(summary: Summary) -> Element:
    """How many samples were scored, are undefined, failed: a bar, and the same in words."""
    parts = (("scored", summary.n_scored), ("undefined", summary.n_undefined), ("failed", summary.n_failed))
    shown = [(kind, count) for kind, count in parts if count or kind == "scored"]
    words = [element("span", {"class": f"key {kind}"}, f"{count:,} {kind}") for kind, count in shown]
    share = "" if summary.sample_coverage is None else f", {summary.sample_coverage:.1%} of them scored"
    told = element("p", {}, f"{summary.n:,} samples{share}: ", *_between(words))
    return element("div", {"class": "coverage"}, stacked(parts), told)


def _between(words: Sequence[Node]) -> Iterator[Node]:
    for place, word in enumerate(words):
        yield from ((", ", word) if place else (word,))


def _counts(one: Summed) -> Iterator[tuple[str, Node]]:
    summary = one.summary
    if not one.is_graded:
        yield "All statements", with_span(summary.micro_mean, summary.micro_ci95)
    if summary.n_failed:
        yield "Bounds with the failed ones", span(summary.bounds)
    if not one.is_graded:
        known = summary.n_verdicts + summary.n_unjudged
        share = "" if summary.statement_coverage is None else f" ({summary.statement_coverage:.1%})"
        parts = f"; of {summary.n_in_parts:,} the contexts were read in parts" if summary.n_in_parts else ""
        yield "Statements with a verdict", f"{summary.n_verdicts:,} of {known:,}{share}{parts}"
    if summary.echoes is not None:
        told = summary.echoes
        share = "" if told.coverage is None else f" ({told.coverage:.1%})"
        n_told = told.n_once + told.n_split + told.n_repeated
        how = f"{told.n_split:,} of them in parts and {told.n_repeated:,} repeatedly"
        items = f"{told.n_invented:,} of {told.n_items:,} items are no statement"
        yield "Told by the single call", f"{n_told:,} of {n_told + told.n_missing:,} statements{share}, {how}; {items}"
    if summary.abstained is not None:
        left = summary.abstained
        where = f"{left.n_statements:,} verdicts of probability {span(left.band)}"
        yield "Left to people", f"{where}, which allow a recall of {span(left.bounds)}"
    if summary.suspected is not None:
        told_marks = summary.suspected
        without = f"mean without them {number(told_marks.mean_without)}"
        yield "Marked", f"{told_marks.n_samples:,} samples hold text that looks aimed at the judge; {without}"
    if summary.chunks is not None:
        yield from _worths(summary.chunks)
    if summary.n_empty_contexts:
        what = "grade" if one.is_graded else "recall"
        yield "Empty retrievals", f"{summary.n_empty_contexts:,}, {what} 0 without a question"


def _worths(told: ChunkMeans) -> Iterator[tuple[str, Node]]:
    """What the retrieved contexts are worth, by what each supports alone."""
    n_unknown = told.n_supported - told.n_alone - told.n_together
    unknown = f", {n_unknown:,} unknown" if n_unknown else ""
    alone = f"{told.n_alone:,} by one context alone, {told.n_together:,} only together{unknown}"
    yield "Supported statements", f"{told.n_supported:,}: {alone}"
    yield "Contexts that support a statement", with_span(told.precision, told.precision_ci95)
    yield "Average precision of their order", with_span(told.average_precision, told.average_precision_ci95)
    yield "Reciprocal rank of the first", with_span(told.reciprocal_rank, told.reciprocal_rank_ci95)
    if told.n_without:
        yield "Samples without these figures", f"{told.n_without:,}: nothing was retrieved, or a question failed"


def _unfinished(run: OpenedRun) -> str:
    return f"The run {run.name} is {run.state.state}, not finished: the figures are of the samples that are done."


def distribution(runs: Sequence[Summed]) -> Element:
    """How the recall of samples is spread, a drawing and a table for each run."""
    spreads = element("div", {"class": "spreads"}, *(_spread(one, len(runs)) for one in runs))
    return section("distribution", "Distribution", spreads)


def _spread(one: Summed, n_runs: int) -> Element:
    counts = score_bins(sample.score for sample in one.run.samples if sample.score is not None)
    edges = [f"{at / N_BINS:.1f}" for at in range(N_BINS + 1)]
    names = ["exactly 0", *(f"{low} to {high}" for low, high in pairwise(edges)), "exactly 1"]
    caption = "Samples by recall" if n_runs == 1 else f"Samples by recall, {one.name}"
    rows = [(name, f"{count:,}") for name, count in zip(names, counts, strict=True)]
    told = element("figcaption", {"dir": "auto"}, f"{caption}. The outer bars are exactly 0 and exactly 1.")
    numbers = folded("The same in numbers", table(caption, ("recall", "samples"), rows, kind="numbers"))
    return element("figure", {}, told, histogram(counts), numbers)


def slices(runs: Sequence[Summed]) -> Element | None:
    """Recall by each column that a run was sliced by; None if none was."""
    parts = [part for one in runs for part in _columns(one, len(runs))]
    return section("slices", "Slices", *parts) if parts else None


def _columns(one: Summed, n_runs: int) -> Iterator[Element]:
    for column, found in groupby(one.summary.slices, key=lambda part: part.column):
        parts = list(found)
        where = "" if n_runs == 1 else f", {one.name}"
        if all(part.value == NONE for part in parts):
            yield note(f"No sample has a column {column}{where}.")
            continue
        head = ("value", "mean of samples", "0 to 1", "all statements", "scored", "failed")
        yield table(f"Recall by {column}{where}", head, map(_slice_row, parts), kind="slices")


def _slice_row(part: Slice) -> tuple[Node, ...]:
    micro = "undefined" if part.micro_mean is None else f"{part.micro_mean:.3f} of {part.n_statements:,}"
    drawn = element("div", {"class": "spark"}, interval(part.mean, part.ci95))
    scored = f"{part.n_scored:,} of {part.n:,}"
    return part.value, with_span(part.mean, part.ci95), drawn, micro, scored, f"{part.n_failed:,}"


def failures(runs: Sequence[Summed]) -> Element | None:
    """Samples without a score because something failed, by kind; None if there are none."""
    kinds = _kinds()
    rows = [
        (kind, *([one.name] if len(runs) > 1 else []), f"{count:,}", kinds.get(kind, ""))
        for one in runs
        for kind, count in one.summary.failures.items()
    ]
    if not rows:
        return None
    head = ("kind", *(["run"] if len(runs) > 1 else []), "samples", "what it means")
    return section("failures", "Failures", table("Failed samples by kind", head, rows))


def _kinds() -> dict[str, str]:
    """What each kind of failure means: the sentences that our errors say of themselves."""
    found: dict[str, str] = {}
    left: list[type[AirjudgeError]] = [AirjudgeError]
    while left:
        one = left.pop()
        left += one.__subclasses__()
        first = (one.__doc__ or "").partition("\n")[0]
        found.setdefault(one.kind, f"{first} {one.hint}".strip())
    return found


def marked(samples: Sequence[JoinedSample]) -> Element | None:
    """The first samples with a text that looks as if it were aimed at the judge; None if there is none."""
    found = [(one, suspicion) for one in samples for suspicion in one.suspicions]
    if not found:
        return None
    rows = [
        (
            _link(one),
            told.kind.replace("_", " "),
            element("code", {}, told.place),
            element("q", {"dir": "auto"}, told.excerpt),
        )
        for one, told in found[:N_MARKED]
    ]
    left = len(found) - len(rows)
    more = [note(f"{left:,} more marks are not listed here.")] if left else []
    told = note(
        "They are scored as they are: a mark changes no score, and a text without one may be aimed at the judge too."
    )
    head = ("sample", "kind", "place", "what stands there")
    return section("marked", "Marked samples", told, table("Texts that look aimed at the judge", head, rows), *more)


def worst(samples: Sequence[JoinedSample], names: Sequence[str]) -> Element | None:
    """The samples with the lowest recall, and the first statement that each misses; None if nothing is missed."""
    missed = [one for one in samples if one.lowest is not None and one.lowest < 1][:N_WORST]
    if not missed:
        return None
    by = "" if len(names) == 1 else ", by the lowest recall that a run gives"
    rows = [(_link(one), number(one.lowest), _counted(one), _first_missed(one)) for one in missed]
    head = ("sample", "recall", "missed", "first missed statement")
    if any(_record_with_lowest(one).reason for one in missed):
        head = ("sample", "score", "missed", "first missed statement, or the judge's reason")
    return section("worst", "Worst samples", table(f"The {len(missed)} lowest{by}", head, rows, kind="worst"))


def _link(sample: JoinedSample) -> Element:
    return element("a", {"href": f"#sample-{sample.number}", "dir": "auto"}, _short(sample.id, 60))


def _counted(sample: JoinedSample) -> str:
    return f"{len(_missed(sample))} of {len(sample.statements)}" if sample.statements else "–"


def _first_missed(sample: JoinedSample) -> str:
    why = _record_with_lowest(sample).reason or "no context was retrieved"
    return _short(next(iter(_missed(sample)), why), 200)


def _record_with_lowest(sample: JoinedSample) -> ScoredSample:
    return next(record for record in sample.records if record is not None and record.score == sample.lowest)


def _missed(sample: JoinedSample) -> list[str]:
    """Statements that the run with the lowest recall finds missed."""
    place = next(at for at, record in enumerate(sample.records) if record is not None and record.score == sample.lowest)
    return [one.text for one in sample.statements if (verdict := one.verdicts[place]) and verdict.attributed is False]


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
