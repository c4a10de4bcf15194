"""Two judges held against each other."""

from collections.abc import Sequence

import numpy as np

from airjudge import agreement
from airjudge.agreement import ac1_of, agreement_of, kappa_of, prevalence_of, rate_of
from airjudge.agreement.arrays import defined
from airjudge.compare.columns import Column
from airjudge.compare.disagreements import disagreements
from airjudge.compare.frame import Floats, Frame, Indices
from airjudge.compare.judges import Judge
from airjudge.compare.records import Pair, PairSlice, RecallDifference
from airjudge.compare.settings import CompareSettings
from airjudge.compare.tabled import Tabled, seeded, tabled


def pair_of(a: Judge, b: Judge, *, frame: Frame, settings: CompareSettings, columns: Sequence[Column]) -> Pair:
    """All figures of two judges over the statements that both ruled on, and the samples that both scored."""
    shared = np.flatnonzero(~np.isnan(a.rulings.verdicts + b.rulings.verdicts))
    of_a, of_b = (one.rulings.verdicts[shared] == 1 for one in (a, b))
    samples = frame.sample_of[shared]
    found = tabled(of_a, of_b, frame.group_of[samples])
    both, only_a, only_b, neither = (int(count) for count in found.whole)
    return Pair(
        a=a.name,
        b=b.name,
        n=len(shared),
        n_samples=len(np.unique(samples)),
        n_groups=len(found.by_group),
        n_left_out=frame.n_statements - len(shared),
        agreement=found.value(agreement_of),
        agreement_ci95=found.interval(agreement_of),
        prevalence_a=found.value(prevalence_of),
        prevalence_b=found.value(rate_of),
        kappa=found.value(kappa_of),
        kappa_ci95=found.interval(kappa_of),
        ac1=found.value(ac1_of),
        ac1_ci95=found.interval(ac1_of),
        table=((neither, only_b), (only_a, both)),
        mcnemar_p=agreement.mcnemar_exact(only_a, only_b),
        permutation_p=_permutation_p(found),
        recall=_recall(a.rulings.scores, b.rulings.scores, frame=frame, margin=settings.margin),
        slices=tuple(one for column in columns for one in _slices(a, b, shared, frame=frame, column=column)),
        n_disagreements=only_a + only_b,
        disagreements=disagreements(a, b, frame=frame, most=settings.max_disagreements),
    )


def _permutation_p(found: Tabled) -> float | None:
    """Swap the judges over whole groups: how far is what only one of them attributes from chance."""
    return agreement.sign_flip_test(found.by_group[:, 1] - found.by_group[:, 2], rng=seeded())


def _recall(a: Floats, b: Floats, *, frame: Frame, margin: float) -> RecallDifference:
    scored = np.flatnonzero(~np.isnan(a + b))
    x, y, groups = a[scored], b[scored], frame.group_of[scored]
    difference = agreement.paired_difference(x, y, groups, rng=seeded())
    tested = agreement.equivalence(x, y, groups, margin=margin)
    return RecallDifference(
        n=len(scored),
        n_groups=len(np.unique(groups)),
        mean_a=float(x.mean()) if len(x) else None,
        mean_b=float(y.mean()) if len(y) else None,
        difference=difference.mean,
        ci95=difference.ci95,
        margin=margin,
        ci90=tested.ci90,
        equivalence_p=tested.p,
        equivalent=tested.equivalent,
        pearson=agreement.pearson(x, y),
        spearman=agreement.spearman(x, y),
    )


def _slices(a: Judge, b: Judge, shared: Indices, *, frame: Frame, column: Column) -> list[PairSlice]:
    """The pair on each value of a column; values without any statement or score in common are left out."""
    value_of = column.of_sample[frame.sample_of[shared]]
    of_a, of_b = (one.rulings.verdicts[shared] == 1 for one in (a, b))
    differences = a.rulings.scores - b.rulings.scores
    found = []
    for number, value in enumerate(column.values):
        here, scored = value_of == number, differences[column.of_sample == number]
        scored = scored[~np.isnan(scored)]
        if here.any() or len(scored):
            counts = agreement.table(of_a[here], of_b[here])
            found.append(
                PairSlice(
                    column=column.name,
                    value=value,
                    n=int(here.sum()),
                    agreement=defined(agreement_of(counts)),
                    prevalence_a=defined(prevalence_of(counts)),
                    prevalence_b=defined(rate_of(counts)),
                    kappa=defined(kappa_of(counts)),
                    ac1=defined(ac1_of(counts)),
                    recall_difference=float(scored.mean()) if len(scored) else None,
                )
            )
    return found
