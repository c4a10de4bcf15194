"""Claims that a judge writes out of a reference, held against those that people wrote.

    python -m benchmarks.claims.run                     # the default judge; what is not scored yet is asked
    python -m benchmarks.claims.run --table             # what was measured last; nothing is asked

Each set is scored three times by the same judge: by the statements of people (`--statements given`), by sentences,
and by the claims that the judge writes (`--statements claims`). Runs are kept below --runs: one that was stopped goes
on, one that is finished is read. A human claim is *covered* by a made statement whose words overlap with it by an F1
of at least .5 (and, stricter, .7), one to one. A statement *repeats* if .9 of its words are in another of the same
reference. It *leans* on its neighbours if it opens with a pronoun or demonstrative (English). Intervals are 95 %,
over groups.
"""

import argparse
import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from airjudge import agreement
from airjudge.agreement import percentile_interval
from airjudge.cli.render import stages
from airjudge.datasets import open_source
from airjudge.datasets.labels import read_labels
from airjudge.evidence import words_of
from airjudge.judge import Judge
from airjudge.labels import Labels
from airjudge.metrics import ContextRecall
from airjudge.run import OpenedRun, RunSettings, open_run, score_dataset
from airjudge.schema import Record, ScoredSample, StatementMaker, Usage
from benchmarks.agreement.methods import human_recall
from benchmarks.agreement.run import DATA, Interval, is_finished
from benchmarks.matching import one_to_one

RESULTS: Final = Path(__file__).parents[1] / "results" / "claims.json"
SETS: Final[Mapping[str, int | None]] = {"wice_subclaims": None, "factcheck_bench_responses": 12}
"""Sets with claims that people wrote out of a longer reference; of the second the first samples, which fit an hour."""
MAKERS: Final[tuple[StatementMaker, ...]] = ("given", "sentences", "claims")
STRICT_F1: Final = 0.7
REPEATED: Final = 0.9
N_RESAMPLES: Final = 2000
SEED: Final = 20_261_201

_LEANS: Final = re.compile(
    r"(?:he|she|it|they|his|her|its|their|him|them|this|that|these|those|there|such|one|both|the (?:former|latter))\b",
    re.IGNORECASE,
)


class Split(Record):
    """How the statements of one maker compare with those of people, over all references of a set.

    `covered` is the share of human claims that have a partner, `covered_strictly` by an F1 of .7; `matched` the share
    of made statements that have one. `per_human` is made statements a human one.
    """

    n: int
    per_human: float
    covered: float
    covered_ci95: Interval
    covered_strictly: float
    matched: float
    repeats: float
    leans: float


class Agreed(Record):
    """Recall by one maker's statements against the share that people found supported, over samples with both.

    `balanced_accuracy` is of verdicts on statements that are, or match, one that people labelled.
    """

    n_samples: int
    mean: float
    human_mean: float
    mean_absolute_error: float
    mean_absolute_error_ci95: Interval
    spearman: float | None
    n_verdicts: int
    balanced_accuracy: float | None
    kappa: float | None


class Row(Record):
    """One set by one maker's statements."""

    dataset: str
    first: int | None
    maker: StatementMaker
    signature: str
    n_failed: int
    n_without: int | None
    n_invented: int | None
    split: Split
    agreed: Agreed
    usage: Usage


class Measured(Record):
    """What the results file holds."""

    date: str
    tuned_here: bool = True
    rows: tuple[Row, ...]


class Reference(Record):
    """What people and a maker wrote out of one reference, and its group."""

    group: str
    human: tuple[str, ...]
    made: tuple[str, ...]

    def covered(self, least: float) -> int:
        """Human claims that have a partner."""
        return len(one_to_one(self.human, self.made, least))


def split_of(references: Sequence[Reference]) -> Split:
    """How a maker's statements compare with those of people."""
    n_human, n_made = sum(len(one.human) for one in references), sum(len(one.made) for one in references)
    covered = [one.covered(0.5) for one in references]
    return Split(
        n=n_made,
        per_human=n_made / n_human,
        covered=sum(covered) / n_human,
        covered_ci95=_ratio_ci95(references, covered, [len(one.human) for one in references]),
        covered_strictly=sum(one.covered(STRICT_F1) for one in references) / n_human,
        matched=sum(covered) / n_made,
        repeats=sum(n_repeated(one.made) for one in references) / n_made,
        leans=sum(leans(text) for one in references for text in one.made) / n_made,
    )


