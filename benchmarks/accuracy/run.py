"""How often the judge agrees with people: AUC, balanced accuracy and kappa over the labelled sets.

    python benchmarks/accuracy/run.py [--judge NAME | --base-url URL] [SET ...]

Scores each set as `airjudge score --statements given` does and holds the verdicts against the human
labels. `benchmarks/results/accuracy.json` gets the figures; sets that were not asked for keep theirs.
Intervals are from 2000 bootstrap resamples over groups. The prompt was developed on these very sets,
so every figure is "tuned here".
"""

import argparse
import asyncio
import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from airjudge.agreement import auc, balanced_accuracy, cluster_bootstrap, cohen_kappa
from airjudge.cli.progress import display
from airjudge.cli.render import stages
from airjudge.judge import Judge, JudgeSettings
from airjudge.metrics import ContextRecall
from airjudge.run import read_scored, score_dataset

DATA = Path(os.environ.get("AIRJUDGE_DATA", Path(__file__).parents[3] / "shared" / "data"))
SETS = ("wice_subclaims", "factcheck_bench_claims", "klue_nli_ko")
RESULTS = Path(__file__).parents[1] / "results" / "accuracy.json"
Key = tuple[str, str]


@dataclass(frozen=True)
class Judged:
    """A set's verdicts beside its labels, each of shape (n_statements,)."""

    labels: npt.NDArray[np.bool_]
    probabilities: npt.NDArray[np.float64]
    groups: list[str]

    def figures(self) -> dict[str, object]:
        """Each figure with its interval; predictions are probabilities of at least one half."""
        said = self.probabilities >= 0.5
        found: dict[str, object] = {"n": len(self.labels), "yes_rate": float(said.mean())}
        found["auc"] = auc(self.labels, self.probabilities)
        found["balanced_accuracy"] = balanced_accuracy(self.labels, said)
        found["kappa"] = cohen_kappa(self.labels, said)
        rng = np.random.default_rng(0)
        found["auc_ci95"] = cluster_bootstrap(
            lambda at: auc(self.labels[at], self.probabilities[at]), self.groups, rng=rng
        )
        found["balanced_accuracy_ci95"] = cluster_bootstrap(
            lambda at: balanced_accuracy(self.labels[at], said[at]), self.groups, rng=rng
        )
        found["kappa_ci95"] = cluster_bootstrap(lambda at: cohen_kappa(self.labels[at], said[at]), self.groups, rng=rng)
        return found


def human_labels(path: Path) -> dict[Key, tuple[bool, str]]:
    """Label and group of each statement, by sample id and statement id."""
    found: dict[Key, tuple[bool, str]] = {}
    with path.open(encoding="utf-8") as file:
        for line in file:
            sample = json.loads(line)
            for statement in sample["statements"]:
                found[sample["id"], statement["id"]] = (statement["label"] == 1, sample["group"])
    return found


def judged(labels: Mapping[Key, tuple[bool, str]], out: Path) -> Judged:
    """The verdicts of a run beside their labels; a statement without verdict is an error here."""
    rows = [
        (*labels[sample.id, verdict.id], verdict.probability)
        for sample in read_scored(out)
        for verdict in sample.statements
    ]
    missing = sum(probability is None for *_, probability in rows) + len(labels) - len(rows)
    if missing:
        msg = f"{missing} statements have no verdict with a probability"
        raise SystemExit(msg)
    return Judged(
        labels=np.array([label for label, _, _ in rows]),
        probabilities=np.array([probability for *_, probability in rows], dtype=np.float64),
        groups=[group for _, group, _ in rows],
    )


def row(name: str, figures: Mapping[str, object]) -> str:
    """One line of the Markdown table."""
    cells = [f"{figures[key]:.3f} ({low:.2f}–{high:.2f})" for key, (low, high) in _intervals(figures)]
    return f"| {name} | {figures['n']} | {' | '.join(cells)} | {figures['yes_rate']:.2f} |"


def _intervals(figures: Mapping[str, object]) -> list[tuple[str, tuple[float, float]]]:
    keys = ("auc", "balanced_accuracy", "kappa")
    return [(key, interval) for key in keys if isinstance(interval := figures[f"{key}_ci95"], tuple)]


def measure(judge: Judge, name: str) -> dict[str, object]:
    """Score one set and hold its verdicts against its labels."""
    data = DATA / f"{name}.jsonl"
    with TemporaryDirectory() as folder, display() as shown:
        out = Path(folder) / "out"
        header = asyncio.run(score_dataset(data, ContextRecall(judge), out, on_counts=shown.counts))
        figures = judged(human_labels(data), out).figures()
    print(row(name, figures), flush=True)
    return {
        **figures,
        "signature": str(judge.signature("given")),
        "seconds": round(header.seconds, 1),
        **header.usage.model_dump(),
    }


def main() -> None:
    """Score the sets and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--judge", help="profile to use")
    parser.add_argument("--base-url", help="a server that runs already (key in AIRJUDGE_API_KEY)")
    parser.add_argument("--method", choices=("pointwise", "ragas"), default="pointwise")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    settings = JudgeSettings(method=options.method)
    print("| set | statements | AUC | balanced accuracy at .5 | kappa | yes rate |\n|---|---|---|---|---|---|")
    with ExitStack() as stack:
        if options.base_url:
            key = os.environ.get("AIRJUDGE_API_KEY")
            judge = Judge.connect(options.base_url, api_key=key, settings=settings)
        else:
            told = stack.enter_context(stages())
            judge = stack.enter_context(Judge.find(options.judge, settings=settings, on_progress=told))
        known = options.results.exists()
        found = json.loads(options.results.read_text(encoding="utf-8"))["sets"] if known else {}
        for name in options.sets:
            found[name] = measure(judge, name)
    means = {
        key: float(np.mean([figures[key] for figures in found.values()]))
        for key in ("auc", "balanced_accuracy", "kappa")
    }
    print(f"mean of {len(found)} sets: " + ", ".join(f"{key} {value:.3f}" for key, value in means.items()))
    options.results.parent.mkdir(exist_ok=True)
    content = {"tuned_here": True, "means": means, "sets": found}
    options.results.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
