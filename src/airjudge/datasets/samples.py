"""From one row to a sample, by the columns that hold our fields."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from airjudge.datasets.columns import MISSING, REQUIRED, value_at, without
from airjudge.datasets.parsing import check_values, parse_text
from airjudge.datasets.refusal import Fields, Refused, describe, short
from airjudge.schema import Sample, Statement

T = TypeVar("T")

_CONTEXT_TEXTS = ("text", "page_content", "content", "pageContent")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row and the columns that its fields are read from."""

    fields: Fields
    mapping: Mapping[str, str]
    needed: Collection[str] = REQUIRED

    def required(self, name: str) -> JsonValue:
        """The value of a field that has to be there."""
        value = value_at(self.fields, self.mapping[name])
        if value is MISSING:
            msg = f"{self.label(name)} is missing"
            raise Refused(msg)
        return value

    def optional(self, name: str) -> JsonValue:
        """The value of a field that need not be there; None if it is not."""
        value = value_at(self.fields, self.mapping[name]) if name in self.mapping else MISSING
        return None if value is MISSING else value

    def wanted(self, name: str) -> JsonValue:
        """The value of a field that has to be there if the metric reads it; None if it is not there."""
        return self.required(name) if name in self.needed else self.optional(name)

    def label(self, name: str) -> str:
        """A field's name, and the user's name for it where that is another."""
        column = self.mapping.get(name, name)
        return name if column == name else f"{name} ({column})"


def build_sample(
    fields: Fields, mapping: Mapping[str, str], *, default_id: str, required: Collection[str] = REQUIRED
) -> Sample:
    """Build a sample from a row; an optional field may be null, columns that are not read become metadata.

    Raises:
        Refused: With the field and what is wrong with it.
    """
    row = _Row(fields, mapping, required)
    user_input, reference = _if_usable(_text, row, "user_input"), _if_usable(_text, row, "reference")
    contexts = _if_usable(_contexts, row, "retrieved_contexts")
    identifier = text_id(row.optional("id"), "id")
    try:
        return Sample(
            id=default_id if identifier is None else identifier,
            user_input=user_input or "",
            reference=reference or "",
            retrieved_contexts=contexts or (),
            statements=given_statements(row.optional("statements")),
            response=_text(row, "response"),
            reference_contexts=_contexts(row, "reference_contexts"),
            retrieved_context_ids=_context_ids(row, "retrieved_context_ids"),
            reference_context_ids=_context_ids(row, "reference_context_ids"),
            group=text_id(row.optional("group"), "group"),
            metadata=_metadata(row),
        )
    except ValidationError as exc:
        msg = f"{exc.errors()[0]['loc']}: {exc.errors()[0]['msg']}"
        raise Refused(msg) from exc


def _metadata(row: _Row) -> Fields:
    """What is not read into a field of ours, and the language, which has none."""
    rest = without(row.fields, row.mapping.values())
    if "lang" not in row.mapping or value_at(row.fields, row.mapping["lang"]) is MISSING:
        return rest
    language = row.optional("lang")
    if not isinstance(language, str | None):
        msg = f"lang must be a language tag like en, not {describe(language)}"
        raise Refused(msg)
    return {**rest, "lang": language}


def _if_usable(read: Callable[[_Row, str], T | None], row: _Row, name: str) -> T | None:
    """A field as it is read; where the metric does not read it, what is wrong with it concerns nobody."""
    try:
        return read(row, name)
    except Refused:
        if name in row.needed:
            raise
        return None


def _text(row: _Row, name: str) -> str | None:
    """A field that has to hold text if the metric reads it; the old ragas column `ground_truths` is a list of one."""
    value, label = row.wanted(name), row.label(name)
    if value is None and name not in row.needed:
        return None
    if row.mapping[name].rpartition(".")[2].lower() in {"ground_truths", "groundtruths"}:
        value = _only_truth(value, label)
    if not isinstance(value, str):
        msg = f"{label} must be a string, not {describe(value)}"
        raise Refused(msg)
    if not value.strip():
        msg = f"{label} is blank"
        raise Refused(msg)
    return value


def _only_truth(value: JsonValue, label: str) -> JsonValue:
    truths = listed(value)
    if not isinstance(truths, list):
        return value
    if len(truths) != 1:
        msg = f"{label} must hold one text, not {len(truths)}; write them as one reference"
        raise Refused(msg)
    return truths[0]


