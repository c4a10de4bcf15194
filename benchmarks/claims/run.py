"""Claims that a judge writes out of a reference, held against those that people wrote.

    python -m benchmarks.claims.run                     # the default judge; what is not scored yet is asked
    python -m benchmarks.claims.run --base-url URL --model NAME
    python -m benchmarks.claims.run --table             # what was measured last; nothing is asked

Each set is scored three times by the same judge: by the statements of people (`--statements given`), by sentences,
and by the claims that the judge writes (`--statements claims`). Runs are kept below --runs: one that was stopped goes
on, one that is finished is read. A human claim is *covered* by a made statement whose words overlap with it by an F1
of at least .5 (and, stricter, .7), one to one. A statement *repeats* if .9 of its words are in another of the same
reference. It *leans* on its neighbours if it opens with a pronoun or demonstrative (English); one further in is not
seen. A sentence is *unsplit* if it stayed one statement, as it is or copied. Intervals are 95 %, over groups.
"""

import argparse
import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from airjudge.cli.render import stages
from airjudge.datasets import open_source
from airjudge.datasets.labels import read_labels
from airjudge.judge import Judge, JudgeSettings
from airjudge.labels import Labels
from airjudge.metrics import ContextRecall
from airjudge.run import OpenedRun, RunSettings, open_run, score_dataset
from airjudge.schema import Record, Sample, ScoredSample, StatementMaker, Usage
from airjudge.statements import split_statements
from benchmarks.agreement.run import DATA, Interval, is_finished
from benchmarks.claims.figures import Agreed, Reference, Split, agreed_of, split_of

RESULTS: Final = Path(__file__).parents[1] / "results" / "claims.json"
SETS: Final[Mapping[str, int | None]] = {"wice_subclaims": None, "factcheck_bench_responses": 12}
"""Sets with claims that people wrote out of a longer reference; of the second the first samples, which fit an hour."""
MAKERS: Final[tuple[StatementMaker, ...]] = ("given", "sentences", "claims")


class Row(Record):
    """One set by one maker's statements."""

    dataset: str
    first: int | None
    maker: StatementMaker
    signature: str
    n_failed: int
    n_without: int | None
    n_invented: int | None
    errors: Mapping[str, int]
    split: Split
    agreed: Agreed
    usage: Usage


class Measured(Record):
    """What the results file holds."""

    date: str
    tuned_here: bool = True
    rows: tuple[Row, ...]


def rows_of(runs: Mapping[StatementMaker, OpenedRun], name: str, first: int | None) -> Iterator[Row]:
    """All figures of the finished runs of a set."""
    path = DATA / f"{name}.jsonl"
    labels = read_labels(path)
    values = (entry.value for entry in open_source([str(path)]).entries(lambda _: False))
    samples = {value.id: value for value in values if isinstance(value, Sample)}
    for maker, run in runs.items():
        told = [one for one in run.samples if one.statements]
        references = [reference_of(one, samples[one.id], labels) for one in told]
        groups = {one.id: one.group or one.id for one in run.samples}
        counts = run.state.summary.claims if run.state.summary else None
        yield Row(
            dataset=name,
            first=first,
            maker=maker,
            signature=str(run.state.signature),
            n_failed=sum(one.status == "failed" for one in run.samples),
            n_without=counts.n_without if counts else None,
            n_invented=counts.n_invented if counts else None,
            errors=counts.errors if counts else {},
            split=split_of(references),
            agreed=agreed_of(runs, maker, labels=labels, groups=groups),
            usage=run.state.usage,
        )


def reference_of(scored: ScoredSample, sample: Sample, labels: Labels) -> Reference:
    """What people and the maker of a run's statements wrote out of a sample's reference."""
    return Reference(
        group=scored.group or scored.id,
        sentences=tuple(one.text for one in split_statements(sample, "sentences")),
        human=tuple(one.text or "" for one in labels.by_sample[scored.id]),
        made=tuple(one.text for one in scored.statements),
    )


async def scored(judge: Judge, name: str, first: int | None, *, maker: StatementMaker, out: Path) -> None:
    """Score a set by one maker's statements, unless that is done."""
    if not is_finished(out):
        metric = ContextRecall(judge, statements=maker)
        await score_dataset(open_source([str(DATA / f"{name}.jsonl")]), metric, out, settings=RunSettings(limit=first))


def table(measured: Measured) -> Iterator[str]:
    """The Markdown tables of the benchmark README: splits, agreement, costs."""
    yield from _of_splits(measured)
    yield ""
    yield from _of_agreement(measured)
    yield ""
    yield from _of_costs(measured)


