"""Claims held against their reference: nothing invented stays, nothing is lost, nothing counts twice."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge.claims import statements_of
from airjudge.schema import Claims, Sample
from airjudge.statements import split_statements

CURIE = "Marie Curie, who was born in Warsaw, won two Nobel Prizes. She moved to Paris in 1891."
BORN, WON = "Marie Curie was born in Warsaw.", "Marie Curie won two Nobel Prizes."
TEXTS = st.text(alphabet='ab 12.,\n"{}<é埃菲\ud800', max_size=40)


def sample(reference: str, question: str = "?") -> Sample:
    return Sample(id="s", user_input=question, reference=reference, retrieved_contexts=("x",))


def made(reference: str, *claims: Sequence[str], question: str = "?") -> list[tuple[str, str]]:
    """Ids and texts of the statements, by the claims of each sentence."""
    return [(one.id, one.text) for one in statements_of(sample(reference, question), claims).statements]


def note(reference: str, *claims: Sequence[str], question: str = "?") -> Claims | None:
    return statements_of(sample(reference, question), claims).claims


def test_claims_stand_for_their_sentences_and_say_of_which_they_are() -> None:
    moved = "Marie Curie moved to Paris in 1891."
    assert made(CURIE, [BORN, WON], [moved]) == [("1.1", BORN), ("1.2", WON), ("2.1", moved)]
    assert note(CURIE, [BORN, WON], [moved]) == Claims(n_claims=3)


def test_a_sentence_that_no_claim_covers_stays_itself_in_its_place() -> None:
    assert made(CURIE, [BORN, WON], []) == [("1.1", BORN), ("1.2", WON), ("2", "She moved to Paris in 1891.")]
    assert note(CURIE, [BORN, WON], []) == Claims(n_claims=2, n_sentences=1)


def test_claims_that_hold_too_little_of_their_sentence_do_not_count_beside_it() -> None:
    # 5 of 11 words of the first sentence: to keep claim and sentence would count the birth twice.
    sentences = [("1", CURIE[:58]), ("2", CURIE[59:])]
    assert made(CURIE, ["Marie Curie was born."], []) == sentences


def test_a_claim_is_dropped_and_counted_if_too_few_of_its_words_are_in_reference_or_question() -> None:
    claims = ("Marie Curie moved to Paris in 1891.", "The ferry to Ystad carries no cars.", "Radium glows green.")
    assert note("She moved to Paris in 1891.", claims, question="Where did Marie Curie move?") == Claims(
        n_claims=1, n_invented=2
    )


def test_a_claim_with_another_number_is_invented_however_many_of_its_words_are_known() -> None:
    reference = "The bridge over the river was opened in 1889 by the mayor."
    assert made(reference, ["The bridge over the river was opened in 1898 by the mayor."]) == [("1", reference)]
    assert note(reference, ["The bridge over the river was opened in 1898 by the mayor."]) == Claims(
        n_sentences=1, n_invented=1
    )


def test_a_number_that_claims_leave_out_keeps_its_sentence() -> None:
    reference = "The old bridge over the wide river was opened by the mayor in 1889."
    assert made(reference, ["The old bridge over the wide river was opened by the mayor."]) == [("1", reference)]


@pytest.mark.parametrize(
    ("reference", "claims"),
    [
        ("The bridge was not opened by the mayor.", ["The bridge was opened by the mayor."]),
        ("The bridge was opened by the mayor.", ["The bridge was not opened by the mayor."]),
        (
            "The mayor didn’t open it without a guest.",
            ["The mayor didn’t open it.", "A guest was there."],
        ),
        ("Die Brücke wurde nie vom Bürgermeister eröffnet.", ["Die Brücke wurde vom Bürgermeister eröffnet."]),
        ("Le pont n’a été ouvert par aucun maire.", ["Le pont a été ouvert par un maire."]),
        ("Мост не был открыт мэром города.", ["Мост был открыт мэром города."]),
        ("埃菲尔铁塔并未位于巴黎市中心。", ["埃菲尔铁塔位于巴黎市中心。"]),
        ("에펠탑은 파리에 지어지지 않았다.", ["에펠탑은 파리에 지어졌다."]),
    ],
)
def test_a_negation_lost_or_added_keeps_its_sentence(reference: str, claims: list[str]) -> None:
    assert [text for _, text in made(reference, claims)] == [reference]


def test_a_negation_may_change_its_form_and_be_said_once_for_each_fact() -> None:
    claims = ["Harbour North is not deep.", "Harbour North is not old."]
    assert [text for _, text in made("Harbour North is neither deep nor old.", claims)] == claims
    # "No" as an answer denies nothing that the sentence does not say again.
    claim = "The harbour is not deep at all."
    assert made("No, the harbour is not deep at all.", [claim]) == [("1.1", claim)]


def test_a_claim_that_leans_keeps_a_sentence_that_stands_alone() -> None:
    reference = "Marie Curie discovered radium and she died in Passy."
    assert made(reference, ["Marie Curie discovered radium.", "She died in Passy."]) == [("1", reference)]
    claims = ["Marie Curie discovered radium.", "Marie Curie died in Passy."]
    assert [text for _, text in made(reference, claims)] == claims


def test_a_claim_may_lean_where_its_sentence_does() -> None:
    claims = ["She discovered radium.", "She died in Passy."]
    assert [text for _, text in made("She discovered radium and died in Passy.", claims)] == claims


def test_repeated_and_blank_claims_go() -> None:
    claim = "The ferry leaves at six."
    assert made("The ferry leaves at six.", [claim, "", "  ", claim, "At six the ferry leaves!"]) == [("1.1", claim)]


def test_a_claim_whose_pronoun_was_resolved_belongs_to_the_sentence_with_its_new_words() -> None:
    reference = "Marie Curie discovered radium. She died in Passy."
    claims = ("Marie Curie discovered radium.", "Marie Curie died in Passy.")
    assert made(reference, *([one] for one in claims)) == [("1.1", claims[0]), ("2.1", claims[1])]


def test_a_fragment_is_completed_by_its_question() -> None:
    claim = "The highest mountain is Mount Everest."
    assert made("Mount Everest.", [claim], question="What is the highest mountain?") == [("1.1", claim)]


# Scripts without spaces are compared by character pairs, others by words.
@pytest.mark.parametrize(
    ("reference", "claims"),
    [
        ("埃菲尔铁塔位于巴黎，建于1889年。", ["埃菲尔铁塔位于巴黎。", "埃菲尔铁塔建于1889年。"]),
        ("에펠탑은 파리에 있고 1889년에 지어졌다.", ["에펠탑은 파리에 있다.", "에펠탑은 1889년에 지어졌다."]),
        ("برج إيفل يقع في باريس، وقد بني عام 1889.", ["برج إيفل يقع في باريس.", "برج إيفل بني عام 1889."]),
        (
            "Der Eiffelturm steht in Paris und wurde 1889 eröffnet.",
            ["Der Eiffelturm steht in Paris.", "Der Eiffelturm wurde 1889 eröffnet."],
        ),
    ],
)
def test_compound_sentences_of_many_scripts_become_their_claims(reference: str, claims: list[str]) -> None:
    assert [text for _, text in made(reference, claims)] == claims
    assert [text for _, text in made(reference, ["Elephants sleep while standing."])] == [reference]


def test_without_claims_the_sentences_are_the_statements_and_the_reason_is_told() -> None:
    found = statements_of(sample(CURIE), [[], []], "reply_runaway")
    assert found.statements == split_statements(sample(CURIE), "sentences")
    assert found.claims == Claims(n_sentences=2, error="reply_runaway")


@given(TEXTS, st.lists(TEXTS, max_size=5), st.integers(0, 3))
def test_whatever_a_judge_writes_each_sentence_is_there_once_as_itself_or_by_its_claims(
    reference: str, claims: list[str], shift: int
) -> None:
    sentences = split_statements(sample(reference), "sentences")
    found = statements_of(sample(reference), [claims[n + shift :] for n in range(len(sentences))])
    assert list(dict.fromkeys(one.id.partition(".")[0] for one in found.statements)) == [one.id for one in sentences]
    assert len({one.id for one in found.statements}) == len(found.statements)
    for one in found.statements:
        assert one in sentences or one.text in map(str.strip, claims)
    assert found.claims is not None
    assert found.claims.n_claims + found.claims.n_sentences == len(found.statements)


@given(st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]), min_size=3, unique=True))
def test_the_sentences_themselves_as_claims_change_no_word(words: list[str]) -> None:
    reference = " ".join(f"The {word} was sold to the king of {word}." for word in words)
    sentences = [one.text for one in split_statements(sample(reference), "sentences")]
    assert [text for _, text in made(reference, *([one] for one in sentences))] == sentences
