"""Statistics of 2x2 tables: one formula for a single table and for thousands of resampled ones.

A table is (both, only_a, only_b, neither): how many statements both judges ruled true, only the first, only the second,
neither. If the first is people's labels these are true positives, false negatives, false positives and true
negatives. Arrays of tables have the shape (..., 4); a statistic of them has the shape (...), NaN where undefined.
"""

import numpy as np
import numpy.typing as npt

from airjudge.agreement.arrays import Bools, Floats, check_shapes, divided
from airjudge.agreement.clusters import sums_by_group


def table(a: Bools, b: Bools) -> Floats:
    """Table of two judges over the same statements, shape (4,).

    Raises:
        ValueError: If the shapes differ or are not one-dimensional.
    """
    check_shapes(a, b)
    both, only_a, only_b = int((a & b).sum()), int((a & ~b).sum()), int((~a & b).sum())
    return np.array([both, only_a, only_b, a.size - both - only_a - only_b], dtype=np.float64)


def grouped_tables(a: Bools, b: Bools, groups: npt.ArrayLike) -> Floats:
    """One table for each group of statements, shape (n_groups, 4), in the groups' sorted order.

    Raises:
        ValueError: If the shapes differ, `groups` included, or are not one-dimensional.
    """
    check_shapes(a, b)
    return sums_by_group(np.stack([a & b, a & ~b, ~a & b, ~a & ~b], axis=1).astype(np.float64), groups)


def agreement_of(tables: Floats) -> Floats:
    """Share of statements on which both judges rule alike; undefined without statements."""
    return divided(tables[..., 0] + tables[..., 3], tables.sum(axis=-1))


def prevalence_of(tables: Floats) -> Floats:
    """Share of statements that the first judge rules true, or that people label true; undefined without any."""
    return divided(tables[..., 0] + tables[..., 1], tables.sum(axis=-1))


def rate_of(tables: Floats) -> Floats:
    """Share of statements that the second judge rules true; undefined without statements."""
    return divided(tables[..., 0] + tables[..., 2], tables.sum(axis=-1))


def kappa_of(tables: Floats) -> Floats:
    """Cohen's kappa; undefined if both judges are constant and equal, or without statements.

    Written without divisions by n, so that the undefined case is told from integers, exactly:
    (p_o - p_e) / (1 - p_e) = 2 (both·neither - only_a·only_b) / (yes_a·no_b + yes_b·no_a).
    """
    both, only_a, only_b, neither = np.moveaxis(tables, -1, 0)
    chance = (both + only_a) * (only_a + neither) + (both + only_b) * (only_b + neither)
    return divided(2 * (both * neither - only_a * only_b), chance)


def ac1_of(tables: Floats) -> Floats:
    """Gwet's AC1; undefined without statements.

    Chance agreement is 2 π (1 - π), π the mean share ruled true; it is at most 1/2.
    """
    shared = divided(2 * tables[..., 0] + tables[..., 1] + tables[..., 2], 2 * tables.sum(axis=-1))
    chance = 2 * shared * (1 - shared)
    return (agreement_of(tables) - chance) / (1 - chance)


def sensitivity_of(tables: Floats) -> Floats:
    """Share of the statements labelled true that the judge rules true; undefined without any."""
    return divided(tables[..., 0], tables[..., 0] + tables[..., 1])


def specificity_of(tables: Floats) -> Floats:
    """Share of the statements labelled false that the judge rules false; undefined without any."""
    return divided(tables[..., 3], tables[..., 3] + tables[..., 2])


def balanced_accuracy_of(tables: Floats) -> Floats:
    """Mean of sensitivity and specificity; undefined where one of them is."""
    return (sensitivity_of(tables) + specificity_of(tables)) / 2


def f1_of(tables: Floats) -> Floats:
    """Harmonic mean of precision and sensitivity; undefined if nothing is labelled true and nothing ruled true."""
    return divided(2 * tables[..., 0], 2 * tables[..., 0] + tables[..., 1] + tables[..., 2])
