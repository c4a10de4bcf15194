"""Labels are read from our own format and from one ruling a line; whatever is not clear is refused by its line."""

import gzip
import os
from pathlib import Path

import pytest

from airjudge.datasets import read_labels
from airjudge.errors import InputError
from airjudge.labels import Labels
from airjudge.schema import ScoredSample, Verdict
from tests.inputs import Line, good, write_lines

DATA = Path(os.environ.get("AIRJUDGE_DATA", "../shared/data"))


def statement(name: str = "s1", text: str = "It is here.", **fields: object) -> dict[str, object]:
    return {"id": name, "text": text, **fields}


def ours(*statements: dict[str, object], **fields: object) -> dict[str, object]:
    return good(id="q", statements=list(statements), **fields)


def read(folder: Path, *lines: Line, who: str | None = None, name: str = "labels.jsonl") -> Labels:
    return read_labels(write_lines(folder, *lines, name=name), who=who)


def refusal(folder: Path, *lines: Line, who: str | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        read(folder, *lines, who=who)
    return caught.value


def rulings(labels: Labels, sample: str = "q") -> list[tuple[str | None, str | None, bool | None]]:
    return [(one.id, one.text, one.attributed) for one in labels.by_sample[sample]]


def test_the_label_of_our_own_format_is_read_with_votes_and_partial_support(tmp_path: Path) -> None:
    labels = read(tmp_path, ours(statement(label=0, partial=True, annotators=[0, 1, None]), group="d1"))
    [label] = labels.by_sample["q"]
    assert (label.id, label.text, label.attributed, label.partial) == ("s1", "It is here.", False, True)
    assert label.votes == (False, True, None)
    assert (labels.name, labels.groups, labels.hosted) == ("labels.jsonl", {"q": "d1"}, None)


def test_a_raw_label_marks_partial_support_where_nothing_else_does(tmp_path: Path) -> None:
    labels = read(tmp_path, ours(statement(label=0, label_raw="partially_supported"), statement("s2", label=1)))
    assert [one.partial for one in labels.by_sample["q"]] == [True, False]


def test_a_judge_is_picked_by_name_with_its_score_and_where_it_runs(tmp_path: Path) -> None:
    judges = {"gpt": {"label": 1, "score": 0.7, "hosted": True}, "t5": {"label": 0, "score": -3.5, "hosted": False}}
    line = ours(statement(label=0, judges=judges))
    gpt, t5 = read(tmp_path, line, who="gpt"), read(tmp_path, line, who="t5")
    assert [(one.attributed, one.score, one.probability) for one in gpt.by_sample["q"]] == [(True, 0.7, 0.7)]
    assert [(one.attributed, one.score, one.probability) for one in t5.by_sample["q"]] == [(False, -3.5, None)]
    assert (gpt.name, gpt.hosted, t5.hosted) == ("gpt", True, False)


@pytest.mark.parametrize("who", ["annotator-2", "2"])
def test_one_person_is_picked_by_number(tmp_path: Path, who: str) -> None:
    labels = read(tmp_path, ours(statement(label=1, annotators=[1, 0]), statement("s2", annotators=[1, None])), who=who)
    assert [one.attributed for one in labels.by_sample["q"]] == [False, None]


def test_an_unknown_name_is_refused_with_the_names_that_there_are(tmp_path: Path) -> None:
    error = refusal(tmp_path, ours(statement(label=1, judges={"gpt": {"label": 1}}, annotators=[1, 1])), who="gtp")
    assert 'holds nothing of "gtp"' in str(error)
    assert error.hint == 'It holds rulings of "annotator-1", "annotator-2", "gpt"'


def test_the_statements_of_a_run_are_labels_too(tmp_path: Path) -> None:
    sample = ScoredSample(
        id="q", score=1, status="scored", statements=(Verdict(id="1", text="A.", attributed=True, probability=0.9),)
    )
    [label] = read(tmp_path, sample.model_dump_json()).by_sample["q"]
    assert (label.id, label.attributed, label.probability) == ("1", True, 0.9)


def test_a_row_of_the_statements_table_of_a_run_is_a_label(tmp_path: Path) -> None:
    row = {"place": 0, "sample": "q", "number": 0, "id": "s1", "text": "A.", "attributed": 1, "probability": 0.75}
    [label] = read(tmp_path, row).by_sample["q"]
    assert (label.id, label.text, label.attributed, label.probability) == ("s1", "A.", True, 0.75)


def test_a_sample_without_id_is_called_as_in_a_run(tmp_path: Path) -> None:
    labels = read(tmp_path, good(id="first", statements=[]), "", good(statements=[statement(label=1)]))
    assert list(labels.by_sample) == ["line-3"]


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ({"statement_id": "s1"}, ("s1", None)),
        ({"statement_id": 1}, ("1", None)),
        ({"statement_text": " A. "}, (None, "A.")),
        ({"text": "A.", "statement_id": "s1"}, ("s1", "A.")),
        ({"statement": {"id": "s1", "text": "A."}}, ("s1", "A.")),
        ({"statement": {"text": "A."}}, (None, "A.")),
        ({"statement": 3}, ("3", None)),
    ],
)
def test_a_ruling_tells_its_statement_by_the_obvious_names(
    tmp_path: Path, told: dict[str, object], found: tuple[str | None, str | None]
) -> None:
    labels = read(tmp_path, {"id": "q", **told, "attributed": True})
    assert rulings(labels) == [(*found, True)]


