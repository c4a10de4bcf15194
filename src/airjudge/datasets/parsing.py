"""Parse JSON more strictly than `json` does by default: what is ambiguous or no JSON is refused, with a reason."""

import json
import math
from collections import Counter

from pydantic import JsonValue

from airjudge.datasets.refusal import Fields, Refused, describe, short

MAX_DEPTH = 100


def parse_line(line: bytes, offset: int) -> Fields:
    """Decode and parse one line that has to hold a JSON object.

    `offset` is where the line starts in the file, in bytes; a byte that is not UTF-8 is named by its place.

    Raises:
        Refused: With what is wrong with the line.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as exc:
        msg = f"not UTF-8: byte {offset + exc.start} of the file is 0x{line[exc.start]:02x}"
        raise Refused(msg) from exc
    value = parse_text(text)
    if not isinstance(value, dict):
        msg = f"not a JSON object but {describe(value)}"
        raise Refused(msg)
    check_values(value)
    return value


def parse_text(text: str) -> JsonValue:
    """Parse one JSON document.

    Raises:
        Refused: If it is not JSON, or says one thing twice.
    """
    try:
        value: JsonValue = json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite
        )
    except json.JSONDecodeError as exc:
        msg = f"not JSON: {exc.msg} at column {exc.colno}"
        raise Refused(msg) from exc
    except ValueError as exc:  # Python reads no integer of more than 4300 digits
        msg = "not usable JSON: a number has too many digits"
        raise Refused(msg) from exc
    return value


def check_values(fields: Fields) -> None:
    """Refuse values that no later file or request could hold.

    Raises:
        Refused: With the field's name.
    """
    for name, value in fields.items():
        if isinstance(value, dict | list) and _depth(value) > MAX_DEPTH:
            msg = f"{short(name)} is nested more than {MAX_DEPTH} deep"
            raise Refused(msg)
        try:
            json.dumps([name, value], ensure_ascii=False).encode()
        except UnicodeEncodeError as exc:
            msg = f"{short(name)} holds half a surrogate pair, which is no character"
            raise Refused(msg) from exc


def _object(pairs: list[tuple[str, JsonValue]]) -> Fields:
    """Build an object; JSON leaves open which of two equal keys counts, so neither does."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        msg = f"the field {short(twice)} occurs twice in one object"
        raise Refused(msg)
    return fields


def _refuse_constant(name: str) -> float:
    """Refuse NaN and Infinity, which `json` reads although they are not JSON."""
    msg = f"{name} is not JSON; write null for what is undefined"
    raise Refused(msg)


def _finite(digits: str) -> float:
    """Read a number; one that overflows could not be written out as JSON again."""
    number = float(digits)
    if math.isinf(number):
        msg = f"the number {short(digits)} is too large"
        raise Refused(msg)
    return number


def _depth(value: JsonValue) -> int:
    """How many lists and objects lie inside each other, counted without recursion."""
    depth, level = 0, [value]
    while level := [inner for outer in level for inner in _children(outer)]:
        depth += 1
    return depth


def _children(value: JsonValue) -> list[JsonValue]:
    """Values directly inside a list or an object."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
