"""Schemas of others: whatever outlines writes under what comes out is valid under the original model, or it is refused.

The oracle is outlines_core itself: strings are drawn from the regular expression that it builds.
"""

import json
import re
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Optional
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from outlines_core.json_schema import build_regex_from_schema
from pydantic import UUID4, BaseModel, Field, JsonValue, TypeAdapter, ValidationError, create_model

from airjudge.enforceable import MOST_STATES, brief, compile_states, enforceable, json_schema_of
from airjudge.errors import SchemaRefused


def regex_of(schema: dict[str, JsonValue]) -> re.Pattern[str]:
    return re.compile(build_regex_from_schema(json.dumps(schema)))


def field(kind: Any) -> type[BaseModel]:
    """A model with one field."""
    return create_model("Model", f=(kind, ...))


def of_field(kind: object) -> JsonValue:
    """What becomes of a field."""
    fields = enforceable(json_schema_of(field(kind)))["properties"]
    assert isinstance(fields, dict)
    return fields["f"]


class Colour(Enum):
    red = "red"
    quoted = 'a "b" \\ c'


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str = "Rex"


LEAVES = (
    str, bool, int, float, date, time, datetime, UUID, UUID4, Colour, Cat, type(None),
    Literal[0, 1], Literal["yes", "no"] | None, Literal[1, True, "1"],
    Annotated[int, Field(ge=-3, lt=4)], Annotated[int, Field(gt=0, le=50, multiple_of=5)],
    Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(gt=0, lt=1)], Annotated[float, Field(ge=1, le=5)],
    Annotated[float, Field(ge=-1.25, le=7.5)], Annotated[float, Field(ge=0, le=1, multiple_of=0.25)],
    Annotated[Decimal, Field(ge=0, le=1)], Annotated[float, Field(ge=0.5, le=0.5)],
    Annotated[str, Field(max_length=5)], Annotated[str, Field(min_length=2)],
    Annotated[str, Field(min_length=1, max_length=3)],
    Annotated[str, Field(pattern=r"^[a-z]{2,4}$")], Annotated[str, Field(pattern=r"ab|c\$")],
    Annotated[Cat | Dog, Field(discriminator="kind")],
)  # fmt: skip
KINDS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        inner.map(lambda one: list[one]),  # type: ignore[valid-type]
        inner.map(lambda one: Annotated[list[one], Field(min_length=1, max_length=2)]),  # type: ignore[valid-type]
        inner.map(lambda one: Optional[one]),  # noqa: UP045 -- of what is only known here
        inner.map(lambda one: dict[str, one]),  # type: ignore[valid-type]
        st.tuples(inner, inner).map(lambda two: tuple[two[0], two[1]]),  # type: ignore[valid-type]
    ),
    max_leaves=3,
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(KINDS, min_size=1, max_size=3), st.data())
def test_whatever_outlines_writes_is_valid_under_the_original_model(kinds: list[Any], data: st.DataObject) -> None:
    fields: dict[str, Any] = {f"f{n}": (kind, ...) for n, kind in enumerate(kinds)}
    model = create_model("Model", **fields)
    try:
        schema = enforceable(json_schema_of(model))
    except SchemaRefused as refused:
        # Nothing here is beyond automata: a large one is refused for its compile time alone.
        assert "compile in the server's time" in str(refused)  # noqa: PT017 -- others are valid
        return
    model.model_validate_json(data.draw(st.from_regex(regex_of(schema), fullmatch=True)))


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.sampled_from((str, list[str], Cat | str, list[Annotated[float, Field(ge=0, le=1)]])), st.data())
def test_the_brief_form_allows_a_part_of_the_schema(kind: Any, data: st.DataObject) -> None:
    schema = enforceable(json_schema_of(field(kind)))
    made = brief(schema, cut=data.draw(st.sampled_from(("abc", "ä"))))
    assert made is not None
    text = data.draw(st.from_regex(regex_of(made), fullmatch=True))
    assert regex_of(schema).fullmatch(text)
    field(kind).model_validate_json(text)


