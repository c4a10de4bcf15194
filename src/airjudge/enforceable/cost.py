"""What a schema costs to compile, from its own automaton over single bytes.

A server walks its vocabulary once for each state of the automaton, and about twice as long where text may go on.
On the vocabulary of 152 thousand tokens (Qwen) that is 3.8 ms for a state: 0.19 s for one item of a verdict with
a reason, 2.7 s for 32 verdicts, 5.4 s for a reason of at most 100 characters were measured, and come out so.
"""

import json
from functools import cache
from typing import Final

from outlines_core import Index, Vocabulary
from outlines_core.json_schema import build_regex_from_schema
from pydantic import JsonValue

MOST_STATES: Final = 1000
"""States, those with text counted twice, that a schema may have: 3.8 of the 5 seconds that a server gives it."""
_STATE_S: Final = 0.0038
_MANY: Final = 64
"""Bytes that may follow where text goes on."""


@cache
def _bytes() -> Vocabulary:
    return Vocabulary(256, {bytes([one]): [one] for one in range(256)})


def compile_states(schema: dict[str, JsonValue]) -> int:
    """States of a schema's automaton, those in which text may go on counted twice.

    Raises:
        ValueError: If outlines has no automaton for it.
        TypeError: If it takes it for no schema.
    """
    moves = Index(build_regex_from_schema(json.dumps(schema)), _bytes()).get_transitions().values()
    return len(moves) + sum(len(one) >= _MANY for one in moves)


def seconds(n_states: int) -> float:
    """What so many states take a server with a vocabulary of 152 thousand tokens."""
    return n_states * _STATE_S


def bytes_of(pattern: str) -> set[int]:
    """All bytes that a match of a pattern may hold.

    Raises:
        ValueError: If there is no automaton for it.
    """
    moves = Index(f"({pattern})", _bytes()).get_transitions().values()
    return {token for one in moves for token in one} - {256}
