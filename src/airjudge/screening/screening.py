"""The texts of one sample against the rules.

What is found is a mark for people. A text that means no harm may be marked, and one that does may not be: the rules
know what such texts often look like, in some languages, and nothing of what they mean.
"""

import binascii
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final
from unicodedata import is_normalized, normalize

from airjudge.schema import Sample, Suspicion, SuspicionKind
from airjudge.screening.hidden import hidden, without_invisible
from airjudge.screening.orders import ORDERS, Rule
from airjudge.screening.shapes import SHAPES

MAX_SUSPICIONS: Final = 16
"""Marks of one sample: the first ones, by place."""
EXCERPT_CHARACTERS: Final = 80
_BEFORE: Final = 16
"""Characters of an excerpt before what was found."""

_RULES: Final[tuple[Rule, ...]] = SHAPES + ORDERS
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")
_HEX: Final = re.compile(r"[0-9A-Fa-f]{32,}")
_MAX_RUNS, _MAX_ENCODED = 8, 4096


def screen(sample: Sample) -> tuple[Suspicion, ...]:
    """What in a sample looks as if it were aimed at the judge: one mark a kind and text, at most `MAX_SUSPICIONS`.

    Places are `user_input`, `reference`, `retrieved_contexts[i]` and `statements[i]`, counted from 0 as in the data.
    """
    found = (one for place, text in _texts(sample) for one in screened(text, place))
    return tuple(islice(found, MAX_SUSPICIONS))


def _texts(sample: Sample) -> Iterator[tuple[str, str]]:
    """Every text of a sample that a judge may be shown, and its place."""
    yield "user_input", sample.user_input
    yield "reference", sample.reference
    for index, text in enumerate(sample.retrieved_contexts):
        yield f"retrieved_contexts[{index}]", text
    for index, one in enumerate(sample.statements or ()):
        yield f"statements[{index}]", one.text
    if sample.response is not None:
        yield "response", sample.response


def screened(text: str, place: str) -> Iterator[Suspicion]:
    """The marks of one text, one a kind."""
    at = hidden(text)
    if at is not None:
        yield Suspicion(kind="hidden_characters", place=place, excerpt=_excerpt(text, at))
    seen = _seen(text)
    for kind, at in _matches(seen):
        yield Suspicion(kind=kind, place=place, excerpt=_excerpt(seen, at))
    at = _encoded(seen)
    if at is not None:
        yield Suspicion(kind="encoded", place=place, excerpt=_excerpt(seen, at))


def _seen(text: str) -> str:
    """A text without invisible characters, wide and styled letters made plain."""
    if text.isascii():
        return text
    text = without_invisible(text)
    return text if is_normalized("NFKC", text) else normalize("NFKC", text)


def _matches(seen: str) -> Iterator[tuple[SuspicionKind, int]]:
    """The kinds of rules that a text meets, and where the first of each does."""
    folded = seen.lower()
    met: set[SuspicionKind] = set()
    for rule in _RULES:
        if rule.kind in met or not any(hint in folded for hint in rule.hints):
            continue
        if match := rule.pattern.search(folded):
            met.add(rule.kind)
            yield rule.kind, match.start()


def _encoded(seen: str) -> int | None:
    """Where the first run of base64 or hex stands that decodes to a text which would be marked itself."""
    for runs, decode in ((_BASE64, binascii.a2b_base64), (_HEX, binascii.unhexlify)):
        for run in islice(runs.finditer(seen), _MAX_RUNS):
            text = _decoded(run.group()[:_MAX_ENCODED], decode)
            if text is not None and next(_matches(text), None) is not None:
                return run.start()
    return None


def _decoded(run: str, decode: Callable[[str], bytes]) -> str | None:
    """What a run says, if that is readable ASCII."""
    bare = run.rstrip("=")
    whole = bare[: len(bare) // 4 * 4]
    try:
        text = decode(whole).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return text if text.replace("\n", " ").isprintable() else None


def _excerpt(text: str, at: int) -> str:
    """What stands at a place, on one line; what does not print is spelled out."""
    start = max(0, at - _BEFORE)
    shown = " ".join(text[start : at + EXCERPT_CHARACTERS].split())
    spelled = "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in shown)
    return spelled[:EXCERPT_CHARACTERS]
