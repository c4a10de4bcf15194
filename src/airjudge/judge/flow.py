"""The order in which samples are asked about: those that share a prefix stand together."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from airjudge.schema import Sample

WINDOW = 256
"""Samples looked at together: a few times what is in flight, and no more than a moment's reading."""

T = TypeVar("T")


def together(entries: Iterable[T], *, first_context: Callable[[T], str | None], window: int = WINDOW) -> Iterator[T]:
    """Bring those of a window that share their first context next to each other.

    Prompts begin with the contexts, so samples with the same first one share a prefix, and a server has
    it in its cache only for a while. Entries keep their order otherwise, and none moves by more than the
    window; the next window is read when the last one is through.

    Args:
        entries: What is to be asked about, in input order.
        first_context: What is shared, None for an entry that shares nothing.
        window: How many entries are held at once.

    Raises:
        ValueError: If the window holds nothing.
    """
    if window < 1:
        msg = f"a window holds at least one entry: got {window}"
        raise ValueError(msg)
    rest = iter(entries)
    while held := list(islice(rest, window)):
        groups: dict[object, list[T]] = {}
        for place, entry in enumerate(held):
            context = first_context(entry)
            groups.setdefault(place if context is None else context, []).append(entry)
        for group in groups.values():
            yield from group


def first_context_of(sample: object) -> str | None:
    """The first context of a sample; None for anything else, such as a line that is not one."""
    return next(iter(sample.retrieved_contexts), None) if isinstance(sample, Sample) else None
