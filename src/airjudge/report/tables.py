"""Tables, numbers and headed sections, as every part of a report writes them."""

from collections.abc import Iterable, Sequence

from airjudge.report.markup import Element, Node, element

Cell = Node
Interval = tuple[float, float] | None


def number(value: float | None, *, digits: int = 3) -> str:
    """A figure; undefined in words."""
    return "undefined" if value is None else f"{value:.{digits}f}"


def span(interval: Interval) -> str:
    """An interval; without one a dash."""
    return "–" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def with_span(value: float | None, interval: Interval) -> Element:
    """A figure, and its interval in small print."""
    small = None if interval is None else element("span", {"class": "span"}, f" {span(interval)}")
    return element("span", {"class": "figure"}, number(value), small)


def section(name: str, title: str, *children: Node | None) -> Element:
    """A part of the page with a heading that links and screen readers find it by."""
    heading = element("h2", {"id": f"{name}-title"}, title)
    return element("section", {"id": name, "aria-labelledby": f"{name}-title"}, heading, *children)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]], *, kind: str = "") -> Element:
    """A table that scrolls sideways by itself where it is too wide; the first cell of a row is its heading."""
    cells = [element("th", {"scope": "col"}, name) for name in head]
    body = [_row(row) for row in rows]
    whole = element(
        "table",
        {"class": kind} if kind else {},
        element("caption", {}, caption),
        element("thead", {}, element("tr", {}, *cells)),
        element("tbody", {}, *body),
    )
    return element("div", {"class": "wide", "role": "region", "aria-label": caption, "tabindex": "0"}, whole)


def _row(row: Sequence[Cell]) -> Element:
    first, *rest = row
    cells = [element("td", {"dir": "auto"} if isinstance(cell, str) else {}, cell) for cell in rest]
    return element("tr", {}, element("th", {"scope": "row", "dir": "auto"}, first), *cells)


def facts(pairs: Iterable[tuple[str, Node]]) -> Element:
    """Names and what they stand for."""
    parts = [element("div", {}, element("dt", {}, name), element("dd", {"dir": "auto"}, told)) for name, told in pairs]
    return element("dl", {"class": "facts"}, *parts)


def folded(title: str, *children: Node) -> Element:
    """What is shown when it is asked for, and in print."""
    return element("details", {}, element("summary", {}, title), *children)


def note(text: str) -> Element:
    """A remark that a reader of the figures must know."""
    return element("p", {"class": "note"}, text)