def n_repeated(texts: Sequence[str]) -> int:
    """Statements of which nearly every word is in another; of two that say the same one counts."""
    held = [words_of(text) for text in texts]
    return sum(
        any(
            len(own & other) >= REPEATED * len(own) and (len(own) < len(other) or at > place)
            for place, other in enumerate(held)
            if place != at
        )
        for at, own in enumerate(held)
    )


def leans(text: str) -> bool:
    """Whether an English statement opens with a word that stands for something said before."""
    return _LEANS.match(text.strip()) is not None


def _ratio_ci95(references: Sequence[Reference], above: Sequence[float], below: Sequence[float]) -> Interval:
    """Interval of a ratio of sums, groups drawn with replacement."""
    groups = sorted({one.group for one in references})
    sums = np.zeros((len(groups), 2))
    for one, numerator, denominator in zip(references, above, below, strict=True):
        sums[groups.index(one.group)] += (numerator, denominator)
    drawn = np.random.default_rng(SEED).integers(len(groups), size=(N_RESAMPLES, len(groups)))
    totals = sums[drawn].sum(axis=1)
    return percentile_interval(totals[:, 0] / totals[:, 1])


def agreed_of(run: OpenedRun, labels: Labels, references: Mapping[str, Reference]) -> Agreed:
    """Recall and verdicts of a run against people."""
    found = [
        (one, score, human)
        for one in run.samples
        if (score := one.score) is not None and (human := human_recall(labels, one.id)) is not None
    ]
    scores, people = (np.array([one[at] for one in found], dtype=np.float64) for at in (1, 2))
    errors = [abs(score - human) for _, score, human in found]
    pairs = [pair for one, _, _ in found for pair in verdict_pairs(one, labels)]
    labelled, ruled = (np.array([pair[at] for pair in pairs], dtype=bool) for at in (0, 1))
    return Agreed(
        n_samples=len(found),
        mean=float(scores.mean()),
        human_mean=float(people.mean()),
        mean_absolute_error=float(np.mean(errors)),
        mean_absolute_error_ci95=_ratio_ci95([references[one.id] for one, _, _ in found], errors, [1] * len(found)),
        spearman=agreement.spearman(scores, people),
        n_verdicts=len(pairs),
        balanced_accuracy=balanced_accuracy(labelled, ruled),
        kappa=agreement.cohen_kappa(labelled, ruled),
    )


def balanced_accuracy(people: agreement.Bools, judge: agreement.Bools) -> float | None:
    """Mean of sensitivity and specificity; None where people found all, or none, supported."""
    if people.all() or not people.any():
        return None
    return float((judge[people].mean() + (~judge[~people]).mean()) / 2)


def verdict_pairs(sample: ScoredSample, labels: Labels) -> list[tuple[bool, bool]]:
    """People's label and the judge's verdict on each labelled statement that has a partner."""
    known = [one for one in labels.by_sample.get(sample.id, ()) if one.attributed is not None]
    places = one_to_one([one.text or "" for one in known], [one.text for one in sample.statements])
    return [
        (bool(known[at].attributed), verdict)
        for at, made in places
        if (verdict := sample.statements[made].attributed) is not None
    ]


def row_of(run: OpenedRun, labels: Labels, *, dataset: str, first: int | None, maker: StatementMaker) -> Row:
    """All figures of one finished run."""
    references = {
        one.id: Reference(
            group=one.group or one.id,
            human=tuple(told.text or "" for told in labels.by_sample[one.id]),
            made=tuple(told.text for told in one.statements),
        )
        for one in run.samples
        if one.statements
    }
    counts = run.state.summary.claims if run.state.summary else None
    return Row(
        dataset=dataset,
        first=first,
        maker=maker,
        signature=str(run.state.signature),
        n_failed=sum(one.status == "failed" for one in run.samples),
        n_without=counts.n_without if counts else None,
        n_invented=counts.n_invented if counts else None,
        split=split_of(list(references.values())),
        agreed=agreed_of(run, labels, references),
        usage=run.state.usage,
    )


