import contextlib
import json
import os
import pickle
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airjudge.datasets import lines, open_source
from airjudge.errors import DatasetError, InputError
from airjudge.schema import Sample, Statement
from tests.inputs import GOOD, Line, entries_of, good, never, write_lines

DATA = Path(os.environ.get("AIRJUDGE_DATA", Path(__file__).parents[2] / "shared" / "data"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def only(path: Path, line: Line) -> Sample | DatasetError:
    """Read a line that stands before a good one, which tells the columns."""
    return entries_of(write_lines(path, line, GOOD))[0].value


def reason(path: Path, line: Line) -> str:
    entry = only(path, line)
    assert isinstance(entry, DatasetError), entry
    assert entry.line == 1
    return entry.reason


def test_a_line_becomes_a_sample(tmp_path: Path) -> None:
    line = good(id="a", group=7, lang="en", meta={"source": "x"}, statements=[{"id": 1, "text": "Here.", "label": 1}])
    assert only(tmp_path, line) == Sample(
        id="a",
        user_input="Where?",
        reference="Here. There.",
        retrieved_contexts=("It is here.",),
        statements=(Statement(id="1", text="Here."),),
        group="7",
        metadata={"lang": "en", "meta": {"source": "x"}},
    )


def test_a_sample_without_id_is_named_after_its_line_and_blank_lines_count(tmp_path: Path) -> None:
    entries = [
        entry.value for entry in entries_of(write_lines(tmp_path, GOOD, "", " \t\r", good(id=None), good(id=12)))
    ]
    assert [e.id for e in entries if isinstance(e, Sample)] == ["line-1", "line-4", "12"]


def test_an_optional_field_may_be_null(tmp_path: Path) -> None:
    entry = only(tmp_path, good(id=None, group=None, lang=None, statements=None))
    assert isinstance(entry, Sample)
    assert (entry.group, entry.statements) == (None, None)


def test_given_statements_may_be_strings(tmp_path: Path) -> None:
    entry = only(tmp_path, good(statements=["Here.", {"text": " There. "}, {"text": "So.", "id": "c"}]))
    assert isinstance(entry, Sample)
    assert entry.statements == (
        Statement(id="1", text="Here."),
        Statement(id="2", text="There."),
        Statement(id="c", text="So."),
    )


@pytest.mark.parametrize("contexts", [[], [""], ["  ", "\n"], ["", "text"]])
def test_empty_and_blank_contexts_are_kept_for_the_run_to_score(tmp_path: Path, contexts: list[str]) -> None:
    entry = only(tmp_path, good(retrieved_contexts=contexts))
    assert isinstance(entry, Sample)
    assert entry.retrieved_contexts == tuple(contexts)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"user_input": ""}, "user_input is blank"),
        ({"user_input": " \u3000\n"}, "user_input is blank"),
        ({"user_input": None}, "user_input must be a string, not null"),
        ({"user_input": 5}, "user_input must be a string, not a number: 5"),
        ({"reference": ""}, "reference is blank"),
        ({"reference": ["a"]}, 'reference must be a string, not a list: ["a"]'),
        ({"reference": True}, "reference must be a string, not a boolean: true"),
        ({"retrieved_contexts": None}, "retrieved_contexts must be a list of strings, not null"),
        ({"retrieved_contexts": {"a": 1}}, 'retrieved_contexts must be a list of strings, not an object: {"a": 1}'),
        ({"retrieved_contexts": ["a", 5]}, "retrieved_contexts must hold strings, but number 2 is a number: 5"),
        ({"retrieved_contexts": [None]}, "retrieved_contexts must hold strings, but number 1 is null"),
        ({"retrieved_contexts": [["a"]]}, 'retrieved_contexts must hold strings, but number 1 is a list: ["a"]'),
        ({"id": ""}, "id is blank"),
        ({"id": 1.5}, "id must be a string or a whole number, not a number: 1.5"),
        ({"id": True}, "id must be a string or a whole number, not a boolean: true"),
        ({"group": []}, "group must be a string or a whole number, not a list: []"),
        ({"lang": 5}, "lang must be a language tag like en, not a number: 5"),
        ({"statements": "Here."}, 'statements must be a list, not a string: "Here."'),
        ({"statements": [5]}, "statement 1 must be a string or an object with text, not a number: 5"),
        ({"statements": [{}]}, "statement 1 must be a string or an object with text, not an object: {}"),
        ({"statements": ["a", " "]}, "statement 2 is blank"),
        ({"statements": ["a", {"id": 1, "text": "b"}]}, 'two statements have the id "1"'),
        ({"statements": [{"id": "", "text": "b"}]}, "the id of statement 1 is blank"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_field(tmp_path: Path, fields: dict[str, object], expected: str) -> None:
    assert reason(tmp_path, good(**fields)) == expected


@pytest.mark.parametrize("name", ["user_input", "reference", "retrieved_contexts"])
def test_a_missing_field_is_named(tmp_path: Path, name: str) -> None:
    assert reason(tmp_path, {key: value for key, value in GOOD.items() if key != name}) == f"{name} is missing"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{'a': 1}", "not JSON: Expecting property name enclosed in double quotes at column 2"),
        ('{"a": 1} x', "not JSON: Extra data at column 10"),
        ("[1, 2]", "not a JSON object but a list: [1, 2]"),
        ('"text"', 'not a JSON object but a string: "text"'),
        ("null", "not a JSON object but null"),
        ('{"id": "a", "id": "b"}', 'the field "id" occurs twice in one object'),
        ('{"meta": {"k": 1, "j": 2, "k": 1}}', 'the field "k" occurs twice in one object'),
        ('{"score": NaN}', "NaN is not JSON; write null for what is undefined"),
        ('{"score": [-Infinity]}', "-Infinity is not JSON; write null for what is undefined"),
        ('{"score": 1e999}', 'the number "1e999" is too large'),
        (r'{"note": "a\ud800b"}', '"note" holds half a surrogate pair, which is no character'),
        (r'{"\udc00": 1}', r'"\udc00" holds half a surrogate pair, which is no character'),
        (f'{{"n": {"9" * 5000}}}', "not usable JSON: a number has too many digits"),
        (f'{{"n": {"[" * 102}{"]" * 102}}}', '"n" is nested more than 100 deep'),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_a_line_that_is_no_usable_json_object_says_why(tmp_path: Path, line: str, expected: str) -> None:
    assert reason(tmp_path, line) == expected


def test_a_whole_surrogate_pair_is_a_character(tmp_path: Path) -> None:
    line = r'{"user_input": "\ud83d\ude00?", "reference": "a", "retrieved_contexts": []}'
    entry = only(tmp_path, line)
    assert isinstance(entry, Sample)
    assert entry.user_input == "😀?"


def test_a_byte_that_is_not_utf_8_is_named_by_its_place_in_the_file(tmp_path: Path) -> None:
    first = b"\xef\xbb\xbf" + json.dumps(GOOD).encode()
    second = b'{"user_input": "Stra\xdfe"}'  # Latin-1
    path = write_lines(tmp_path, first, "", second)
    entry = [entry.value for entry in entries_of(path)][1]
    assert isinstance(entry, DatasetError)
    place = path.read_bytes().index(b"\xdf")
    assert entry.reason == f"not UTF-8: byte {place} of the file is 0xdf"
    assert str(entry) == f"{path}:3: {entry.reason}"


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    line = json.dumps(GOOD).encode()
    entries = [entry.value for entry in entries_of(write_lines(tmp_path, b"\xef\xbb\xbf" + line + b"\r", line + b"\r"))]
    assert [e.id for e in entries if isinstance(e, Sample)] == ["line-1", "line-2"]


def test_a_line_separator_inside_a_string_does_not_end_the_line(tmp_path: Path) -> None:
    line = json.dumps(good(reference="a\u2028b\x85c"), ensure_ascii=False)
    entry = only(tmp_path, line)
    assert isinstance(entry, Sample)
    assert entry.reference == "a\u2028b\x85c"


def test_one_bad_line_leaves_the_others_alone(tmp_path: Path) -> None:
    entries = [entry.value for entry in entries_of(write_lines(tmp_path, good(id="a"), "{", good(id="c")))]
    assert [type(e) for e in entries] == [Sample, DatasetError, Sample]


def test_places_count_samples_and_lines_count_lines(tmp_path: Path) -> None:
    path = write_lines(tmp_path, "", good(id="a"), " ", "{", good(id="a"))
    assert [(e.place, e.path, e.line) for e in entries_of(path)] == [
        (0, str(path), 2),
        (1, str(path), 4),
        (2, str(path), 5),
    ]


def test_a_skipped_place_is_counted_and_not_parsed(tmp_path: Path) -> None:
    source = open_source([str(write_lines(tmp_path, good(id="a"), "{", b"\xff", good(id="d"), good(id="e")))])
    asked: list[int] = []

    def skip(place: int) -> bool:
        asked.append(place)
        return place in {1, 2, 4}

    entries = list(source.entries(skip))
    assert asked == [0, 1, 2, 3, 4]
    assert [(e.place, e.line, e.value.id) for e in entries if isinstance(e.value, Sample)] == [(0, 1, "a"), (3, 4, "d")]
    assert len(entries) == 2
    assert source.count() == 5


def test_a_long_or_strange_value_is_quoted_short_and_escaped(tmp_path: Path) -> None:
    assert reason(tmp_path, good(reference=["x" * 100_000])).endswith("xxx...")
    assert len(reason(tmp_path, good(reference=["x" * 100_000]))) < 120
    # An escape sequence or a change of direction must not reach a terminal.
    assert reason(tmp_path, good(reference=["\x1b[2J\u202e"])).endswith(r'["\u001b[2J\u202e"]')


def test_an_error_record_survives_pickling(tmp_path: Path) -> None:
    entry = only(tmp_path, "{")
    assert isinstance(entry, DatasetError)
    assert str(pickle.loads(pickle.dumps(entry))) == str(entry)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from([*GOOD, "id", "group", "lang", "statements", "x"]), JSON))
