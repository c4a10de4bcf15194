"""How far a judge can be trusted: against people, beside recorded judges, raw and calibrated, set by set.

    python benchmarks/agreement/run.py                              # the default judge; scores what is not scored yet
    python benchmarks/agreement/run.py --judge qwen3-8b-awq
    python benchmarks/agreement/run.py --runs runs/agreement        # finished runs are read, nothing is asked again

Scores each set of the data folder as `airjudge score` does, makes runs of the verdicts that the sets record of
other judges, and holds all of them against the human labels (`airjudge compare`). Calibrated figures are of
statements whose group was not fitted to: in folds within a set, and fitted on one set and tested on another,
without shared groups. Prompt and profile of the default judge were developed on these sets: "tuned here".
`benchmarks/results/agreement.json` gets all figures.
"""

import argparse
import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from airjudge import agreement
from airjudge.agreement import balanced_accuracy_of, percentile_interval, resampled_sums, sums_by_group
from airjudge.calibrate.observed import Observed, observe
from airjudge.calibration import CrossValidated
from airjudge.calibration.fitting import Bools, Floats, Recipe, fit, mapped, odds_of
from airjudge.calibration.folds import cross_validated, out_of_fold
from airjudge.calibration.reliability import brier_parts
from airjudge.cli.progress import display
from airjudge.cli.render import stages
from airjudge.compare import compare_runs
from airjudge.compare.records import Accuracy, AgainstPeople
from airjudge.datasets.labels import read_labels
from airjudge.judge import Judge
from airjudge.labels import Labels
from airjudge.metrics import ContextRecall
from airjudge.recorded import ImportSettings, import_verdicts
from airjudge.run import OpenedRun, RunSettings, open_run, score_dataset
from airjudge.schema import Record
from airjudge.scoring import THRESHOLD

DATA = Path(os.environ.get("AIRJUDGE_DATA", Path(__file__).parents[3] / "shared" / "data"))
MAIN = ("wice_subclaims", "factcheck_bench_claims", "klue_nli_ko")
"""The sets that the targets are about; no two of them share a document."""
SETS = (*MAIN, "wice_claims", "factcheck_bench_responses")
RESULTS = Path(__file__).parents[1] / "results" / "agreement.json"
SEED = 20_261_130

Interval = tuple[float, float] | None


class Beside(Record):
    """Balanced accuracy of a recorded judge and of ours on the same statements, and by how much ours is higher."""

    n: int
    recorded: float | None
    raw: float | None
    raw_difference_ci95: Interval
    calibrated: float | None
    calibrated_difference_ci95: Interval


class Transferred(Record):
    """A calibration fitted on one set and tested on another."""

    fitted_on: str
    tested_on: str
    n_fitted: int
    n: int
    raw: float | None
    calibrated: float | None
    brier_raw: float | None
    brier_calibrated: float | None


class SetFigures(Record):
    """All figures of one set; `judge` is the name of the one in question among `judges`."""

    n: int
    n_positive: int
    n_groups: int
    judge: str
    judges: Mapping[str, AgainstPeople]
    beside: Mapping[str, Beside]
    calibrated: CrossValidated | None


class Means(Record):
    """Means over the sets that the targets are about, of those that are there."""

    n_sets: int
    auc: float
    balanced_accuracy: float
    balanced_accuracy_calibrated: float


class Found(Record):
    """What the command writes."""

    date: str
    signatures: tuple[str, ...]
    tuned_here: bool = True
    means: Means | None
    sets: Mapping[str, SetFigures]
    transfer: tuple[Transferred, ...]


@dataclass(frozen=True)
class Judged:
    """A set with its labels, the run of the judge in question, and runs of the judges that it records."""

    name: str
    labels: Labels
    run: OpenedRun
    recorded: tuple[OpenedRun, ...]

    @property
    def observed(self) -> Observed:
        """Probabilities and labels, statement by statement."""
        return observe(self.run, self.labels, file=self.labels.name)


