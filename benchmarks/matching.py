"""Which statement of one split is which of another: word-level F1, one to one."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.optimize import linear_sum_assignment

LEAST_F1: Final = 0.5
"""Two statements are the same if their words overlap by that."""

_WORD: Final = re.compile(r"\w+")


def words(text: str) -> Counter[str]:
    """The words of a text with their counts, case and punctuation folded."""
    return Counter(_WORD.findall(text.casefold()))


def word_f1(one: str, other: str) -> float:
    """Harmonic mean of the shares of words that two texts have in common, in [0, 1]; 0 if either has no word.

    Source:
        Rajpurkar et al. (2016), the F1 of SQuAD, without its removal of articles. doi:10.18653/v1/D16-1264
    """
    a, b = words(one), words(other)
    shared = (a & b).total()
    return 2 * shared / (a.total() + b.total()) if shared else 0.0


def one_to_one(ones: Sequence[str], others: Sequence[str], least: float = LEAST_F1) -> list[tuple[int, int]]:
    """Places of texts that are the same, each in one pair at most; as many pairs as can be, then the closest.

    Pairs below `least` are none. Ties are broken by place, so the result does not depend on anything else.
    """
    if not ones or not others:
        return []
    closeness = np.array([[word_f1(one, other) for other in others] for one in ones])
    fits = closeness >= least
    rows, columns = linear_sum_assignment(np.where(fits, 1 + closeness / (1 + len(ones)), 0.0), maximize=True)
    return [(int(row), int(column)) for row, column in zip(rows, columns, strict=True) if fits[row, column]]
