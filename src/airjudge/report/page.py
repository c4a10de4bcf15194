"""The page around a report's parts: one file that asks nobody for anything.

The content security policy names our script and style by their hashes and allows nothing else: no request, no other
script, no markup from a string.
"""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from pydantic import JsonValue

from airjudge.report.markup import Element, Node, Verbatim, data_json, element, written
from airjudge.version import __version__

GENERATOR: Final = "airjudge report"
"""Names a file as a report of ours, in its head."""


def page(
    title: str, subtitle: str, sections: Sequence[Element], *, data: JsonValue, metas: Sequence[Element] = ()
) -> str:
    """The whole report as HTML; `metas` go into its head, before any text of the data."""
    style, script = (_static(name) for name in ("report.css", "report.js"))
    head = element(
        "head",
        {},
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": _policy(style, script)}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "generator", "content": GENERATOR}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        *metas,
        element("title", {}, f"{title} · airjudge"),
        element("style", {}, Verbatim(style)),
    )
    body = element(
        "body",
        {},
        element("a", {"class": "skip", "href": "#content"}, "Skip to the content"),
        _banner(title, subtitle, sections),
        element("main", {"id": "content", "tabindex": "-1"}, *sections),
        element(
            "footer",
            {},
            element("p", {}, f"Made by airjudge {__version__}. All of it is in this one file; it makes no request."),
        ),
        element("script", {"type": "application/json", "id": "data"}, data_json(data)),
        element("script", {}, Verbatim(script)),
    )
    return f"<!doctype html>\n{written(element('html', {'lang': 'en'}, head, body))}\n"


def _policy(style: str, script: str) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _static(name: str) -> str:
    return (files("airjudge.report") / "static" / name).read_text(encoding="utf-8")


def _banner(title: str, subtitle: str, sections: Sequence[Element]) -> Element:
    links = [element("li", {}, element("a", {"href": f"#{one.attributes['id']}"}, _heading(one))) for one in sections]
    parts = element("nav", {"aria-label": "Parts of the report"}, element("ul", {}, *links))
    theme = element("button", {"type": "button", "id": "theme", "hidden": ""}, "Dark")
    return element(
        "header",
        {},
        element("p", {"class": "brand"}, "airjudge", element("span", {}, " report")),
        element("h1", {"dir": "auto"}, title),
        element("p", {"class": "subtitle", "dir": "auto"}, subtitle),
        element("div", {"class": "bar"}, parts, theme),
    )


def _heading(section: Element) -> Node:
    heading = section.children[0]
    return heading.children[0] if isinstance(heading, Element) else ""
