"""Characters that people do not see, beyond what the text of any script needs."""

import re
from typing import Final

INVISIBLE: Final = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\u180e\ufeff"
"""Format characters that show nothing, as a class of a regular expression; tags and variation selectors apart."""
_TAGS: Final = "\U000e0000-\U000e007f"
_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"

_FLAG: Final = re.compile("\U0001f3f4[\U000e0030-\U000e007a]{1,8}\U000e007f")
"""The flags of England, Scotland, Wales: a black flag, tags, and the tag that ends them."""
_SOME: Final = re.compile(f"[{INVISIBLE}{_TAGS}{_SELECTORS}]")
_HIDDEN: Final = re.compile(
    f"[{_TAGS}]"
    "|[\u202d\u202e]"  # overrides; embeddings and isolates are normal in right-to-left texts
    f"|[{INVISIBLE}]{{4}}"
    "|(?:[A-Za-z][\u200b-\u200d\u2060-\u2064]{1,2}){3}"  # Latin words taken apart; joiners belong to other scripts
    f"|[{_SELECTORS}]{{3}}"
)
_UNSEEN: Final = re.compile(f"[{INVISIBLE}{_TAGS}\U000e0100-\U000e01ef]")


def without_invisible(text: str) -> str:
    """A text as people see it."""
    return _UNSEEN.sub("", text)


def hidden(text: str) -> int | None:
    """Where the first character stands that is hidden for no reason of a script; None if there is none.

    Joiners of Indic, Arabic and emoji, soft hyphens, byte order marks, embeddings and flags are no such
    characters. The place is in the text without its flags.
    """
    if text.isascii() or not _SOME.search(text):
        return None
    found = _HIDDEN.search(_FLAG.sub("", text))
    return found.start() if found else None
