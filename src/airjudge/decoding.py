"""The reply schemas, and what a reply under one of them says.

Few schemas, none of which depends on a sample: the server compiles each once. They use only what
outlines_core enforces (`enum`, `minItems`, required fields) and no `maxLength`, which compiles slowly:
a reply is bounded by its token limit. Every reply is checked here against the automaton of its schema,
since servers and proxies have dropped the field and answered HTTP 200.

Hosted providers take an object at the root alone, write their own white space and escapes, and may enforce
nothing. So each schema has an object form for them, whose automaton is that of JSON: exactly the object asked
for, with no word or fence around it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal

from outlines_core.json_schema import build_regex_from_schema
from pydantic import JsonValue, ValidationError

from airjudge import scoring
from airjudge.errors import ReplyRefused, ReplyRunaway, ReplyTruncated
from airjudge.schema import Completion, Record, ReplySchema

UNENFORCED = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems", "not"}
    | {"allOf", "if", "then", "else", "maxLength", "minLength"}
)
"""Keywords that outlines_core ignores, reads differently, or compiles in more than the server's 5 s."""


class Classification(Record):
    """One item of a reply under `CLASSIFICATIONS`; the order of fields is that of generation."""

    statement: str
    reason: str
    attributed: Literal[0, 1]


class Grade(Record):
    """What a judge gave a response: one of the steps 0.0, 0.1 … 1.0, and why; None where its reply was cut before."""

    value: float
    reason: str | None = None


_ITEM: JsonValue = {
    "type": "object",
    "properties": {
        "statement": {"type": "string"},
        "reason": {"type": "string"},
        "attributed": {"type": "integer", "enum": [0, 1]},
    },
    "required": ["statement", "reason", "attributed"],
    "additionalProperties": False,
}

VERDICT = ReplySchema("verdict", {"type": "integer", "enum": [0, 1]})
REASON = ReplySchema("reason", {"type": "string"})
CANARY = ReplySchema("canary", {"type": "string", "enum": ["canary"]})
CLASSIFICATIONS = ReplySchema(
    "classifications",
    {
        "type": "object",
        "properties": {
            "classifications": {"type": "array", "minItems": 1, "items": _ITEM},
        },
        "required": ["classifications"],
        "additionalProperties": False,
    },
)
CLAIMS = ReplySchema(
    "claims",
    {
        "type": "object",
        "properties": {"claims": {"type": "array", "minItems": 1, "items": {"type": "string"}}},
        "required": ["claims"],
        "additionalProperties": False,
    },
)

STEPS = tuple(step / 10 for step in range(11))
"""The grades that there are: servers do not enforce bounds of numbers, but they do enforce an enum."""
_STEP: JsonValue = {"type": "number", "enum": list(STEPS)}
_GRADE: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {"score": _STEP, "reason": {"type": "string"}},
    "required": ["score", "reason"],
    "additionalProperties": False,
}
GRADE = ReplySchema("grade", _GRADE)

_REASONED: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "attributed": {"type": "integer", "enum": [0, 1]}},
    "required": ["reason", "attributed"],
    "additionalProperties": False,
}
REASONED = ReplySchema("reasoned", _REASONED)
"""The order of fields is that of generation: the reason comes before the verdict."""

FREE_TEXT = ReplySchema("text", {})
"""No schema: what callers ask for that parse nothing."""

ALL_SCHEMAS = (VERDICT, REASON, CANARY, CLASSIFICATIONS, CLAIMS, REASONED, GRADE)
"""Those that a vLLM server compiles."""


def _object_of(name: str, inner: JsonValue) -> ReplySchema:
    """A schema as hosted providers take it: an object of one required field, and nothing else in it."""
    return ReplySchema(
        name,
        {"type": "object", "properties": {name: inner}, "required": [name], "additionalProperties": False},
        by_provider=True,
    )


