"""What fitted weights of several questions would give, instead of the profile's fixed ones; nothing is asked.

    python -m benchmarks.agreement.stacked

Reads the log-odds that the prompt lab kept (`benchmarks/prompts/raw.jsonl`): two phrasings, each with the contexts
and without. A logistic regression of the four is fitted in five folds over groups (ten divisions, means over them)
within each set, and on two sets for the third. Beside it stand the profile's weights, which are fixed.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from airjudge.agreement import Bools, Floats, auc, balanced_accuracy
from benchmarks.prompts.lab import SETS, read_samples

RAW = Path(__file__).parents[1] / "prompts" / "raw.jsonl"
RESULTS = Path(__file__).parents[1] / "results" / "stacked.json"
DATA = Path(os.environ.get("AIRJUDGE_DATA", Path(__file__).parents[3] / "shared" / "data"))
QUESTIONS = ("read.plain.entailed", "read.plain.say", "none.plain.entailed", "none.plain.say")
PROFILE = np.array([0.5, 0.5, -0.85, 0.0])
PROFILE_OFFSET = -0.85 * 1.4
N_FOLDS, N_DIVISIONS, SEED = 5, 10, 20_261_130


@dataclass(frozen=True)
class Odds:
    """One set: log-odds of shape (n_statements, 4), labels of shape (n_statements,), and groups as numbers."""

    odds: Floats
    labels: Bools
    group_of: np.ndarray[tuple[int], np.dtype[np.intp]]


def read_set(name: str, known: dict[tuple[str, str, str], float]) -> Odds:
    """The log-odds of one set that the lab kept, beside its labels."""
    rows, labels, groups = [], [], []
    for sample in read_samples(DATA / f"{name}.jsonl"):
        for statement in sample.statements:
            rows.append([known[question, sample.id, statement.id] for question in QUESTIONS])
            labels.append(statement.label == 1)
            groups.append(sample.group)
    _, group_of = np.unique(groups, return_inverse=True)
    return Odds(np.array(rows), np.array(labels), group_of)


def fitted(odds: Floats, labels: Bools, of: Floats) -> Floats:
    """Log-odds of other statements by a regression fitted to these."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0))
    return np.asarray(model.fit(odds, labels).decision_function(of), dtype=np.float64)


def within(one: Odds) -> Iterator[Floats]:
    """Log-odds of each statement by fits without its group, for each division of the groups into folds."""
    rng = np.random.default_rng(SEED)
    for _ in range(N_DIVISIONS):
        fold_of = (rng.permutation(int(one.group_of.max()) + 1) % N_FOLDS)[one.group_of]
        out = np.empty(len(one.labels))
        for fold in range(N_FOLDS):
            held = fold_of == fold
            out[held] = fitted(one.odds[~held], one.labels[~held], one.odds[held])
        yield out


def figures(labels: Bools, odds: Floats) -> tuple[float, float]:
    """AUC, and balanced accuracy at a probability of .5."""
    return auc(labels, odds) or 0.0, balanced_accuracy(labels, odds >= 0) or 0.0


def main() -> None:
    """Print and keep the table."""
    lines = [json.loads(line) for line in RAW.read_text(encoding="utf-8").splitlines()]
    known = {(one["q"], one["sample"], one["st"]): one["logit"] for one in lines}
    sets = {name: read_set(name, known) for name in SETS}
    found = {}
    for name, one in sets.items():
        others = [sets[other] for other in SETS if other != name]
        odds, labels = np.concatenate([o.odds for o in others]), np.concatenate([o.labels for o in others])
        found[name] = {
            "fixed": figures(one.labels, one.odds @ PROFILE + PROFILE_OFFSET),
            "in_folds": tuple(np.mean([figures(one.labels, out) for out in within(one)], axis=0)),
            "from_the_other_two": figures(one.labels, fitted(odds, labels, one.odds)),
        }
    found["mean"] = {key: tuple(np.mean([one[key] for one in found.values()], axis=0)) for key in found[SETS[0]]}
    print("| set | profile's weights | fitted in folds within the set | fitted on the other two |\n|---|---|---|---|")
    for name, told in found.items():
        print(f"| {name} | {' | '.join(f'{a:.3f} / {b:.3f}' for a, b in told.values())} |")
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