def recorded_judges(path: Path) -> list[str]:
    """Names of the judges whose verdicts a set records."""
    names: dict[str, None] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        for statement in json.loads(line)["statements"]:
            names.update(dict.fromkeys(statement.get("judges", ())))
    return list(names)


def is_finished(out: Path) -> bool:
    """Whether a folder holds a finished run."""
    return (out / "run.json").exists() and open_run(out).state.state == "finished"


def scored(judge: Judge, name: str, out: Path, *, fork: Path | None) -> None:
    """Score a set, or go on with it; verdicts of `fork` are taken over where they are valid."""
    settings = RunSettings(fork=fork, keep=("lang",))
    with display() as shown:
        shown.stage(f"scoring {name}", 0, 0)
        data = DATA / f"{name}.jsonl"
        asyncio.run(score_dataset(data, ContextRecall(judge), out, settings=settings, on_counts=shown.counts))


def judged(name: str, out: Path, folder: Path) -> Judged:
    """A scored set with everything that is known about its statements."""
    data = DATA / f"{name}.jsonl"
    runs = []
    for who in recorded_judges(data):
        import_verdicts(data, folder / name / who, settings=ImportSettings(who=who))
        runs.append(open_run(folder / name / who))
    return Judged(name, read_labels(data), open_run(out), tuple(runs))


def against_people(one: Judged) -> Iterator[tuple[str, AgainstPeople]]:
    """Each judge of a set against the labels, the one in question first."""
    for run in (one.run, *one.recorded):
        found = compare_runs([run], one.labels).judges[0].people
        if found is not None:
            yield run.name, found


def beside(one: Judged, recorded: OpenedRun) -> Beside:
    """A recorded judge and ours, raw and calibrated in folds, on the statements that both ruled on."""
    ours = one.observed
    keys = [(sample.id, verdict.id) for sample in one.run.samples for verdict in sample.statements]
    if len(keys) != len(ours.labels):
        msg = f"{one.name}: {len(keys) - len(ours.labels)} statements have no probability or no label"
        raise SystemExit(msg)
    theirs = {
        (sample.id, verdict.id): verdict.attributed for sample in recorded.samples for verdict in sample.statements
    }
    at = np.array([place for place, key in enumerate(keys) if theirs.get(key) is not None])
    said = np.array([theirs[keys[place]] is True for place in at])
    labels, groups = ours.labels[at], [ours.groups[place] for place in at]
    raw, calibrated = (ours.probabilities[at] >= THRESHOLD).astype(np.float64), _out_of_fold(ours)
    return Beside(
        n=len(at),
        recorded=_balanced(labels, said.astype(np.float64)),
        raw=_balanced(labels, raw),
        raw_difference_ci95=_difference(labels, raw, said, groups=groups),
        calibrated=None if calibrated is None else _balanced(labels, calibrated[at]),
        calibrated_difference_ci95=None
        if calibrated is None
        else _difference(labels, calibrated[at], said, groups=groups),
    )


def _out_of_fold(ours: Observed) -> Floats | None:
    """How often each statement is attributed by fits without its group, over all divisions into folds."""
    rng = np.random.default_rng(SEED)
    told = out_of_fold(ours.probabilities, ours.labels, ours.groups, recipe=Recipe(), rng=rng)
    return None if told is None else told.attributed.mean(axis=0)


def _tables(labels: Bools, attributed: Floats) -> Floats:
    """A row of true positives, false negatives, false positives and true negatives for each statement."""
    return np.stack(
        [labels * attributed, labels * (1 - attributed), ~labels * attributed, ~labels * (1 - attributed)], axis=1
    )


def _balanced(labels: Bools, attributed: Floats) -> float | None:
    value = float(balanced_accuracy_of(_tables(labels, attributed).sum(axis=0)))
    return None if np.isnan(value) else value


