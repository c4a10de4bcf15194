"""Methods side by side: what one judge is worth asked in each way, on the sets with human labels.

    python -m benchmarks.agreement.methods --set wice_subclaims --method ragas
    python -m benchmarks.agreement.methods --first 40 --base-url http://127.0.0.1:8000/v1 --model NAME
    python -m benchmarks.agreement.methods --table        # what is in the results, nothing is asked

Each set and method is a run of its own below --runs: one that was stopped goes on, one that is finished is read. Its
row goes into `benchmarks/results/methods.json`, beside those that are there: a row of the same set, judge, method
and number of samples is replaced. Figures of statements are against the label of each; sample scores are held
against human recall, the share of a sample's statements that people found attributed, so that `opik`, which rules on
no statement, has figures too. It grades a response: these sets have none of a system, so the reference stands for
it, and its grade says how well the contexts carry the reference. Prompts were developed on these sets: "tuned here".
"""

import argparse
import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from airjudge import agreement, metrics
from airjudge.cli.progress import display
from airjudge.cli.render import stages
from airjudge.compare import compare_runs
from airjudge.compare.records import Accuracy
from airjudge.datasets import REQUIRED, Source, open_source
from airjudge.datasets.labels import read_labels
from airjudge.judge import Judge, JudgeSettings
from airjudge.labels import Labels
from airjudge.run import OpenedRun, RunSettings, open_run, score_dataset
from airjudge.schema import Record, Usage
from benchmarks.agreement.run import DATA, SETS, Interval, is_finished

METHODS: Final = ("pointwise", "ragas", "reasoned", "opik")
RESULTS: Final = Path(__file__).parents[1] / "results" / "methods.json"


class MethodRow(Record):
    """What one judge, asked by one method, is worth on one set; figures of statements are None where it rules on none.

    `first` is the number of samples taken from the start of the set, None for all. `n_statements` are those with a
    verdict and a label, `n_samples` those with a score and a human recall: `mean_absolute_error` and `spearman` are
    over them. `coverage` is the share of statements that single calls told. `usage` and `seconds` are of all starts.
    """

    set: str
    judge: str
    method: str
    first: int | None
    date: str
    signature: str
    n: int
    n_failed: int
    n_samples: int
    n_statements: int | None
    auc: float | None
    auc_ci95: Interval
    balanced_accuracy: float | None
    balanced_accuracy_ci95: Interval
    kappa: float | None
    kappa_ci95: Interval
    mean_absolute_error: float | None
    spearman: float | None
    coverage: float | None
    usage: Usage
    seconds: float

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What a row replaces, and the order of rows: sets, then judges, then methods as they are listed above."""
        place = METHODS.index(self.method) if self.method in METHODS else len(METHODS)
        return self.set, self.judge, self.first or 0, place


class Rows(Record):
    """What the results file holds."""

    tuned_here: bool = True
    rows: tuple[MethodRow, ...] = ()


def human_recall(labels: Labels, name: str) -> float | None:
    """Share of a sample's statements that people found attributed; None unless they decided on each."""
    decided = [one.attributed for one in labels.by_sample.get(name, ())]
    if not decided or None in decided:
        return None
    return decided.count(True) / len(decided)


def row_of(run: OpenedRun, labels: Labels, *, judge: str, name: str, first: int | None) -> MethodRow:
    """All figures of one finished run."""
    told, summary = _of_statements(run, labels), run.state.summary
    pairs = [
        (sample.score, human)
        for sample in run.samples
        if sample.score is not None and (human := human_recall(labels, sample.id)) is not None
    ]
    scores, people = (np.array([pair[at] for pair in pairs], dtype=np.float64) for at in (0, 1))
    return MethodRow(
        set=name,
        judge=judge,
        method=run.state.signature.method,
        first=first,
        date=run.state.started.date().isoformat(),
        signature=str(run.state.signature),
        n=len(run.samples),
        n_failed=sum(one.status == "failed" for one in run.samples),
        n_samples=len(pairs),
        n_statements=told.n if told else None,
        auc=told.auc if told else None,
        auc_ci95=told.auc_ci95 if told else None,
        balanced_accuracy=told.balanced_accuracy if told else None,
        balanced_accuracy_ci95=told.balanced_accuracy_ci95 if told else None,
        kappa=told.kappa if told else None,
        kappa_ci95=told.kappa_ci95 if told else None,
        mean_absolute_error=float(np.abs(scores - people).mean()) if pairs else None,
        spearman=agreement.spearman(scores, people),
        coverage=summary.echoes.coverage if summary and summary.echoes else None,
        usage=run.state.usage,
        seconds=round(run.state.seconds, 1),
    )


def _of_statements(run: OpenedRun, labels: Labels) -> Accuracy | None:
    """A run's verdicts against the labels; None if it has no verdict."""
    if not any(sample.statements for sample in run.samples):
        return None
    people = compare_runs([run], labels).judges[0].people
    return people.all if people else None


def data_of(name: str, method: str, folder: Path) -> Source:
    """A set as a method reads it; for a grade each reference is written beside itself as the response."""
    path = DATA / f"{name}.jsonl"
    if method != "opik":
        return open_source([str(path)])
    folder.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    lines = (json.dumps({**row, "response": row["reference"]}, ensure_ascii=False) + "\n" for row in rows)
    with_response = folder / f"{name}-response.jsonl"
    with_response.write_text("".join(lines), encoding="utf-8")
    return open_source([str(with_response)], required=(*REQUIRED, "response"))


