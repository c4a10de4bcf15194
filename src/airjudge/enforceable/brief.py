"""The brief form of a schema: the same, but texts and lists end.

A small judge that loops in a text or a list never ends the reply; asked once more under this form, it does. A count
of characters ends every loop, and is dear: few models have room for it. The others' texts end after some words, of
which one is bounded by its space alone, so a loop of one letter may be cut once more.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from pydantic import JsonValue

from airjudge.enforceable.cost import MOST_STATES, compile_states

Text = dict[str, JsonValue]

_WORD: Final = r'[^ "\\\x00-\x1F\x7F-\x9F]*'
_N_ITEMS: Final = 6


def _characters(count: int) -> Text:
    return {"type": "string", "maxLength": count}


def _words(count: int) -> Text:
    # Behind the last space nothing but the end may follow, or the loop would go on in the last word.
    return {"type": "string", "pattern": f"({_WORD}( {_WORD}){{0,{count - 1}}}|({_WORD} ){{{count}}})"}


_FORMS: Final = (
    *((_characters(count), _N_ITEMS) for count in (60, 40)),
    *((_words(count), _N_ITEMS) for count in (24, 12)),
    *((_words(count), None) for count in (24, 12, 6, 3)),
)
"""A text and the most items of a list; the first form that compiles in the server's time is taken."""


def brief(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    """The brief form of an enforceable schema, which allows a part of it; None if nothing in it is without end."""
    for text, n_items in _FORMS:
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