def _contexts(row: _Row, name: str) -> tuple[str, ...] | None:
    """Contexts, in order; none at all, and blank ones, are for the metric to score."""
    label, value = row.label(name), listed(row.wanted(name))
    if value is None and name not in row.needed:
        return None
    if not isinstance(value, list):
        msg = f"{label} must be a list of strings, not {describe(value)}{_advice(value)}"
        raise Refused(msg)
    return tuple(_context(context, place, label=label) for place, context in enumerate(value, start=1))


def _context_ids(row: _Row, name: str) -> tuple[str, ...] | None:
    """Ids of contexts, in order: texts or whole numbers, which are compared as texts."""
    label, value = row.label(name), listed(row.wanted(name))
    if value is None and name not in row.needed:
        return None
    if not isinstance(value, list):
        msg = f"{label} must be a list of strings or whole numbers, not {describe(value)}"
        raise Refused(msg)
    ids = [text_id(one, f"number {place} of {label}") for place, one in enumerate(value, start=1)]
    if None in ids:
        msg = f"{label} must hold strings or whole numbers, but number {ids.index(None) + 1} is null"
        raise Refused(msg)
    return tuple(one for one in ids if one is not None)


def _context(context: JsonValue, place: int, *, label: str) -> str:
    """One context: a text, or an object that holds it."""
    if isinstance(context, str):
        return context
    if isinstance(context, dict):
        texts = [key for key in _CONTEXT_TEXTS if isinstance(context.get(key), str)]
        if len(texts) == 1:
            return str(context[texts[0]])
        has = " and ".join(texts) if texts else f"none of {', '.join(_CONTEXT_TEXTS[:3])}"
        msg = f"{label} must hold strings or objects with one text, but number {place} has {has}"
        raise Refused(msg)
    msg = f"{label} must hold strings, but number {place} is {describe(context)}"
    raise Refused(msg)


def _advice(value: JsonValue) -> str:
    """What to do about contexts that are one text; a guess where it is to be cut would change the score."""
    if not isinstance(value, str):
        return ""
    if value.lstrip().startswith("["):
        return "; it is no JSON list: write it with json.dumps"
    return '; one context is written ["..."], several ["...", "..."]'


def listed(value: JsonValue) -> JsonValue:
    """A list that is written as JSON in a text, as in a CSV cell; any other value as it is.

    A list as Python prints it is not read: NumPy prints two strings without a comma, which Python reads as one.
    """
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return value
    try:
        parsed = parse_text(value)
        check_values({"": parsed})
    except Refused:
        return value
    return parsed if isinstance(parsed, list) else value


def text_id(value: JsonValue, name: str) -> str | None:
    """An id or a group as text; None if there is none.

    Raises:
        Refused: If it is neither text nor a whole number, or blank.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        msg = f"{name} must be a string or a whole number, not {describe(value)}"
        raise Refused(msg)
    if not str(value).strip():
        msg = f"{name} is blank"
        raise Refused(msg)
    return str(value)


def given_statements(value: JsonValue) -> tuple[Statement, ...] | None:
    """Given statements, as strings or as objects with `text`; other keys are left to others.

    Raises:
        Refused: If one has no text, or two have one id.
    """
    value = listed(value)
    if value is None:
        return None
    if not isinstance(value, list):
        msg = f"statements must be a list, not {describe(value)}"
        raise Refused(msg)
    statements = tuple(_statement(entry, place) for place, entry in enumerate(value, start=1))
    seen: set[str] = set()
    for statement in statements:
        if statement.id in seen:
            msg = f"two statements have the id {short(statement.id)}"
            raise Refused(msg)
        seen.add(statement.id)
    return statements


def _statement(entry: JsonValue, place: int) -> Statement:
    """One given statement; without id it is called by its place, from 1."""
    fields: Fields = {"text": entry} if isinstance(entry, str) else entry if isinstance(entry, dict) else {}
    text = fields.get("text")
    if not isinstance(text, str):
        msg = f"statement {place} must be a string or an object with text, not {describe(entry)}"
        raise Refused(msg)
    if not text.strip():
        msg = f"statement {place} is blank"
        raise Refused(msg)
    identifier = text_id(fields.get("id"), f"the id of statement {place}")
    return Statement(id=str(place) if identifier is None else identifier, text=text.strip())