VERDICT_OBJECT = _object_of("attributed", {"type": "integer", "enum": [0, 1]})
REASON_OBJECT = _object_of("reason", {"type": "string"})
CANARY_OBJECT = _object_of("canary", {"type": "string", "enum": ["canary"]})
OBJECT_FORMS: Mapping[ReplySchema, ReplySchema] = {
    VERDICT: VERDICT_OBJECT,
    REASON: REASON_OBJECT,
    CANARY: CANARY_OBJECT,
    # Not all providers know minItems; an empty list is completed one statement at a time.
    CLASSIFICATIONS: _object_of("classifications", {"type": "array", "items": _ITEM}),
    CLAIMS: _object_of("claims", {"type": "array", "items": {"type": "string"}}),
    # The same schemas by another automaton: providers write white space and escapes of their own.
    REASONED: ReplySchema("reasoned", _REASONED, by_provider=True),
    GRADE: ReplySchema("grade", _GRADE, by_provider=True),
}
"""Each schema's form for hosted providers."""

_SPACE = r"[ \t\n\r]*"
_JSON_STRING = r'"([^"\\\x00-\x1F]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"'
"""White space and strings as RFC 8259 has them; outlines writes less of both."""
_JSON_STEP = r"(0(\.\d)?|1(\.0)?)"
"""A step as a provider may write it: 1 is 1.0."""
_BEFORE, _BEHIND = b' \t\n\r":', b" \t\n\r},"
"""What a token may hold beside a label."""


def unenforced_keywords(json_schema: JsonValue | Mapping[str, JsonValue]) -> Iterator[str]:
    """Name the keywords of a schema that the server would not enforce, or compile too slowly."""
    if isinstance(json_schema, Mapping):
        for key, value in json_schema.items():
            if key in UNENFORCED:
                yield key
            yield from unenforced_keywords(value)
    elif isinstance(json_schema, list):
        for value in json_schema:
            yield from unenforced_keywords(value)


@cache
def pattern(schema: ReplySchema) -> re.Pattern[str]:
    """The regular expression that the server's automaton for this schema accepts; of an object form, JSON's own."""
    if not schema.json_schema:
        return re.compile(r"(?s:.*)")
    text = json.dumps(schema.json_schema)
    if not schema.by_provider:
        return re.compile(build_regex_from_schema(text))
    outlines_string = build_regex_from_schema('{"type":"string"}')
    outlines_step = build_regex_from_schema(json.dumps(_STEP))
    inner = build_regex_from_schema(text, _SPACE).replace(outlines_string, _JSON_STRING)
    inner = inner.replace(outlines_step, _JSON_STEP)
    return re.compile(f"{_SPACE}{inner}{_SPACE}")


def matches(schema: ReplySchema, text: str) -> bool:
    """Whether a text is a whole reply under the schema."""
    return pattern(schema).fullmatch(text) is not None


def check_reply(schema: ReplySchema, completion: Completion) -> None:
    """Raise if a reply ended by itself and is outside its automaton: the schema was not enforced.

    A reply that matches in full is valid whatever its finish reason: one token under
    `max_completion_tokens` 1 is complete though the server says `length`.

    Raises:
        ReplyRefused: If it does not match and was not cut by its token limit.
    """
    if completion.finish_reason != "length" and not matches(schema, completion.text):
        raise ReplyRefused(completion.text)


def check_whole(schema: ReplySchema, completion: Completion) -> None:
    """Raise if a reply is not all of what its schema wants.

    Raises:
        ReplyRunaway: If the token limit cut it in a stretch of whitespace or repetition.
        ReplyTruncated: If the token limit cut it otherwise.
        ReplyRefused: If it is anything else but a whole reply under the schema.
    """
    is_free = not schema.json_schema
    if matches(schema, completion.text) and not (is_free and completion.finish_reason == "length"):
        return
    if completion.finish_reason != "length":
        raise ReplyRefused(completion.text)
    raise ReplyRunaway if _runs_away(completion.text) else ReplyTruncated


