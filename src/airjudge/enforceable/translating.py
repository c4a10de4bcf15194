"""A JSON schema as others write it becomes one that outlines_core 0.2.14 enforces in full.

What comes out allows a part of what went in, so that every reply under it is one under the original; what has no
such part is refused by name. outlines itself ignores bounds, joins the parts of `allOf`, and lets a model leave
out what has a default: nothing of that reaches a server. Whatever is not known here is refused, never passed on.
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from airjudge.enforceable.cost import MOST_STATES, compile_states, seconds
from airjudge.enforceable.merging import merged
from airjudge.enforceable.numbers import number, whole_number
from airjudge.enforceable.places import Node, Place
from airjudge.enforceable.texts import counted, text

Narrowed = Mapping[str, Sequence[JsonValue]]
"""Values that a field is held to beyond its schema, by `Model.field`."""
NOTHING_NARROWED: Final[Narrowed] = MappingProxyType({})

ANNOTATIONS: Final = frozenset(
    {"description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"}
    | {"$defs", "definitions", "$schema", "$id", "nullable"}
)
"""Keywords that say nothing about what is valid; `nullable` is OpenAPI's, and allows more, which is not needed."""

ANY_HINT: Final = "Give the field a type: str, int, float, bool, a list or a dict of these, or another model."
_KINDS: Final = {"string": str, "integer": int, "number": float, "boolean": bool, "null": type(None)}


def enforceable(schema: Node, *, narrowed: Narrowed = NOTHING_NARROWED) -> dict[str, JsonValue]:
    """A schema that outlines enforces in full, and that allows nothing that the given one does not.

    Args:
        schema: As pydantic writes it.
        narrowed: Values that a field is held to beyond its schema, by `Model.field`.

    Raises:
        SchemaRefused: If there is none, or none that a server compiles in its time; it names place and keyword.
    """
    definitions = schema.get("$defs", {})
    place = Place()
    made = _Translation(definitions if isinstance(definitions, dict) else {}, narrowed).of(schema, place)
    try:
        n_states = compile_states(made)
    except (TypeError, ValueError) as error:
        place.refuse(f"outlines has no automaton for it: {str(error)[:200]}")
    if n_states > MOST_STATES:
        place.refuse(
            f"{n_states} states, at most {MOST_STATES} compile in the server's time (about {seconds(n_states):.0f} s "
            "of 5 with 152 thousand tokens)",
            "Drop counts (max_length of a str or list, min_length of a list), or split the model in two.",
        )
    return made


