"""From one row to the labels in it: our own format, the samples of a run, or one ruling a row from any tool."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from airjudge.datasets.refusal import Fields, Refused, describe, short
from airjudge.datasets.samples import given_statements, listed, text_id
from airjudge.labels import Label
from airjudge.schema import Statement

ACCEPTED: Final = (
    "Each line is a sample with statements (each with label, judges or annotators), or one ruling: id (of the "
    "sample), statement_id, statement_text or statement, and attributed: true, false, 1, 0, yes or no; null where "
    "nobody decided."
)
_SAMPLES: Final = ("sample", "sample_id", "id")
_STATEMENT_IDS: Final = ("statement_id",)
_TEXTS: Final = ("statement_text", "text")
_RULINGS: Final = ("attributed", "label")
_SCORES: Final = ("probability", "score")
_NAMES: Final = ("judge", "annotator")
_WORDS: Final = {
    "1": True, "1.0": True, "true": True, "yes": True, "0": False, "0.0": False, "false": False, "no": False,
}  # fmt: skip
_ANNOTATOR: Final = "annotator-"


@dataclass(frozen=True, slots=True)
class Told:
    """One label of a row, who ruled if it says so, and whether at a provider's.

    `is_main` marks what the row is there for: the label of a data set, or the one ruling of a line.
    """

    who: str | None
    label: Label
    hosted: bool | None = None
    is_main: bool = False


def told_in(fields: Fields, *, default_id: str) -> tuple[str | None, list[Told]]:
    """The group of a row's sample, and all labels in the row, of whoever they are.

    Raises:
        Refused: With what is wrong with the row.
    """
    group = text_id(fields.get("group"), "group")
    if "statements" in fields:
        name = text_id(fields.get("id"), "id")
        return group, list(_of_sample(fields["statements"], default_id if name is None else name))
    return group, [_of_ruling(fields)]


def _of_sample(value: JsonValue, sample: str) -> Iterator[Told]:
    """Labels on the statements of a sample in our own format."""
    entries = listed(value)
    statements = given_statements(value) or ()
    for statement, entry in zip(statements, entries if isinstance(entries, list) else (), strict=True):
        if isinstance(entry, dict):
            yield from _of_statement(entry, Label(sample=sample, id=statement.id, text=statement.text, attributed=None))


def _of_statement(entry: Fields, nobody: Label) -> Iterator[Told]:
    """What people and judges ruled on one statement; `nobody` is a label on it without a ruling."""
    place = f"statement {short(nobody.id)}"
    votes = _votes(entry.get("annotators"), place)
    if votes or any(name in entry for name in _RULINGS):
        label = nobody.model_copy(update={"votes": votes, "partial": _is_partial(entry), **_ruled(entry, place)})
        yield Told(None, label, is_main=True)
    for number, vote in enumerate(votes, start=1):
        yield Told(f"{_ANNOTATOR}{number}", nobody.model_copy(update={"attributed": vote}))
    judges = entry.get("judges")
    if judges is None:
        return
    if not isinstance(judges, dict):
        msg = f"the judges of {place} must be an object with a verdict for each name, not {describe(judges)}"
        raise Refused(msg)
    for name, verdict in judges.items():
        yield _of_judge(name, verdict, nobody)


def _of_judge(name: str, verdict: JsonValue, nobody: Label) -> Told:
    if not isinstance(verdict, dict):
        msg = f"the verdict of {short(name)} must be an object with label, not {describe(verdict)}"
        raise Refused(msg)
    hosted = verdict.get("hosted")
    ruled = _ruled(verdict, f"the verdict of {short(name)}", required=True)
    return Told(name, nobody.model_copy(update=ruled), hosted if isinstance(hosted, bool) else None)


def _of_ruling(fields: Fields) -> Told:
    """The label of a row that holds one ruling."""
    sample_at = next((name for name in _SAMPLES if fields.get(name) is not None), "id")
    sample = text_id(fields.get(sample_at), sample_at)
    if sample is None:
        msg = "it does not say of which sample: id is missing"
        raise Refused(msg)
    names = _STATEMENT_IDS if sample_at == "id" else (*_STATEMENT_IDS, "id")
    statement = _statement(fields, names)
    ruled = _ruled(fields, "the line", required=True)
    label = Label.model_validate({"sample": sample, **statement, "partial": _is_partial(fields), **ruled})
    who = next((one for name in _NAMES if (one := text_id(fields.get(name), name)) is not None), None)
    return Told(who, label, is_main=True)


def _statement(fields: Fields, names: tuple[str, ...]) -> Mapping[str, str | None]:
    """The fields of a label that tell its statement."""
    found = fields.get("statement")
    if isinstance(found, dict):
        (statement,) = given_statements([found]) or (Statement(id="", text=""),)
        return {"id": statement.id if "id" in found else None, "text": statement.text}
    by_id = next((one for name in names if (one := text_id(fields.get(name), name)) is not None), None)
    text = next((one for name in _TEXTS if (one := _text(fields.get(name), name)) is not None), None)
    named = text_id(found, "statement") if by_id is None or text is None else None
    if isinstance(found, int) and by_id is None:
        by_id, named = named, None
    if by_id is None and text is None and named is None:
        msg = "it does not say on which statement: statement_id, statement_text or statement is missing"
        raise Refused(msg)
    return {"id": by_id, "text": text, "named": named}


def _ruled(fields: Fields, place: str, *, required: bool = False) -> Mapping[str, JsonValue]:
    """The fields of a label that hold the ruling and what came with it."""
    names = [name for name in _RULINGS if name in fields]
    if len(names) > 1:
        msg = f"{place} holds both {' and '.join(names)}: leave the one out that is not meant"
        raise Refused(msg)
    if required and not names:
        msg = f"{place} has no {' and no '.join(_RULINGS)}"
        raise Refused(msg)
    score = next((one for name in _SCORES if (one := _number(fields.get(name), name)) is not None), None)
    return {
        "attributed": _truth(fields[names[0]], names[0]) if names else None,
        "score": score,
        "probability": score if score is not None and 0 <= score <= 1 else None,
        "reason": _text(fields.get("reason"), "reason"),
    }


def _truth(value: JsonValue, name: str) -> bool | None:
    """A ruling as people and tools write it; None for null."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in {0, 1}:
        return bool(value)
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    msg = f"{name} must be true, false, 1, 0, yes, no or null, not {describe(value)}"
    raise Refused(msg)


def _votes(value: JsonValue, place: str) -> tuple[bool | None, ...]:
    value = listed(value)
    if value is None:
        return ()
    if not isinstance(value, list):
        msg = f"the annotators of {place} must be a list of votes, not {describe(value)}"
        raise Refused(msg)
    return tuple(_truth(vote, f"a vote on {place}") for vote in value)


def _is_partial(fields: Fields) -> bool:
    """Whether a statement is supported in part: `partial` says so, or the raw label in its place."""
    if "partial" in fields:
        return _truth(fields["partial"], "partial") is True
    raw = fields.get("label_raw")
    return isinstance(raw, str) and raw.startswith("partially")


def _number(value: JsonValue, name: str) -> float | None:
    if value is None:
        return None
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        msg = f"{name} must be a number, not {describe(value)}"
        raise Refused(msg)
    return number


def _text(value: JsonValue, name: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        msg = f"{name} must be a string, not {describe(value)}"
        raise Refused(msg)
    return value.strip() or None
