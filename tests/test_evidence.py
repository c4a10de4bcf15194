"""The closest sentences are chosen by rare shared words, in any script, and never invent text."""

from hypothesis import given
from hypothesis import strategies as st

from airjudge.evidence import _SENTENCE_END, MAX_CHARACTERS, N_SENTENCES, closest_sentences, split_at_ends


def test_the_sentences_that_share_rare_words_are_chosen_in_the_order_of_the_contexts() -> None:
    contexts = [
        "The harbour is old. The ferry to Holm leaves at six. The harbour is large.",
        "Tickets are sold at the harbour.\nA ferry ticket costs 12 euros.",
    ]
    assert closest_sentences(contexts, "A ticket for the ferry to Holm costs 12 euros.") == [
        "The ferry to Holm leaves at six.",
        "A ferry ticket costs 12 euros.",
    ]


def test_scripts_without_spaces_are_compared_too() -> None:
    contexts = ["今天天气很好。巴黎是法国的首都。埃菲尔铁塔位于巴黎。他喜欢咖啡。"]
    assert "埃菲尔铁塔位于巴黎。" in closest_sentences(contexts, "埃菲尔铁塔在哪里？")


def test_a_context_without_sentence_ends_is_cut() -> None:
    contexts = ["word " * 500, "other", "another"]
    assert [len(one) for one in closest_sentences(contexts, "word")] == [MAX_CHARACTERS, len("other")]


def test_contexts_that_hold_no_more_are_not_said_twice() -> None:
    assert closest_sentences(["One. Two."], "Two") == []
    assert closest_sentences([], "Two") == []


def test_without_a_shared_word_the_first_sentences_stand_in() -> None:
    assert closest_sentences(["One. Two. Three."], "Nothing alike") == ["One.", "Two."]


@given(st.lists(st.text(max_size=80), max_size=5), st.text(max_size=40))
def test_each_chosen_sentence_is_a_piece_of_a_context(contexts: list[str], statement: str) -> None:
    found = closest_sentences(contexts, statement)
    assert len(found) <= N_SENTENCES
    assert all(any(one in context for context in contexts) for one in found)
    assert closest_sentences(contexts, statement) == found


@given(st.text(alphabet="aB .!?\n\t\r\x1f1") | st.text())
def test_the_quick_way_through_ascii_finds_the_sentences_of_the_rule(text: str) -> None:
    assert split_at_ends(text) == [one.strip() for one in _SENTENCE_END.split(text) if one.strip()]
