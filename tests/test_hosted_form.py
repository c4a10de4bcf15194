"""The form of a provider's requests, and what its refusals and headers say."""

import pytest

from airjudge import decoding, prompts
from airjudge.backends.hosted import HostedForm, hosted_body, one_less, without_refused
from airjudge.backends.refusal import asked_pause_s, duration_s, read_refusal
from airjudge.errors import ReplyRefused, ReplyTruncated
from airjudge.schema import Completion, ReplySchema, Sample, Statement, TokenAlternatives, Usage

SAMPLE = Sample(id="1", user_input="When?", reference="At six.", retrieved_contexts=("The ferry departs at six.",))
ASKED = prompts.as_object(prompts.pointwise(SAMPLE, Statement(id="1", text="The ferry departs at six o'clock.")))


def completion(text: str, *tokens: tuple[str, dict[str, float]], finish_reason: str = "stop") -> Completion:
    """A reply whose tokens have alternatives with these log-probabilities."""
    made = (
        TokenAlternatives(token.encode(), tuple((one.encode(), logprob) for one, logprob in others.items()))
        for token, others in tokens
    )
    return Completion(text=text, finish_reason=finish_reason, tokens=tuple(made), usage=Usage(requests=1))


@pytest.mark.parametrize("schema", decoding.OBJECT_FORMS.values(), ids=lambda schema: schema.name)
def test_an_object_form_is_what_strict_mode_takes(schema: ReplySchema) -> None:
    # OpenAI, Structured outputs: an object at the root, additionalProperties false, every key required.
    root = schema.json_schema
    assert root["type"] == "object"
    assert root["additionalProperties"] is False
    assert isinstance(root["properties"], dict)
    assert root["required"] == list(root["properties"])
    assert not list(decoding.unenforced_keywords(root))


def test_the_words_say_the_form_of_the_reply_too() -> None:
    assert ASKED.messages[-1].content.endswith('{"attributed": 1} or {"attributed": 0}')
    assert "attributed" not in prompts.as_object(prompts.canary()).messages[-1].content
    assert prompts.wording("pointwise", prompts.as_object) != prompts.wording("pointwise")


# LiteLLM, vLLM and OpenAI itself, as they word it.
@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        ("Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
        ('[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted"}]', "seed"),
        ("This model does not support logprobs", "logprobs"),
        ("'response_format' of type 'json_schema' is not supported with this model.", "response_format"),
        ("Structured output is not supported", "response_format"),
        ("Invalid schema for json_schema", "response_format"),
    ],
)
def test_what_a_refusal_names_is_left_out(words: str, left_out: str) -> None:
    form = without_refused(HostedForm(), words)
    assert form == HostedForm(left_out=frozenset({left_out}))
    assert without_refused(form, words) is None
    body = hosted_body(ASKED, model="m", form=form)
    assert left_out not in body


def test_the_first_name_in_a_refusal_is_what_is_refused() -> None:
    words = "Unsupported parameter: 'max_completion_tokens'. Use 'max_tokens' instead."
    form = without_refused(HostedForm(), words)
    assert form == HostedForm(length_field="max_tokens")
    body = hosted_body(ASKED, model="m", form=form)
    assert body["max_tokens"] == ASKED.max_tokens
    assert "max_completion_tokens" not in body


def test_fewer_alternatives_are_asked_for_before_none() -> None:
    words = "top_logprobs must be between 0 and 5"
    fewer = without_refused(HostedForm(), words)
    assert fewer is not None
    assert hosted_body(ASKED, model="m", form=fewer)["top_logprobs"] == 5
    assert without_refused(fewer, words) == HostedForm(left_out=frozenset({"logprobs"}), most_logprobs=5)


def test_a_limit_that_thinking_used_up_is_raised_once() -> None:
    words = "Could not finish the message because max_tokens or model output limit was reached. Try higher max_tokens."
    form = without_refused(HostedForm(), words)
    assert form == HostedForm(thinking_tokens=4096)
    assert without_refused(form, words) is None


def test_a_refusal_that_names_nothing_is_tried_without_each_thing() -> None:
    assert without_refused(HostedForm(), "Bad request.") is None
    assert without_refused(HostedForm(), "the seedling was not tempered") is None
    tried = [one.left_out for one in one_less(HostedForm().without("seed"))]
    assert tried == [{"seed", "response_format"}, {"seed", "logprobs"}, {"seed", "temperature"}]


# Reading