def _difference(labels: Bools, ours: Floats, theirs: Bools, *, groups: Sequence[str]) -> Interval:
    """Interval of our balanced accuracy less theirs, from resampling whole groups."""
    rows = np.concatenate([_tables(labels, ours), _tables(labels, theirs.astype(np.float64))], axis=1)
    drawn = resampled_sums(sums_by_group(rows, groups), rng=np.random.default_rng(SEED))
    return percentile_interval(balanced_accuracy_of(drawn[:, :4]) - balanced_accuracy_of(drawn[:, 4:]))


def transferred(fitted_on: Judged, tested_on: Judged) -> Transferred | None:
    """A calibration fitted on one set, on another; groups that both have are not fitted to."""
    ours, theirs = fitted_on.observed, tested_on.observed
    own = ~np.isin(np.array(ours.groups), np.array(theirs.groups))
    if ours.labels[own].all() or not ours.labels[own].any():
        return None
    found = fit(ours.probabilities[own], ours.labels[own])
    calibrated = mapped(found.probability_map, odds_of(theirs.probabilities))
    parts, before = brier_parts(calibrated, theirs.labels), brier_parts(theirs.probabilities, theirs.labels)
    return Transferred(
        fitted_on=fitted_on.name,
        tested_on=tested_on.name,
        n_fitted=int(own.sum()),
        n=len(theirs.labels),
        raw=agreement.balanced_accuracy(theirs.labels, theirs.probabilities >= THRESHOLD),
        calibrated=agreement.balanced_accuracy(theirs.labels, calibrated >= found.threshold),
        brier_raw=before.score if before else None,
        brier_calibrated=parts.score if parts else None,
    )


def figures_of(one: Judged) -> SetFigures:
    """All figures of one set."""
    ours = one.observed
    return SetFigures(
        n=ours.used.n_statements,
        n_positive=ours.used.n_positive,
        n_groups=ours.used.n_groups,
        judge=one.run.name,
        judges=dict(against_people(one)),
        beside={run.name: beside(one, run) for run in one.recorded},
        calibrated=cross_validated(ours.probabilities, ours.labels, ours.groups, recipe=Recipe(), seed=SEED),
    )


def tables(found: Found) -> Iterator[str]:
    """The Markdown tables of the benchmark README."""
    yield from _people_table(found)
    yield from _calibration_table(found)
    yield from _beside_table(found)
    yield "| fitted on | tested on | statements | balanced accuracy raw | calibrated | Brier score |"
    yield "|---|---|---|---|---|---|"
    for told in found.transfer:
        yield (
            f"| {told.fitted_on} ({told.n_fitted}) | {told.tested_on} | {told.n} | {_number(told.raw)} "
            f"| {_number(told.calibrated)} | {_number(told.brier_raw)} → {_number(told.brier_calibrated)} |"
        )


def _people_table(found: Found) -> Iterator[str]:
    yield "| set | judge | statements | AUC | balanced accuracy | kappa | balanced accuracy without partly supported |"
    yield "|---|---|---|---|---|---|---|"
    for name, one in found.sets.items():
        for judge, told in one.judges.items():
            rest = told.without_partial.balanced_accuracy if told.without_partial else None
            yield f"| {name} | {judge} | {told.all.n} | {_cells(told.all)} | {_number(rest)} |"
    yield ""


def _calibration_table(found: Found) -> Iterator[str]:
    yield "| set | balanced accuracy raw | calibrated in folds | gain | calibration error | Brier score |"
    yield "|---|---|---|---|---|---|"
    for name, one in found.sets.items():
        if one.calibrated is None:
            continue
        before, after, gain = one.calibrated.before, one.calibrated.after, one.calibrated.balanced_accuracy
        yield (
            f"| {name} | {before.balanced_accuracy:.3f} | {after.balanced_accuracy:.3f} "
            f"| {gain.gain:+.3f} {_interval(gain.gain_ci95)} | {before.ece:.3f} → {after.ece:.3f} "
            f"| {before.brier.score:.3f} → {after.brier.score:.3f} |"
        )
    yield ""