def read_verdict(schema: ReplySchema, completion: Completion) -> tuple[bool, float | None]:
    """The verdict of a reply, true for 1, and its probability where the server gave logprobs that fit the text.

    Args:
        schema: `VERDICT`, whose reply is one token, or `VERDICT_OBJECT`.
        completion: The reply.

    Raises:
        ReplyRunaway: If the token limit cut it in a stretch of whitespace or repetition.
        ReplyTruncated: If the token limit cut it otherwise.
        ReplyRefused: If it is anything else but a verdict under the schema.
    """
    check_whole(schema, completion)
    if schema is VERDICT:
        alternatives = completion.tokens[0].alternatives if completion.tokens else ()
        return completion.text == "1", scoring.verdict_probability(alternatives)
    return _last_digit(completion)


def read_reasoned(schema: ReplySchema, completion: Completion) -> tuple[str | None, bool, float | None]:
    """The reason of a reply, the verdict behind it, and the probability of that.

    The probability is that of the digit after such a reason: it saturates near 0 and 1, for the reason has settled
    the verdict by then.

    Args:
        schema: `REASONED` or its object form.
        completion: The reply.

    Returns:
        A reason that says nothing is None.

    Raises:
        ReplyRunaway: If the token limit cut it in a stretch of whitespace or repetition.
        ReplyTruncated: If the token limit cut it otherwise.
        ReplyRefused: If it is anything else but a reply under the schema.
    """
    check_whole(schema, completion)
    reason = str(json.loads(completion.text)["reason"]).encode("utf-8", "ignore").decode().strip()
    return (reason or None, *_last_digit(completion))


def why_short(schema: ReplySchema, completion: Completion) -> ReplyTruncated | ReplyRunaway | None:
    """Why a reply says less than it would have: what cut it; None for a whole one."""
    if completion.finish_reason != "length" or matches(schema, completion.text):
        return None
    return ReplyRunaway() if _runs_away(completion.text) else ReplyTruncated()


def _last_digit(completion: Completion) -> tuple[bool, float | None]:
    """The verdict that a reply's last label gives, and its probability where the tokens tell it."""
    digit = max(completion.text.rfind("0"), completion.text.rfind("1"))
    return completion.text[digit] == "1", _probability_at(completion, digit)


def _runs_away(text: str) -> bool:
    """Whether a cut text is blank, or ends in 60 characters of one piece of at most 20 repeated."""
    repeats = re.fullmatch(r"(.{1,20}?)\1{2,}.{0,20}", text[-60:], re.DOTALL)
    return bool(text) and (not text.strip() or (len(text) >= 60 and repeats is not None))


def read_reason(completion: Completion) -> str:
    """The text of a reply under `REASON` or its object form; a cut one ends at its last whole word with an ellipsis."""
    text = re.sub(rf'^{_SPACE}\{{{_SPACE}"reason"{_SPACE}:{_SPACE}', "", completion.text)
    told = _told(text)
    if told is None:
        raise ReplyRefused(completion.text)
    return told[0]


