"""HTML that cannot be left unescaped: elements are built, and text is escaped when they are written.

A template engine escapes unless it is told not to; here there is no way to tell it. What is not text of the data,
our own script and style, is a kind of its own.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

_VOID: Final = frozenset({"br", "col", "hr", "input", "meta"})
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Controls, what overrides the direction of text, halves of pairs, and the characters that tag text unseen."""
_ACTIVE_IN_SCRIPT: Final = re.compile("[<>&\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Verbatim:
    """The content of a `script` or `style` element, which is not escaped: ours, or JSON by `data_json`."""

    content: str


@dataclass(frozen=True, slots=True)
class Element:
    """An element of the page; its attributes and children are escaped when it is written."""

    tag: str
    attributes: Mapping[str, str]
    children: tuple["Node", ...]


Node = Element | Verbatim | str


def element(tag: str, attributes: Mapping[str, str] | None = None, *children: Node | None) -> Element:
    """Build an element; children that are None are left out."""
    return Element(tag, attributes or {}, tuple(child for child in children if child is not None))


def written(node: Node) -> str:
    """An element, and all that is in it, as HTML."""
    return "".join(_parts(node))


def _parts(node: Node) -> Iterator[str]:
    if isinstance(node, str):
        yield html.escape(visible(node), quote=False)
        return
    if isinstance(node, Verbatim):
        yield node.content
        return
    yield "<" + node.tag
    for name, value in node.attributes.items():
        yield f' {name}="{html.escape(visible(value))}"'
    yield ">"
    if node.tag not in _VOID:
        for child in node.children:
            yield from _parts(child)
        yield f"</{node.tag}>"


def visible(text: str) -> str:
    """A text with what nobody would see, or would be misled by, in signs: U+0000 as its picture, U+202E by its number.

    Marks that Arabic and Hebrew need (U+200E, U+200F) stay; so do line ends, as one character each.
    """
    return _UNSEEN.sub(_sign, text.replace("\r\n", "\n").replace("\r", "\n"))


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"[U+{code:04X}]"


def data_json(value: JsonValue) -> Verbatim:
    """A value as JSON that may stand in a script element: nothing in it ends the element or opens another."""
    written_json = json.dumps(_visible_all(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Verbatim(_ACTIVE_IN_SCRIPT.sub(lambda found: f"\\u{ord(found[0]):04x}", written_json))


def _visible_all(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        return [_visible_all(one) for one in value]
    if isinstance(value, dict):
        return {visible(key): _visible_all(one) for key, one in value.items()}
    return value
