"""Strings: lengths, patterns and formats, as far as an automaton holds them within JSON's quotes."""

import re
from typing import Final

from pydantic import JsonValue

from airjudge.enforceable.cost import bytes_of
from airjudge.enforceable.places import Node, Place

MOST_COUNTED: Final = 1000
"""The largest count that is looked at; what it costs to compile is bounded much closer."""

_DATE: Final = (
    r"([1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    r"|02-(0[1-9]|1[0-9]|2[0-8]))|[1-9][0-9](0[48]|[2468][048]|[13579][26])-02-29)"
)
_TIME: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_UUID: Final = "[0-9a-f]{8}-[0-9a-f]{4}-%s[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
FORMATS: Final = {
    "date": _DATE,
    "time": _TIME,
    "date-time": rf"{_DATE}T{_TIME}Z",
    "uuid": _UUID % "[1-5]",
    **{f"uuid{version}": _UUID % version for version in (1, 3, 4, 5)},
}
"""Patterns of ours: outlines' own let days through that no calendar has, and quotes that end a JSON string."""


def text(node: Node, place: Place) -> dict[str, JsonValue]:
    """A string, bounded by its lengths or by a pattern."""
    place.allow(node, ("type", "minLength", "maxLength", "pattern", "format"))
    ruling = [name for name in ("pattern", "format") if name in node]
    lengths = [name for name in ("minLength", "maxLength") if name in node]
    if not ruling:
        return {"type": "string", **{name: counted(node, name, place) for name in lengths}}
    made = _pattern(node, place) if ruling == ["pattern"] else _format(node, place)
    if len(ruling) > 1 or lengths:
        place.refuse(
            f"outlines enforces only one of {', '.join(map(repr, [*ruling, *lengths]))}",
            "Say the length in the pattern: ^[a-z]{2,5}$",
        )
    return {"type": "string", "pattern": made}


def counted(node: Node, name: str, place: Place) -> int:
    """A count of characters or items.

    Raises:
        SchemaRefused: If it is none, or so large that no automaton counts that far.
    """
    value = node[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        place.refuse(f"{name!r} is no count")
    if value > MOST_COUNTED:
        place.refuse(
            f"{name!r} {value}: an automaton that counts so far does not compile in the server's time",
            "Drop it: a reply is bounded by its tokens.",
        )
    return value


def _format(node: Node, place: Place) -> str:
    if node["format"] not in FORMATS:
        known = ", ".join(FORMATS)
        place.refuse(
            f"the format {node['format']!r} is not enforced", f"Use one of {known}, a pattern, or a plain str."
        )
    return FORMATS[str(node["format"])]


def _pattern(node: Node, place: Place) -> str:
    """A pattern for the whole string: a match of all of it is one of a part of it, as JSON schema wants.

    Raises:
        SchemaRefused: If no automaton is equal to it, or if it lets through what ends a JSON string.
    """
    pattern = re.sub(r"(?<!\\)((?:\\\\)*)\$$", r"\1", str(node["pattern"]).removeprefix("^"))
    if "|" in pattern:
        pattern = f"({pattern})"
    try:
        re.compile(f'("{pattern}")')
        seen = bytes_of(pattern)
    except (re.error, ValueError) as error:
        place.refuse(f"the pattern {node['pattern']!r} has no automaton: {str(error)[:80]}", "Use no assertions in it.")
    if seen & {*range(0x20), ord('"'), ord("\\"), 0x7F}:
        place.refuse(
            f"the pattern {node['pattern']!r} lets quotes, backslashes or control characters through",
            r"""Exclude them, for they would break the JSON: [^"\\\x00-\x1f\x7f] in the place of a dot.""",
        )
    return pattern