def _of_splits(measured: Measured) -> Iterator[str]:
    yield (
        "| set | statements | n | a human one | human ones covered | at F1 .7 | matched | repeat | unsplit | lean "
        "| sentences that lean behind the first |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for row in measured.rows:
        split = row.split
        yield (
            f"| {_set(row)} | {row.maker} | {split.n} | {split.per_human:.2f} "
            f"| {split.covered:.0%} {_percent(split.covered_ci95)} | {split.covered_strictly:.0%} "
            f"| {split.matched:.0%} | {split.repeats:.0%} | {split.unsplit:.0%} | {split.leans:.0%} "
            f"| {split.n_resolvable} |"
        )


def _of_agreement(measured: Measured) -> Iterator[str]:
    yield (
        "| set | statements | recall (people) | bias | error | less that by sentences | Pearson | Spearman "
        "| verdicts | balanced accuracy | kappa | on people's own | same verdict |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for row in measured.rows:
        told = row.agreed
        less = f"{told.less_sentences:+.2f} {_signed(told.less_sentences_ci95)}"
        yield (
            f"| {_set(row)} | {row.maker} | {told.mean:.2f} ({told.human_mean:.2f}) "
            f"| {told.bias:+.2f} {_signed(told.bias_ci95)} "
            f"| {told.mean_absolute_error:.2f} {_plain(told.mean_absolute_error_ci95)} "
            f"| {'–' if row.maker == 'sentences' else less} "
            f"| {_figure(told.pearson)} | {_figure(told.spearman)} | {told.n_verdicts} "
            f"| {_figure(told.balanced_accuracy)} | {_figure(told.kappa)} | {_figure(told.on_human)} "
            f"| {_figure(told.same)} |"
        )


def _of_costs(measured: Measured) -> Iterator[str]:
    yield "| set | statements | requests | prompt tokens | generated | failed | without claims | invented | errors |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in measured.rows:
        kinds = ", ".join(f"{kind}: {count}" for kind, count in row.errors.items()) or "–"
        without, invented = ("–" if one is None else str(one) for one in (row.n_without, row.n_invented))
        yield (
            f"| {_set(row)} | {row.maker} | {row.usage.requests:,} | {row.usage.prompt_tokens:,} "
            f"| {row.usage.completion_tokens:,} | {row.n_failed} | {without} | {invented} | {kinds} |"
        )


def _set(row: Row) -> str:
    return f"{row.dataset} (first {row.first})" if row.first else row.dataset


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _plain(bounds: Interval) -> str:
    return "" if bounds is None else f"({bounds[0]:.2f}–{bounds[1]:.2f})"


def _percent(bounds: Interval) -> str:
    return "" if bounds is None else f"({bounds[0]:.0%}–{bounds[1]:.0%})"


def _signed(bounds: Interval) -> str:
    return "" if bounds is None else f"({bounds[0]:+.2f} to {bounds[1]:+.2f})"


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--judge", help="profile to use; with --base-url the one that the server runs")
    made.add_argument("--base-url", help="a server that runs already (key in AIRJUDGE_API_KEY)")
    made.add_argument("--model", help="the model to ask there")
    made.add_argument("--set", dest="sets", action="append", choices=SETS, help="repeatable; default all")
    made.add_argument("--first", type=int, metavar="N", help="take the first N samples of each set")
    made.add_argument("--runs", type=Path, default=Path("runs/claims"), help="where runs are kept (%(default)s)")
    made.add_argument("--results", type=Path, default=RESULTS)
    made.add_argument("--table", action="store_true", help="print what the results hold; ask nothing")
    return made


@contextmanager
def asked_judge(asked: argparse.Namespace) -> Iterator[Judge]:
    """The judge of the options."""
    if asked.base_url:
        key, settings = os.environ.get("AIRJUDGE_API_KEY"), JudgeSettings(profile=asked.judge)
        yield Judge.connect(asked.base_url, asked.model, api_key=key, settings=settings)
        return
    with stages() as told, Judge.find(asked.judge, on_progress=told) as judge:
        yield judge


def folder_of(asked: argparse.Namespace, name: str, maker: StatementMaker) -> Path:
    """Where a run is kept; those of a judge that is named lie in a folder of its own, for a finished one is read."""
    judge = str(asked.judge or asked.model or "").replace("/", "_")
    return Path(asked.runs) / judge / f"{name}-{asked.first or SETS[name] or 'all'}-{maker}"


def measure(asked: argparse.Namespace) -> Measured:
    """Score what is not scored yet, and hold it against people."""
    wanted = {name: asked.first or SETS[name] for name in asked.sets or SETS if (DATA / f"{name}.jsonl").exists()}
    if not wanted:
        msg = f"none of the sets is in {DATA}: set AIRJUDGE_DATA"
        raise SystemExit(msg)
    outs = {(name, maker): folder_of(asked, name, maker) for name in wanted for maker in MAKERS}
    if not all(map(is_finished, outs.values())):
        with asked_judge(asked) as judge:
            for (name, maker), out in outs.items():
                asyncio.run(scored(judge, name, wanted[name], maker=maker, out=out))
    rows = [
        row
        for name, first in wanted.items()
        for row in rows_of({maker: open_run(outs[name, maker]) for maker in MAKERS}, name, first)
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
