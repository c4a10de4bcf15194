"""Which column holds which of our fields: names as ragas, opik, deepeval, LangSmith and promptfoo write them.

A column is named by its path: `question`, or `inputs.question` for what lies inside an object, and for a
flattened column that is called so. Names are compared without regard to case, `userInput` and `user input`
being `user_input`. A system's own answer (`answer`, `response`, `actual_output`) is never taken for the
reference: to guess there would be to score the wrong text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from pydantic import JsonValue

from airjudge.datasets.refusal import Fields, short
from airjudge.errors import InputError

REQUIRED: Final = ("user_input", "reference", "retrieved_contexts")
"""What context recall by a judge reads; another metric may need other fields."""
OPTIONAL: Final = ("id", "statements", "group", "lang")
SPECIAL: Final = ("response", "reference_contexts", "retrieved_context_ids", "reference_context_ids")
"""What only some metrics read; for all others such columns are metadata."""
FIELDS: Final = REQUIRED + OPTIONAL + SPECIAL


class Missing(Enum):
    """What `value_at` gives where a row has no such column: null is a value."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
_QUESTIONS: Final = ("user_input", "question", "query", "input")
_REFERENCES: Final = (
    "reference", "ground_truth", "ground_truths", "expected_output", "expected_answer", "reference_answer",
)  # fmt: skip
_CONTEXTS: Final = ("retrieved_contexts", "contexts", "retrieval_context", "context", "documents")
_ANSWERS: Final = (*_REFERENCES, "answer", "output")
_ANSWERED: Final = ("answer", "response", "actual_output", "output", "outputs.answer", "outputs.output")
_CONTEXT_IDS: Final = ("retrieved_context_ids", "retrieved_ids", "context_ids")
_REFERENCE_IDS: Final = ("reference_context_ids", "reference_ids", "relevant_ids", "ground_truth_ids")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MAX_DEPTH: Final = 4
_SHOWN: Final = 40

Columns = tuple[str, ...]
"""Paths of columns, outer ones before what lies inside them."""


def _below(containers: Sequence[str], names: Sequence[str]) -> frozenset[str]:
    return frozenset(f"{container}.{name}" for container in containers for name in names)


_CANDIDATES: Final[Mapping[str, frozenset[str]]] = {
    "user_input": frozenset(_QUESTIONS) | _below(("inputs", "vars"), _QUESTIONS),
    "reference": frozenset(_REFERENCES)
    | _below(("inputs", "vars"), (*_REFERENCES, "expected"))
    | _below(("reference_outputs", "reference"), _ANSWERS),
    "retrieved_contexts": frozenset(_CONTEXTS) | _below(("inputs", "outputs", "vars"), _CONTEXTS),
    "response": frozenset(_ANSWERED) | _below(("outputs",), ("response", "actual_output")),
    "reference_contexts": frozenset({"reference_contexts", "ground_truth_contexts", "expected_contexts"}),
    "retrieved_context_ids": frozenset(_CONTEXT_IDS),
    "reference_context_ids": frozenset(_REFERENCE_IDS),
}
# A LangSmith example keeps the reference in `outputs`; an experiment keeps the system's answer there, and the
# reference in `reference_outputs`. So it is looked at only if nothing else could be the reference.
_LAST_RESORT: Final[Mapping[str, frozenset[str]]] = {"reference": _below(("outputs",), _ANSWERS)}


def parse_mapping(words: Iterable[str]) -> dict[str, str]:
    """The mapping that `--map field=column` options ask for.

    Raises:
        InputError: If a word is not of that form, or names a field twice or one that there is not.
    """
    mapping: dict[str, str] = {}
    for word in words:
        field, equals, column = word.partition("=")
        if not equals or not column or field in mapping:
            msg = f"--map {short(word)} is not field=column, or says one field twice"
            raise InputError(msg, f"For example: --map reference=answer; the fields are {', '.join(FIELDS)}")
        mapping[field] = column
    _check_fields(mapping)
    return mapping


def decide_mapping(
    files: Mapping[str, Columns | None], explicit: Mapping[str, str], required: Sequence[str] = REQUIRED
) -> dict[str, str]:
    """Which column each of our fields is read from, the same one in all files.

    Args:
        files: The columns of each file by its name; None for a file of which nothing can be said.
        explicit: What the user decided; it wins, and a column in it is not looked at for other fields.
        required: The fields that the metric reads.

    Returns:
        A path for each required field, and for each optional one that there is. Of a question, a reference and
        contexts that are not required, the one candidate.

    Raises:
        InputError: If a field has two candidates, or a required field none, or the user named a
            column that there is not.
    """
    _check_fields(explicit)
    known = {name: columns for name, columns in files.items() if columns is not None}
    if not known:
        return dict(zip(names := read_fields(required), names, strict=True)) | dict(explicit)
    together = tuple(dict.fromkeys(path for columns in known.values() for path in columns))
    mapping = dict(explicit)
    free = [path for path in together if path not in explicit.values()]
    for field in read_fields(required):
        if field in required and field not in mapping:
            taken = mapping.values() if field in SPECIAL else ()
            mapping[field] = _only_candidate(field, [path for path in free if path not in taken])
        elif field in REQUIRED and field not in mapping and len(found := _candidates(field, free)) == 1:
            mapping[field] = found[0]
    for field in OPTIONAL:
        if field in together:
            mapping.setdefault(field, field)
    _check_present(mapping, known, explicit=explicit, required=required)
    return {field: mapping[field] for field in FIELDS if field in mapping}