def _told(text: str) -> tuple[str, str] | None:
    """The JSON string that a text begins with, and what stands behind it; None if it begins with none.

    A cut string ends at its last whole word with an ellipsis.
    """
    whole = re.match(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*("?)', text)
    if whole is None:
        return None
    # A cut surrogate pair cannot be written down.
    told = str(json.loads(whole.group() + ("" if whole[1] else '"'))).encode("utf-8", "ignore").decode().strip()
    if not whole[1]:
        told = f"{told.rsplit(None, 1)[0]} …" if " " in told else f"{told}…"
    return told, text[whole.end() :]


def read_grade(schema: ReplySchema, completion: Completion) -> Grade:
    """The score and the reason of a reply under `GRADE` or its object form.

    Of a cut reply the score stands if a comma shows that it is whole, with as much of the reason as there is.

    Raises:
        ReplyRunaway: If the token limit cut it before that, in a stretch of whitespace or repetition.
        ReplyTruncated: If the token limit cut it so early otherwise.
        ReplyRefused: If it is no reply under the schema, nor the beginning of one.
    """
    text, cut = completion.text, completion.finish_reason == "length"
    scored = re.match(rf'{_SPACE}\{{{_SPACE}"score"{_SPACE}:{_SPACE}([^\s,"{{}}]+){_SPACE},{_SPACE}', text)
    if not matches(schema, text) and not cut:
        raise ReplyRefused(text)
    if scored is None:
        raise ReplyRunaway if _runs_away(text) else ReplyTruncated
    if re.fullmatch(_JSON_STEP, scored[1]) is None:
        raise ReplyRefused(text)
    return Grade(value=float(scored[1]), reason=_reason_behind(text[scored.end() :], text))


def _reason_behind(rest: str, text: str) -> str | None:
    """The reason in what stands behind a score, whole or cut; None if it says nothing, or is cut before it does.

    Raises:
        ReplyRefused: If something else stands there.
    """
    opened = re.match(rf'"reason"{_SPACE}:{_SPACE}', rest)
    if opened is None or opened.end() == len(rest):
        if opened is None and not '"reason":'.startswith("".join(rest.split())):
            raise ReplyRefused(text)
        return None
    told = _told(rest[opened.end() :])
    if told is None or re.fullmatch(rf"(\\u?[0-9a-fA-F]{{0,3}})?{_SPACE}\}}?{_SPACE}", told[1]) is None:
        raise ReplyRefused(text)
    return told[0] or None


def read_classifications(completion: Completion) -> list[tuple[Classification, float | None]]:
    """The whole items of a reply under `CLASSIFICATIONS`, each with the probability of attributed 1.

    A cut reply keeps the items before the cut; there may be none. The probability is conditional on
    the schema, and None where the server gave no logprobs that fit the text.

    Raises:
        ReplyRefused: If an item is whole and not one of ours.
    """
    items: list[tuple[Classification, float | None]] = []
    for raw, start, end in _whole_items(CLASSIFICATIONS, completion.text):
        try:
            item = Classification.model_validate(raw)
        except ValidationError as error:
            raise ReplyRefused(completion.text[start:end]) from error
        digit = completion.text.rindex(str(item.attributed), start, end)
        items.append((item, _probability_at(completion, digit)))
    return items


def read_claims(completion: Completion) -> list[str]:
    """The whole claims of a reply under `CLAIMS`, in order, as they were written.

    A cut reply keeps those before the cut. Half a surrogate pair, which the schema lets a judge write, becomes
    a question mark.

    Raises:
        ReplyRunaway: If the token limit cut it before the first claim ended, in whitespace or repetition.
        ReplyTruncated: If the token limit cut it so early otherwise.
        ReplyRefused: If it is no reply under the schema.
    """
    found = [raw for raw, _, _ in _whole_items(CLAIMS, completion.text)]
    claims = [one.encode("utf-8", "replace").decode() for one in found if isinstance(one, str)]
    if len(claims) < len(found) or (not claims and completion.finish_reason != "length"):
        raise ReplyRefused(completion.text)
    if not claims:
        raise ReplyRunaway if _runs_away(completion.text) else ReplyTruncated
    return claims


def _whole_items(schema: ReplySchema, text: str) -> Iterator[tuple[JsonValue, int, int]]:
    """The items of a reply that is one list under its schema's name, each with its bounds; a cut item ends them."""
    start = re.match(rf'\s*\{{\s*"{schema.name}"\s*:\s*\[\s*', text)
    at = start.end() if start else len(text)
    while at < len(text) and text[at] != "]":
        try:
            raw, end = json.JSONDecoder().raw_decode(text, at)
        except json.JSONDecodeError:
            return
        yield raw, at, end
        separator = re.match(r"\s*,\s*", text[end:])
        at = end + separator.end() if separator else len(text)


def _probability_at(completion: Completion, place: int) -> float | None:
    """The probability of label 1 at a character of a reply, from the token that wrote it.

    None if the tokens do not spell the text up to there: then nothing says which one it is. A token may hold
    marks of JSON beside the label, on which the label does not depend.
    """
    before = completion.text[:place].encode("utf-8")
    written = b""
    for token in completion.tokens:
        if len(written) + len(token.token) <= len(before):
            written += token.token
            continue
        if not (written + token.token).startswith(before + completion.text[place].encode()):
            return None
        return scoring.verdict_probability((one.lstrip(_BEFORE).rstrip(_BEHIND), lp) for one, lp in token.alternatives)
    return None
