"""The texts of one sample against the rules.

What is found is a mark for people. A text that means no harm may be marked, and one that does may not be: the rules
know what such texts often look like, in some languages, and nothing of what they mean.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from airjudge.schema import Sample, Suspicion
from airjudge.screening.disguises import decoded
from airjudge.screening.english import ENGLISH
from airjudge.screening.hidden import hidden, made_latin, seen
from airjudge.screening.languages import LANGUAGES
from airjudge.screening.rules import Rules, look
from airjudge.screening.shapes import SHAPES

MAX_SUSPICIONS: Final = 16
"""Marks of one sample: the first ones, by place."""
EXCERPT_CHARACTERS: Final = 80
_BEFORE: Final = 16
"""Characters of an excerpt before what was found."""

_RULES: Final = Rules((*SHAPES, *ENGLISH, *LANGUAGES))


def screen(sample: Sample) -> tuple[Suspicion, ...]:
    """What in a sample looks as if it were aimed at the judge: one mark a kind and text, at most `MAX_SUSPICIONS`.

    Places are `user_input`, `reference`, `retrieved_contexts[i]`, `statements[i]` and `response`, counted from 0 as in
    the data.
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
    raw = look(text)
    if (at := hidden(raw)) is not None:
        yield Suspicion(kind="hidden_characters", place=place, excerpt=_excerpt(text, at))
    shown = seen(raw)
    latin = made_latin(shown)
    met = dict(_RULES.met(latin)) if latin else {}
    for kind, at in (met | dict(_RULES.met(shown))).items():
        yield Suspicion(kind=kind, place=place, excerpt=_excerpt(shown.text, at))
    for at, said in decoded(shown):
        if next(_RULES.met(look(said)), None) is not None:
            yield Suspicion(kind="encoded", place=place, excerpt=_excerpt(shown.text, at))
            return


def _excerpt(text: str, at: int) -> str:
    """What stands at a place, on one line; what does not print is spelled out."""
    start = max(0, at - _BEFORE)
    shown = " ".join(text[start : at + EXCERPT_CHARACTERS].split())
    spelled = "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in shown)
    return spelled[:EXCERPT_CHARACTERS]
