"""Which context supports a statement: what `--evidence` says, beside people's stance on each passage.

    python -m benchmarks.evidence.run                                  # the default judge; asks what is not asked yet
    python -m benchmarks.evidence.run --verdicts runs/agreement/factcheck_bench_claims/default   # of the same judge
    python -m benchmarks.evidence.run --base-url http://127.0.0.1:8000/v1 --model NAME

Scores `factcheck_bench_claims`, whose claims have five passages each and a stance of people on each passage, in two
runs: one of verdicts, and one that takes them over and asks about contexts, so that what that costs is told apart.
A sample with fewer contexts than stances is left out: which passage was dropped is not known. A context is *right*
if people say that it supports the claim completely or in part, *complete* if completely. The way of asking was chosen
on 22 of these statements: "tuned here". `benchmarks/results/evidence.json` gets all figures.
"""

import argparse
import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from airjudge import agreement
from airjudge.chunks import average_precision, precision
from airjudge.cli.progress import display
from airjudge.cli.render import stages
from airjudge.evidence import closest_context
from airjudge.judge import Judge
from airjudge.metrics import ContextRecall
from airjudge.run import OpenedRun, RunSettings, open_run, score_dataset
from airjudge.schema import Record, ScoredSample, Usage, Verdict
from benchmarks.agreement.run import DATA, SEED, Interval, is_finished

NAME: Final = "factcheck_bench_claims"
RESULTS: Final = Path(__file__).parents[1] / "results" / "evidence.json"
COMPLETE: Final = "completely-support"
RIGHT: Final = frozenset({COMPLETE, "partially-support"})


class Top(Record):
    """How often a context that is put first is one that people marked: over `n` statements with such a context.

    `judge` takes the most probable context, `overlap` the one with the closest sentence, `chance` any.
    """

    n: int
    judge: float | None
    judge_ci95: Interval
    overlap: float | None
    overlap_ci95: Interval
    chance: float | None


class Each(Record):
    """Verdicts on single contexts, of attributed statements alone, against the people's marks."""

    n: int
    n_marked: int
    auc: float | None
    auc_ci95: Interval
    balanced_accuracy: float | None


class Errors(Record):
    """Mean absolute error of figures of a sample, against those by contexts that people call complete."""

    n: int
    precision: float | None
    average_precision: float | None
    precision_by_judge: float | None
    precision_by_people: float | None


class Found(Record):
    """What the command writes.

    Of the `n` samples `n_unplaced` are left out; of the statements of the others the judge attributed `n_attributed`.
    `verdicts` is what these cost, `evidence` what was asked beyond them.
    """

    date: str
    signature: str
    tuned_here: bool = True
    n: int
    n_unplaced: int
    n_statements: int
    n_attributed: int
    top_right: Top
    top_complete: Top
    each_right: Each
    each_complete: Each
    errors: Errors
    verdicts: Usage
    evidence: Usage


@dataclass(frozen=True)
class Placed:
    """A sample whose every context has a stance of people's, with its record and the verdict on its statement."""

    contexts: tuple[str, ...]
    stances: tuple[str, ...]
    record: ScoredSample
    verdict: Verdict

    @cached_property
    def right(self) -> list[bool]:
        """Whether each context supports the statement, at least in part, as people say."""
        return [one in RIGHT for one in self.stances]

    @cached_property
    def complete(self) -> list[bool]:
        """Whether each context supports all of it, as people say."""
        return [one == COMPLETE for one in self.stances]

    def marks(self, *, complete: bool) -> list[bool]:
        """The one or the other."""
        return self.complete if complete else self.right

    @property
    def group(self) -> str:
        """The unit of independence."""
        return self.record.group or self.record.id


def placed(data: Path, run: OpenedRun) -> tuple[list[Placed], int]:
    """The samples of a run whose stances can be placed, and how many cannot."""
    records = {one.id: one for one in run.samples}
    rows = [json.loads(line) for line in data.read_bytes().split(b"\n") if line.strip()]
    found = []
    for row in rows:
        [statement] = row["statements"]
        contexts, stances, record = row["retrieved_contexts"], statement["label_raw"], records[row["id"]]
        if len(contexts) == len(stances) and record.status == "scored":
            found.append(Placed(tuple(contexts), tuple(stances), record, record.statements[0]))
    return found, len(rows) - len(found)


