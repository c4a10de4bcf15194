"""How often a judge contradicts itself, from runs of the same data by the same judge."""

from itertools import combinations
from pathlib import Path

import numpy as np

from airjudge import agreement
from airjudge.compare.frame import Floats, Frame, by_id, framed, rulings_of
from airjudge.compare.records import Interval, Repeats
from airjudge.compare.tabled import seeded
from airjudge.run import OpenedRun, RunState, open_run, repeats_in


def repeats_of_run(folder: Path) -> Repeats | None:
    """How often the judge of a run contradicts itself; None if the run was not repeated.

    Raises:
        InputError: If the folder holds no run.
        StorageFailed: If a journal cannot be read.
    """
    if not repeats_in(folder):
        return None
    run = open_run(folder)
    return repeats_of(run, framed([by_id(run.samples)[0]]))


def repeats_of(run: OpenedRun, frame: Frame) -> Repeats | None:
    """Figures of a run and its repeats, over the statements of a frame; None without repeats of the same judge.

    One repeat is read at a time: in memory stay a verdict each and no texts.
    """
    rows = [rulings_of(frame, by_id(run.samples)[0]).verdicts]
    for folder in repeats_in(run.folder):
        repeat = open_run(folder)
        if is_repeat(repeat.state, run.state):
            rows.append(rulings_of(frame, by_id(repeat.samples)[0]).verdicts)
    return consistency(np.stack(rows), frame) if len(rows) > 1 else None


def is_repeat(one: RunState, run: RunState) -> bool:
    """Say whether a run is of the same data by the same judge as another."""
    return (one.signature, one.data_sha256) == (run.signature, run.data_sha256)


def consistency(verdicts: Floats, frame: Frame) -> Repeats:
    """Figures of verdicts of several runs, shape (k, n_statements), NaN for none."""
    n_ruled, n_true = (~np.isnan(verdicts)).sum(axis=0), (verdicts == 1).sum(axis=0)
    shared = n_ruled >= 2
    return Repeats(
        k=len(verdicts),
        n=int(shared.sum()),
        n_flipped=int((shared & (n_true > 0) & (n_true < n_ruled)).sum()),
        flip_rate=agreement.flip_rate(verdicts),
        flip_rate_ci95=_interval(verdicts[:, shared], frame.group_of[frame.sample_of[shared]]),
        kappa=_mean_kappa(verdicts),
    )


def _interval(verdicts: Floats, groups: agreement.Indices) -> Interval:
    n, n_true = (~np.isnan(verdicts)).sum(axis=0), (verdicts == 1).sum(axis=0)
    differing = n_true * (n - n_true) / (n * (n - 1) / 2)
    sums = agreement.sums_by_group(np.stack([differing, np.ones_like(differing)], axis=1), groups)
    return agreement.table_bootstrap(lambda rows: rows[..., 0] / rows[..., 1], sums, rng=seeded())


def _mean_kappa(verdicts: Floats) -> float | None:
    """Mean over the pairs of runs that have a kappa; None if no pair has."""
    kappas = [_kappa(a, b) for a, b in combinations(verdicts, 2)]
    known = [one for one in kappas if one is not None]
    return float(np.mean(known)) if known else None


def _kappa(a: Floats, b: Floats) -> float | None:
    shared = ~np.isnan(a + b)
    return agreement.cohen_kappa(a[shared] == 1, b[shared] == 1)
