import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge.schema import Sample, Statement
from airjudge.statements import guess_language, split_sentences, split_statements

LANGUAGES = ("en", "de", "fr", "ru", "zh", "ja", "ko", "hi", "ar", "el", "xx")
TEXTS = st.one_of(
    st.text(),
    st.text(alphabet="Ab 1.!?\n\"'()“”「」。？…:-\u00a0\u2028\u3000éЖ।؟\ud800"),
)
WORD = st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=4, max_size=8)


def sample(reference: str, statements: tuple[Statement, ...] | None = None, lang: str | None = None) -> Sample:
    return Sample(
        id="s",
        user_input="?",
        reference=reference,
        retrieved_contexts=(),
        statements=statements,
        metadata={} if lang is None else {"lang": lang},
    )


def no_space(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize(
    ("lang", "sentences"),
    [
        ("zh", ["埃菲尔铁塔位于巴黎。", "他的名字叫汤姆。"]),
        ("zh", ["价格是3.5元。", "完成！", "对吗？"]),
        ("ja", ["彼は「行く。」と言った。", "それから帰った。"]),
        ("ja", ["本当ですか？", "３．５円です。"]),
        ("ko", ['그는 "간다."라고 말했다. ', "가격은 3.5원이다."]),
        ("ar", ["هل هذا صحيح؟ ", "نعم قال د. أحمد ذلك. ", "انتهى الأمر."]),
        ("hi", ["डॉ. शर्मा आए। ", "फिर डॉ. वर्मा गए। "]),
        ("de", ["Das gilt z. B. für Dr. Müller. ", "Er kam am 3. März 2020 an."]),
        ("fr", ["M. Dupont est né le 3 avr. 1960. ", "L'art. 5 le dit."]),
        ("ru", ["Он родился в 1895 г. в Москве. ", "Его описала доктор Е. В. Лунина. ", "Т. е. поэт."]),
        ("sv", ["Mötet var den 3. mars. ", "T.ex. i Lund regnade det."]),
        ("en", ["Dr. Smith met J. R. Doe, e.g. in Paris. ", "It cost 3.5 EUR. ", "Vitamin C. helped."]),
        ("en", ['He said "Go. Now." and left. ', "Then (it rained. A lot.) it ended."]),
        ("en", ["They are:\n1. A first thing. ", "2. A second thing."]),
        ("en", ["Yes. The pump is on. ", "What?! ", "Really..."]),
        ("en", ["A sentence that is\nwrapped by hand. ", "The next one."]),
        ("en", ["A heading\n\n", "The text below it."]),
        ("en", ["Mount Everest."]),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(lang: str, sentences: list[str]) -> None:
    assert split_sentences("".join(sentences), lang) == [s.strip() for s in sentences]


@pytest.mark.parametrize("lang", ["en", "zz", "", "zh-Hans-CN", "EN-us"])
def test_any_language_tag_is_good_for_plain_sentences(lang: str) -> None:
    assert split_sentences("The pump runs. The fan does not.", lang) == ["The pump runs.", "The fan does not."]


def test_a_no_break_space_after_an_initial_is_read_like_a_space() -> None:
    # sentencex 1.0 panics on this text as it is.
    assert split_sentences("J.\u00a0Smith came. He left.", "en") == ["J.\u00a0Smith came.", "He left."]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("埃菲尔铁塔位于巴黎。", "zh"),
        ("東京は首都です。", "ja"),
        ("정부는 동의하였다.", "ko"),
        ("نعم هو كذلك.", "ar"),
        ("वे गए।", "hi"),
        ("Он уехал из ABC.", "ru"),
        ("The GmbH moved.", "en"),
        ("Café, naïve", "en"),
        ("1895.", "en"),
    ],
)
def test_the_language_is_guessed_from_the_script(text: str, language: str) -> None:
    assert guess_language(text) == language


def test_german_dates_stay_whole_without_a_language_tag() -> None:
    # Latin script alone is read as English, whose rules know no "3." in a date.
    made = split_statements(sample("Er kam am 3. März an. Er blieb."))
    assert [s.text for s in made] == ["Er kam am 3. März an.", "Er blieb."]


def test_the_sample_s_language_tag_beats_the_script() -> None:
    text = "Ο κ. Παπαδόπουλος ήρθε; Ναι, ήρθε."
    assert len(split_statements(sample(text, lang="el-GR"))) == 2  # ";" is the Greek question mark
    assert len(split_statements(sample(text, lang="en"))) == 2  # "κ." ends a sentence, ";" does not
    assert split_statements(sample(text)) == split_statements(sample(text, lang="el"))


def test_given_statements_are_taken_as_they_are() -> None:
    own = (Statement(id="b", text="Second."), Statement(id="a", text="First. And more."))
    assert split_statements(sample("First. Second.", own), "given") == own
    assert [s.id for s in split_statements(sample("First one. Second one.", own), "sentences")] == ["1", "2"]


def test_a_sample_without_given_statements_gets_sentences() -> None:
    assert split_statements(sample("A dog barks. A cat does not."), "given") == (
        Statement(id="1", text="A dog barks."),
        Statement(id="2", text="A cat does not."),
    )


def test_an_empty_list_of_given_statements_stays_empty() -> None:
    assert split_statements(sample("A dog barks.", ()), "given") == ()


@given(TEXTS, st.sampled_from(LANGUAGES))
def test_no_character_is_lost_and_order_is_kept(text: str, lang: str) -> None:
    assert no_space("".join(split_sentences(text, lang))) == no_space(text)


@given(TEXTS, st.sampled_from(LANGUAGES))
def test_no_sentence_is_blank_or_untrimmed(text: str, lang: str) -> None:
    assert all(s and s == s.strip() for s in split_sentences(text, lang))


@given(st.lists(WORD, min_size=2, max_size=8), st.sampled_from(".!?…。？！।؟"), st.sampled_from(LANGUAGES))
def test_a_single_sentence_stays_one(words: list[str], end: str, lang: str) -> None:
    text = f"{' '.join(words).capitalize()}{end}"
    assert split_sentences(text, lang) == [text]


@given(st.lists(st.lists(WORD, min_size=2, max_size=4), min_size=1, max_size=6))
def test_as_many_sentences_come_out_as_were_put_in(sentences: list[list[str]]) -> None:
    # "also in" may stand for abbreviations in some language; words of four letters and a known
    # closing word do not.
    texts = [f"{' '.join(words).capitalize()} happened." for words in sentences]
    assert split_sentences(" ".join(texts), "en") == texts


def test_a_very_long_reference_is_split_in_linear_time() -> None:
    # 200 000 pieces that all go on with the one before: quadratic work would take minutes.
    assert len(split_sentences("1. " * 200_000, "en")) >= 1
    assert len(split_sentences("The pump runs. " * 100_000, "en")) == 100_000