def test_a_statement_that_may_be_id_or_text_is_found_as_either(tmp_path: Path) -> None:
    verdicts = (Verdict(id="s1", text="A.", attributed=True), Verdict(id="s2", text="B.", attributed=True))
    sample = ScoredSample(id="q", score=1, status="scored", statements=verdicts)
    labels = read(
        tmp_path,
        {"id": "q", "statement": "s2", "attributed": 0},
        {"id": "q", "statement": "A.", "attributed": 1},
    )
    assert [one.attributed if one else None for one in labels.on(sample)] == [True, False]


@pytest.mark.parametrize(
    ("written", "read_as"),
    [(True, True), (0, False), (1.0, True), ("Yes", True), ("no", False), ("FALSE", False), ("1", True), (None, None)],
)
def test_a_ruling_is_read_as_people_and_tools_write_it(tmp_path: Path, written: object, read_as: bool | None) -> None:
    assert rulings(read(tmp_path, {"id": "q", "text": "A.", "attributed": written})) == [(None, "A.", read_as)]


@pytest.mark.parametrize("written", ["maybe", "", 2, 0.5, -1, [1], {"label": 1}, "supported"])
def test_what_is_no_ruling_is_refused_by_its_line(tmp_path: Path, written: object) -> None:
    error = refusal(
        tmp_path, {"id": "q", "text": "B.", "attributed": 1}, {"id": "q", "text": "A.", "attributed": written}
    )
    assert "labels.jsonl:2: attributed must be true, false, 1, 0, yes, no or null, not" in str(error)
    assert "statement_id" in error.hint


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"text": "A.", "attributed": 1}, "id is missing"),
        ({"id": "q", "attributed": 1}, "on which statement"),
        ({"id": "q", "text": "A."}, "has no attributed and no label"),
        ({"id": "q", "text": "A.", "attributed": 1, "label": 1}, "holds both attributed and label"),
        ({"id": "q", "text": "A.", "attributed": 1, "probability": "high"}, "probability must be a number"),
        ({"id": "q", "text": "A.", "attributed": 1, "score": "nan"}, "score must be a number"),
        ({"id": "q", "text": 7, "attributed": 1}, "text must be a string"),
        ({"id": ["q"], "text": "A.", "attributed": 1}, "id must be a string or a whole number"),
        (good(statements="none"), "statements must be a list"),
        (good(statements=[statement(label=1), statement(label=0)]), "two statements have the id"),
        (good(statements=[statement(judges=[1])]), "must be an object"),
        (good(statements=[statement(judges={"gpt": 1})]), "must be an object with label"),
        (good(statements=[statement(judges={"gpt": {"score": 1}})]), "has no attributed and no label"),
        (good(statements=[statement(annotators="1,0")]), "must be a list of votes"),
        ('{"id": "q", "text": "\\ud800", "attributed": 1}', "half a surrogate pair"),
        ("not json", "not JSON"),
    ],
)
def test_a_line_that_is_no_label_is_refused_with_the_reason(tmp_path: Path, line: Line, told: str) -> None:
    error = refusal(tmp_path, line)
    assert str(error).startswith(f"{tmp_path / 'labels.jsonl'}:1: ")
    assert told in str(error)


