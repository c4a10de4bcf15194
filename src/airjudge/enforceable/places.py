"""Where in a schema something stands, and how it is refused there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from pydantic import JsonValue

from airjudge.errors import SchemaRefused

Node = Mapping[str, JsonValue]
"""A schema, or a part of one."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a schema as JSONPath writes it, with the references that led there."""

    path: str = "$"
    references: tuple[str, ...] = ()

    def at(self, name: str) -> "Place":
        """The place of a part."""
        return replace(self, path=f"{self.path}.{name}")

    def through(self, reference: str) -> "Place":
        """The same place, reached by a reference.

        Raises:
            SchemaRefused: If the reference led here before: an automaton has no memory for nesting without end.
        """
        if reference in self.references:
            self.refuse(f"{reference} holds itself", "Nest the model to a fixed depth, by a class for each level.")
        return replace(self, references=(*self.references, reference))

    def refuse(self, what: str, hint: str = "") -> NoReturn:
        """Refuse what stands here.

        Raises:
            SchemaRefused: Always.
        """
        msg = f"{self.path}: {what}"
        raise SchemaRefused(msg, hint)

    def allow(self, node: Node, *keywords: Iterable[str]) -> None:
        """Refuse a part that says more than these keywords.

        Raises:
            SchemaRefused: With the first one that is too many.
        """
        known = {one for group in keywords for one in group} | {"title"}
        for keyword in node:
            if keyword not in known:
                self.refuse(f"outlines does not enforce {keyword!r} here")
