"""Which statement of the reference an echoed statement is, where a judge wrote it out again, and what that adds up to.

Echoes are never compared literally: judges shorten, split and repeat, and some multi-byte text comes
back corrupted. Texts are compared by their character pairs, which serves scripts without spaces too.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from airjudge.schema import Echoes, Statement

SHARE = 0.6
"""Least share of an echo that must stem from its statement, and of a statement that its echoes must cover."""
NOTHING_NEW = 0.9
"""An echo repeats a statement if so much of what it says of it is said by its other echoes."""

Pairs = Counter[str]


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which echoes are which statement; echoes are named by their place in the reply.

    `ruled` lists, for each statement, the echoes that are it or parts of it: none where no echo fits, or where those
    that fit leave out too much of the statement, which has not been ruled on then. `echoes` is the account of it.
    """

    ruled: tuple[tuple[int, ...], ...]
    echoes: Echoes


def align(statements: Sequence[Statement], echoes: Sequence[str]) -> Alignment:
    """Give each statement the echoes that are it, or parts of it.

    An echo goes to the statement that it is most like; of equally good ones to that which its echoes so far say
    least of, so that a statement that the reference holds twice takes both echoes of it. The longest echo is placed
    first: the order in which the judge wrote them does not matter.

    Args:
        statements: The statements asked about.
        echoes: What the judge wrote, in its order.
    """
    wanted, said = [_pairs(one.text) for one in statements], [_pairs(one) for one in echoes]
    found: list[list[int]] = [[] for _ in statements]
    held: list[Pairs] = [Counter() for _ in statements]
    for index in sorted(range(len(echoes)), key=lambda one: (-said[one].total(), echoes[one])):
        pairs = said[index]
        ranked = [
            (_f1(pairs, one), -(pairs & held[n]).total(), -n)
            for n, one in enumerate(wanted)
            if _share(pairs, one) >= SHARE
        ]
        if ranked:
            best = -max(ranked)[2]
            found[best].append(index)
            held[best] |= pairs
    covered = [bool(one) and _share(one, joined) >= SHARE for one, joined in zip(wanted, held, strict=True)]
    ruled = tuple(tuple(sorted(one)) if whole else () for one, whole in zip(found, covered, strict=True))
    repeated = [_repeats(one, [said[at] for at in at_all]) for one, at_all in zip(wanted, ruled, strict=True)]
    return Alignment(ruled, _account(ruled, repeated, n_items=len(echoes), n_aligned=sum(map(len, found))))


def _account(ruled: Sequence[Sequence[int]], repeated: Sequence[bool], *, n_items: int, n_aligned: int) -> Echoes:
    """What an alignment adds up to."""
    n_missing = sum(not one for one in ruled)
    n_once, n_repeated = sum(len(one) == 1 for one in ruled), sum(repeated)
    return Echoes(
        n_items=n_items,
        n_once=n_once,
        n_split=len(ruled) - n_missing - n_once - n_repeated,
        n_repeated=n_repeated,
        n_invented=n_items - n_aligned,
        n_missing=n_missing,
        coverage=(len(ruled) - n_missing) / len(ruled) if ruled else None,
    )


def _repeats(statement: Pairs, echoes: Sequence[Pairs]) -> bool:
    """Whether one of several echoes says nothing of its statement beside the others: it is no part of a split."""
    parts = [one & statement for one in echoes]
    return any(_share(part, _joined([*parts[:at], *parts[at + 1 :]])) >= NOTHING_NEW for at, part in enumerate(parts))


def _joined(parts: Sequence[Pairs]) -> Pairs:
    """What any of several texts holds, a pair as often as the one that has it most often."""
    joined: Pairs = Counter()
    for one in parts:
        joined |= one
    return joined


def _pairs(text: str) -> Pairs:
    """Neighbouring letters and digits, case folded; one character alone counts as itself."""
    kept = "".join(character for character in text.casefold() if character.isalnum())
    return Counter(kept[n : n + 2] for n in range(max(1, len(kept) - 1))) if kept else Counter()


def _share(part: Pairs, whole: Pairs) -> float:
    """How much of `part` is in `whole`, in [0, 1]."""
    return (part & whole).total() / part.total() if part else 0.0


def _f1(a: Pairs, b: Pairs) -> float:
    return 2 * (a & b).total() / (a.total() + b.total())