def test_the_probability_is_read_where_the_digit_stands() -> None:
    # p(1) = .6, p(0) = .2: .6 / .8 = .75. The token before it may have labels among its alternatives.
    tokens = [('{"', {"1": -0.1}), ("attributed", {}), ('":', {}), ("1", {"1": -0.5108256, "0": -1.6094379}), ("}", {})]
    label, probability = decoding.read_verdict(decoding.VERDICT_OBJECT, completion('{"attributed":1}', *tokens))
    assert label is True
    assert probability == pytest.approx(0.75, abs=1e-6)


@pytest.mark.parametrize("token", ["0}", " 0", ": 0", " 0\n}", '": 0}'])
def test_marks_beside_the_digit_in_its_token_change_nothing(token: str) -> None:
    text = '{"attributed": 0\n}' if "\n" in token else '{"attributed": 0}'
    at = text.index(token)
    other = token.replace("0", "1")
    tokens = [(text[:at], {}), (token, {token: -0.2231435, other: -1.6094379}), (text[at + len(token) :], {})]
    reply = completion(text, *(one for one in tokens if one[0]))
    label, probability = decoding.read_verdict(decoding.VERDICT_OBJECT, reply)
    assert label is False
    assert probability == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("tokens", [[], [("I think.", {"1": -0.1})], [('{"attributed": 1}', {})]])
def test_logprobs_that_do_not_fit_the_text_give_no_probability(tokens: list[tuple[str, dict[str, float]]]) -> None:
    assert decoding.read_verdict(decoding.VERDICT_OBJECT, completion('{"attributed": 1}', *tokens)) == (True, None)


def test_a_cut_object_is_truncated_and_another_one_refused() -> None:
    with pytest.raises(ReplyTruncated):
        decoding.read_verdict(decoding.VERDICT_OBJECT, completion('{"attrib', finish_reason="length"))
    with pytest.raises(ReplyRefused):
        decoding.read_verdict(decoding.VERDICT_OBJECT, completion("1"))
    with pytest.raises(ReplyRefused):
        decoding.read_verdict(decoding.VERDICT, completion('{"attributed": 1}'))


def test_a_reason_is_read_with_the_escapes_of_json() -> None:
    text = '{"reason": "so\\u2019s \\"it\\"\\nwell \\ud83d\\ude00"}'
    assert decoding.matches(decoding.REASON_OBJECT, text)
    assert decoding.read_reason(completion(text)) == 'so’s "it"\nwell 😀'
    assert decoding.read_reason(completion('{"reason": "cut in \\u20', finish_reason="length")) == "cut …"


# What a refusal and its headers say


@pytest.mark.parametrize(
    ("raw", "words", "code"),
    [
        (b'{"error": {"message": "no\\n way", "type": "t", "code": "c"}}', "no way", "c"),
        (b'{"error": {"message": "no", "type": "insufficient_quota", "code": null}}', "no", "insufficient_quota"),
        (b'{"error": {"message": "no", "code": 429}}', "no", ""),
        (b'[{"error": {"message": "as Google wraps it"}}]', "as Google wraps it", ""),
        (b'{"detail": [{"loc": ["body", "seed"]}]}', '{"detail": [{"loc": ["body", "seed"]}]}', ""),
        (b"<html>\n<b>no</b>", "<html> <b>no</b>", ""),
        (b"[1]", "[1]", ""),
        (b"", "no message", ""),
    ],
)
def test_a_refusal_is_read_in_the_servers_words(raw: bytes, words: str, code: str) -> None:
    said = read_refusal(raw)
    assert (said.words, said.code) == (words, code)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "3"}, 3),
        ({"Retry-After": "-3"}, 0),
        ({"Retry-After": "soon"}, None),
        ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25),
        ({"Retry-After": "Mon, 30 Nov 2026 12:00:30 GMT", "Date": "Mon, 30 Nov 2026 12:00:00 GMT"}, 30),
        ({"Retry-After": "Mon, 30 Nov 2026 12:00:30 GMT"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m2.5s"}, 62.5),
        ({"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": "1m2.5s"}, None),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "20ms",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "6s",
            },
            6,
        ),
    ],
)
def test_the_pause_that_a_server_asks_for_is_read_from_its_headers(
    headers: dict[str, str], seconds: float | None
) -> None:
    found = asked_pause_s(headers)
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("text", ["", None, "soon", "1x", "nan", "inf", "1 s", "s"])
def test_what_is_no_duration_is_none(text: str | None) -> None:
    assert duration_s(text) is None
