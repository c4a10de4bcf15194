"""The brief form of a schema: the same, but texts and lists end.

A small judge that loops in a text or a list never ends the reply; asked once more under this form, it does. A count
of characters ends every loop. Of ASCII it is cheap: two states each, seven times less than of any script, for which
few models have room. The others' texts end after some words, of which one is bounded by its space alone, so a loop
of one letter may be cut once more.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from pydantic import JsonValue

from airjudge.enforceable.cost import MOST_STATES, compile_states

Text = dict[str, JsonValue]

_WORD: Final = r'[^ "\\\x00-\x1F\x7F-\x9F]*'


def _ascii(count: int) -> Text:
    return {"type": "string", "pattern": rf"[ !#-\[\]-~]{{0,{count}}}"}


def _characters(count: int) -> Text:
    return {"type": "string", "maxLength": count}


def _words(count: int) -> Text:
    # Behind the last space nothing but the end may follow, or the loop would go on in the last word.
    return {"type": "string", "pattern": f"({_WORD}( {_WORD}){{0,{count - 1}}}|({_WORD} ){{{count}}})"}


_ASCII_FORMS: Final = tuple((_ascii(n), n_items) for n, n_items in ((160, 6), (80, 6), (60, 3), (30, 3), (30, 1)))
_FORMS: Final = (
    *((_characters(count), 6) for count in (60, 40)),
    *((_words(count), n_items) for count, n_items in ((24, 6), (12, 6), (12, 3), (6, 3))),
    *((_words(count), None) for count in (24, 12, 6, 3)),
)
"""A text and the most items of a list; the first form that compiles in the server's time is taken."""


def brief(schema: Mapping[str, JsonValue], *, cut: str) -> dict[str, JsonValue] | None:
    """The brief form of an enforceable schema, which allows a part of it; None if nothing in it is without end.

    Args:
        schema: The schema.
        cut: What was written under it before the cut: what is ASCII so far goes on in ASCII.
    """
    for text, n_items in (*(_ASCII_FORMS if cut.isascii() else ()), *_FORMS):
        made = _bounded(dict(schema), text=text, n_items=n_items)
        if isinstance(made, dict) and made != schema and compile_states(made) <= MOST_STATES:
            return made
    return None


def _bounded(node: JsonValue, *, text: Text, n_items: int | None) -> JsonValue:
    within = partial(_bounded, text=text, n_items=n_items)
    if isinstance(node, list):
        return [within(one) for one in node]
    if not isinstance(node, dict) or "enum" in node:
        return node
    if node == {"type": "string"}:
        return dict(text)
    made = {name: within(value) for name, value in node.items()}
    if node.get("type") == "array" and "items" in node and "maxItems" not in node and n_items is not None:
        least = node.get("minItems", 0)
        made["maxItems"] = max(n_items, least) if isinstance(least, int) else n_items
    return made
