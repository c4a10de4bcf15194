"""Recorded verdicts become a run like any other; what is missing, foreign or unfit is counted, never guessed."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, cohen_kappa_score

from airjudge.datasets import read_labels
from airjudge.errors import InputError
from airjudge.labels import Label, Labels
from airjudge.recorded import ImportSettings, Recorded, import_verdicts
from airjudge.run import RunHeader, export_table, open_run, remake_exports, verify_run
from airjudge.run.folder import EXPORTS, SAMPLES
from airjudge.schema import ScoredSample
from tests.commands import Command
from tests.inputs import Line, write_lines
from tests.rows import row

DATA = Path(os.environ.get("AIRJUDGE_DATA", "../shared/data"))


def judged(name: str, *rulings: object, **scores: float) -> dict[str, object]:
    """A sample in our own format; a statement a ruling, None where the judge `j` ruled on nothing."""
    found = row(name, len(rulings))
    for statement, ruling in zip(found["statements"], rulings, strict=True):  # type: ignore[call-overload]
        statement["label"] = 1
        if ruling is not None:
            statement["judges"] = {"j": {"label": ruling, "hosted": True}}
            if statement["id"] in scores:
                statement["judges"]["j"]["score"] = scores[statement["id"]]
    return found


def imported(
    folder: Path, *lines: Line, data: list[str] | None = None, **settings: object
) -> tuple[RunHeader, Recorded, tuple[ScoredSample, ...]]:
    path = write_lines(folder, *lines, name="verdicts.jsonl")
    out = folder / "run"
    header, found = import_verdicts(path, out, data=data, settings=ImportSettings.model_validate(settings))
    assert verify_run(out).findings == ()
    return header, found, open_run(out).samples


def ruled(sample: ScoredSample) -> list[bool | None]:
    return [one.attributed for one in sample.statements]


def test_the_verdicts_of_a_judge_in_our_own_format_are_a_run(tmp_path: Path) -> None:
    header, found, samples = imported(tmp_path, judged("A", 1, 0), judged("B", 1), who="j", keep=("reference",))
    assert [(one.id, one.score, ruled(one)) for one in samples] == [("A", 0.5, [True, False]), ("B", 1.0, [True])]
    assert samples[1].metadata == {"reference": row("B")["reference"]}
    assert (found.n_verdicts, found.n_taken, found.n_foreign, found.hosted) == (3, 3, 0, True)
    assert header.inputs == (str(tmp_path / "verdicts.jsonl"),)  # where a report finds the texts
    signature = header.signature
    assert (signature.judge, signature.method, signature.weights, signature.server) == (
        "j", "recorded", "unverified", "recorded",
    )  # fmt: skip
    assert (header.usage.requests, header.settings["recorded"]["hosted"]) == (0, True)  # type: ignore[index, call-overload]


def test_a_sample_without_all_verdicts_failed_and_keeps_those_that_there_are(tmp_path: Path) -> None:
    header, found, samples = imported(tmp_path, judged("A", 1, None), judged("B", None), judged("C", 0), who="j")
    assert [(one.status, one.score, ruled(one)) for one in samples] == [
        ("failed", None, [True, None]), ("failed", None, [None]), ("scored", 0.0, [False]),
    ]  # fmt: skip
    assert samples[0].error is not None
    assert (samples[0].error.kind, samples[0].error.message) == ("not_recorded", "j ruled on 1 of 2 statements")
    assert header.summary.failures == {"not_recorded": 2}
    # A is worth 1/2 to 1, B 0 to 1, C 0: the mean of three is between 1/6 and 2/3.
    assert header.summary.bounds == pytest.approx((1 / 6, 2 / 3))
    assert found.n_samples_without == 1


def test_undecided_is_no_verdict(tmp_path: Path) -> None:
    _, found, [sample] = imported(tmp_path, {"id": "q", "text": "A.", "attributed": None})
    assert (sample.status, found.n_undecided, found.n_taken) == ("failed", 1, 0)


def test_rulings_alone_are_a_run_of_the_statements_that_were_ruled_on(tmp_path: Path) -> None:
    lines: list[Line] = [
        {"id": "q", "text": "A.", "attributed": 1, "probability": 0.8, "reason": "Context 1.", "group": "d"},
        {"id": "q", "text": "B.", "attributed": 0, "probability": 0.5 - 1e-9},
        {"id": "r", "statement_id": "x", "text": "C.", "attributed": "yes"},
    ]
    header, _, [q, r] = imported(tmp_path, *lines)
    assert [(one.id, one.text, one.attributed, one.probability) for one in q.statements] == [
        ("1", "A.", True, 0.8), ("2", "B.", False, 0.5 - 1e-9),
    ]  # fmt: skip
    assert (q.statements[0].reason, q.group, r.statements[0].id, r.score) == ("Context 1.", "d", "x", 1.0)
    assert (header.data, header.signature.judge) == ("verdicts.jsonl", "verdicts")


def test_rulings_on_a_data_set_are_found_by_id_or_text_and_the_foreign_ones_told(tmp_path: Path) -> None:
    data = write_lines(tmp_path, row("A", 2), "not json", row("A"), row("B"))
    _, found, samples = imported(
        tmp_path,
        {"id": "A", "statement": "2", "attributed": 0},
        {"id": "A", "statement": "Harbour A opened pier one.", "attributed": 1},
        {"id": "A", "statement": "Harbour A opened pier nine.", "attributed": 1},
        {"id": "Z", "statement_id": 1, "attributed": 1},
        data=[str(data)],
        name="people",
    )
    assert [(one.id, one.score, one.error and one.error.kind) for one in samples] == [
        ("A", 0.5, None), ("line-2", None, "bad_line"), ("line-3", None, "duplicate_id"), ("B", None, "not_recorded"),
    ]  # fmt: skip
    assert (found.n_taken, found.n_foreign) == (2, 2)
    assert found.foreign_example == 'the statement "Harbour A opened pier nine." of the sample "A"'


def test_verdicts_of_other_data_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    data = write_lines(tmp_path, row("A"))
    with pytest.raises(InputError, match="none of the 1 verdicts is on a statement") as caught:
        imported(tmp_path, {"id": "Z", "statement_id": 1, "attributed": 1}, data=[str(data)])
    assert "--data" in caught.value.hint
    assert not (tmp_path / "run").exists()


def test_a_statement_known_by_id_alone_needs_the_data(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='does not tell the text of the statement "s1"') as caught:
        imported(tmp_path, {"id": "q", "statement_id": "s1", "attributed": 1})
    assert "--data" in caught.value.hint


def test_columns_of_rulings_alone_cannot_be_carried(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no columns of a data set"):
        imported(tmp_path, {"id": "q", "text": "A.", "attributed": 1}, by=("lang",))


@pytest.mark.parametrize(
    ("score", "n_unfit"),
    [(0.9, 0), (0.5, 0), (0.4999, 1), (1.5, 1), (-0.1, 1)],
)
def test_scores_are_probabilities_only_if_all_of_them_can_be(tmp_path: Path, score: float, n_unfit: int) -> None:
    lines = [judged("A", 1, **{"1": score}), judged("B", 0, **{"1": 0.2})]
    _, found, [a, b] = imported(tmp_path, *lines, who="j")
    assert (found.n_scores, found.n_scores_unfit, found.takes_scores) == (2, n_unfit, not n_unfit)
    assert (a.statements[0].probability, b.statements[0].probability) == ((score, 0.2) if not n_unfit else (None, None))


def test_a_run_in_the_folder_is_replaced_only_if_that_is_asked_for(tmp_path: Path) -> None:
    imported(tmp_path, judged("A", 1), who="j")
    with pytest.raises(InputError, match="holds a run already"):
        imported(tmp_path, judged("A", 0), who="j")
    _, _, [sample] = imported(tmp_path, judged("A", 0), who="j", overwrite=True)
    assert sample.score == 0


def test_an_import_that_was_killed_is_begun_anew_by_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_lines(tmp_path, judged("A", 1), judged("B", 1))

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("airjudge.run.records.export_all", stop)
        with pytest.raises(KeyboardInterrupt):
            import_verdicts(path, tmp_path / "run", settings=ImportSettings(who="j"))
    assert open_run(tmp_path / "run").state.state == "interrupted"
    import_verdicts(path, tmp_path / "run", settings=ImportSettings(who="j"))
    assert verify_run(tmp_path / "run").findings == ()


def test_the_same_import_gives_the_same_bytes(tmp_path: Path) -> None:
    path = write_lines(tmp_path, judged("A", 1, None), judged("B", 0))
    for name in ("one", "two"):
        import_verdicts(path, tmp_path / name, settings=ImportSettings(who="j"))
    assert (tmp_path / "one" / SAMPLES).read_bytes() == (tmp_path / "two" / SAMPLES).read_bytes()


def test_the_exports_can_be_made_again(tmp_path: Path) -> None:
    imported(tmp_path, judged("A", 1, 0), who="j")
    before = (tmp_path / "run" / SAMPLES).read_bytes()
    for name in EXPORTS:
        (tmp_path / "run" / name).unlink()
    assert remake_exports(tmp_path / "run") == 1
    assert (tmp_path / "run" / SAMPLES).read_bytes() == before
    path, _ = export_table(tmp_path / "run", "jsonl", "statements")
    # What a run exports can be labels again.
    assert [one.attributed for one in read_labels(path).by_sample["A"]] == [True, False]


def test_hostile_names_and_texts_pass_through_as_text(tmp_path: Path, airjudge: Command) -> None:
    name, text = "../../etc/\x1b[2J\u202e" + "x" * 5000, "<script>alert(1)</script>\x00\r\n\u2028"
    path = write_lines(tmp_path, {"id": name, "text": text, "attributed": 1}, name="\u202ev.jsonl")
    ended = airjudge("import-verdicts", path, "--out", tmp_path / "run", "--name", "\x1b[31mjudge")
    assert (ended.code, "\x1b" in ended.out + ended.err) == (0, False)
    assert not re.search(r"^(time|tokens) ", ended.out, re.MULTILINE)  # nobody measured them
    [sample] = open_run(tmp_path / "run").samples
    assert (sample.id, sample.statements[0].text) == (name, text.strip())
    assert verify_run(tmp_path / "run").findings == ()


def test_the_command_tells_what_a_person_should_know(tmp_path: Path, airjudge: Command) -> None:
    path = write_lines(tmp_path, judged("A", 1, **{"1": 0.1}), judged("B", None))
    ended = airjudge("import-verdicts", path, "--from", "j", "--out", tmp_path / "run", "--json")
    assert ended.code == 0
    assert ended.err.splitlines() == [
        "note: 1 samples have no verdict of j",
        "note: no score is taken as a probability: 1 of 1 scores are outside [0, 1] or on the other side of .5",
    ]
    told = json.loads(ended.out)
    assert (told["n"], told["mean"], told["recorded"]["n_scores_unfit"]) == (2, 1.0, 1)
    again = airjudge("import-verdicts", path, "--from", "j", "--out", tmp_path / "run")
    assert (again.code, "--overwrite" in again.err) == (2, True)


def pairs(samples: tuple[ScoredSample, ...], labels: Labels) -> tuple[np.ndarray, np.ndarray]:
    """Labels and verdicts of the statements that have both."""
    found = [
        (label.attributed, verdict.attributed)
        for sample in samples
        for label, verdict in zip(labels.on(sample), sample.statements, strict=True)
        if isinstance(label, Label) and verdict.attributed is not None
    ]
    table = np.array(found, dtype=bool)
    return table[:, 0], table[:, 1]


@pytest.mark.skipif(not DATA.is_dir(), reason="no labelled data here")
@pytest.mark.parametrize(
    ("name", "judge", "n"),
    [
        ("wice_subclaims", "gpt-4-0613", 56),
        ("wice_subclaims", "gpt-3.5-turbo-0613", 11),
        ("wice_subclaims", "t5-3b-anli-wice", 56),
        ("wice_claims", "gpt-4-0613", 50),
        ("wice_claims", "gpt-3.5-turbo-0613", 50),
    ],
)
def test_a_recorded_judge_agrees_with_people_in_its_run_as_in_the_file(
    tmp_path: Path, name: str, judge: str, n: int
) -> None:
    path = DATA / f"{name}.jsonl"
    import_verdicts(path, tmp_path / "run", settings=ImportSettings(who=judge))
    assert verify_run(tmp_path / "run").findings == ()
    labels, verdicts = pairs(open_run(tmp_path / "run").samples, read_labels(path))
    # The oracle reads the file by itself, without any code of ours.
    lines = path.read_text(encoding="utf-8").splitlines()
    told = [one for line in lines for one in json.loads(line)["statements"] if judge in one["judges"]]
    theirs, rulings = [one["label"] for one in told], [one["judges"][judge]["label"] for one in told]
    assert len(labels) == len(told) == n
    for figure in (accuracy_score, balanced_accuracy_score, cohen_kappa_score):
        assert figure(labels, verdicts) == pytest.approx(figure(theirs, rulings))
