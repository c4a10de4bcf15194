"""Echoed statements find the statement that they are, or none."""

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from airjudge.alignment import align
from airjudge.schema import Echoes, Statement

words = st.lists(st.text(alphabet="abcdefghijklm", min_size=2, max_size=8), min_size=3, max_size=8).map(" ".join)


def statements(*texts: str) -> list[Statement]:
    return [Statement(id=str(n), text=text) for n, text in enumerate(texts, 1)]


def ruled(asked: Sequence[Statement], echoes: Sequence[str]) -> list[list[int]]:
    return [list(indices) for indices in align(asked, echoes).ruled]


def counts(asked: Sequence[Statement], *echoes: str) -> tuple[int, int, int, int, int]:
    """Statements told once, in parts, repeatedly and not at all, and invented items."""
    told = align(asked, echoes).echoes
    return told.n_once, told.n_split, told.n_repeated, told.n_missing, told.n_invented


def test_echoes_in_another_order_find_their_statements() -> None:
    asked = statements("The ferry leaves at six.", "It carries no cars.")
    assert ruled(asked, ["It carries no cars.", "The ferry leaves at six."]) == [[1], [0]]


def test_case_punctuation_and_corrupted_characters_do_not_matter() -> None:
    asked = statements("L'été à Zürich était très chaud en 2003.")
    assert ruled(asked, ["l'\ufffdté à z\ufffdrich était très chaud en 2003"]) == [[0]]


def test_a_script_without_spaces_is_aligned() -> None:
    asked = statements("埃菲尔铁塔位于巴黎。", "他的名字叫汤姆。")
    assert ruled(asked, ["埃菲尔铁塔位于巴黎", "他的名字叫汤姆"]) == [[0], [1]]


def test_a_split_statement_has_all_its_parts() -> None:
    asked = statements("The pump was replaced in May and the filter was cleaned in June.")
    assert ruled(asked, ["The pump was replaced in May.", "The filter was cleaned in June."]) == [[0, 1]]


def test_half_a_statement_is_not_a_ruling_on_it() -> None:
    asked = statements("The pump was replaced in May and the filter was cleaned by a technician in June.")
    assert ruled(asked, ["The pump was replaced in May."]) == [[]]


def test_an_invented_statement_and_a_heading_belong_nowhere() -> None:
    asked = statements("The ferry leaves at six.")
    assert ruled(asked, ["Statements:", "Whales are mammals.", "The ferry leaves at six."]) == [[2]]


def test_two_statements_in_one_echo_are_ruled_on_by_neither() -> None:
    asked = statements("The ferry leaves at six.", "The tower opens at noon.")
    assert ruled(asked, ["The ferry leaves at six and the tower opens at noon."]) == [[], []]


def test_repeated_statements_share_their_echoes_out() -> None:
    asked = statements("It rained.", "It rained.")
    assert ruled(asked, ["It rained.", "It rained."]) == [[0], [1]]


def test_marks_without_letters_are_aligned_to_nothing() -> None:
    assert ruled(statements("…", "?"), ["…", "a"]) == [[], []]


@given(st.lists(words, min_size=1, max_size=5, unique=True))
def test_an_exact_echo_of_every_statement_leaves_none_out(texts: list[str]) -> None:
    found = ruled(statements(*texts), texts)
    assert sorted(index for indices in found for index in indices) == list(range(len(texts)))


# The account


PUMP = "The pump was replaced in May and the filter was cleaned in June."
MAY, JUNE = "The pump was replaced in May.", "The filter was cleaned in June."


def test_a_statement_in_parts_is_split_and_one_that_is_said_again_is_repeated() -> None:
    asked = statements(PUMP)
    assert counts(asked, PUMP) == (1, 0, 0, 0, 0)
    assert counts(asked, MAY, JUNE) == (0, 1, 0, 0, 0)
    assert counts(asked, PUMP, PUMP) == (0, 0, 1, 0, 0)
    # The part says nothing that the whole does not say, whichever comes first.
    assert counts(asked, MAY, PUMP) == counts(asked, PUMP, MAY) == (0, 0, 1, 0, 0)
    assert counts(asked, MAY, JUNE, "the pump was replaced, in May") == (0, 0, 1, 0, 0)


