"""The arrays that statistics take, and the two checks and the one conversion that they all share."""

import math

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


def check_shapes(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> None:
    """Refuse arrays that do not speak of the same statements.

    Raises:
        ValueError: If the shapes differ or are not one-dimensional.
    """
    if a.shape != b.shape or a.ndim != 1:
        msg = f"verdict arrays must share one shape (n,): got {a.shape} and {b.shape}"
        raise ValueError(msg)


def check_binary(ratings: Floats) -> None:
    """Refuse ratings other than 0, 1 and, for none, NaN; and arrays that are not (n_judges, n_statements).

    Raises:
        ValueError: If a rating or the shape is another.
    """
    if ratings.ndim != 2:
        msg = f"ratings must have the shape (n_judges, n_statements): got {ratings.shape}"
        raise ValueError(msg)
    if not np.isin(ratings[~np.isnan(ratings)], (0, 1)).all():
        msg = "a rating must be 0, 1, or NaN where there is none"
        raise ValueError(msg)


def check_finite(*arrays: Floats) -> None:
    """Refuse scores that are NaN or infinite: who has none must be left out, and counted, by the caller.

    Raises:
        ValueError: If one is.
    """
    if not all(np.isfinite(array).all() for array in arrays):
        msg = "a score is NaN or infinite: leave out what has no score, and count it"
        raise ValueError(msg)


def divided(numerators: Floats, denominators: Floats) -> Floats:
    """Quotients, element by element; NaN, which stands for undefined inside this package, where 0 divides."""
    quotients: Floats = np.full(np.broadcast_shapes(numerators.shape, denominators.shape), np.nan)
    np.divide(numerators, denominators, out=quotients, where=denominators != 0)
    return quotients


def defined(value: float | Floats) -> float | None:
    """A number as callers get it: undefined is None, never NaN."""
    number = float(value)
    return None if math.isnan(number) else number
