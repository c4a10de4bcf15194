import contextlib
import hashlib
import json
import os
import pickle
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airjudge.datasets import file_digest, read_samples
from airjudge.errors import DatasetError, DuplicateId, InputError
from airjudge.schema import Sample, Statement

DATA = Path(os.environ.get("AIRJUDGE_DATA", Path(__file__).parents[2] / "shared" / "data"))
GOOD: dict[str, object] = {"user_input": "Where?", "reference": "Here. There.", "retrieved_contexts": ["It is here."]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def write(path: Path, *lines: bytes | str | dict[str, object]) -> Path:
    """Write lines into a file below the folder `path`."""
    encoded = [
        line if isinstance(line, bytes) else (line if isinstance(line, str) else json.dumps(line)).encode()
        for line in lines
    ]
    file = path / "data.jsonl"
    file.write_bytes(b"\n".join(encoded) + b"\n")
    return file


def only(path: Path, line: bytes | str | dict[str, object]) -> Sample | DatasetError:
    (entry,) = read_samples(write(path, line))
    return entry


def reason(path: Path, line: bytes | str | dict[str, object]) -> str:
    entry = only(path, line)
    assert isinstance(entry, DatasetError), entry
    assert entry.line == 1
    return entry.reason


def good(**fields: object) -> dict[str, object]:
    return {**GOOD, **fields}


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
    entries = list(read_samples(write(tmp_path, GOOD, "", " \t\r", good(id=None), good(id=12))))
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
        ({"retrieved_contexts": "one"}, 'retrieved_contexts must be a list of strings, not a string: "one"'),
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


def test_other_tools_column_names_are_recognised_in_the_message(tmp_path: Path) -> None:
    line: dict[str, object] = {"question": "Where?", "contexts": ["a"], "ground_truth": "Here."}
    names = "the fields are user_input, reference and retrieved_contexts"
    assert reason(tmp_path, line) == f"user_input is missing; rename question: {names}"
    line["user_input"] = line.pop("question")
    assert reason(tmp_path, line) == f"reference is missing; rename ground_truth: {names}"


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
    path = write(tmp_path, first, "", second)
    entry = list(read_samples(path))[1]
    assert isinstance(entry, DatasetError)
    place = path.read_bytes().index(b"\xdf")
    assert entry.reason == f"not UTF-8: byte {place} of the file is 0xdf"
    assert str(entry) == f"{path}:3: {entry.reason}"


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    line = json.dumps(GOOD).encode()
    entries = list(read_samples(write(tmp_path, b"\xef\xbb\xbf" + line + b"\r", line + b"\r")))
    assert [e.id for e in entries if isinstance(e, Sample)] == ["line-1", "line-2"]


def test_a_line_separator_inside_a_string_does_not_end_the_line(tmp_path: Path) -> None:
    line = json.dumps(good(reference="a\u2028b\x85c"), ensure_ascii=False)
    entry = only(tmp_path, line)
    assert isinstance(entry, Sample)
    assert entry.reference == "a\u2028b\x85c"


def test_one_bad_line_leaves_the_others_alone(tmp_path: Path) -> None:
    entries = list(read_samples(write(tmp_path, good(id="a"), "{", good(id="c"))))
    assert [type(e) for e in entries] == [Sample, DatasetError, Sample]


def test_a_second_sample_with_a_known_id_is_an_error_record(tmp_path: Path) -> None:
    lines = (good(id="a"), good(id=1), good(id="a", user_input="Else?"), good(id="1"), good(id="line-6"), GOOD)
    entries = list(read_samples(write(tmp_path, *lines)))
    assert [type(e) for e in entries] == [Sample, Sample, DuplicateId, DuplicateId, Sample, DuplicateId]
    assert isinstance(entries[2], DuplicateId)
    assert entries[2].reason == 'the id "a" is already that of line 1'
    assert entries[2].kind == "duplicate_id"


def test_a_bad_line_does_not_use_up_its_id(tmp_path: Path) -> None:
    entries = list(read_samples(write(tmp_path, good(id="a", reference=""), good(id="a"))))
    assert [type(e) for e in entries] == [DatasetError, Sample]


def test_a_long_or_strange_value_is_quoted_short_and_escaped(tmp_path: Path) -> None:
    assert reason(tmp_path, good(reference=["x" * 100_000])).endswith("xxx...")
    assert len(reason(tmp_path, good(reference=["x" * 100_000]))) < 120
    # An escape sequence or a change of direction must not reach a terminal.
    assert reason(tmp_path, good(reference=["\x1b[2J\u202e"])).endswith(r'["\u001b[2J\u202e"]')


def test_an_error_record_survives_pickling(tmp_path: Path) -> None:
    entry = only(tmp_path, "{")
    assert isinstance(entry, DatasetError)
    assert str(pickle.loads(pickle.dumps(entry))) == str(entry)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n\r\n", "holds blank lines only"),
        (b"\xef\xbb\xbf\n", "holds blank lines only"),
        (json.dumps(GOOD).encode("utf-16"), "is UTF-16"),
        (json.dumps([GOOD], indent=1).encode(), "is one JSON document over many lines"),
        (json.dumps(GOOD, indent=1).encode(), "is one JSON document over many lines"),
    ],
)
def test_a_file_without_any_line_of_ours_is_an_input_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        list(read_samples(path))
    assert caught.value.hint


@pytest.mark.parametrize("name", ["absent.jsonl", "folder", "pipe", "table.csv", "table.PARQUET", "data.jsonl.gz"])
def test_a_path_that_cannot_be_read_is_refused_at_once_with_a_next_step(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "table.csv").write_text("a,b\n")
    with pytest.raises(InputError) as caught:
        read_samples(tmp_path / name)
    assert name in str(caught.value)
    assert caught.value.hint


def test_a_file_below_a_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: Not a directory"):
        read_samples(write(tmp_path, GOOD) / "data.jsonl")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_an_input_error(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    path.chmod(0)
    with pytest.raises(InputError, match="may not be read"):
        read_samples(path)


def test_the_digest_is_that_of_the_file_s_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, b"\xff\x00")
    assert file_digest(path) == hashlib.sha256(b"\xff\x00\n").hexdigest()
    with pytest.raises(InputError, match="is a folder"):
        file_digest(tmp_path)


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
    path = write(tmp_path, *lines)
    with contextlib.suppress(InputError):
        content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
        entries = list(read_samples(path))
        assert len(entries) == sum(bool(line.strip()) for line in content.split(b"\n"))


def test_a_big_file_is_streamed(tmp_path: Path) -> None:
    # 20 MB of samples; each line is 100 kB, and reading holds a few lines at a time.
    line = json.dumps(good(retrieved_contexts=["x" * 100_000])).encode()
    path = write(tmp_path, *[line] * 200)
    tracemalloc.start()
    n_samples = sum(isinstance(entry, Sample) for entry in read_samples(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_samples == 200
    assert peak < 3_000_000


@pytest.mark.parametrize("path", sorted(DATA.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_sample_of_the_labelled_data_is_read(path: Path) -> None:
    entries = list(read_samples(path))
    assert all(isinstance(entry, Sample) and entry.statements and entry.group for entry in entries)