def metric_of(method: str, judge: Judge) -> metrics.ContextRecall:
    """The metric whose samples a method scores."""
    if method != "opik":
        return metrics.ContextRecall(judge)
    # By its name: the metric is one of those that may not be there.
    graded = getattr(metrics, "GradedContextRecall", None)
    if graded is None:
        msg = "this airjudge has no metric for the method opik"
        raise SystemExit(msg)
    found: metrics.ContextRecall = graded(judge)  # what a run needs of a metric it has too
    return found


@contextmanager
def asked_judge(asked: argparse.Namespace, method: str) -> Iterator[Judge]:
    """The judge of the options, asked by a method."""
    profile = asked.judge if asked.base_url else None
    told = {"method": method, "concurrency": asked.concurrency, "profile": profile}
    settings = JudgeSettings.model_validate(told)
    if asked.base_url:
        key = os.environ.get("AIRJUDGE_API_KEY")
        yield Judge.connect(asked.base_url, asked.model, api_key=key, settings=settings)
        return
    with ExitStack() as stack:
        shown = stack.enter_context(stages())
        yield stack.enter_context(Judge.find(asked.judge, settings=settings, on_progress=shown))


def folder_of(asked: argparse.Namespace, name: str, method: str) -> Path:
    """Where the run of a set and method is kept."""
    part = f"-first-{asked.first}" if asked.first else ""
    return Path(asked.runs) / name / f"{judge_name(asked)}-{method}{part}"


def judge_name(asked: argparse.Namespace) -> str:
    """What the judge is called in the results."""
    return str(asked.judge or asked.model or "default").replace("/", "_")


def scored(asked: argparse.Namespace, name: str, method: str) -> MethodRow:
    """The row of a set and method; what is not scored yet is asked."""
    out = folder_of(asked, name, method)
    if not is_finished(out):
        source = data_of(name, method, Path(asked.runs) / "data")
        with asked_judge(asked, method) as judge, display() as shown:
            shown.stage(f"scoring {name} by {method}", 0, 0)
            settings = RunSettings(limit=asked.first)
            scoring = score_dataset(source, metric_of(method, judge), out, settings=settings, on_counts=shown.counts)
            asyncio.run(scoring)
    labels = read_labels(DATA / f"{name}.jsonl")
    return row_of(open_run(out), labels, judge=judge_name(asked), name=name, first=asked.first)


def held(results: Path) -> Rows:
    """What a results file holds; nothing where there is none."""
    return Rows.model_validate_json(results.read_bytes()) if results.exists() else Rows()


def add(results: Path, row: MethodRow) -> Rows:
    """Put a row into a results file, in the place of an earlier one with its key; the file is replaced whole."""
    by_key = {one.key: one for one in held(results).rows} | {row.key: row}
    rows = Rows(rows=tuple(by_key[key] for key in sorted(by_key)))
    results.parent.mkdir(parents=True, exist_ok=True)
    partial = results.with_name(results.name + ".partial")
    partial.write_text(rows.model_dump_json(indent=1) + "\n", encoding="utf-8")
    partial.replace(results)
    return rows


def table(rows: Sequence[MethodRow]) -> Iterator[str]:
    """The Markdown table of the benchmark README."""
    yield (
        "| set | judge | method | samples | statements | AUC | balanced accuracy | kappa | mean absolute error "
        "| Spearman | requests | prompt tokens | computed | generated |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        first, usage = f" (first {row.first})" if row.first else "", row.usage
        n_statements = "–" if row.n_statements is None else str(row.n_statements)
        yield (
            f"| {row.set}{first} | {row.judge} | {row.method} | {row.n_samples} | {n_statements} "
            f"| {_cell(row.auc, row.auc_ci95)} | {_cell(row.balanced_accuracy, row.balanced_accuracy_ci95)} "
            f"| {_cell(row.kappa, row.kappa_ci95)} | {_cell(row.mean_absolute_error)} | {_cell(row.spearman)} "
            f"| {usage.requests:,} | {usage.prompt_tokens:,} | {usage.prompt_tokens - usage.cached_tokens:,} "
            f"| {usage.completion_tokens:,} |"
        )


def _cell(value: float | None, interval: Interval = None) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" + (f" ({interval[0]:.2f}–{interval[1]:.2f})" if interval else "")


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--set", dest="sets", action="append", choices=SETS, help="a set (repeatable; default all)")
    made.add_argument("--method", dest="methods", action="append", choices=METHODS, help="repeatable; default all")
    made.add_argument("--first", type=int, metavar="N", help="take the first N samples of each set")
    made.add_argument("--judge", help="profile to use; with --base-url the one that the server runs")
    made.add_argument("--base-url", help="a server that runs already (key in AIRJUDGE_API_KEY)")
    made.add_argument("--model", help="the model to ask there")
    made.add_argument("--concurrency", default="auto", type=_concurrency, help="requests in flight (%(default)s)")
    made.add_argument("--runs", type=Path, default=Path("runs/methods"), help="where runs are kept (%(default)s)")
    made.add_argument("--results", type=Path, default=RESULTS)
    made.add_argument("--table", action="store_true", help="print what the results hold; ask nothing")
    return made


def _concurrency(text: str) -> int | str:
    return text if text == "auto" else int(text)


def main() -> None:
    """Score what is not scored yet, row by row, and print the table."""
    asked = parser().parse_args()
    wanted = [name for name in asked.sets or SETS if (DATA / f"{name}.jsonl").exists()]
    if not wanted and not asked.table:
        msg = f"none of the sets is in {DATA}: set AIRJUDGE_DATA"
        raise SystemExit(msg)
    for name in [] if asked.table else wanted:
        for method in asked.methods or METHODS:
            add(asked.results, scored(asked, name, method))
    print("\n".join(table(held(asked.results).rows)))


if __name__ == "__main__":
    main()
