"""Which column is which field: names as other tools write them, and what is said where they do not tell."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge.datasets import FIELDS, REQUIRED, open_source, parse_mapping
from airjudge.datasets.columns import MISSING, decide_mapping, value_at, without
from airjudge.errors import DatasetError, InputError
from airjudge.schema import Sample
from tests.inputs import GOOD, entries_of, good, samples_of, write_lines

Row = dict[str, object]

# What the tools export, each with the columns that hold the sample "Q" / "R." / ("C1", "C2").
EXPORTS: dict[str, Row] = {
    "ragas": {"user_input": "Q", "retrieved_contexts": ["C1", "C2"], "reference": "R.", "response": "no",
              "reference_contexts": ["no"], "rubrics": {"score1": "no"}},
    "ragas 0.1": {"question": "Q", "contexts": ["C1", "C2"], "answer": "no", "ground_truth": "R."},
    "ragas 0.0": {"question": "Q", "contexts": ["C1", "C2"], "answer": "no", "ground_truths": ["R."]},
    "opik": {"input": "Q", "context": ["C1", "C2"], "output": "no", "expected_output": "R."},
    "deepeval": {"input": "Q", "actual_output": "no", "expected_output": "R.", "context": ["the ideal"],
                 "retrieval_context": ["C1", "C2"], "additional_metadata": None},
    "deepeval without retrieval": {"input": "Q", "actual_output": "no", "expected_output": "R.",
                                   "context": ["C1", "C2"]},
    "confident ai": {"input": "Q", "actualOutput": "no", "expectedOutput": "R.", "context": ["the ideal"],
                     "retrievalContext": ["C1", "C2"]},
    "langsmith example": {"id": "e", "inputs": {"question": "Q", "contexts": ["C1", "C2"]},
                          "outputs": {"answer": "R."}, "metadata": {}, "dataset_id": "d"},
    "langsmith experiment": {"inputs": {"question": "Q"}, "outputs": {"answer": "no", "documents": ["C1", "C2"]},
                             "reference_outputs": {"answer": "R."}, "feedback": {"correct": 1}},
    "langsmith frame": {"inputs.question": "Q", "outputs.answer": "no", "outputs.contexts": ["C1", "C2"],
                        "reference.answer": "R.", "execution_time": 1.5},
    "promptfoo": {"vars": {"query": "Q", "context": ["C1", "C2"], "expected": "R."}, "assert": [{"type": "equals"}]},
    "camel case": {"userInput": "Q", "retrievedContexts": ["C1", "C2"], "groundTruth": "R."},
    "titles": {"Question": "Q", "Retrieved Contexts": ["C1", "C2"], "Ground-Truth": "R."},
    "documents": {"query": "Q", "documents": [{"page_content": "C1", "metadata": {"page": 1}, "type": "Document"},
                                              {"page_content": "C2"}], "reference_answer": "R."},
    "pairs": {"query": "Q", "contexts": [{"text": "C1", "score": 0.5}, {"content": "C2"}], "ground_truth": "R."},
    "langchain.js": {"input": "Q", "context": [{"pageContent": "C1"}, "C2"], "expectedAnswer": "R."},
}  # fmt: skip


@pytest.mark.parametrize("tool", EXPORTS)
def test_what_a_tool_exports_is_read_as_it_is(tmp_path: Path, tool: str) -> None:
    (sample,) = samples_of(write_lines(tmp_path, EXPORTS[tool]))
    assert (sample.user_input, sample.reference, sample.retrieved_contexts) == ("Q", "R.", ("C1", "C2"))
    assert sample.id == EXPORTS[tool].get("id", "line-1")


@pytest.mark.parametrize("tool", sorted(EXPORTS.keys() - {"langchain.js", "pairs", "documents"}))
def test_the_same_columns_are_found_in_the_schema_of_a_table(tmp_path: Path, tool: str) -> None:
    row = {name: value for name, value in EXPORTS[tool].items() if value != {}}
    pyarrow.parquet.write_table(pa.Table.from_pylist([row]), tmp_path / "data.parquet")
    lines = write_lines(tmp_path, row)
    assert dict(open_source([str(tmp_path / "data.parquet")]).mapping) == dict(open_source([str(lines)]).mapping)
    assert samples_of(tmp_path / "data.parquet")[0] == samples_of(lines)[0]


def test_the_mapping_names_the_columns_that_are_read_and_the_rest_is_metadata(tmp_path: Path) -> None:
    row = {**EXPORTS["langsmith experiment"], "id": "a", "group": "g", "note": 1}
    path = write_lines(tmp_path, row)
    assert dict(open_source([str(path)]).mapping) == {
        "user_input": "inputs.question",
        "reference": "reference_outputs.answer",
        "retrieved_contexts": "outputs.documents",
        "id": "id",
        "group": "group",
    }
    assert samples_of(path)[0].metadata == {
        "inputs": {}, "outputs": {"answer": "no"}, "reference_outputs": {}, "feedback": {"correct": 1}, "note": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    ("extra", "field", "listed"),
    [
        ({"question": "Q"}, "user_input", "user_input, question"),
        ({"ground_truth": "R."}, "reference", "reference, ground_truth"),
        ({"contexts": []}, "retrieved_contexts", "retrieved_contexts, contexts"),
        ({"userInput": "Q"}, "user_input", "user_input, userInput"),
        ({"inputs": {"query": "Q"}}, "user_input", "user_input, inputs.query"),
    ],
)
def test_two_candidates_for_a_field_are_an_error_that_lists_both_and_map_settles_it(
    tmp_path: Path, extra: Row, field: str, listed: str
) -> None:
    path = write_lines(tmp_path, GOOD, {**GOOD, **extra})
    with pytest.raises(InputError, match=f"2 columns could be {field}: {listed}") as caught:
        open_source([str(path)])
    assert caught.value.hint == f"Say which: --map {field}={field}"
    assert len(samples_of(path, mapping={field: field})) == 2


def test_map_settles_one_field_of_three_candidates(tmp_path: Path) -> None:
    path = write_lines(tmp_path, good(question="Q1", query="Q2"))
    assert samples_of(path, mapping={"user_input": "query"})[0].user_input == "Q2"


def test_what_the_user_says_wins_and_may_name_what_lies_inside(tmp_path: Path) -> None:
    row = good(meta={"gold": {"text": "Gold."}}, answer="An answer.", doc="d7", language="de", lang="en")
    path = write_lines(tmp_path, row)
    (sample,) = samples_of(path, mapping={"reference": "meta.gold.text", "group": "doc", "lang": "language"})
    assert (sample.reference, sample.group, sample.metadata["lang"]) == ("Gold.", "d7", "de")
    assert sample.metadata["reference"] == GOOD["reference"]
    assert sample.metadata["meta"] == {"gold": {}}
    assert samples_of(path, mapping={"reference": "answer"})[0].reference == "An answer."


def test_a_column_that_the_user_gave_to_one_field_is_no_candidate_for_another(tmp_path: Path) -> None:
    row: Row = {"question": "Q", "input": "R.", "contexts": []}
    assert samples_of(write_lines(tmp_path, row), mapping={"reference": "input"})[0].user_input == "Q"


def test_an_answer_is_never_taken_for_the_reference(tmp_path: Path) -> None:
    path = write_lines(tmp_path, {"question": "Q", "contexts": [], "answer": "A."})
    with pytest.raises(
        InputError, match=r"data\.jsonl: no column for reference; its columns are: question, contexts, answer"
    ) as caught:
        open_source([str(path)])
    assert caught.value.hint.startswith("Name it: --map reference=COLUMN (an answer is taken for that of the system")


def test_a_column_that_is_not_there_is_an_error_that_lists_those_there_are(tmp_path: Path) -> None:
    path = write_lines(tmp_path, good(meta={"a": 1}))
    listed = "its columns are: user_input, reference, retrieved_contexts, meta.a"
    with pytest.raises(InputError, match=f"no column gold for reference; {listed}"):
        open_source([str(path)], mapping={"reference": "gold"})
    with pytest.raises(InputError, match=f"no column meta.b for group; {listed}"):
        open_source([str(path)], mapping={"group": "meta.b"})


def test_a_field_that_no_line_has_is_an_error_at_once_and_one_that_some_lack_is_theirs(tmp_path: Path) -> None:
    lacking = {key: value for key, value in GOOD.items() if key != "reference"}
    with pytest.raises(InputError, match="no column for reference"):
        open_source([str(write_lines(tmp_path, lacking, lacking))])
    found = [one.value for one in entries_of(write_lines(tmp_path, lacking, GOOD))]
    assert isinstance(found[0], DatasetError)
    assert found[0].reason == "reference is missing"
    assert isinstance(found[1], Sample)


def test_lines_that_are_all_broken_are_records_and_no_error_of_the_columns(tmp_path: Path) -> None:
    found = [one.value for one in entries_of(write_lines(tmp_path, "{", "[1]"))]
    assert [type(value) for value in found] == [DatasetError, DatasetError]


def test_the_first_thousand_lines_decide_and_an_id_that_comes_later_is_still_one(tmp_path: Path) -> None:
    samples = samples_of(write_lines(tmp_path, *[GOOD] * 1000, good(id="late", question="Q")))
    assert samples[-1].id == "late"
    assert samples[-1].metadata == {"question": "Q"}
    with pytest.raises(InputError, match="2 columns"):
        open_source([str(write_lines(tmp_path, *[GOOD] * 999, good(question="Q")))])


@pytest.mark.parametrize(
    ("truths", "reason"),
    [
        ([], "reference (ground_truths) must hold one text, not 0; write them as one reference"),
        (["a", "b"], "reference (ground_truths) must hold one text, not 2; write them as one reference"),
        ([1], "reference (ground_truths) must be a string, not a number: 1"),
        (None, "reference (ground_truths) must be a string, not null"),
    ],
)
def test_ground_truths_hold_one_text(tmp_path: Path, truths: object, reason: str) -> None:
    (entry,) = entries_of(write_lines(tmp_path, {**EXPORTS["ragas 0.0"], "ground_truths": truths}))
    assert isinstance(entry.value, DatasetError)
    assert entry.value.reason == reason


@pytest.mark.parametrize(
    ("contexts", "reason"),
    [
        ([{"score": 1}], "number 1 has none of text, page_content, content"),
        (["a", {"text": "x", "content": "y"}], "number 2 has text and content"),
        ([{"text": 5}], "number 1 has none of text, page_content, content"),
    ],
)
def test_a_context_that_is_an_object_has_one_text(tmp_path: Path, contexts: list[object], reason: str) -> None:
    (entry,) = entries_of(write_lines(tmp_path, good(retrieved_contexts=contexts)))
    assert isinstance(entry.value, DatasetError)
    assert entry.value.reason == f"retrieved_contexts must hold strings or objects with one text, but {reason}"


def test_contexts_that_are_one_text_say_what_to_do(tmp_path: Path) -> None:
    (entry,) = entries_of(write_lines(tmp_path, good(retrieved_contexts="one")))
    assert isinstance(entry.value, DatasetError)
    assert entry.value.reason == (
        'retrieved_contexts must be a list of strings, not a string: "one"; '
        'one context is written ["..."], several ["...", "..."]'
    )


@pytest.mark.parametrize("word", ["reference", "=x", "reference=", "nothing=x"])
def test_an_option_that_maps_nothing_is_an_input_error_with_the_fields(tmp_path: Path, word: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_mapping([word])
    assert all(field in caught.value.hint for field in FIELDS)
    assert parse_mapping(["reference=a=b", "id=x.y"]) == {"reference": "a=b", "id": "x.y"}
    with pytest.raises(InputError, match="twice"):
        parse_mapping(["id=a", "id=b"])
    with pytest.raises(InputError, match="there is no field"):
        open_source([str(write_lines(tmp_path, GOOD))], mapping={"nothing": "x"})


def test_a_name_that_could_steer_a_terminal_is_escaped(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        open_source([str(write_lines(tmp_path, {"\x1b[2J": 1}))])
    assert "\\u001b[2J" in str(caught.value)
    assert "\x1b" not in str(caught.value)


@given(st.permutations(list(EXPORTS["deepeval"])))
def test_the_order_of_columns_does_not_matter(columns: list[str]) -> None:
    found = decide_mapping({"file": tuple(columns)}, {})
    assert found == {"user_input": "input", "reference": "expected_output", "retrieved_contexts": "retrieval_context"}


OPIK: Row = {"input": "Which?", "output": "The red one.", "expected_output": "Red.", "context": ["It is red."]}


def test_what_only_some_metrics_read_is_metadata_for_the_others(tmp_path: Path) -> None:
    path = str(write_lines(tmp_path, OPIK))
    (plain,) = open_source([path]).entries(lambda _: False)
    assert isinstance(plain.value, Sample)
    assert (plain.value.response, plain.value.metadata) == (None, {"output": "The red one."})
    source = open_source([path], required=(*REQUIRED, "response"))
    (entry,) = source.entries(lambda _: False)
    assert isinstance(entry.value, Sample)
    assert (entry.value.response, entry.value.metadata) == ("The red one.", {})
    assert source.mapping["response"] == "output"


def test_a_column_that_is_the_reference_is_not_the_response_too(tmp_path: Path) -> None:
    # A LangSmith example: its `outputs` are the reference if nothing else is.
    path = str(write_lines(tmp_path, {"inputs": {"question": "a?"}, "outputs": {"answer": "b."}, "contexts": ["c"]}))
    with pytest.raises(InputError, match="no column for response"):
        open_source([path], required=(*REQUIRED, "response"))


def test_a_metric_over_ids_needs_no_texts(tmp_path: Path) -> None:
    ids = ("retrieved_context_ids", "reference_context_ids")
    rows: list[Row] = [
        {"retrieved_ids": ["a", 7], "reference_ids": "[7]"},
        {"retrieved_ids": [None], "reference_ids": []},
    ]
    rows.append({"retrieved_ids": "a", "reference_ids": []})
    first, null, text = open_source([str(write_lines(tmp_path, *rows))], required=ids).entries(lambda _: False)
    assert isinstance(first.value, Sample)
    assert (first.value.user_input, first.value.reference, first.value.retrieved_contexts) == ("", "", ())
    assert (first.value.retrieved_context_ids, first.value.reference_context_ids) == (("a", "7"), ("7",))
    assert isinstance(null.value, DatasetError)
    assert "number 1 is null" in str(null.value)
    assert isinstance(text.value, DatasetError)
    assert "retrieved_context_ids (retrieved_ids) must be a list" in str(text.value)


def test_what_is_wrong_with_a_field_that_is_not_read_concerns_nobody(tmp_path: Path) -> None:
    row: Row = {"user_input": " ", "reference": ["1"], "contexts": "c", "retrieved_ids": [1], "reference_ids": [1]}
    ids = ("retrieved_context_ids", "reference_context_ids")
    (entry,) = open_source([str(write_lines(tmp_path, row))], required=ids).entries(lambda _: False)
    assert isinstance(entry.value, Sample)
    assert (entry.value.user_input, entry.value.reference, entry.value.retrieved_contexts) == ("", "", ())
    (entry,) = open_source([str(write_lines(tmp_path, row))]).entries(lambda _: False)
    assert isinstance(entry.value, DatasetError)


def test_two_questions_do_not_stop_a_metric_that_reads_none(tmp_path: Path) -> None:
    row: Row = {"question": "a?", "query": "b?", "reference_contexts": ["c"], "contexts": ["c"]}
    source = open_source([str(write_lines(tmp_path, row))], required=("retrieved_contexts", "reference_contexts"))
    (entry,) = source.entries(lambda _: False)
    assert isinstance(entry.value, Sample)
    assert (entry.value.user_input, entry.value.reference_contexts) == ("", ("c",))
    assert "user_input" not in source.mapping


NAMES = st.sampled_from(["a", "b", "a.b", "b.a"])
NESTED = st.dictionaries(NAMES, st.integers() | st.dictionaries(NAMES, st.integers()), max_size=3)


@given(NESTED, st.sampled_from(["a", "b", "a.b", "b.a", "a.b.a", "a.a.b"]))
def test_without_takes_away_exactly_what_value_at_finds(fields: dict[str, int | dict[str, int]], path: str) -> None:
    row = json.loads(json.dumps(fields))
    rest = without(row, [path])
    assert row == json.loads(json.dumps(fields))
    assert (rest == row) == (value_at(row, path) is MISSING)
