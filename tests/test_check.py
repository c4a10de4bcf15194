"""What `check` counts, against counts by hand; bytes stand for tokens where they are derived."""

import json
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from airjudge import prompts
from airjudge.check import Report, Terms, Utf8, check_data
from airjudge.datasets import open_source, source_of
from airjudge.schema import Message, Sample
from airjudge.statements import split_statements
from tests.inputs import GOOD, good, write_lines


class Words:
    """Counts words, so that a count can be made by hand."""

    def encode(self, chats: Sequence[Sequence[Message]]) -> list[list[int]]:
        return [[hash(word) for one in chat for word in one.content.split()] for chat in chats]


def checked(*rows: dict[str, object], terms: Terms | None = None) -> Report:
    return check_data(source_of(rows), terms or Terms(Utf8(), "given"))


def test_samples_statements_and_requests_are_counted_as_a_run_would_ask() -> None:
    report = checked(
        GOOD,  # two sentences
        good(statements=["a", "b", "c"]),
        good(statements=[]),
        good(retrieved_contexts=[" "]),  # two sentences that no judge is asked about
    )
    assert (report.n_samples, report.n_statements, report.n_requests) == (4, 7, 5)
    assert (report.n_empty_contexts, report.n_undefined) == (1, 1)
    sentences = checked(GOOD, good(statements=["a", "b", "c"]), terms=Terms(Utf8(), "sentences"))
    assert sentences.n_statements == 4


def test_prompts_of_a_sample_share_the_beginning_of_the_first_one() -> None:
    report = checked(GOOD, terms=Terms(Words(), "given"))
    sample = Sample(id="1", user_input="Where?", reference="Here. There.", retrieved_contexts=("It is here.",))
    first, second = (
        [word for one in prompts.pointwise(sample, statement).messages for word in one.content.split()]
        for statement in split_statements(sample)
    )
    # "Here." and "There." differ in one word; behind it stands the same request, which is computed again.
    assert len(first) == len(second)
    place = first.index("Here.")
    assert (first[:place], first[place + 1 :]) == (second[:place], second[place + 1 :])
    assert report.prompt_units == 2 * len(first)
    assert report.computed_units == len(first) + len(second) - place
    assert report.longest_prompt == len(first) + 1  # and its reply of one token


def test_prompts_that_do_not_fit_are_named() -> None:
    rows = [good(id="short"), good(id="long", retrieved_contexts=["x" * 5000]), good(id="longer", reference="y" * 6000)]
    report = checked(*rows, terms=Terms(Utf8(), "given", limit=4000))
    assert [(one.line, one.id) for one in report.too_long] == [(2, "long"), (3, "longer")]
    assert all(one.length > 4000 for one in report.too_long)
    assert checked(*rows, terms=Terms(Utf8(), "given", limit=4000, max_listed=1)).n_too_long == 2
    assert checked(*rows).n_too_long == 0


def test_bad_lines_are_listed_in_order_with_the_samples_whose_id_is_used_twice(tmp_path: Path) -> None:
    path = write_lines(tmp_path, good(id="a"), "{", good(id="a"), good(id="b"), "[]", good(id="a", reference=""))
    report = check_data(open_source([str(path)]), Terms(Utf8(), "given"))
    assert [(one.line, one.kind) for one in report.bad_lines] == [
        (2, "bad_line"), (3, "duplicate_id"), (5, "bad_line"), (6, "bad_line")
    ]  # fmt: skip
    assert report.bad_lines[1].reason == 'the id "a" is already that of line 1'
    assert (report.n_samples, report.n_bad) == (2, 4)
    short = check_data(open_source([str(path)]), Terms(Utf8(), "given", max_listed=2))
    assert (short.bad_lines, short.n_bad) == (report.bad_lines[:2], 4)


def test_the_first_rows_are_all_that_is_counted() -> None:
    rows = [good(id="a"), {}, good(id="a"), good(id="b")]
    found = [check_data(source_of(rows), Terms(Utf8(), "given"), first=first) for first in (1, 2, 3)]
    assert [(one.n_samples, one.n_bad) for one in found] == [(1, 0), (1, 1), (1, 2)]


def test_an_id_may_be_used_twice_over_several_files(tmp_path: Path) -> None:
    paths = [write_lines(tmp_path, good(id="a"), GOOD, name=name) for name in ("x.jsonl", "y.jsonl")]
    report = check_data(open_source([str(path) for path in paths]), Terms(Utf8(), "given"))
    assert [(one.path, one.line, one.reason) for one in report.bad_lines] == [
        (str(paths[1]), 1, f'the id "a" is already that of {paths[0]}:1')
    ]


def test_samples_that_say_the_same_word_for_word_are_counted() -> None:
    assert checked(good(id="a"), good(id="b"), good(id="c", reference="Else."), good(id="d")).n_repeated == 2


def test_a_big_data_set_is_not_kept(tmp_path: Path) -> None:
    # 2000 samples of 10 kB; kept are three numbers of eight bytes for each.
    line = json.dumps(good(reference="One sentence.", retrieved_contexts=["x" * 10_000])).encode()
    source = open_source([str(write_lines(tmp_path, *[line] * 2000))])
    tracemalloc.start()
    report = check_data(source, Terms(Utf8(), "given", max_listed=20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.n_samples == 2000
    assert peak < 3_000_000


@given(st.lists(st.binary(max_size=6), min_size=1, max_size=4))
def test_sharing_counts_each_common_beginning_once(texts: list[bytes]) -> None:
    class Given:
        def encode(self, chats: Sequence[Sequence[Message]]) -> list[bytes]:
            assert len(chats) == len(texts)
            return texts

    def common(before: bytes, one: bytes) -> int:
        # With the first text or the one before it, whichever shares more.
        return max(sum(other.startswith(one[:n]) for n in range(1, len(one) + 1)) for other in (texts[0], before))

    report = checked(good(statements=[f"s{n}" for n in range(len(texts))]), terms=Terms(Given(), "given"))
    assert report.prompt_units == sum(map(len, texts))
    assert report.computed_units == report.prompt_units - sum(map(common, texts, texts[1:]))
