"""Two schemas that hold at once become one that says both."""

from pydantic import JsonValue

from airjudge.enforceable.places import Node, Place

HINT = "Write the parts as one model."


def merged(first: Node, second: Node, place: Place) -> dict[str, JsonValue]:
    """One schema that says what both say; the second one's title is kept.

    Raises:
        SchemaRefused: If both say something about the same thing, and not the same.
    """
    if _closed(first, second) and first.get("properties") != second.get("properties"):
        place.refuse("'allOf' of models of which one forbids further fields", HINT)
    made = {**first, **second}
    for name in first.keys() & second.keys() - {"title"}:
        made[name] = _both(name, (first[name], second[name]), place)
    return made


def _closed(first: Node, second: Node) -> bool:
    both = "properties" in first and "properties" in second
    return both and any("additionalProperties" in one for one in (first, second))


def _both(name: str, said: tuple[JsonValue, JsonValue], place: Place) -> JsonValue:
    first, second = said
    if first == second:
        return first
    if name == "required" and isinstance(first, list) and isinstance(second, list):
        return [*first, *(one for one in second if one not in first)]
    if name == "properties" and isinstance(first, dict) and isinstance(second, dict):
        differing = [one for one in first.keys() & second.keys() if first[one] != second[one]]
        if not differing:
            return {**first, **second}
        place.refuse(f"'allOf' with two schemas for {differing[0]!r}", HINT)
    return place.refuse(f"'allOf' whose parts differ in {name!r}", HINT)
