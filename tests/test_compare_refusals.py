"""What cannot be compared is refused with the next step; runs with other statements by their scores alone."""

from pathlib import Path

import pytest

from airjudge.compare import CompareSettings, Comparison, compare_runs
from airjudge.errors import InputError, StatementsDiffer
from airjudge.run import OpenedRun
from airjudge.schema import Verdict
from tests.comparing import labelled, opened


def changed(run: OpenedRun, sample: str, *statements: Verdict) -> OpenedRun:
    """Give the same run with other statements of a sample."""
    samples = [one.model_copy(update={"statements": statements}) if one.id == sample else one for one in run.samples]
    return OpenedRun(run.name, run.folder, run.state, tuple(samples))


def test_runs_with_other_statements_are_refused_and_the_samples_named() -> None:
    a = opened("a", {"q1": "xx", "q2": "x"})
    reworded = Verdict(id="1", text="Another claim.", attributed=True)
    b = changed(opened("b", {"q1": "xx", "q2": "x"}), "q2", reworded)
    with pytest.raises(StatementsDiffer) as caught:
        compare_runs([a, b])
    assert str(caught.value).splitlines() == [
        "the runs do not hold the same statements, of 1 samples:",
        '  "q2": 1 and 1 statements; not all hold "1": "q2 says 1."',
    ]
    assert "--scores-only" in caught.value.hint


def test_a_statement_that_one_run_lacks_is_a_difference() -> None:
    a, b = opened("a", {"q1": "xx"}), opened("b", {"q1": "xx"})
    with pytest.raises(StatementsDiffer):
        compare_runs([a, changed(b, "q1", b.samples[0].statements[0])])


def test_the_first_five_of_many_are_named_and_the_rest_counted() -> None:
    a, b = (opened(name, {f"q{n}": "x" * count for n in range(7)}) for name, count in (("a", 1), ("b", 2)))
    with pytest.raises(StatementsDiffer, match="and 2 more"):
        compare_runs([a, b])


def test_scores_alone_are_compared_where_statements_differ() -> None:
    # Scores: a 1, 1/2; b 2/3, 1/2. Difference of means 3/4 - 7/12 = 1/6.
    a, b = opened("a", {"q1": "xx", "q2": "x."}), opened("b", {"q1": "xx.", "q2": "x."})
    found = compare_runs([a, b], settings=CompareSettings(scores_only=True, fail_under=0.6))
    [pair] = found.pairs
    assert (found.scores_only, found.n_differing, found.differing, found.n_statements) == (True, 1, ("q1",), 0)
    assert (pair.n, pair.kappa, pair.recall.n) == (0, None, 2)
    assert pair.recall.difference == pytest.approx(1 / 6)
    assert found.gate is not None
    assert found.gate.flips
    assert Comparison.model_validate_json(found.model_dump_json()) == found


def test_people_are_compared_by_scores_too() -> None:
    a, b = opened("a", {"q1": "xx", "q2": "x."}), opened("b", {"q1": "xx.", "q2": "x."})
    found = compare_runs([a, b], labelled({"q1": "xx", "q2": ".."}), settings=CompareSettings(scores_only=True))
    [_, with_people, _] = found.pairs
    assert (with_people.a, with_people.b, with_people.recall.n) == ("a", "labels", 2)
    assert with_people.recall.mean_b == 0.5


def test_a_run_alone_names_the_next_step() -> None:
    with pytest.raises(InputError, match="nothing to compare") as caught:
        compare_runs([opened("a", {"q1": "x"})])
    assert "--labels FILE" in caught.value.hint
    assert "--repeat" in caught.value.hint


def test_a_run_that_is_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match="given twice"):
        compare_runs([opened("a", {"q1": "x"}), opened("a", {"q1": "x"})])


def test_runs_of_one_name_are_told_by_their_paths(tmp_path: Path) -> None:
    runs = [opened("run", {"q1": "x"}, folder=tmp_path / name) for name in ("one", "two")]
    named = [judge.name for judge in compare_runs([*runs, opened("labels", {"q1": "x"})]).judges]
    assert named[:2] == [str(tmp_path / "one" / "run"), str(tmp_path / "two" / "run")]
    assert named[2].endswith("runs-of-nobody/labels")  # that name is the people's


def test_labels_of_other_data_are_refused() -> None:
    with pytest.raises(InputError, match="no label of people is on a statement"):
        compare_runs([opened("a", {"q1": "x"})], labelled({"elsewhere": "x"}))


@pytest.mark.parametrize("settings", [CompareSettings(by=("lang",)), CompareSettings(systems="lang")])
def test_a_column_that_no_run_carries_is_refused_with_those_that_are(settings: CompareSettings) -> None:
    a = opened("a", {"q1": "x"}, columns={"q1": {"system": "bm25"}})
    with pytest.raises(InputError, match='no run carries a column "lang"') as caught:
        compare_runs([a, opened("b", {"q1": "x"})], settings=settings)
    assert 'They carry: "system".' in caught.value.hint


def test_notes_tell_what_the_figures_do_not() -> None:
    a = opened("a", {"q1": "x", "q2": "x"}, data_sha256="1" * 64, state="interrupted")
    found = compare_runs([a, opened("b", {"q1": "x", "q2": "."})], labelled({"q1": "x", "q2": " ?", "q3": "x"}))
    notes = "\n".join(found.notes)
    assert "a and b were made from different data" in notes
    assert "a is not finished (interrupted)" in notes
    assert "2 of 3 labels are on no statement" in notes
    assert "--labels-random" in notes


def test_a_record_whose_id_an_earlier_one_has_is_left_out_and_counted() -> None:
    a = opened("a", {"q1": "x"})
    twice = OpenedRun("a", a.folder, a.state, (*a.samples, a.samples[0].model_copy(update={"status": "failed"})))
    found = compare_runs([twice, opened("b", {"q1": "x"})])
    assert found.pairs[0].n == 1
    assert any("1 records of a have the id of an earlier one" in note for note in found.notes)