def test_what_ends_by_itself_has_no_brief_form() -> None:
    assert brief(enforceable(json_schema_of(field(Literal["a", "b"]))), cut="") is None


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        (Annotated[float, Field(ge=0, le=1)], 7),
        (Annotated[int, Field(ge=0, le=1)], 7),
        (Annotated[float, Field(gt=0, le=1)], 0.0),
        (Annotated[int, Field(ge=0, le=9, multiple_of=3)], 4),
        (date, "2023-02-31"),
        (time, "24:00:00"),
    ],
)
def test_outlines_alone_lets_through_what_is_refused_here(kind: object, reply: JsonValue) -> None:
    text = json.dumps({"f": reply})
    with pytest.raises(ValidationError):
        field(kind).model_validate_json(text)
    if kind is not time:  # of that outlines knows the hours
        assert regex_of(dict(json_schema_of(field(kind)))).fullmatch(text)
    assert not regex_of(enforceable(json_schema_of(field(kind)))).fullmatch(text)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Annotated[float, Field(ge=0, le=1)], [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
        (Annotated[float, Field(gt=0.75, le=1)], [0.76, 0.77, 0.78, 0.79, *(n / 100 for n in range(80, 101))]),
        (Annotated[int, Field(gt=0, lt=5)], [1, 2, 3, 4]),
        (Annotated[int, Field(ge=1, le=10, multiple_of=4)], [4, 8]),
        (Literal[1], [1]),
        (Colour, ["red", 'a "b" \\ c']),
    ],
)
def test_ranges_become_lists_of_values(kind: object, values: list[JsonValue]) -> None:
    made = of_field(kind)
    assert isinstance(made, dict)
    assert made["enum"] == values


class Tree(BaseModel):
    children: list["Tree"]


REFUSED = [
    (Annotated[int, Field(ge=0)], "f: 'minimum' without a bound on the other side"),
    (Annotated[float, Field(lt=1)], "f: 'exclusiveMaximum' without a bound on the other side"),
    (Annotated[int, Field(multiple_of=2)], "f: 'multipleOf' without a bound on either side"),
    (Annotated[int, Field(ge=0, le=10**9)], "f: a range of 1000000001 values"),
    (Annotated[int, Field(gt=1, lt=2)], "f: no value satisfies these bounds"),
    (set[int], "f: 'uniqueItems'"),
    (Any, "f: a value of any kind"),
    (list, "f.items: a value of any kind"),
    (dict, "f: an object with any content"),
    (Annotated[dict[str, int], Field(max_length=2)], "f: outlines does not enforce 'maxProperties'"),
    (bytes, "f: the format 'binary' is not enforced"),
    (Annotated[str, Field(max_length=5000)], "f: 'maxLength' 5000"),
    (Annotated[str, Field(max_length=300)], "4213 states, at most 1000 compile in the server's time .about 16 s of 5"),
    (Annotated[list[str], Field(max_length=400)], "states, at most 1000 compile in the server's time"),
    (Annotated[str, Field(pattern=".*")], r"f: the pattern '\.\*' lets quotes"),
    (Annotated[str, Field(pattern=r"^a\b")], "has no automaton"),
    (Annotated[str, Field(pattern="^a+$", max_length=3)], "f: outlines enforces only one of 'pattern', 'maxLength'"),
    (Decimal, "f: outlines does not enforce 'format' here"),
    (Annotated[Decimal, Field(decimal_places=2)], "f: outlines does not enforce 'decimal_places'"),
    (Tree, r"f.children.items: #/\$defs/Tree holds itself"),
]


@pytest.mark.parametrize(("kind", "message"), REFUSED)
def test_what_no_automaton_holds_is_refused_by_name(kind: object, message: str) -> None:
    with pytest.raises(SchemaRefused, match=message) as caught:
        enforceable(json_schema_of(field(kind)))
    assert caught.value.hint


