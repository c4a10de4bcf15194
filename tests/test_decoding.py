"""Schemas that a server can enforce, and replies that are read without trust."""

import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge import decoding
from airjudge.errors import ReplyRefused, ReplyRunaway, ReplyTruncated
from airjudge.schema import Completion, ReplySchema, TokenAlternatives, Usage

if TYPE_CHECKING:
    from pydantic import JsonValue

plain_text = st.text(alphabet=st.characters(blacklist_categories=("Cc", "Cs")), max_size=40)


def completion(text: str, finish_reason: str = "stop", *, tokens: tuple[TokenAlternatives, ...] = ()) -> Completion:
    return Completion(text=text, finish_reason=finish_reason, tokens=tokens, usage=Usage(requests=1))


def reply(*items: tuple[str, str, int]) -> str:
    listed = [{"statement": s, "reason": r, "attributed": a} for s, r, a in items]
    return json.dumps({"classifications": listed}, ensure_ascii=False)


@pytest.mark.parametrize("schema", decoding.ALL_SCHEMAS, ids=lambda schema: schema.name)
def test_our_schemas_use_only_what_the_server_enforces_quickly(schema: ReplySchema) -> None:
    assert not list(decoding.unenforced_keywords(schema.json_schema))


def test_a_keyword_that_is_not_enforced_is_found_at_any_depth() -> None:
    schema: dict[str, JsonValue] = {
        "type": "array",
        "items": [{"type": "integer", "maximum": 1}, {"type": "string", "maxLength": 3}],
    }
    assert sorted(decoding.unenforced_keywords(schema)) == ["maxLength", "maximum"]


def test_a_verdict_is_valid_though_its_token_limit_cut_it() -> None:
    decoding.check_reply(decoding.VERDICT, completion("1", "length"))
    assert decoding.read_verdict(decoding.VERDICT, completion("1", "length"))[0] is True
    assert decoding.read_verdict(decoding.VERDICT, completion("0", "stop"))[0] is False


@pytest.mark.parametrize("text", ["7", "01", " 1", "yes", "Sure: 1", "1.0", "", '{"verdict": 1}', "true"])
def test_a_reply_that_ended_outside_its_automaton_shows_a_server_that_does_not_enforce(text: str) -> None:
    with pytest.raises(ReplyRefused, match=re.escape(repr(text))):
        decoding.check_reply(decoding.VERDICT, completion(text))


def test_a_cut_reply_without_verdict_is_truncated_and_never_zero() -> None:
    with pytest.raises(ReplyTruncated):
        decoding.read_verdict(decoding.VERDICT, completion("", "length"))


def test_a_thousand_spaces_are_a_runaway() -> None:
    with pytest.raises(ReplyRunaway):
        decoding.read_verdict(decoding.VERDICT, completion(" " * 1000, "length"))


def test_one_piece_repeated_to_the_limit_is_a_runaway() -> None:
    with pytest.raises(ReplyRunaway):
        decoding.read_verdict(decoding.VERDICT, completion("0 because " + "no no and " * 40, "length"))


def test_a_long_refused_reply_is_shortened_in_its_error() -> None:
    error = ReplyRefused("x" * 5000)
    assert len(str(error)) < 300


@given(st.lists(st.tuples(plain_text, plain_text, st.sampled_from([0, 1])), min_size=1, max_size=4))
def test_each_whole_reply_reads_back_as_it_was_written(items: list[tuple[str, str, int]]) -> None:
    # Control characters beyond ASCII are outside what the schema lets a model write.
    items = [(re.sub(r"[\x7f-\x9f]", "", s), re.sub(r"[\x7f-\x9f]", "", r), a) for s, r, a in items]
    text = reply(*items)
    assert decoding.matches(decoding.CLASSIFICATIONS, text)
    read = decoding.read_classifications(completion(text))
    assert [(one.statement, one.reason, one.attributed) for one, _ in read] == items


@given(st.data())
def test_a_reply_cut_anywhere_keeps_exactly_its_whole_items(data: st.DataObject) -> None:
    items = [("A is b.", 'said "so"', 1), ("埃菲尔铁塔位于巴黎。", "上下文二", 0), ("C {d}, [e].", "}]", 1)]
    text = reply(*items)
    cut = data.draw(st.integers(0, len(text)))
    # An item is whole once its closing brace is there: braces inside strings do not count.
    ends = [len(reply(*items[:n])) - len("]}") for n in (1, 2, 3)]
    read = decoding.read_classifications(completion(text[:cut], "length"))
    assert [one.statement for one, _ in read] == [s for (s, _, _), end in zip(items, ends, strict=True) if end <= cut]


def test_an_item_with_another_key_or_number_is_refused_whole() -> None:
    for item in ('{"statement":"a","reason":"b","verdict":1}', '{"statement":"a","reason":"b","attributed":7}'):
        with pytest.raises(ReplyRefused):
            decoding.read_classifications(completion(f'{{"classifications":[{item}', "length"))


def test_an_empty_list_of_classifications_is_outside_the_schema() -> None:
    assert not decoding.matches(decoding.CLASSIFICATIONS, '{"classifications": []}')


def test_the_probability_of_an_item_is_that_of_the_token_that_wrote_its_label() -> None:
    head, tail = '{"classifications":[{"statement":"é 1","reason":"0","attributed":', "}]}"
    # The label token has p(1) = .8 and p(0) = .2; the digits inside strings must not be taken for it.
    label = TokenAlternatives(b"1", ((b"1", -0.2231435), (b"0", -1.6094379)))
    rest = (TokenAlternatives(head.encode(), ()), label, TokenAlternatives(tail.encode(), ()))
    [(item, probability)] = decoding.read_classifications(completion(head + "1" + tail, tokens=rest))
    assert item.attributed == 1
    assert probability == pytest.approx(0.8, abs=1e-6)


def test_an_item_without_logprobs_has_no_probability() -> None:
    [(_, probability)] = decoding.read_classifications(completion(reply(("a", "b", 1))))
    assert probability is None


def test_a_cut_reason_ends_at_a_whole_word_with_an_ellipsis() -> None:
    assert decoding.read_reason(completion('"Context 2 says so."')) == "Context 2 says so."
    assert decoding.read_reason(completion('"Context 2 says that the fer', "length")) == "Context 2 says that the …"
    assert decoding.read_reason(completion('"上下文二说', "length")) == "上下文二说…"
    assert decoding.read_reason(completion('"a quote \\"in', "length")) == "a quote …"


def test_a_reason_cut_inside_an_escape_still_reads() -> None:
    assert decoding.read_reason(completion('"one two\\', "length")) == "one …"


def test_a_reason_that_is_no_string_is_refused() -> None:
    with pytest.raises(ReplyRefused):
        decoding.read_reason(completion("{", "length"))