def test_any_json_object_is_a_sample_or_a_record(tmp_path: Path, fields: dict[str, object]) -> None:
    for line in (fields, {**GOOD, **fields}):
        entry = only(tmp_path, line)
        assert isinstance(entry, Sample | DatasetError)
        if isinstance(entry, Sample):
            assert Sample.model_validate_json(entry.model_dump_json()) == entry


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=40), max_size=5))
def test_any_bytes_are_records_or_one_input_error(tmp_path: Path, lines: list[bytes]) -> None:
    path = write_lines(tmp_path, *lines)
    with contextlib.suppress(InputError):
        content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
        entries = entries_of(path)
        assert len(entries) == sum(bool(line.strip()) for line in content.split(b"\n"))


def test_a_big_file_is_streamed(tmp_path: Path) -> None:
    # 20 MB of samples; each line is 100 kB, and reading holds a few lines at a time.
    line = json.dumps(good(retrieved_contexts=["x" * 100_000])).encode()
    path = write_lines(tmp_path, *[line] * 200)
    tracemalloc.start()
    entries = open_source([str(path)]).entries(never)
    n_samples = sum(isinstance(entry.value, Sample) for entry in entries)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_samples == 200
    assert peak < 3_000_000


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary().map(lambda line: line.replace(b"\n", b"")))
def test_whatever_bytes_a_line_holds_it_is_a_sample_or_a_record(tmp_path: Path, line: bytes) -> None:
    first, *between, last = entries_of(write_lines(tmp_path, GOOD, line, GOOD))
    assert isinstance(first.value, Sample)
    assert isinstance(last.value, Sample)
    assert last.line == 3
    assert len(between) == bool(line.strip())
    assert all(isinstance(entry.value, Sample | DatasetError) for entry in between)


def test_a_line_beyond_all_measure_is_a_record_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 2**20)
    path = write_lines(tmp_path, GOOD, good(reference="x" * 3 * 2**20), b"\xff", GOOD)
    values = [entry.value for entry in entries_of(path)]
    assert [type(value) for value in values] == [Sample, DatasetError, DatasetError, Sample]
    assert isinstance(values[1], DatasetError)
    assert values[1].reason == "longer than 1 MiB"
    assert isinstance(values[2], DatasetError)
    assert values[2].reason == f"not UTF-8: byte {path.read_bytes().index(0xFF)} of the file is 0xff"


@pytest.mark.parametrize("path", sorted(DATA.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_sample_of_the_labelled_data_is_read(path: Path) -> None:
    entries = [entry.value for entry in entries_of(path)]
    assert all(isinstance(entry, Sample) and entry.statements and entry.group for entry in entries)
