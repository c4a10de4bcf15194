"""What a judge reads of the contexts: short ones in full, of long ones the sentences closest to the statement.

A small model loses a detail among many sentences; with those alone that share words with the statement it
ranks statements better, and its prompts are shorter (benchmarks/prompts/README.md). No model is asked: the
choice is the same on every machine. Where the words of a statement hardly occur, as in another language,
words cannot choose, and the contexts stay in full.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

N_SENTENCES = 8
MAX_CHARACTERS = 400
"""Of one sentence; enough for nearly all, and a bound where a context has no sentence ends."""
LENGTH_PENALTY = 0.02
"""A long sentence shares words by its length alone; each word of it lowers its score by this share."""
MIN_SHARE = 0.25
"""The share of a statement's words that its closest sentences must hold to stand for the contexts."""

LEAST_PART = 80
"""Characters of a text that is divided no further: less says nothing."""
T = TypeVar("T")

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？؟।])\s*|\n+")
_ASCII_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
"""Finds the same ends in ASCII, where nothing has to look behind, in a fraction of the time."""
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts whose words are not set apart by spaces, or carry their particles: compared by character pairs."""

RULE = (N_SENTENCES, MAX_CHARACTERS, LENGTH_PENALTY, MIN_SHARE, _SENTENCE_END.pattern, _UNSPACED.pattern)
"""All that decides the choice beside the code: part of a judge's signature."""


def read_for(contexts: Sequence[str], statement: str) -> list[tuple[int, str]]:
    """The contexts as the judge of one statement reads them, each with its number from 1.

    A shared word counts by its inverse sentence frequency over the contexts, as in retrieval.

    Returns:
        All contexts that are not blank, if they hold at most `N_SENTENCES` sentences, or if the closest
        ones hold less than `MIN_SHARE` of the statement's words; else those `N_SENTENCES` sentences, each
        cut at `MAX_CHARACTERS`, in their order and under the numbers of their contexts.
    """
    index = _indexed(tuple(contexts))
    wanted = words_of(statement)
    chosen = _closest(index, wanted) if len(index.sentences) > N_SENTENCES else []
    held = sum(any(place in index.places.get(word, ()) for place in chosen) for word in wanted)
    if not chosen or held < MIN_SHARE * len(wanted):
        return [(number, text.strip()) for number, text in enumerate(contexts, 1) if text.strip()]
    read: dict[int, list[str]] = {}
    for place in chosen:
        read.setdefault(index.numbers[place], []).append(index.sentences[place][:MAX_CHARACTERS])
    return [(number, " ".join(sentences)) for number, sentences in read.items()]


def divided(read: Sequence[tuple[int, str]], n: int) -> list[list[tuple[int, str]]]:
    """What is read of contexts in at most n parts of much the same length, in order; nothing is left out or repeated.

    Whole contexts stay together where there are several. A lone one is divided between its sentences, a lone
    sentence between its words, a lone word between its characters; the parts keep the context's number.

    Returns:
        Two parts at least; one if all that is left is too short to say anything in halves, or is nothing.
    """
    if len(read) > 1:
        return _grouped(read, [len(text) for _, text in read], n)
    parts = []
    for number, text in read:
        pieces, between = _pieces(text)
        groups = _grouped(pieces, [len(one) for one in pieces], n)
        parts += [[(number, between.join(group))] for group in groups]
    return parts


def _pieces(text: str) -> tuple[Sequence[str], str]:
    """The smallest pieces that a text should be divided between, and what joins them."""
    if len(text) < 2 * LEAST_PART:
        return [text], ""
    sentences, words = split_at_ends(text), text.split()
    return (sentences, " ") if len(sentences) > 1 else (words, " ") if len(words) > 1 else (text, "")


def _grouped(items: Sequence[T], lengths: Sequence[int], n: int) -> list[list[T]]:
    """Neighbours in at most n groups: each item goes where its middle lies in the whole."""
    whole, before = sum(lengths), 0
    groups: dict[int, list[T]] = {}
    for item, length in zip(items, lengths, strict=True):
        groups.setdefault((2 * before + length) * n // (2 * whole), []).append(item)
        before += length
    return list(groups.values())


@dataclass(frozen=True, slots=True)
class _Index:
    """The sentences of one sample's contexts: whose they are, how many words each has, where each word stands."""

    sentences: tuple[str, ...]
    numbers: tuple[int, ...]
    n_words: tuple[int, ...]
    places: Mapping[str, tuple[int, ...]]


def closest_context(contexts: Sequence[str], statement: str) -> int | None:
    """The number, from 1, of the context with the closest sentence, of equal ones the first; None if there is none."""
    index = _indexed(tuple(contexts))
    scores = _closeness(index, words_of(statement))
    return index.numbers[max(range(len(scores)), key=lambda place: scores[place])] if scores else None


def _closest(index: _Index, wanted: frozenset[str]) -> list[int]:
    """Places of the `N_SENTENCES` closest sentences, in order."""
    scores = _closeness(index, wanted)
    ranked = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    return sorted(ranked[:N_SENTENCES])


def _closeness(index: _Index, wanted: frozenset[str]) -> list[float]:
    """How close each sentence is to the words of a statement."""
    closeness = [0.0] * len(index.sentences)
    for word in sorted(wanted):  # sums of floats depend on their order
        places = index.places.get(word, ())
        for place in places:
            closeness[place] += math.log(1 + len(index.sentences) / len(places))
    return [score / (1 + LENGTH_PENALTY * n) for score, n in zip(closeness, index.n_words, strict=True)]


@lru_cache(maxsize=256)
def _indexed(contexts: tuple[str, ...]) -> _Index:
    """All statements of a sample ask for the same index, and the samples in flight are few."""
    found = [(number, one) for number, text in enumerate(contexts, 1) for one in split_at_ends(text)]
    words = [words_of(sentence) for _, sentence in found]
    places: dict[str, list[int]] = {}
    for place, held in enumerate(words):
        for word in held:
            places.setdefault(word, []).append(place)
    return _Index(
        sentences=tuple(sentence for _, sentence in found),
        numbers=tuple(number for number, _ in found),
        n_words=tuple(map(len, words)),
        places={word: tuple(at) for word, at in places.items()},
    )


def split_at_ends(text: str) -> list[str]:
    """The pieces of a text between sentence ends: trimmed, and none blank."""
    if text.isascii():
        ends = [found.end() for found in _ASCII_SENTENCE_END.finditer(text)]
        pieces = [text[start:end] for start, end in pairwise([0, *ends, len(text)])]
    else:
        pieces = _SENTENCE_END.split(text)
    return [trimmed for one in pieces if (trimmed := one.strip())]


def words_of(text: str) -> frozenset[str]:
    """Case-folded words; those of unspaced scripts as their character pairs."""
    words = _WORD.findall(text.casefold())
    if text.isascii():  # nothing unspaced in it, and most texts are so: this is the costliest step of a prompt
        return frozenset(words)
    found: set[str] = set()
    for word in words:
        if len(word) > 1 and _UNSPACED.search(word):
            found.update(word[at : at + 2] for at in range(len(word) - 1))
        else:
            found.add(word)
    return frozenset(found)
