import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from airjudge.schema import Signature
from airjudge.signature import Provenance, differences, digest, make_signature

JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
HERE = Provenance(judge="qwen", weights="cc324af070c2", enforcement="outlines", server="vllm-0.32.0", airjudge="0.1.0")


def signature(prompt: JsonValue = "p", temperature: float = 0) -> Signature:
    decoding: dict[str, JsonValue] = {"temperature": temperature, "seed": 0}
    return make_signature(HERE, "pointwise", prompt=prompt, statements="given", decoding=decoding)


def test_digest_is_the_sha256_of_the_canonical_form() -> None:
    # printf %s '{"a":[1,true,null],"b":"\\u00e9"}' | sha256sum
    assert digest({"b": "é", "a": [1, True, None]}) == "1a1651e84759"


@given(st.dictionaries(st.text(), JSON, min_size=2, max_size=5))
def test_digest_does_not_depend_on_key_order(fields: dict[str, JsonValue]) -> None:
    assert digest(fields) == digest(dict(reversed(fields.items())))


@given(JSON, JSON)
def test_different_values_have_different_digests(a: JsonValue, b: JsonValue) -> None:
    assert (digest(a) == digest(b)) == (repr_canonical(a) == repr_canonical(b))


def repr_canonical(value: JsonValue) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{repr_canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(repr_canonical, value)) + "]"
    return repr(value)


def test_digest_refuses_what_json_cannot_hold() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        digest({"a": math.nan})


def test_a_signature_is_one_line() -> None:
    line = str(signature())
    assert line == (
        f"qwen@cc324af070c2 pointwise#{digest('p')} statements=given seed=0,temperature=0 "
        "enforced=outlines vllm-0.32.0 airjudge-0.1.0"
    )


def test_equal_circumstances_have_equal_signatures() -> None:
    assert signature() == signature()
    assert differences(signature(), signature()) == []


def test_differences_name_the_field_and_both_values() -> None:
    assert differences(signature(), signature(temperature=0.5)) == [
        ("decoding", "seed=0,temperature=0", "seed=0,temperature=0.5")
    ]
    fields = [field for field, _, _ in differences(signature(), signature(prompt=["q"], temperature=1))]
    assert fields == ["prompt", "decoding"]
