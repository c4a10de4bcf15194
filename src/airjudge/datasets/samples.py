"""From one row to a sample, by the columns that hold our fields."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError

from airjudge.datasets.columns import MISSING, value_at, without
from airjudge.datasets.parsing import check_values, parse_text
from airjudge.datasets.refusal import Fields, Refused, describe, short
from airjudge.schema import Sample, Statement

_CONTEXT_TEXTS = ("text", "page_content", "content", "pageContent")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row and the columns that its fields are read from."""

    fields: Fields
    mapping: Mapping[str, str]

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

    def label(self, name: str) -> str:
        """A field's name, and the user's name for it where that is another."""
        return name if self.mapping[name] == name else f"{name} ({self.mapping[name]})"


def build_sample(fields: Fields, mapping: Mapping[str, str], *, default_id: str) -> Sample:
    """Build a sample from a row; an optional field may be null, columns that are not read become metadata.

    Raises:
        Refused: With the field and what is wrong with it.
    """
    row = _Row(fields, mapping)
    user_input, reference = _text(row, "user_input"), _text(row, "reference")
    contexts = _contexts(row)
    identifier = text_id(row.optional("id"), "id")
    try:
        return Sample(
            id=default_id if identifier is None else identifier,
            user_input=user_input,
            reference=reference,
            retrieved_contexts=contexts,
            statements=given_statements(row.optional("statements")),
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


def _text(row: _Row, name: str) -> str:
    """A field that has to hold text; the old ragas column `ground_truths` is a list of one."""
    value, label = row.required(name), row.label(name)
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


def _contexts(row: _Row) -> tuple[str, ...]:
    """Retrieved contexts, in order; none at all, and blank ones, are for the judge to score."""
    label, value = row.label("retrieved_contexts"), listed(row.required("retrieved_contexts"))
    if not isinstance(value, list):
        msg = f"{label} must be a list of strings, not {describe(value)}{_advice(value)}"
        raise Refused(msg)
    return tuple(_context(context, place, label=label) for place, context in enumerate(value, start=1))


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
