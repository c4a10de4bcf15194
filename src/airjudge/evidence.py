"""The sentences of the contexts that are closest to a statement, by the words that they share.

A small model loses a detail in the middle of long contexts. These sentences are shown to it again, right
before the statement; the contexts stay in full in front of them, so nothing is withheld and a poor choice
costs some tokens only. No model is asked: the choice is the same on every machine.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

N_SENTENCES = 2
MAX_CHARACTERS = 300
"""Of one sentence; enough for nearly all, and a bound where a context has no sentence ends."""
LENGTH_PENALTY = 0.02
"""A long sentence shares words by its length alone; each word of it lowers its score by this share."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？؟।])\s*|\n+")
_ASCII_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
"""Finds the same ends in ASCII, where nothing has to look behind, in a fraction of the time."""
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts whose words are not set apart by spaces, or carry their particles: compared by character pairs."""

RULE = (N_SENTENCES, MAX_CHARACTERS, LENGTH_PENALTY, _SENTENCE_END.pattern, _UNSPACED.pattern)
"""All that decides the choice beside the code: part of a judge's signature."""


def closest_sentences(contexts: Sequence[str], statement: str) -> list[str]:
    """The sentences that share the rarest words with a statement, in the order of the contexts.

    A shared word counts by its inverse sentence frequency over the contexts, as in retrieval.

    Returns:
        `N_SENTENCES` of them, each cut at `MAX_CHARACTERS`; none if the contexts hold no more than
        that: to say all of them twice would only speak for the statement.
    """
    index = _indexed(tuple(contexts))
    if len(index.sentences) <= N_SENTENCES:
        return []
    closeness = dict.fromkeys(range(len(index.sentences)), 0.0)
    for word in sorted(_words(statement)):
        places = index.places.get(word, ())
        for place in places:
            closeness[place] += math.log(1 + len(index.sentences) / len(places))
    for place, n_words in enumerate(index.n_words):
        closeness[place] /= 1 + LENGTH_PENALTY * n_words
    ranked = sorted(closeness, key=lambda place: (-closeness[place], place))
    return [index.sentences[place][:MAX_CHARACTERS] for place in sorted(ranked[:N_SENTENCES])]


@dataclass(frozen=True, slots=True)
class _Index:
    """The sentences of one sample's contexts: how many words each has, and where each word stands."""

    sentences: tuple[str, ...]
    n_words: tuple[int, ...]
    places: Mapping[str, tuple[int, ...]]


@lru_cache(maxsize=256)
def _indexed(contexts: tuple[str, ...]) -> _Index:
    """All statements of a sample ask for the same index, and the samples in flight are few."""
    sentences = tuple(one for text in contexts for one in split_at_ends(text))
    words = [_words(one) for one in sentences]
    places: dict[str, list[int]] = {}
    for place, found in enumerate(words):
        for word in found:
            places.setdefault(word, []).append(place)
    return _Index(sentences, tuple(map(len, words)), {word: tuple(at) for word, at in places.items()})


def split_at_ends(text: str) -> list[str]:
    """The pieces of a text between sentence ends: trimmed, and none blank."""
    if text.isascii():
        ends = [found.end() for found in _ASCII_SENTENCE_END.finditer(text)]
        pieces = [text[start:end] for start, end in pairwise([0, *ends, len(text)])]
    else:
        pieces = _SENTENCE_END.split(text)
    return [trimmed for one in pieces if (trimmed := one.strip())]


def _words(text: str) -> frozenset[str]:
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