def top(samples: Sequence[Placed], *, complete: bool) -> Top:
    """The context put first, over attributed statements that people found a context for."""
    of = [one for one in samples if one.verdict.most_probable and any(one.marks(complete=complete))]
    groups = [one.group for one in of]
    judge = [one.marks(complete=complete)[best.context - 1] for one in of if (best := one.verdict.most_probable)]
    closest = [closest_context(one.contexts, one.verdict.text) for one in of]
    overlap = [
        number is not None and one.marks(complete=complete)[number - 1] for one, number in zip(of, closest, strict=True)
    ]
    chances = [precision(one.marks(complete=complete)) or 0.0 for one in of]
    return Top(
        n=len(of),
        judge=_mean(judge),
        judge_ci95=_span(judge, groups),
        overlap=_mean(overlap),
        overlap_ci95=_span(overlap, groups),
        chance=_mean(chances),
    )


def each(samples: Sequence[Placed], *, complete: bool) -> Each:
    """All verdicts on single contexts that have a probability of their own."""
    entries = [
        (one.marks(complete=complete)[entry.context - 1], entry.probability, entry.attributed is True, one.group)
        for one in samples
        for entry in one.verdict.support or ()
        if entry.probability is not None and len(one.verdict.support or ()) > 1
    ]
    marks, ruled = (np.array([entry[at] for entry in entries], dtype=np.bool_) for at in (0, 2))
    probabilities, groups = np.array([entry[1] for entry in entries], dtype=np.float64), [entry[3] for entry in entries]
    rng = np.random.default_rng(SEED)
    return Each(
        n=len(entries),
        n_marked=int(marks.sum()),
        auc=agreement.auc(marks, probabilities) if entries else None,
        auc_ci95=agreement.auc_bootstrap(marks, probabilities, groups=groups, rng=rng) if entries else None,
        balanced_accuracy=agreement.balanced_accuracy(marks, ruled) if entries else None,
    )


