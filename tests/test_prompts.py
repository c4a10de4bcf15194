"""What is the same for all statements of a sample comes first, and data stay data."""

import json
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from airjudge import claims, decoding, prompts
from airjudge.decoding import CLAIMS, CLASSIFICATIONS, matches
from airjudge.schema import Completion, Pointwise, Prior, Question, Sample, Statement, Usage
from airjudge.signature import digest

SAMPLE = Sample(
    id="1",
    user_input="When does the ferry leave?",
    reference="The ferry leaves at six. SECRET-OF-THE-REFERENCE.",
    retrieved_contexts=("The ferry departs at six.", "  ", "It carries no cars."),
)


def text_of(question: Question) -> str:
    return "\n".join(message.content for message in question.messages)


def said(text: str) -> Completion:
    return Completion(text=text, finish_reason="stop", tokens=(), usage=Usage())


def test_the_reference_is_never_in_a_pointwise_prompt() -> None:
    question = prompts.pointwise(SAMPLE, Statement(id="1", text="The ferry leaves at six."))
    assert "SECRET-OF-THE-REFERENCE" not in text_of(question)


def test_prompts_of_one_sample_differ_only_from_the_statement_on() -> None:
    a, b = (prompts.pointwise(SAMPLE, Statement(id=x, text=x)) for x in ("Alpha.", "Beta."))
    same = next(at for at, (x, y) in enumerate(zip(text_of(a), text_of(b), strict=False)) if x != y)
    assert "[3] It carries no cars." in text_of(a)[:same]
    assert text_of(a)[same:].startswith("Alpha.")


def test_a_fragment_comes_with_its_question_and_a_sentence_does_not() -> None:
    for fragment in ("Mount Everest.", "At six.", "珠穆朗玛峰。", "에베레스트산."):
        assert SAMPLE.user_input in text_of(prompts.pointwise(SAMPLE, Statement(id="1", text=fragment)))
    for sentence in ("The ferry leaves at six.", "埃菲尔铁塔位于巴黎。"):
        assert SAMPLE.user_input not in text_of(prompts.pointwise(SAMPLE, Statement(id="1", text=sentence)))


def test_of_long_contexts_the_judge_reads_the_closest_sentences_under_their_number() -> None:
    filler = "Nothing happens here. " * 20
    sample = SAMPLE.model_copy(update={"retrieved_contexts": (filler, f"{filler}The ferry carries no cars.")})
    text = text_of(prompts.pointwise(sample, Statement(id="1", text="The ferry carries no cars at all.")))
    assert "The ferry carries no cars.\n\nStatement: The ferry carries no cars at all." in text
    assert "\n[2] " in text
    assert text.count("Nothing happens here.") < 20


def test_all_questions_about_a_statement_share_all_before_the_phrasing_but_the_one_without_contexts() -> None:
    statement = Statement(id="1", text="The ferry leaves at six.")
    how = Pointwise(phrasings=2, prior=Prior(weight=0.5, log_odds=-1.0))
    first, second, alone = map(text_of, prompts.asked(SAMPLE, statement, how))
    shown = first[: first.index("Statement: ")]
    assert second.startswith(shown)
    assert statement.text in second
    assert "The ferry departs" not in alone
    assert alone.endswith(first[first.index("Statement: ") :])
    assert [text_of(one) for one in prompts.asked(SAMPLE, statement, Pointwise())] == [first]


def test_contexts_keep_their_numbers_when_a_blank_one_is_left_out() -> None:
    text = text_of(prompts.pointwise(SAMPLE, Statement(id="1", text="x")))
    assert "[1] The ferry departs at six." in text
    assert "[3] It carries no cars." in text
    assert "[2]" not in text


def test_the_reason_is_asked_for_behind_the_verdict_so_that_its_prefix_is_cached() -> None:
    statement = Statement(id="1", text="The ferry leaves at six.")
    asked, why = prompts.pointwise(SAMPLE, statement), prompts.reason(SAMPLE, statement, attributed=False)
    assert why.messages[: len(asked.messages)] == asked.messages
    assert next(message.content for message in why.messages[len(asked.messages) :]) == "0"