def read_fields(required: Sequence[str]) -> tuple[str, ...]:
    """The fields that are read for a metric: those it requires, and those that every sample may have."""
    return tuple(field for field in FIELDS if field in required or field not in SPECIAL)


def check_carried(names: Iterable[str], files: Mapping[str, Columns | None], mapping: Mapping[str, str]) -> None:
    """Refuse columns to carry into the records that no file has.

    Args:
        names: As the user names them; a column that is read into a field goes by the name of the field.
        files: The columns of each file by its name; one of which nothing can be said may have any.
        mapping: The column of each field.

    Raises:
        InputError: With the columns that there are.
    """
    if None in files.values():
        return
    paths = tuple(dict.fromkeys(path for columns in files.values() for path in columns or ()))
    outer = [path for path in paths if not any(path.startswith(f"{other}.") for other in paths)]
    known = (*REQUIRED, "group", *(["lang"] if "lang" in mapping else []))
    there = dict.fromkeys((*known, *(path for path in outer if path not in mapping.values())))
    for name in names:
        field = next((one for one, path in mapping.items() if path == name and one not in there), None)
        if name not in there:
            msg = f"no column {_printable(name)} to carry into the records"
            hint = f"It is read as {field}." if field else f"There are: {', '.join(map(_printable, there))}"
            raise InputError(msg, hint)


def paths_of(fields: Fields) -> Columns:
    """Paths of a row's columns and of what lies in its objects, to a small depth."""
    return tuple(_paths(fields, "", depth=_MAX_DEPTH))


def value_at(fields: Fields, path: str) -> JsonValue | Missing:
    """The value at a path, MISSING if the row has none.

    A column that is called like the whole path comes first: `inputs.question` may be one column.
    """
    if path in fields:
        return fields[path]
    for dot in (place for place, one in enumerate(path) if one == "."):
        inner = fields.get(path[:dot])
        if isinstance(inner, dict):
            found = value_at(inner, path[dot + 1 :])
            if found is not MISSING:
                return found
    return MISSING


def without(fields: Fields, paths: Iterable[str]) -> Fields:
    """A row without the columns at some paths; of an object of which a part is read, the rest stays."""
    rest = dict(fields)
    for path in paths:
        if path in rest:
            del rest[path]
            continue
        for dot in (place for place, one in enumerate(path) if one == "."):
            inner = rest.get(path[:dot])
            if isinstance(inner, dict) and value_at(inner, path[dot + 1 :]) is not MISSING:
                rest[path[:dot]] = without(inner, (path[dot + 1 :],))
                break
    return rest


def _paths(fields: Fields, prefix: str, *, depth: int) -> Iterable[str]:
    for name, value in fields.items():
        yield prefix + name
        if isinstance(value, dict) and depth > 1:
            yield from _paths(value, f"{prefix}{name}.", depth=depth - 1)


def _only_candidate(field: str, columns: Sequence[str]) -> str:
    """The one column that can hold a field; "" if there is none."""
    last = _LAST_RESORT.get(field, frozenset())
    found = _candidates(field, columns) or [path for path in columns if _plain(path) in last]
    if len(found) > 1:
        msg = f"{len(found)} columns could be {field}: {', '.join(map(_printable, found))}"
        raise InputError(msg, f"Say which: --map {field}={_printable(found[0])}")
    return found[0] if found else ""


def _candidates(field: str, columns: Sequence[str]) -> list[str]:
    found = [path for path in columns if _plain(path) in _CANDIDATES[field]]
    if field == "retrieved_contexts" and any(_leaf(path) == "retrieval_context" for path in found):
        # deepeval: `context` is the ideal context beside `retrieval_context`, what was retrieved.
        return [path for path in found if _leaf(path) != "context"]
    return found


def _check_fields(mapping: Mapping[str, str]) -> None:
    unknown = [field for field in mapping if field not in FIELDS]
    if unknown:
        msg = f"there is no field {short(unknown[0])} to map a column to"
        raise InputError(msg, f"The fields are {', '.join(FIELDS)}")


def _check_present(
    mapping: Mapping[str, str], files: Mapping[str, Columns], *, explicit: Mapping[str, str], required: Sequence[str]
) -> None:
    """Refuse a required field that a file lacks, and a column of the user's that no file has."""
    for field, path in mapping.items():
        lacking = [name for name, columns in files.items() if path not in columns]
        if field in required and lacking:
            raise _no_column(field, path, file=lacking[0], columns=files[lacking[0]])
        if field in explicit and len(lacking) == len(files):
            raise _no_column(field, path, file=lacking[0], columns=files[lacking[0]])


def _no_column(field: str, path: str, *, file: str, columns: Columns) -> InputError:
    wanted = f"no column {_printable(path)} for {field}" if path else f"no column for {field}"
    hint = f"Name it: --map {field}=COLUMN"
    if field == "reference" and any(_plain(column) in _ANSWERED for column in columns):
        hint += " (an answer is taken for that of the system that is measured, not for the reference)"
    return InputError(f"{file}: {wanted}; its columns are: {_listed(columns)}", hint)


def _listed(columns: Columns) -> str:
    """Names of columns; of an object the parts, for these can be named too."""
    leaves = [path for path in columns if not any(other.startswith(f"{path}.") for other in columns)]
    shown = ", ".join(map(_printable, leaves[:_SHOWN])) or "none"
    return f"{shown} and {len(leaves) - _SHOWN} more" if len(leaves) > _SHOWN else shown


def _plain(path: str) -> str:
    return _CAMEL.sub("_", path).replace("-", "_").replace(" ", "_").lower()


def _leaf(path: str) -> str:
    return _plain(path).rpartition(".")[2]


def _printable(path: str) -> str:
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in path)