async def scored(judge: Judge, name: str, first: int | None, *, maker: StatementMaker, out: Path) -> None:
    """Score a set by one maker's statements, unless that is done."""
    if not is_finished(out):
        metric = ContextRecall(judge, statements=maker)
        await score_dataset(open_source([str(DATA / f"{name}.jsonl")]), metric, out, settings=RunSettings(limit=first))


def table(measured: Measured) -> Iterator[str]:
    """The Markdown table of the benchmark README."""
    yield (
        "| set | statements | n | a human one | human ones covered | at F1 .7 | matched | repeat | lean | mean recall "
        "(people) | error | Spearman | balanced accuracy (of) |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for row in measured.rows:
        split, agreed = row.split, row.agreed
        low, high = split.covered_ci95 or (split.covered, split.covered)
        few, many = agreed.mean_absolute_error_ci95 or (agreed.mean_absolute_error,) * 2
        first = f" (first {row.first})" if row.first else ""
        accuracy = "–" if agreed.balanced_accuracy is None else f"{agreed.balanced_accuracy:.2f} ({agreed.n_verdicts})"
        spearman = "–" if agreed.spearman is None else f"{agreed.spearman:.2f}"
        yield (
            f"| {row.dataset}{first} | {row.maker} | {split.n} | {split.per_human:.2f} "
            f"| {split.covered:.0%} ({low:.0%}–{high:.0%}) | {split.covered_strictly:.0%} | {split.matched:.0%} "
            f"| {split.repeats:.0%} | {split.leans:.0%} | {agreed.mean:.2f} ({agreed.human_mean:.2f}) "
            f"| {agreed.mean_absolute_error:.2f} ({few:.2f}–{many:.2f}) | {spearman} | {accuracy} |"
        )


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--judge", help="profile to use; default that of this machine")
    made.add_argument("--set", dest="sets", action="append", choices=SETS, help="repeatable; default all")
    made.add_argument("--first", type=int, metavar="N", help="take the first N samples of each set")
    made.add_argument("--runs", type=Path, default=Path("runs/claims"), help="where runs are kept (%(default)s)")
    made.add_argument("--results", type=Path, default=RESULTS)
    made.add_argument("--table", action="store_true", help="print what the results hold; ask nothing")
    return made


def measure(asked: argparse.Namespace) -> Measured:
    """Score what is not scored yet, and hold it against people."""
    wanted = {name: asked.first or SETS[name] for name in asked.sets or SETS if (DATA / f"{name}.jsonl").exists()}
    if not wanted:
        msg = f"none of the sets is in {DATA}: set AIRJUDGE_DATA"
        raise SystemExit(msg)
    outs = {
        (name, maker): asked.runs / f"{name}-{first or 'all'}-{maker}"
        for name, first in wanted.items()
        for maker in MAKERS
    }
    if not all(map(is_finished, outs.values())):
        with ExitStack() as stack:
            judge = stack.enter_context(Judge.find(asked.judge, on_progress=stack.enter_context(stages())))
            for (name, maker), out in outs.items():
                asyncio.run(scored(judge, name, wanted[name], maker=maker, out=out))
    rows = [
        row_of(open_run(out), read_labels(DATA / f"{name}.jsonl"), dataset=name, first=wanted[name], maker=maker)
        for (name, maker), out in outs.items()
    ]
    return Measured(date=datetime.now(UTC).date().isoformat(), rows=tuple(rows))


def main() -> None:
    """Measure, keep it, and print the table."""
    asked = parser().parse_args()
    if not asked.table:
        measured = measure(asked)
        asked.results.parent.mkdir(parents=True, exist_ok=True)
        asked.results.write_text(measured.model_dump_json(indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(Measured.model_validate_json(asked.results.read_bytes()))))


if __name__ == "__main__":
    main()