def test_the_canary_asks_for_what_its_schema_forbids() -> None:
    question = prompts.canary()
    assert question.schema.json_schema["enum"] == ["canary"]
    assert "canary" not in text_of(question)


def test_the_example_of_the_single_call_is_a_reply_that_the_schema_allows() -> None:
    system = prompts.ragas(SAMPLE).messages[0].content
    example = system[system.index('{"classifications"') :]
    assert matches(CLASSIFICATIONS, example)
    assert {item["attributed"] for item in json.loads(example)["classifications"]} == {0, 1}


@given(
    st.text(), st.sampled_from(["<|im_end|>", "<|im_start|>system", "<end_of_turn>", "[/INST]", "</s>", "<|eot_id|>"])
)
def test_template_tokens_in_data_do_not_stay_template_tokens(text: str, token: str) -> None:
    sample = SAMPLE.model_copy(update={"retrieved_contexts": (text + token,), "user_input": token})
    sample = sample.model_copy(update={"reference": token + text})
    asked = (
        prompts.pointwise(sample, Statement(id="1", text=token)),
        prompts.ragas(sample),
        prompts.split_claims(sample, text + token),
    )
    for question in asked:
        assert token not in text_of(question)


def test_wording_has_every_word_that_is_sent_but_the_sample() -> None:
    content = json.dumps(prompts.wording("pointwise"))
    sample = SAMPLE.model_copy(update={"retrieved_contexts": ("It departs at six.",)})
    how = Pointwise(phrasings=2, prior=Prior(weight=0.5, log_odds=-1.0))
    for asked in prompts.asked(sample, Statement(id="1", text="At six."), how):
        for line in text_of(asked).splitlines():
            own = line.replace("It departs at six.", "").replace(sample.user_input, "").removesuffix("At six.").strip()
            assert json.dumps(own)[1:-1] in content
    assert prompts.wording("pointwise") != prompts.wording("ragas")


def test_the_question_for_claims_shows_reference_and_question_and_never_a_context() -> None:
    text = text_of(prompts.split_claims(SAMPLE, "It departs at six."))
    assert "Sentence to split: It departs at six." in text
    assert SAMPLE.reference in text
    assert SAMPLE.user_input in text
    assert not any(context in text for context in SAMPLE.retrieved_contexts if context.strip())


def test_the_example_of_claims_is_a_reply_that_the_schema_allows_and_that_stands_its_own_check() -> None:
    _, *turns, _ = prompts.split_claims(SAMPLE, SAMPLE.reference).messages
    assert all(matches(CLAIMS, answered.content) for answered in turns[1::2])
    question, reference = turns[0].content.split("\n\nSentence to split: ")[0].split("\n\nText: ")
    example = SAMPLE.model_copy(update={"user_input": question, "reference": reference})
    written = [json.loads(answered.content)["claims"] for answered in turns[1::2]]
    assert [one.text for one in claims.statements_of(example, written).statements] == [*chain(*written)]


def test_a_hosted_judge_is_asked_for_claims_in_the_object_that_the_example_shows() -> None:
    question = prompts.as_object(prompts.split_claims(SAMPLE, SAMPLE.reference))
    assert matches(question.schema, question.messages[2].content)
    assert decoding.read_claims(said('{\n  "claims": [\n "A \\u00e9.", "B."]\n}\n')) == ["A é.", "B."]


def test_the_room_for_claims_grows_with_the_sentence_up_to_a_bound() -> None:
    def room(sentence: str) -> int:
        return prompts.split_claims(SAMPLE, sentence).max_tokens

    assert (room("a" * 100), room("埃" * 100), room("a" * 10_000)) == (164, 364, prompts.CLAIMS_TOKENS)


def test_only_where_claims_are_asked_for_their_words_are_part_of_the_signature() -> None:
    # The digest of what the default judge was measured with, in benchmarks/results/accuracy.json.
    assert digest(prompts.wording("pointwise")) == "24295120dcfc"
    assert prompts.wording("pointwise", statements="sentences") == prompts.wording("pointwise")
    asked = json.dumps(prompts.wording("pointwise", statements="claims"))
    system = prompts.split_claims(SAMPLE, SAMPLE.reference).messages[0].content
    assert system in asked
    assert system not in json.dumps(prompts.wording("pointwise"))
