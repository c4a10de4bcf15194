"""Bounded numbers as lists of values: outlines has no other way to hold a number in a range."""

import math
from decimal import Decimal
from typing import Final

from pydantic import JsonValue

from airjudge.enforceable.places import Node, Place

BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
MOST_VALUES: Final = 1001
"""Values that a range may have; its automaton shares their digits, so it stays small."""
BOTH: Final = "outlines has no half-open range: give the field both bounds."


def whole_number(node: Node, place: Place) -> dict[str, JsonValue]:
    """An integer; of a bounded one, every value that the bounds allow."""
    place.allow(node, ("type",), BOUNDS)
    if not any(name in node for name in BOUNDS):
        return {"type": "integer"}
    step = _of(node, "multipleOf", place) or Decimal(1)
    step = step if step % 1 == 0 else _whole_step(step, place)
    return {"type": "integer", "enum": [int(one) for one in _values(node, place, step=step)]}


def number(node: Node, place: Place) -> dict[str, JsonValue]:
    """A number; of a bounded one, both bounds and the steps between them.

    A step is a tenth of the power of ten that the range reaches: 0.0, 0.1 … 1.0 for [0, 1]. What is left out
    lies between two steps; what is written satisfies the bounds.
    """
    place.allow(node, ("type",), BOUNDS)
    if not any(name in node for name in BOUNDS):
        return {"type": "number"}
    step = _of(node, "multipleOf", place)
    if step is not None:
        return {"type": "number", "enum": [float(one) for one in _values(node, place, step=step)]}
    low, high = _range(node, place)
    step = Decimal(10) ** (math.floor((high - low).log10()) - 1) if high > low else Decimal(1)
    return {"type": "number", "enum": [float(one) for one in _values(node, place, step=step, beside=(low, high))]}


def _values(node: Node, place: Place, *, step: Decimal, beside: tuple[Decimal, ...] = ()) -> list[Decimal]:
    """The multiples of a step within the bounds, and what of the values beside them is within, in order.

    Raises:
        SchemaRefused: If there is none, or too many.
    """
    low, high = _range(node, place)
    multiples = range(math.ceil(low / step), math.floor(high / step) + 1)
    if len(multiples) > MOST_VALUES:
        told = f"a range of {len(multiples)} values, at most {MOST_VALUES} can be listed"
        place.refuse(told, "Narrow the bounds, or drop them.")
    inside = {one for one in (*(step * number for number in multiples), *beside) if _is_inside(one, node, place)}
    if not inside:
        place.refuse("no value satisfies these bounds", "Look at the field's bounds.")
    return sorted(inside)


def _range(node: Node, place: Place) -> tuple[Decimal, Decimal]:
    """Both ends, whether they are allowed themselves or not."""
    lows = [one for name in ("minimum", "exclusiveMinimum") if (one := _of(node, name, place)) is not None]
    highs = [one for name in ("maximum", "exclusiveMaximum") if (one := _of(node, name, place)) is not None]
    if not lows or not highs:
        told = next(name for name in BOUNDS if name in node)
        place.refuse(f"{told!r} without a bound on {'either' if not lows + highs else 'the other'} side", BOTH)
    return max(lows), min(highs)


def _is_inside(value: Decimal, node: Node, place: Place) -> bool:
    above, below = _of(node, "exclusiveMinimum", place), _of(node, "exclusiveMaximum", place)
    low, high = _range(node, place)
    return low <= value <= high and value not in {above, below}


def _of(node: Node, name: str, place: Place) -> Decimal | None:
    """A bound, exactly as it is written."""
    value = node.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        place.refuse(f"{name!r} is no number")
    if name == "multipleOf" and value <= 0:
        place.refuse("'multipleOf' is not positive")
    return Decimal(str(value))


def _whole_step(step: Decimal, place: Place) -> Decimal:
    """The least whole multiple of a step that is a fraction."""
    numerator, denominator = step.as_integer_ratio()
    if denominator > MOST_VALUES:
        place.refuse(f"'multipleOf' {step} has no small whole multiple")
    return Decimal(numerator)
