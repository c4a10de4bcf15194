"""JSON schemas of others, made such that outlines enforces all that they say, or refused by name."""

from airjudge.enforceable.brief import brief
from airjudge.enforceable.cost import MOST_STATES, compile_states
from airjudge.enforceable.models import adapter_of, json_schema_of
from airjudge.enforceable.translating import NOTHING_NARROWED, Narrowed, enforceable

__all__ = [
    "MOST_STATES",
    "NOTHING_NARROWED",
    "Narrowed",
    "adapter_of",
    "brief",
    "compile_states",
    "enforceable",
    "json_schema_of",
]
