"""Characters that people do not see, beyond what the text of any script needs, and letters that look like others."""

import re
from typing import Final
from unicodedata import normalize

from airjudge.screening.rules import Looked, look


def _characters(*ranges: tuple[int, int]) -> frozenset[str]:
    return frozenset(chr(one) for first, last in ranges for one in range(first, last + 1))


_INVISIBLE: Final = "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
_TAGS: Final = "\U000e0000-\U000e007f"
_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_UNSEEN: Final = re.compile(f"[{_INVISIBLE}{_TAGS}{_SELECTORS}]")
_UNSEEN_ONES: Final = frozenset("\u00ad\u180e\ufeff") | _characters(
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0xFE00, 0xFE0F), (0xE0000, 0xE007F), (0xE0100, 0xE01EF)
)

_FLAG: Final = re.compile("\U0001f3f4[\U000e0030-\U000e007a]{1,8}\U000e007f")
"""The flags of England, Scotland, Wales: a black flag, tags, and the tag that ends them."""
_HIDDEN: Final = re.compile(
    f"[{_TAGS}]"
    "|[\u202d\u202e]"  # overrides; embeddings and isolates are normal in right-to-left texts
    f"|[{_INVISIBLE}]{{4}}"
    "|(?:[A-Za-z][\u00ad\u200b-\u200d\u2060-\u2064]{1,2}){4}"  # Latin words taken apart, letter by letter
    "|[A-Za-z][\ufe00-\ufe0f]"
    f"|[{_SELECTORS}]{{3}}"
)

_STYLED: Final = _characters(
    (0xFE50, 0xFE6F), (0xFF00, 0xFFEF), (0x1D400, 0x1D7FF), (0x1F100, 0x1F1FF), (0x2460, 0x24FF)
)
"""Small, wide, mathematical, squared and circled letters."""
_ALIEN: Final = _characters((0x0300, 0x052F))
"""Accents that stand alone, Greek, Cyrillic."""
_MIXED: Final = re.compile("[a-z][\u0300-\u036f\u0370-\u052f]|[\u0370-\u052f][a-z]")
"""Accents that no letter has, and words in two scripts."""
_ALIKE: Final = str.maketrans("асеорхуіјѕһԁԛԝαοντρικе", "aceopxyijshdqwaovtpike")
_ACCENTS: Final = re.compile("[\u0300-\u036f]")


def hidden(looked: Looked) -> int | None:
    """Where the first character stands that is hidden for no reason of a script; None if there is none.

    Joiners of Indic, Arabic and emoji, soft hyphens, byte order marks, embeddings and flags are no such
    characters. The place is in the text without its flags.
    """
    if looked.characters.isdisjoint(_UNSEEN_ONES):
        return None
    found = _HIDDEN.search(_FLAG.sub("", looked.text))
    return found.start() if found else None


def seen(looked: Looked) -> Looked:
    """A text as people see it: nothing invisible in it, and wide and styled letters made plain."""
    text = looked.text if looked.characters.isdisjoint(_UNSEEN_ONES) else _UNSEEN.sub("", looked.text)
    text = text if looked.characters.isdisjoint(_STYLED) else normalize("NFKC", text)
    return looked if text is looked.text else look(text)


def made_latin(looked: Looked) -> Looked | None:
    """A text with letters that look like Latin ones made Latin, and accents off; None if it has no such letters.

    Words of one script are no reason: one letter has to stand beside one of another script.
    """
    if looked.characters.isdisjoint(_ALIEN):
        return None
    folded = looked.text.lower()
    if not _MIXED.search(folded):
        return None
    return look(_ACCENTS.sub("", normalize("NFKD", folded)).translate(_ALIKE))