def test_parts_that_share_their_subject_are_still_parts() -> None:
    asked = statements("He was born in Rome in 1900.")
    # "He was born in Rome" and "He was born in 1900" share ten pairs of fourteen; the year is new.
    assert counts(asked, "He was born in Rome.", "He was born in 1900.") == (0, 1, 0, 0, 0)


def test_half_a_statement_leaves_it_missing_and_is_not_invented() -> None:
    asked = statements("The pump was replaced in May and the filter was cleaned by a technician in June.")
    assert counts(asked, MAY, "Whales sing at night.") == (0, 0, 0, 1, 1)


def test_two_statements_in_one_item_are_missing_and_the_item_is_none_of_them() -> None:
    asked = statements("The ferry leaves at six.", "The tower opens at noon.")
    assert counts(asked, "The ferry leaves at six and the tower opens at noon.") == (0, 0, 0, 2, 1)


def test_a_statement_that_the_reference_holds_twice_needs_two_echoes_whole_or_in_parts() -> None:
    asked = statements(PUMP, PUMP)
    assert counts(asked, PUMP) == (1, 0, 0, 1, 0)
    assert counts(asked, PUMP, PUMP) == (2, 0, 0, 0, 0)
    assert counts(asked, MAY, PUMP, JUNE) == (1, 1, 0, 0, 0)
    assert counts(asked, PUMP, PUMP, PUMP) == (1, 0, 1, 0, 0)


def test_coverage_is_the_share_of_statements_told_and_undefined_without_any() -> None:
    assert align(statements("It rained.", "It snowed."), ["It rained."]).echoes.coverage == 0.5
    assert align(statements("It rained."), []).echoes.coverage == 0
    assert align([], ["It rained."]).echoes == Echoes(
        n_items=1, n_once=0, n_split=0, n_repeated=0, n_invented=1, n_missing=0, coverage=None
    )


# Statements of few letters, and echoes that are statements, halves of them, joined ones and inventions.
short = st.lists(st.text(alphabet="abcd", min_size=1, max_size=4), min_size=1, max_size=4).map(" ".join)


@st.composite
def replies(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    texts = draw(st.lists(short, max_size=5))
    pieces = [*texts, *(one[: len(one) // 2] for one in texts), *(one[len(one) // 2 :] for one in texts)]
    echo = st.one_of(short, st.sampled_from(pieces)) if pieces else short
    return texts, draw(st.lists(echo, max_size=8))


@given(replies())
def test_the_account_adds_up(told: tuple[list[str], list[str]]) -> None:
    texts, echoes = told
    found = align(statements(*texts), echoes)
    account, used = found.echoes, [index for indices in found.ruled for index in indices]
    assert account.n_statements == len(texts)
    assert account.n_items == len(echoes)
    assert len(used) == len(set(used)) <= account.n_items - account.n_invented
    assert account.n_missing == sum(not indices for indices in found.ruled)
    assert account.n_once == sum(len(indices) == 1 for indices in found.ruled)
    n_told = account.n_once + account.n_split + account.n_repeated
    assert account.coverage == (n_told / len(texts) if texts else None)
    assert account.coverage is None or 0 <= account.coverage <= 1


@given(replies(), st.randoms(use_true_random=False))
def test_the_order_of_items_does_not_matter(told: tuple[list[str], list[str]], random: Random) -> None:
    texts, echoes = told
    order = list(range(len(echoes)))
    random.shuffle(order)
    found, shuffled = align(statements(*texts), echoes), align(statements(*texts), [echoes[one] for one in order])
    assert shuffled.echoes == found.echoes
    assert [sorted(echoes[order[one]] for one in indices) for indices in shuffled.ruled] == [
        sorted(echoes[one] for one in indices) for indices in found.ruled
    ]