def test_the_first_problems_are_told_and_the_others_counted(tmp_path: Path) -> None:
    error = refusal(tmp_path, *(f'{{"id": "q", "text": "{n}.", "attributed": "?"}}' for n in range(8)))
    assert [line.partition(": ")[0][-2:] for line in str(error).splitlines()[:5]] == [":1", ":2", ":3", ":4", ":5"]
    assert str(error).splitlines()[5] == "and 3 more lines"


@pytest.mark.parametrize(
    "other",
    [
        {"statement_id": "s1"},
        {"text": "A."},
        {"statement": "s1"},
        {"statement": "A."},
        {"statement_id": "s1", "text": "A."},
    ],
)
def test_rulings_that_contradict_each_other_are_refused_with_both_lines(
    tmp_path: Path, other: dict[str, object]
) -> None:
    first = {"id": "q", "statement_id": "s1", "text": "A.", "attributed": 1}
    error = refusal(tmp_path, first, {"id": "q", **other, "attributed": 0})
    assert 'labels.jsonl:2: contradicts line 1 on the same statement of the sample "q"' in str(error)


def test_two_statements_with_one_text_may_be_ruled_on_differently(tmp_path: Path) -> None:
    labels = read(tmp_path, ours(statement("s1", label=1), statement("s2", label=0)))
    assert [one.attributed for one in labels.by_sample["q"]] == [True, False]


def test_a_ruling_that_is_repeated_counts_once(tmp_path: Path) -> None:
    line: Line = {"id": "q", "statement_id": "s1", "attributed": 1}
    assert len(read(tmp_path, line, line).by_sample["q"]) == 1


def test_rulings_of_several_need_a_name(tmp_path: Path) -> None:
    lines: list[Line] = [
        {"id": "q", "text": "A.", "attributed": 1, "annotator": "ann"},
        {"id": "q", "text": "A.", "attributed": 0, "annotator": "bob"},
    ]
    error = refusal(tmp_path, *lines)
    assert ("holds rulings of several" in str(error), error.hint) == (True, 'Say whose are meant: "ann", "bob"')
    assert rulings(read(tmp_path, *lines, who="bob")) == [(None, "A.", False)]
    assert rulings(read(tmp_path, lines[0])) == [(None, "A.", True)]


def test_a_file_without_any_label_is_refused(tmp_path: Path) -> None:
    assert "holds no label" in str(refusal(tmp_path, good(id="r", statements=[statement()])))


def test_a_spreadsheet_of_labels_is_read(tmp_path: Path) -> None:
    labels = read(tmp_path, "id,statement_id,attributed,group", "q,1,yes,d", "q,2,0.0,d", "q,3,,d", name="labels.csv")
    assert [(one.id, one.attributed) for one in labels.by_sample["q"]] == [("1", True), ("2", False), ("3", None)]
    assert labels.groups == {"q": "d"}


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "q", "text": "A.", "attributed": 1}\n'))
    assert rulings(read_labels(path)) == [(None, "A.", True)]


def test_texts_of_the_file_cannot_steer_the_terminal(tmp_path: Path) -> None:
    error = refusal(tmp_path, {"id": "q", "text": "A.", "attributed": "\x1b[2J"})
    assert "\x1b" not in str(error)
    error = refusal(tmp_path, ours(statement("\x1b[2J", judges={"\x1b": {"label": 1}}, annotators=[5])))
    assert "\x1b" not in str(error)
    assert "\x1b" not in refusal(tmp_path, ours(statement(judges={"\x1b": {"label": 1}})), who="x").hint


@pytest.mark.skipif(not DATA.is_dir(), reason="no labelled data here")
@pytest.mark.parametrize(
    ("name", "who", "n", "n_positive"),
    [  # the table in the data's README; GPT-3.5 ruled on eleven of these statements
        ("wice_subclaims", None, 56, 29),
        ("wice_claims", None, 50, 11),
        ("factcheck_bench_claims", None, 137, 75),
        ("factcheck_bench_responses", None, 322, 158),
        ("klue_nli_ko", None, 450, 150),
        ("wice_subclaims", "gpt-4-0613", 56, 32),
        ("wice_subclaims", "gpt-3.5-turbo-0613", 11, 5),
    ],
)
def test_the_labels_of_the_data_are_all_there(name: str, who: str | None, n: int, n_positive: int) -> None:
    labels = [one for found in read_labels(DATA / f"{name}.jsonl", who=who).by_sample.values() for one in found]
    assert (len(labels), sum(one.attributed is True for one in labels)) == (n, n_positive)
