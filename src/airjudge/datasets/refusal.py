"""Why a row is refused, in words that fit a line and a terminal."""

import json

from pydantic import JsonValue

Fields = dict[str, JsonValue]
"""One row as it stands in the input: column names and JSON values."""


class Refused(Exception):
    """A row does not describe a sample; the message is the reason."""


def describe(value: JsonValue) -> str:
    """A value's JSON type and how it starts."""
    if value is None:
        return "null"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return f"{kinds.get(type(value), 'an object')}: {short(value)}"


def short(value: JsonValue) -> str:
    """A value as JSON, cut to what fits a line; what a terminal might act on is escaped."""
    written = json.dumps(value, ensure_ascii=False)
    cut = written if len(written) <= 60 else f"{written[:57]}..."
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in cut)
