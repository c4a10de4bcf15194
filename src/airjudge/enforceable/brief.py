"""The brief form of a schema: the same, but texts end after some words and lists after some items.

A small judge that loops in a text or a list never ends the reply; asked once more under this form, it does. A word
is bounded by its space alone, so what has none (a loop of one letter, Chinese) may still be cut.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from pydantic import JsonValue

from airjudge.enforceable.cost import MOST_STATES, compile_states

_WORD: Final = r'[^ "\\\x00-\x1F\x7F-\x9F]*'
_FORMS: Final = ((24, 6), (12, 6), (24, None), (12, None), (6, None), (3, None))
"""Words of a text and items of a list, from the longest; the first one that compiles in the server's time is taken."""


def brief(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    """The brief form of an enforceable schema, which allows a part of it; None if nothing in it is without end."""
    for n_words, n_items in _FORMS:
        made = _bounded(dict(schema), n_words=n_words, n_items=n_items)
        if isinstance(made, dict) and made != schema and compile_states(made) <= MOST_STATES:
            return made
    return None


def _bounded(node: JsonValue, *, n_words: int, n_items: int | None) -> JsonValue:
    within = partial(_bounded, n_words=n_words, n_items=n_items)
    if isinstance(node, list):
        return [within(one) for one in node]
    if not isinstance(node, dict) or "enum" in node:
        return node
    if node == {"type": "string"}:
        # Behind the last space nothing but the end may follow, or the loop would go on in the last word.
        return {"type": "string", "pattern": f"({_WORD}( {_WORD}){{0,{n_words - 1}}}|({_WORD} ){{{n_words}}})"}
    made = {name: within(value) for name, value in node.items()}
    if node.get("type") == "array" and "items" in node and "maxItems" not in node and n_items is not None:
        least = node.get("minItems", 0)
        made["maxItems"] = max(n_items, least) if isinstance(least, int) else n_items
    return made