def _beside_table(found: Found) -> Iterator[str]:
    yield "| set | recorded judge | statements | balanced accuracy | ours, raw | less its | calibrated | less its |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, one in found.sets.items():
        for judge, told in one.beside.items():
            yield (
                f"| {name} | {judge} | {told.n} | {_number(told.recorded)} | {_number(told.raw)} "
                f"| {_interval(told.raw_difference_ci95)} | {_number(told.calibrated)} "
                f"| {_interval(told.calibrated_difference_ci95)} |"
            )
    yield ""


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(value: Interval) -> str:
    return "–" if value is None else f"({value[0]:+.2f} to {value[1]:+.2f})"


def _cells(told: Accuracy) -> str:
    pairs = (
        (told.auc, told.auc_ci95),
        (told.balanced_accuracy, told.balanced_accuracy_ci95),
        (told.kappa, told.kappa_ci95),
    )
    return " | ".join(_number(value) + (f" ({span[0]:.2f}–{span[1]:.2f})" if span else "") for value, span in pairs)


def means(sets: Mapping[str, SetFigures]) -> Means | None:
    """Means over the sets that the targets are about; None without one that has all figures."""
    of = [one for name, one in sets.items() if name in MAIN]
    ours = [one.judges[one.judge].all for one in of]
    calibrated = [one.calibrated.after.balanced_accuracy for one in of if one.calibrated]
    aucs = [one.auc for one in ours if one.auc is not None]
    raw = [one.balanced_accuracy for one in ours if one.balanced_accuracy is not None]
    if not of or not len(aucs) == len(raw) == len(calibrated) == len(of):
        return None
    return Means(
        n_sets=len(of),
        auc=float(np.mean(aucs)),
        balanced_accuracy=float(np.mean(raw)),
        balanced_accuracy_calibrated=float(np.mean(calibrated)),
    )


def _scored_sets(asked: argparse.Namespace) -> dict[str, Path]:
    """The run of each set that is there, made by the judge where there is none yet."""
    wanted = [name for name in asked.sets if (DATA / f"{name}.jsonl").exists()]
    outs = {name: asked.runs / name / (asked.judge or asked.model or "default") for name in wanted}
    missing = [name for name in wanted if not is_finished(outs[name])]
    if not missing:
        return outs
    with ExitStack() as stack:
        if asked.base_url:
            judge = Judge.connect(asked.base_url, asked.model, api_key=os.environ.get("AIRJUDGE_API_KEY"))
        else:
            judge = stack.enter_context(Judge.find(asked.judge, on_progress=stack.enter_context(stages())))
        for name in missing:
            scored(judge, name, outs[name], fork=asked.fork)
    return outs


def main() -> None:
    """Score what is not scored yet, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS, metavar="SET")
    parser.add_argument("--judge", help="profile to use")
    parser.add_argument("--base-url", help="a server that runs already (key in AIRJUDGE_API_KEY)")
    parser.add_argument("--model", help="the model to ask there")
    parser.add_argument("--runs", type=Path, default=Path("runs/agreement"), help="where runs are kept (%(default)s)")
    parser.add_argument("--fork", type=Path, help="a run of the same judge whose verdicts are taken over")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        sets = [judged(name, out, Path(folder)) for name, out in _scored_sets(asked).items()]
        figures = {one.name: figures_of(one) for one in sets}
        main_ones = [one for one in sets if one.name in MAIN]
        pairs = [transferred(a, b) for a in main_ones for b in main_ones if a is not b]
        found = Found(
            date=datetime.now(UTC).date().isoformat(),
            signatures=tuple(sorted({str(one.run.state.signature) for one in sets})),
            means=means(figures),
            sets=figures,
            transfer=tuple(one for one in pairs if one),
        )
    print("\n".join(tables(found)))
    print(f"\nmeans: {found.means}")
    asked.results.parent.mkdir(exist_ok=True)
    asked.results.write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
