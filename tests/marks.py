"""Arrays of verdicts as marks, for tests of statistics: "x" attributed, "." not, "?" no verdict."""

import numpy as np

from airjudge.agreement import Bools, Floats


def bools(marks: str) -> Bools:
    """One judge's verdicts, none missing."""
    return np.array([mark == "x" for mark in marks], dtype=bool)


def ratings(*rows: str) -> Floats:
    """Verdicts of several judges, one string each; shape (n_judges, n_statements), NaN where there is none."""
    return np.array([[{"x": 1.0, ".": 0.0, "?": np.nan}[mark] for mark in row] for row in rows])


def of_table(both: int, only_a: int, only_b: int, neither: int) -> tuple[Bools, Bools]:
    """Two judges' verdicts with that 2x2 table."""
    a = bools("x" * (both + only_a) + "." * (only_b + neither))
    b = bools("x" * both + "." * only_a + "x" * only_b + "." * neither)
    return a, b