class _Translation:
    """The translation of one schema, whose definitions are put in where they are named."""

    def __init__(self, definitions: Node, narrowed: Narrowed) -> None:
        self._definitions, self._narrowed = definitions, narrowed

    def of(self, node: JsonValue | Node, place: Place) -> dict[str, JsonValue]:
        """Translate a part."""
        flat, place = self._flat(node, place)
        if "enum" in flat or "const" in flat:
            return _choice(flat, place)
        if "anyOf" in flat or "oneOf" in flat:
            return self._alternatives(flat, place)
        kind = flat.get("type")
        if isinstance(kind, list):
            return {"anyOf": [self.of({**flat, "type": one}, place) for one in kind]}
        kinds = {"array": self._array, "object": self._object, **_SIMPLE}
        if kind not in kinds:
            place.allow(flat)
            place.refuse("a value of any kind", ANY_HINT)
        return kinds[str(kind)](flat, place)

    def _flat(self, node: JsonValue | Node, place: Place) -> tuple[dict[str, JsonValue], Place]:
        """A part with its references and its `allOf` put in, without what says nothing."""
        if not isinstance(node, Mapping):
            place.refuse("a value of any kind" if node is True else "no schema", ANY_HINT)
        flat = {name: value for name, value in node.items() if name not in ANNOTATIONS}
        reference, parts = flat.pop("$ref", None), flat.pop("allOf", [])
        if reference is not None:
            place = place.through(str(reference))
            flat = merged(flat, self._flat(self._definition(str(reference), place), place)[0], place)
        for part in parts if isinstance(parts, list) else []:
            inner, place = self._flat(part, place)
            flat = merged(flat, inner, place)
        return flat, place

    def _definition(self, reference: str, place: Place) -> JsonValue:
        name = reference.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
        if name not in self._definitions:
            place.refuse(f"{reference} is not defined in the schema")
        return self._definitions[name]

    def _alternatives(self, node: Node, place: Place) -> dict[str, JsonValue]:
        """Any of several; exactly one of them only where no value can be two of them."""
        keyword = "anyOf" if "anyOf" in node else "oneOf"
        place.allow(node, (keyword, "discriminator"))
        branches = node[keyword]
        if not isinstance(branches, list) or not branches:
            place.refuse(f"{keyword!r} without alternatives")
        kinds = [self._flat(one, place)[0].get("type") for one in branches]
        if keyword == "oneOf" and "discriminator" not in node and len(set(map(str, kinds))) < len(kinds):
            place.refuse("'oneOf' whose alternatives may hold at once", "Give the union a discriminator.")
        return {"anyOf": [self.of(one, place) for one in branches]}

    def _array(self, node: Node, place: Place) -> dict[str, JsonValue]:
        place.allow(node, ("type", "items", "prefixItems", "minItems", "maxItems", "uniqueItems"))
        counts = {name: counted(node, name, place) for name in ("minItems", "maxItems") if name in node}
        if node.get("uniqueItems"):
            place.refuse("'uniqueItems' needs a memory of all items", "Use a list, and drop what is twice afterwards.")
        if "prefixItems" in node:
            return self._tuple(node, place, counts)
        if "items" not in node:
            place.refuse("items of any kind", ANY_HINT)
        return {"type": "array", "items": self.of(node["items"], place.at("items")), **counts}

    def _tuple(self, node: Node, place: Place, counts: Mapping[str, int]) -> dict[str, JsonValue]:
        """Items that each have a place; outlines writes all of them, and none beyond."""
        items = node["prefixItems"]
        if not isinstance(items, list) or node.get("items", False) is not False:
            place.refuse("'prefixItems' with more items behind them", "Use a tuple of fixed length, or a list.")
        if not counts.get("minItems", 0) <= len(items) <= counts.get("maxItems", len(items)):
            place.refuse("a tuple of fewer or more items than it has places")
        made: list[JsonValue] = [self.of(one, place.at(str(number))) for number, one in enumerate(items)]
        return {"type": "array", "prefixItems": made, "minItems": len(items), "maxItems": len(items)}

    def _object(self, node: Node, place: Place) -> dict[str, JsonValue]:
        """A model, all of whose fields are written, in their order; or a dict of one kind of value."""
        place.allow(node, ("type", "properties", "required", "additionalProperties"))
        fields, others = node.get("properties"), node.get("additionalProperties")
        if fields is None:
            if not isinstance(others, dict):
                place.refuse("an object with any content", ANY_HINT)
            return {"type": "object", "additionalProperties": self.of(others, place.at("*"))}
        if not isinstance(fields, dict) or not set(_names(node.get("required"))) <= set(fields):
            place.refuse("'required' names what is not among 'properties'")
        title = str(node.get("title"))
        made: dict[str, JsonValue] = {
            name: self._field((title, name), field, place.at(name)) for name, field in fields.items()
        }
        return {"type": "object", "properties": made, "required": list(made), "additionalProperties": False}

    def _field(self, name: tuple[str, str], field: JsonValue, place: Place) -> dict[str, JsonValue]:
        """A field of a model, which comes with the model's name and its own."""
        if json.dumps(name[1], ensure_ascii=False)[1:-1] != name[1]:
            place.refuse("outlines does not escape the field's name", "Give it an alias without quotes or backslashes.")
        made, narrowed = self.of(field, place), self._narrowed.get(".".join(name))
        return made if narrowed is None or "enum" in made else _choice({**made, "enum": list(narrowed)}, place)


def _plain(node: Node, place: Place) -> dict[str, JsonValue]:
    place.allow(node, ("type",))
    return {"type": node["type"]}


_SIMPLE: Final = {"string": text, "integer": whole_number, "number": number, "boolean": _plain, "null": _plain}


def _choice(node: Node, place: Place) -> dict[str, JsonValue]:
    """One of the listed values, of the kind that the schema wants."""
    place.allow(node, ("type", "enum", "const"))
    listed = node["enum"] if "enum" in node else [node["const"]]
    values = listed if isinstance(listed, list) else []
    if "const" in node:
        values = [one for one in values if one == node["const"] and type(one) is type(node["const"])]
    if any(isinstance(one, dict | list) for one in values):
        place.refuse("an enum of objects or lists", "List strings or numbers, and look the object up afterwards.")
    kinds = node.get("type", list(_KINDS))
    values = [one for one in values if any(_is_kind(one, kind) for kind in _names(kinds))]
    if not values:
        place.refuse("no value is allowed", "Look at the field's enum or const.")
    kind = next((one for one in _KINDS if all(_is_kind(value, one) for value in values)), None)
    return {"type": kind, "enum": values} if kind else {"enum": values}


def _is_kind(value: JsonValue, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return kind in _KINDS and type(value) is _KINDS[kind]


def _names(value: JsonValue) -> list[str]:
    """Names, given as one or as a list."""
    return [str(one) for one in value] if isinstance(value, list) else [] if value is None else [str(value)]