NAMED: list[tuple[dict[str, JsonValue], str]] = [
    ({"type": "integer", "not": {"const": 1}}, "'not'"),
    ({"if": {"type": "integer"}, "then": {"const": 1}}, "'if'"),
    ({"type": "array", "items": {"type": "integer"}, "contains": {"const": 1}}, "'contains'"),
    ({"type": "object", "properties": {}, "patternProperties": {}}, "'patternProperties'"),
    ({"oneOf": [{"type": "integer"}, {"type": "integer"}]}, "'oneOf' whose alternatives may hold at once"),
    ({"allOf": [{"type": "integer"}, {"type": "string"}]}, "'allOf' whose parts differ in 'type'"),
    ({"enum": [{"a": 1}]}, "an enum of objects or lists"),
    ({"type": "string", "enum": [1]}, "no value is allowed"),
    ({"type": "array", "prefixItems": [{"type": "null"}], "items": {"type": "null"}}, "'prefixItems' with more items"),
    ({"type": "object", "properties": {'a"b': {"type": "null"}}}, "does not escape the field's name"),
    ({"$ref": "#/$defs/Nothing"}, "Nothing is not defined"),
    ({"type": "integer", "x-unheard": 1}, "'x-unheard'"),
]


@pytest.mark.parametrize(("schema", "message"), NAMED)
def test_keywords_that_pydantic_does_not_write_are_refused_by_name(schema: dict[str, JsonValue], message: str) -> None:
    with pytest.raises(SchemaRefused, match=message):
        enforceable(schema)


def test_parts_that_hold_at_once_become_one_where_outlines_joins_them_end_to_end() -> None:
    parts: list[JsonValue] = [
        {"$ref": "#/$defs/A"},
        {"type": "object", "properties": {"b": {"type": "null"}}, "required": ["b"]},
    ]
    definition: JsonValue = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    schema: dict[str, JsonValue] = {"$defs": {"A": definition}, "allOf": parts}
    assert not regex_of(schema).fullmatch('{"a": true, "b": null}')
    made = enforceable(schema)
    assert regex_of(made).fullmatch('{"a": true, "b": null}')
    assert not regex_of(made).fullmatch('{"a": true}')
    [single] = [enforceable({"allOf": [definition]})]
    assert single["properties"] == {"a": {"type": "boolean"}}


def test_a_field_with_a_default_is_written_too() -> None:
    made = enforceable(json_schema_of(Dog))
    assert made["required"] == ["kind", "name"]
    assert not regex_of(made).fullmatch('{"kind": "dog"}')


def test_a_narrowed_field_is_held_to_its_values_and_never_widened() -> None:
    schema = json_schema_of(list[Dog])
    made = enforceable(schema, narrowed={"Dog.name": ["Rex", "Ali"], "Cat.name": ["Tom"], "Dog.kind": ["wolf"]})
    assert regex_of(made).fullmatch('[{"kind": "dog", "name": "Ali"}]')
    assert not regex_of(made).fullmatch('[{"kind": "dog", "name": "Tom"}]')
    assert not regex_of(made).fullmatch('[{"kind": "wolf", "name": "Ali"}]')


@pytest.mark.parametrize(
    ("schema", "measured_s"),
    [
        # reference: items {reason, attributed} over 152 thousand tokens; one item, exactly 32 verdicts, 100 characters.
        ({"minItems": 32, "maxItems": 32, "items": {"attributed": {"enum": [0, 1]}}}, 2.7),
        ({"minItems": 1, "maxItems": 1, "items": {"r": {"type": "string", "maxLength": 100}}}, 5.4),
    ],
)
def test_the_states_tell_the_seconds_that_were_measured(schema: dict[str, Any], measured_s: float) -> None:
    item = {"type": "object", "properties": schema["items"], "required": list(schema["items"])}
    seconds = compile_states({"type": "array", **schema, "items": item}) * 0.0038
    assert seconds == pytest.approx(measured_s, rel=0.15)


def test_what_is_allowed_compiles_within_a_server_s_time() -> None:
    assert MOST_STATES * 0.0038 < 5
    assert compile_states(enforceable(json_schema_of(field(Annotated[str, Field(max_length=50)])))) < MOST_STATES


def test_equal_types_have_equal_schemas() -> None:
    assert json_schema_of(Cat) == json_schema_of(Cat)
    assert TypeAdapter(Cat).validate_json('{"kind": "cat", "lives": 9}') == Cat(kind="cat", lives=9)