def errors(samples: Sequence[Placed]) -> Errors:
    """Figures of samples beside those that people's stances give."""
    pairs = [
        (one.record.chunks, precision(one.complete), average_precision(one.complete))
        for one in samples
        if one.record.chunks is not None and one.record.chunks.precision is not None
    ]
    known = [(told.precision or 0.0, told.average_precision or 0.0, p or 0.0, ap or 0.0) for told, p, ap in pairs]
    return Errors(
        n=len(known),
        precision=_mean([abs(ours - theirs) for ours, _, theirs, _ in known]),
        average_precision=_mean([abs(ours - theirs) for _, ours, _, theirs in known]),
        precision_by_judge=_mean([ours for ours, _, _, _ in known]),
        precision_by_people=_mean([theirs for _, _, theirs, _ in known]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _span(values: Sequence[float], groups: Sequence[str]) -> Interval:
    """Percentile interval of a mean, from resampling whole groups."""
    if len(set(groups)) < 2:
        return None
    rows = np.array([[float(value), 1.0] for value in values])
    drawn = agreement.resampled_sums(agreement.sums_by_group(rows, groups), rng=np.random.default_rng(SEED))
    return agreement.percentile_interval(drawn[:, 0] / drawn[:, 1])


def found_in(data: Path, run: OpenedRun, verdicts: Usage) -> Found:
    """All figures of a finished run."""
    samples, n_unplaced = placed(data, run)
    return Found(
        date=datetime.now(UTC).date().isoformat(),
        signature=str(run.state.signature),
        n=len(run.samples),
        n_unplaced=n_unplaced,
        n_statements=len(samples),
        n_attributed=sum(one.verdict.attributed is True for one in samples),
        top_right=top(samples, complete=False),
        top_complete=top(samples, complete=True),
        each_right=each(samples, complete=False),
        each_complete=each(samples, complete=True),
        errors=errors(samples),
        verdicts=verdicts,
        evidence=run.state.usage,
    )


def tables(found: Found) -> Iterator[str]:
    """The Markdown of the benchmark README."""
    left_out = f"{found.n_unplaced} of {found.n} samples are left out"
    yield f"{left_out}; {found.n_attributed} of {found.n_statements} statements attributed."
    yield ""
    yield "| context put first is one that supports | statements | judge | word overlap | chance |"
    yield "|---|---|---|---|---|"
    for name, one in (("at least in part", found.top_right), ("completely", found.top_complete)):
        judge, overlap = _cell(one.judge, one.judge_ci95), _cell(one.overlap, one.overlap_ci95)
        yield f"| {name} | {one.n} | {judge} | {overlap} | {_cell(one.chance)} |"
    yield ""
    yield "| each context, against | contexts | supporting | AUC | balanced accuracy at .5 |"
    yield "|---|---|---|---|---|"
    for name, of in (("at least in part", found.each_right), ("completely", found.each_complete)):
        yield f"| {name} | {of.n} | {of.n_marked} | {_cell(of.auc, of.auc_ci95)} | {_cell(of.balanced_accuracy)} |"
    yield ""
    told = found.errors
    yield "| samples | mean absolute error of precision | of average precision | precision by the judge | by people |"
    yield "|---|---|---|---|---|"
    yield (
        f"| {told.n} | {_cell(told.precision)} | {_cell(told.average_precision)} | {_cell(told.precision_by_judge)} "
        f"| {_cell(told.precision_by_people)} |"
    )
    yield ""
    yield "| asked | requests | prompt tokens | computed | generated |"
    yield "|---|---|---|---|---|"
    for name, usage in (("verdicts", found.verdicts), ("evidence", found.evidence)):
        computed = usage.prompt_tokens - usage.cached_tokens
        yield f"| {name} | {usage.requests:,} | {usage.prompt_tokens:,} | {computed:,} | {usage.completion_tokens:,} |"


def _cell(value: float | None, interval: Interval = None) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" + (f" ({interval[0]:.2f}–{interval[1]:.2f})" if interval else "")


def asked(options: argparse.Namespace, data: Path) -> tuple[Path, Path]:
    """The run of verdicts, and that of evidence which took them over; what is not finished is asked."""
    verdicts, evidence = options.verdicts or options.runs / "verdicts", options.runs / "evidence"
    if is_finished(verdicts) and is_finished(evidence):
        return verdicts, evidence
    with ExitStack() as stack:
        if options.base_url:
            judge = Judge.connect(options.base_url, options.model, api_key=os.environ.get("AIRJUDGE_API_KEY"))
        else:
            judge = stack.enter_context(Judge.find(options.judge, on_progress=stack.enter_context(stages())))
        for out, metric, fork in (
            (verdicts, ContextRecall(judge), None),
            (evidence, ContextRecall(judge, evidence=True), verdicts),
        ):
            if not is_finished(out):
                with display() as shown:
                    scoring = score_dataset(data, metric, out, settings=RunSettings(fork=fork), on_counts=shown.counts)
                    asyncio.run(scoring)
    return verdicts, evidence


def main() -> None:
    """Ask what is not asked yet, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", help="profile to use")
    parser.add_argument("--base-url", help="a server that runs already (key in AIRJUDGE_API_KEY)")
    parser.add_argument("--model", help="the model to ask there")
    parser.add_argument("--runs", type=Path, default=Path("runs/evidence"), help="where runs are kept (%(default)s)")
    parser.add_argument("--verdicts", type=Path, help="a finished run of the same judge on the set")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    data = DATA / f"{NAME}.jsonl"
    if not data.exists():
        msg = f"{data} is not there: set AIRJUDGE_DATA"
        raise SystemExit(msg)
    verdicts, evidence = asked(options, data)
    found = found_in(data, open_run(evidence), open_run(verdicts).state.usage)
    print("\n".join(tables(found)))
    options.results.parent.mkdir(exist_ok=True)
    options.results.write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
