"""Long contexts are read by their sentences closest to the statement, in any script, and no text is invented."""

from hypothesis import given
from hypothesis import strategies as st

from airjudge.evidence import _SENTENCE_END, MAX_CHARACTERS, N_SENTENCES, closest_context, read_for, split_at_ends

FILLER = " ".join(f"Entry {n} is about something else." for n in range(N_SENTENCES))


def test_short_contexts_are_read_in_full_under_their_numbers() -> None:
    assert read_for(["One. Two. ", " ", "Three."], "Nothing alike") == [(1, "One. Two."), (3, "Three.")]
    assert read_for([], "Two") == []


def test_of_long_contexts_the_sentences_that_share_rare_words_are_read_in_their_order() -> None:
    # Ten sentences more than are read hold none of the words, so those that hold some are among the eight.
    contexts = [f"{FILLER} The ferry to Holm leaves at six.", f"{FILLER}\nA ferry ticket costs 12 euros. It is late."]
    found = read_for(contexts, "A ticket for the ferry to Holm costs 12 euros.")
    assert [number for number, _ in found] == [1, 2]
    assert found[0][1].endswith("The ferry to Holm leaves at six.")
    assert "A ferry ticket costs 12 euros." in found[1][1]
    assert sum(text.count(".") for _, text in found) == N_SENTENCES


def test_scripts_without_spaces_are_compared_too() -> None:
    contexts = ["今天天气很好。" * 20 + "埃菲尔铁塔位于巴黎。" + "他喜欢咖啡。" * 20]
    ((number, text),) = read_for(contexts, "埃菲尔铁塔在巴黎。")
    assert number == 1
    assert "埃菲尔铁塔位于巴黎。" in text
    assert len(text) < len(contexts[0])


def test_a_context_without_sentence_ends_is_cut() -> None:
    contexts = ["word " * 500, *FILLER.split(". ")]
    assert len(dict(read_for(contexts, "word"))[1]) == MAX_CHARACTERS


def test_a_statement_in_another_language_is_read_with_all_of_the_contexts() -> None:
    # Of the six words only "Holm" occurs: one sixth is less than MIN_SHARE.
    contexts = [f"{FILLER} The ferry to Holm leaves at six."]
    assert read_for(contexts, "Die Fähre nach Holm legt ab.") == [(1, contexts[0])]


def test_words_of_a_statement_that_are_spread_over_the_contexts_are_enough() -> None:
    contexts = [f"{FILLER} Holm is an island.", f"{FILLER} The ferry leaves at six."]
    assert len(read_for(contexts, "The ferry leaves Holm at six.")[0][1]) < len(contexts[0])


@given(st.lists(st.text(max_size=80), max_size=30), st.text(max_size=40))
def test_all_that_is_read_stands_in_the_context_of_its_number(contexts: list[str], statement: str) -> None:
    found = read_for(contexts, statement)
    assert read_for(contexts, statement) == found
    assert [number for number, _ in found] == sorted({number for number, _ in found})
    assert bool(found) == any(context.strip() for context in contexts)
    for number, text in found:
        squeezed = "".join(contexts[number - 1].split())
        # Sentences in their order, so that each word continues behind the one before it.
        at = 0
        for word in text.split():
            at = squeezed.index(word, at) + len(word)


@given(st.text(alphabet="aB .!?\n\t\r\x1f1") | st.text())
def test_the_quick_way_through_ascii_finds_the_sentences_of_the_rule(text: str) -> None:
    assert split_at_ends(text) == [one.strip() for one in _SENTENCE_END.split(text) if one.strip()]


def test_the_closest_context_is_that_of_the_closest_sentence_and_the_first_of_equal_ones() -> None:
    contexts = ["Whales sing.", "  ", "It rains. The ferry departs at six.", "The ferry departs at six."]
    assert closest_context(contexts, "The ferry departs at six.") == 3
    assert closest_context(contexts, "Owls.") == 1
    assert closest_context([" "], "Owls.") is None
