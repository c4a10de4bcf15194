"""Which statement of the reference an echoed statement is, where a judge wrote it out again.

Echoes are never compared literally: judges shorten, split and repeat, and some multi-byte text comes
back corrupted. Texts are compared by their character pairs, which serves scripts without spaces too.
"""

from collections import Counter
from collections.abc import Sequence

from airjudge.schema import Statement

SHARE = 0.6
"""Least share of an echo that must stem from its statement, and of a statement that its echoes must cover."""


def align(statements: Sequence[Statement], echoes: Sequence[str]) -> list[list[int]]:
    """Give each statement the echoes that are it, or parts of it.

    Args:
        statements: The statements asked about.
        echoes: What the judge wrote, in its order.

    Returns:
        One list of echo indices a statement. It is empty where no echo fits, or where the echoes
        that fit leave out too much of the statement: such a statement has not been ruled on.
    """
    wanted = [_pairs(one.text) for one in statements]
    found: list[list[int]] = [[] for _ in statements]
    for index, echo in enumerate(echoes):
        pairs = _pairs(echo)
        # Of equally good statements the one with fewest echoes wins: repeated statements share them out.
        ranked = [(_f1(pairs, one), -len(found[n]), -n) for n, one in enumerate(wanted) if _share(pairs, one) >= SHARE]
        if ranked:
            found[-max(ranked)[2]].append(index)
    return [
        indices if _covered(one, [_pairs(echoes[index]) for index in indices]) else []
        for one, indices in zip(wanted, found, strict=True)
    ]


def _pairs(text: str) -> Counter[str]:
    """Neighbouring letters and digits, case folded; one character alone counts as itself."""
    kept = "".join(character for character in text.casefold() if character.isalnum())
    return Counter(kept[n : n + 2] for n in range(max(1, len(kept) - 1))) if kept else Counter()


def _share(part: Counter[str], whole: Counter[str]) -> float:
    """How much of `part` is in `whole`, in [0, 1]."""
    return (part & whole).total() / part.total() if part else 0.0


def _f1(a: Counter[str], b: Counter[str]) -> float:
    return 2 * (a & b).total() / (a.total() + b.total())


def _covered(statement: Counter[str], echoes: Sequence[Counter[str]]) -> bool:
    joined: Counter[str] = Counter()
    for one in echoes:
        joined |= one
    return bool(statement) and _share(statement, joined) >= SHARE
