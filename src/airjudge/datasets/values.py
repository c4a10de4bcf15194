"""Values of Python, NumPy and Arrow as JSON has them."""

import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import numpy as np
from pydantic import JsonValue

from airjudge.datasets.parsing import check_values
from airjudge.datasets.refusal import Fields, Refused, short

_AS_TEXT = (Decimal, UUID, timedelta)


def plain_fields(values: Mapping[object, object]) -> Fields:
    """A row with values as JSON has them.

    NaN is null, for that is how tables without null write it; bytes are UTF-8 text, and null if they are
    none; times are ISO 8601; lists, tuples and arrays are lists.

    Raises:
        Refused: If a column has no name, or a value that JSON cannot hold.
    """
    fields: Fields = {}
    for name, value in values.items():
        if not isinstance(name, str):
            msg = f"a column is called by a {type(name).__name__}, not by a string"
            raise Refused(msg)
        fields[name] = _plain(value, name)
    check_values(fields)
    return fields


def _plain(value: object, name: str) -> JsonValue:
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return _number(value, name)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner, name) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, name) for inner in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist(), name)
    return _as_text(value, name)


def _as_text(value: object, name: str) -> str | None:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, _AS_TEXT):
        return str(value)
    msg = f"{short(name)} holds a {type(value).__name__}, which JSON does not have"
    raise Refused(msg)


def _number(value: float, name: str) -> float | None:
    if math.isinf(value):
        msg = f"{short(name)} is infinite, which JSON does not have"
        raise Refused(msg)
    return None if math.isnan(value) else value
