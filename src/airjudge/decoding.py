"""The reply schemas, and what a reply under one of them says.

Few schemas, none of which depends on a sample: the server compiles each once. They use only what
outlines_core enforces (`enum`, `minItems`, required fields) and no `maxLength`, which compiles slowly:
a reply is bounded by its token limit. Every reply is checked here against the automaton of its schema,
since servers and proxies have dropped the field and answered HTTP 200.
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


VERDICT = ReplySchema("verdict", {"type": "integer", "enum": [0, 1]})
REASON = ReplySchema("reason", {"type": "string"})
CANARY = ReplySchema("canary", {"type": "string", "enum": ["canary"]})
CLASSIFICATIONS = ReplySchema(
    "classifications",
    {
        "type": "object",
        "properties": {
            "classifications": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "statement": {"type": "string"},
                        "reason": {"type": "string"},
                        "attributed": {"type": "integer", "enum": [0, 1]},
                    },
                    "required": ["statement", "reason", "attributed"],
                    "additionalProperties": False,
                },
            },
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


ALL_SCHEMAS = (VERDICT, REASON, CANARY, CLASSIFICATIONS, CLAIMS)


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
    """The regular expression that the server's automaton for this schema accepts."""
    return re.compile(build_regex_from_schema(json.dumps(schema.json_schema)))


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


def read_label(completion: Completion) -> bool:
    """The verdict of a reply under `VERDICT`: true for 1.

    Raises:
        ReplyRunaway: If the token limit cut it in a stretch of whitespace or repetition.
        ReplyTruncated: If the token limit cut it otherwise.
        ReplyRefused: If it is anything else but 0 or 1.
    """
    if matches(VERDICT, completion.text):
        return completion.text == "1"
    if completion.finish_reason != "length":
        raise ReplyRefused(completion.text)
    raise ReplyRunaway if _runs_away(completion.text) else ReplyTruncated


def _runs_away(text: str) -> bool:
    """Whether a cut text is blank, or ends in 60 characters of one piece of at most 20 repeated."""
    repeats = re.fullmatch(r"(.{1,20}?)\1{2,}.{0,20}", text[-60:], re.DOTALL)
    return bool(text) and (not text.strip() or (len(text) >= 60 and repeats is not None))


def read_reason(completion: Completion) -> str:
    """The text of a reply under `REASON`; a cut one ends at its last whole word with an ellipsis."""
    if matches(REASON, completion.text):
        return str(json.loads(completion.text)).strip()
    whole = re.match(r'"(?:[^"\\\x00-\x1f\x7f-\x9f]|\\["\\/bfnrt])*', completion.text)
    if whole is None:
        raise ReplyRefused(completion.text)
    text = str(json.loads(whole.group() + '"')).strip()
    return f"{text.rsplit(None, 1)[0]} …" if " " in text else f"{text}…"


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
    """The whole claims of a reply under `CLAIMS`, in order, as they were written; a cut reply keeps those before the cut.

    Half a surrogate pair, which the schema lets a judge write, becomes a question mark.

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
    start = re.match(rf'\{{\s?"{schema.name}"\s?:\s?\[\s?', text)
    at = start.end() if start else len(text)
    while at < len(text) and text[at] != "]":
        try:
            raw, end = json.JSONDecoder().raw_decode(text, at)
        except json.JSONDecodeError:
            return
        yield raw, at, end
        separator = re.match(r"\s?,\s?", text[end:])
        at = end + separator.end() if separator else len(text)


def _probability_at(completion: Completion, place: int) -> float | None:
    """The probability of label 1 at a character of a reply, from the token that wrote it."""
    target = len(completion.text[:place].encode("utf-8"))
    offset = 0
    for token in completion.tokens:
        # Only a token that is the label alone, white space aside, has alternatives that are labels.
        if offset <= target < offset + len(token.token):
            return scoring.verdict_probability(token.alternatives)
        offset += len(token.token)
    return None
