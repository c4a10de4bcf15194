"""Echoed statements find the statement that they are, or none."""

from hypothesis import given
from hypothesis import strategies as st

from airjudge.alignment import align
from airjudge.schema import Statement

words = st.lists(st.text(alphabet="abcdefghijklm", min_size=2, max_size=8), min_size=3, max_size=8).map(" ".join)


def statements(*texts: str) -> list[Statement]:
    return [Statement(id=str(n), text=text) for n, text in enumerate(texts, 1)]


def test_echoes_in_another_order_find_their_statements() -> None:
    asked = statements("The ferry leaves at six.", "It carries no cars.")
    assert align(asked, ["It carries no cars.", "The ferry leaves at six."]) == [[1], [0]]


def test_case_punctuation_and_corrupted_characters_do_not_matter() -> None:
    asked = statements("L'été à Zürich était très chaud en 2003.")
    assert align(asked, ["l'\ufffdté à z\ufffdrich était très chaud en 2003"]) == [[0]]


def test_a_script_without_spaces_is_aligned() -> None:
    asked = statements("埃菲尔铁塔位于巴黎。", "他的名字叫汤姆。")
    assert align(asked, ["埃菲尔铁塔位于巴黎", "他的名字叫汤姆"]) == [[0], [1]]


def test_a_split_statement_has_all_its_parts() -> None:
    asked = statements("The pump was replaced in May and the filter was cleaned in June.")
    assert align(asked, ["The pump was replaced in May.", "The filter was cleaned in June."]) == [[0, 1]]


def test_half_a_statement_is_not_a_ruling_on_it() -> None:
    asked = statements("The pump was replaced in May and the filter was cleaned by a technician in June.")
    assert align(asked, ["The pump was replaced in May."]) == [[]]


def test_an_invented_statement_and_a_heading_belong_nowhere() -> None:
    asked = statements("The ferry leaves at six.")
    assert align(asked, ["Statements:", "Whales are mammals.", "The ferry leaves at six."]) == [[2]]


def test_two_statements_in_one_echo_are_ruled_on_by_neither() -> None:
    asked = statements("The ferry leaves at six.", "The tower opens at noon.")
    assert align(asked, ["The ferry leaves at six and the tower opens at noon."]) == [[], []]


def test_repeated_statements_share_their_echoes_out() -> None:
    asked = statements("It rained.", "It rained.")
    assert align(asked, ["It rained.", "It rained."]) == [[0], [1]]


def test_marks_without_letters_are_aligned_to_nothing() -> None:
    assert align(statements("…", "?"), ["…", "a"]) == [[], []]


@given(st.lists(words, min_size=1, max_size=5, unique=True))
def test_an_exact_echo_of_every_statement_leaves_none_out(texts: list[str]) -> None:
    found = align(statements(*texts), texts)
    assert sorted(index for indices in found for index in indices) == list(range(len(texts)))
