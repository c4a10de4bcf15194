"""Texts in codes: what they say is screened as the text itself is."""

import binascii
import codecs
import re
from collections.abc import Iterator
from html import unescape
from itertools import islice
from typing import Final

from airjudge.screening.rules import Looked

_MAX_RUNS, _MAX_CHARACTERS = 8, 4096
"""How many runs of a text are decoded, and how much of each."""
_LONG: Final = 24
_BASE64: Final = re.compile(rf"[A-Za-z0-9+/]{{{_LONG},}}")
_HEX: Final = re.compile(rf"[0-9A-Fa-f]{{{_LONG},}}")
_ESCAPED: Final = re.compile(r"(?:\\u[0-9A-Fa-f]{4}){4}")
_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})")
_PERCENT: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_SPACED: Final = re.compile(r"(?:[A-Za-z] {1,3}){8}")

_TELLING: Final = ("ignore", "reply", "answer", "respond", "statement", "instructions", "verdict", "judge", "disregard")
_LEET: Final = str.maketrans("431057", "aeiost")
_SPELLINGS: Final = ({"e": "3"}, {"o": "0", "e": "3"}, {"a": "4", "e": "3", "i": "1", "o": "0", "s": "5", "t": "7"})


def _forms(spelling: dict[str, str]) -> Iterator[bytes]:
    table = str.maketrans(spelling)
    yield from (changed.encode() for one in _TELLING if (changed := one.translate(table)) != one)


_LETTERS: Final = frozenset((b"e", b"r"))
"""What stands alone where the letters of an order are set apart."""
_LEET_WORDS: Final = frozenset(form for spelling in _SPELLINGS for form in _forms(spelling))
_TURNED_WORDS: Final = frozenset(form.encode() for one in _TELLING for form in (codecs.encode(one, "rot13"), one[::-1]))
_ALTERED_WORDS: Final = _LEET_WORDS | _TURNED_WORDS


def decoded(looked: Looked) -> Iterator[tuple[int, str]]:
    """What a text says in the codes that it may be written in, and where each begins.

    These are base64, hexadecimal, percent signs, entities of HTML, escapes of JSON, ROT13, letters turned round, digits
    for letters and letters set apart.
    """
    text, words = looked.text, looked.words
    if max(map(len, words), default=0) >= _LONG:
        yield from _runs(text)
    if "%20" in text:
        yield text.find("%20"), _PERCENT.sub(lambda found: chr(int(found[1], 16)), text)
    if "&#" in text:
        yield text.find("&#"), unescape(text)
    if found := _ESCAPED.search(text) if "\\u00" in text else None:
        yield found.start(), _ESCAPE.sub(lambda one: chr(int(one[1], 16)), text)
    if not words.isdisjoint(_ALTERED_WORDS):
        yield from ((0, codecs.encode(text, "rot13")), (0, text[::-1]), (0, text.translate(_LEET)))
    if words >= _LETTERS and (found := _SPACED.search(text)):
        yield found.start(), "  ".join(part.replace(" ", "") for part in re.split(r" {2,3}", text))


def _runs(text: str) -> Iterator[tuple[int, str]]:
    for pattern, decode in ((_BASE64, binascii.a2b_base64), (_HEX, binascii.unhexlify)):
        for run in islice(pattern.finditer(text), _MAX_RUNS):
            whole = run.group()[:_MAX_CHARACTERS]
            try:
                said = decode(whole[: len(whole) // 4 * 4]).decode("ascii")
            except (binascii.Error, UnicodeDecodeError):
                continue
            yield run.start(), said
