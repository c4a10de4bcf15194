"""The sentences of the contexts that are closest to a statement, by the words that they share.

A small model loses a detail in the middle of long contexts. These sentences are shown to it again, right
before the statement; the contexts stay in full in front of them, so nothing is withheld and a poor choice
costs some tokens only. No model is asked: the choice is the same on every machine.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

N_SENTENCES = 2
MAX_CHARACTERS = 300
"""Of one sentence; enough for nearly all, and a bound where a context has no sentence ends."""
LENGTH_PENALTY = 0.02
"""A long sentence shares words by its length alone; each word of it lowers its score by this share."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？؟।])\s*|\n+")
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
    sentences = [one.strip() for text in contexts for one in _SENTENCE_END.split(text) if one.strip()]
    if len(sentences) <= N_SENTENCES:
        return []
    words = [_words(one) for one in sentences]
    frequency = Counter(word for one in words for word in one)
    wanted = _words(statement)

    def closeness(index: int) -> float:
        shared = wanted & words[index]
        weight = math.fsum(math.log(1 + len(sentences) / frequency[word]) for word in shared)
        return weight / (1 + LENGTH_PENALTY * len(words[index]))

    ranked = sorted(range(len(sentences)), key=lambda index: (-closeness(index), index))
    return [sentences[index][:MAX_CHARACTERS] for index in sorted(ranked[:N_SENTENCES])]


def _words(text: str) -> frozenset[str]:
    """Case-folded words; those of unspaced scripts as their character pairs."""
    found: set[str] = set()
    for word in re.findall(r"\w+", text.casefold()):
        if len(word) > 1 and _UNSPACED.search(word):
            found.update(word[at : at + 2] for at in range(len(word) - 1))
        else:
            found.add(word)
    return frozenset(found)
