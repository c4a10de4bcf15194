"""What a judge is told in each language: complete, free of tokens of templates, with examples that fit their schema."""

import json
import re

import pytest

from airjudge import decoding, prompts
from airjudge.schema import Pointwise, Prior, Sample, Statement
from airjudge.signature import digest
from airjudge.statements import split_statements
from airjudge.wordings import ENGLISH, WORDINGS, Wording, find_wording

SAMPLE = Sample(id="1", user_input="a?", reference="It is red.", retrieved_contexts=("It is red.",))
STATEMENT = Statement(id="1", text="It is red.")
SCRIPTS = {
    "chinese": "一-鿿",
    "japanese": "ぁ-ヿ一-鿿",
    "korean": "가-힣",
    "arabic": "ء-ي",
    "hindi": "ऀ-ॿ",
    "russian": "а-яё",
}
OTHERS = [one for one in WORDINGS.values() if one is not ENGLISH]
every = pytest.mark.parametrize("words", WORDINGS.values(), ids=list(WORDINGS))
each_other = pytest.mark.parametrize("words", OTHERS, ids=[one.language for one in OTHERS])


def fields(words: Wording) -> list[str]:
    return [one for one in words.model_dump().values() if isinstance(one, str)] + [
        text for one in words.phrasings for text in (one.before, one.behind)
    ]


def test_our_own_words_are_what_they_were() -> None:
    # Calibrations and runs are bound to these.
    assert digest(prompts.wording("pointwise")) == "24295120dcfc"
    assert digest(prompts.wording("ragas")) == "ba4f028f3836"
    assert digest(prompts.wording("pointwise", prompts.as_object)) == "353bba60d2c2"
    assert digest(prompts.wording("ragas", prompts.as_object)) == "097c2da176d1"
    assert digest(prompts.wording("pointwise", statements="claims")) == "20dc7b79a34f"


def test_each_language_has_a_digest_of_its_own() -> None:
    for method in ("pointwise", "ragas"):
        assert len({digest(prompts.wording(method, words=one)) for one in WORDINGS.values()}) == len(WORDINGS) == 11


@every
def test_no_word_is_a_token_of_a_chat_template(words: Wording) -> None:
    whole = words.model_dump_json()
    assert not re.search(r"<\||\|>|\[/?INST|_of_turn|</?s>|�", whole)


@each_other
def test_a_language_is_complete_in_its_own_script(words: Wording) -> None:
    assert len(set(fields(words))) == len(fields(words))
    for ours, theirs in zip(fields(ENGLISH), fields(words), strict=True):
        assert theirs.strip()
        assert ours != theirs or theirs == "Question:"
        script = SCRIPTS.get(words.language)
        if script and theirs != words.language:
            assert re.search(f"[{script}]", theirs)
    assert {"0", "1"} <= set(words.phrasings[0].behind + words.phrasings[1].behind)
    for one in words.phrasings:
        assert "1" in one.behind
        assert "0" in one.behind
    assert all(word in words.single_call for word in ("reason", "attributed", "JSON"))


@every
def test_examples_are_replies_under_the_schema_with_one_verdict_of_each_kind(words: Wording) -> None:
    question = prompts.ragas(SAMPLE, words)
    for example in words.single_call_examples:
        items = [dict(one) for one in example.classifications]
        reply = json.dumps({"classifications": items}, ensure_ascii=False)
        assert decoding.matches(decoding.CLASSIFICATIONS, reply)
        assert any(reply in message.content for message in question.messages)
        assert [one.attributed for one in example.classifications] == [1, 0]


@each_other
def test_the_statements_of_an_example_are_the_sentences_of_its_reference(words: Wording) -> None:
    for example in words.single_call_examples:
        sample = Sample(id="1", user_input="", reference=example.reference, retrieved_contexts=())
        sentences = [one.text for one in split_statements(sample, "sentences")]
        assert sentences == [one.statement for one in example.classifications]
        assert example.user_input
        assert len(example.retrieved_contexts) == 2


@each_other
def test_a_question_holds_no_word_of_ours_in_english(words: Wording) -> None:
    how = Pointwise(phrasings=2, prior=Prior(weight=0.5, log_odds=-1.0))
    fragment = Statement(id="2", text="Red.")
    asked = [
        *prompts.asked(SAMPLE, STATEMENT, how, words=words),
        *prompts.asked(SAMPLE, fragment, how, words=words),
        prompts.ragas(SAMPLE, words),
        *(prompts.reason(SAMPLE, STATEMENT, attributed=one, words=words) for one in (True, False)),
    ]
    text = "\n".join(message.content for one in asked for message in one.messages)
    assert not re.search(r"\b(Contexts?:|Reference:|Statement:|entailed|Answer|supported?)\b", text)
    assert words.question in text
    assert words.reference in text


def test_a_language_is_found_by_its_names_and_tags_in_any_case() -> None:
    names = {
        "chinese": ("chinese", "Chinese", "zh", "zh-CN", "zh_Hant_TW", "中文"),
        "german": ("de", "DE-at", "Deutsch"),
        "portuguese": ("pt-BR", "português"),
        "korean": ("ko", "한국어"),
        "english": ("en-GB",),
        "spanish": (" Español ",),
    }
    for language, given in names.items():
        assert {find_wording(one).language for one in given} == {language}


def test_a_language_without_words_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"no words in 'klingon'.*arabic, chinese.*prompt\.instruction"):
        find_wording("klingon")


def test_examples_of_a_pointwise_question_are_turns_about_their_statements() -> None:
    example = find_wording("de").single_call_examples[0]
    words = ENGLISH.model_copy(update={"pointwise_examples": (example,)})
    _, first, yes, second, no, last = prompts.pointwise(SAMPLE, STATEMENT, words).messages
    assert (yes.content, no.content) == ("1", "0")
    assert "Statement: Die Fähre fährt um sechs Uhr morgens ab.\n\n" in first.content
    assert "Statement: Sie befördert keine Autos.\n\n" in second.content
    assert last.content.endswith(ENGLISH.phrasings[0].behind)
