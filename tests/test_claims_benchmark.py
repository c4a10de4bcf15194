"""The benchmark of claims: what counts as covered, repeated and leaning, and the whole of it against the stub."""

import json
from pathlib import Path

import pytest

from airjudge.judge import Judge
from airjudge.labels import Label, Labels
from airjudge.schema import ScoredSample, Verdict
from benchmarks.claims import figures, run
from tests.rows import row
from tests.stub import Stub

SENTENCES = ("Kemp teaches in London.", "He was born in Leeds.")


def reference(
    *made: str, human: tuple[str, ...] = ("Kemp teaches in London", "Kemp was born in Leeds")
) -> figures.Reference:
    return figures.Reference(group="g", sentences=SENTENCES, human=human, made=made)


def test_a_split_is_held_against_that_of_people() -> None:
    # "Kemp teaches in London" is a partner word by word; of the four words of the second human claim's partner three
    # are shared with its five: F1 = 6/9, which is .5 and not .7. The third made statement has no partner.
    found = figures.split_of([reference("Kemp teaches in London.", "Kemp, born in 1970.", "He sails.")])
    assert (found.n, found.per_human) == (3, 1.5)
    assert (found.covered, found.covered_strictly) == (1.0, 0.5)
    assert found.matched == pytest.approx(2 / 3)
    assert found.leans == pytest.approx(1 / 3)
    assert found.repeats == 0
    # Of the two sentences the first is copied; the second leans, and there is one before it.
    assert (found.unsplit, found.n_resolvable) == (0.5, 1)


def test_a_statement_repeats_if_its_words_are_in_another() -> None:
    assert figures.n_repeated(["The ferry sails", "The ferry sails at six", "It rains"]) == 1
    assert figures.n_repeated(["Same words", "same words!", "Same words."]) == 2
    assert figures.n_repeated(["a b c"]) == 0


@pytest.mark.parametrize("text", ["He moved.", "  their house", "This was in 1895.", "The latter won."])
def test_what_opens_with_a_pronoun_leans(text: str) -> None:
    assert figures.leans(text)


@pytest.mark.parametrize("text", ["Hertha moved.", "Thistles grow.", "The ferry sails.", "Italy won.", "Iterations"])
def test_what_opens_with_its_own_subject_does_not(text: str) -> None:
    assert not figures.leans(text)


def ruled(name: str, *verdicts: tuple[str, bool], score: float | None = None) -> ScoredSample:
    statements = tuple(Verdict(id=str(n), text=text, attributed=said) for n, (text, said) in enumerate(verdicts, 1))
    return ScoredSample(id=name, score=score, status="undefined" if score is None else "scored", statements=statements)


def people(name: str, *labels: tuple[str, bool | None]) -> Labels:
    told = (Label(sample=name, text=text, attributed=said) for text, said in labels)
    return Labels(name="people", by_sample={name: tuple(told)})


def test_a_verdict_stands_beside_that_on_the_human_claim_that_it_matches() -> None:
    labels = people("A", ("Kemp teaches in London", True), ("Kemp was born in Leeds", False), ("Kemp sails", None))
    given = ruled("A", ("Kemp teaches in London", False), ("Kemp was born in Leeds", False), ("Kemp sails", True))
    made = ruled(
        "A",
        ("It rains.", True),
        ("Kemp, born in Leeds.", True),
        ("Kemp teaches in London.", True),
        ("Kemp sails.", True),
    )
    # Label, verdict on the partner, verdict on the claim itself; "Kemp sails" has no label, "It rains" no partner.
    assert figures.paired_verdicts([made], [given], labels) == [(True, True, False), (False, True, False)]
    assert figures.paired_verdicts([made], [ruled("B", ("Kemp teaches in London", True))], labels) == []


def test_recall_less_that_of_people_is_of_samples_that_have_both() -> None:
    labels = people("A", ("a", True), ("b", False))
    assert figures.differences_of([ruled("A", score=0.25), ruled("B", score=1.0)], labels) == {"A": -0.25}
    assert figures.differences_of([ruled("A")], labels) == {}
    assert figures.differences_of([ruled("A", score=1.0)], people("A", ("a", True), ("b", None))) == {}


def test_an_interval_draws_groups_whole() -> None:
    # One group has one mean however it is drawn; of two alike in sum and size every draw has the same mean too.
    assert figures.mean_ci95(["g", "g"], [0.0, 1.0]) == (0.5, 0.5)
    assert figures.mean_ci95(["g", "h", "g", "h"], [0.0, 1.0, 1.0, 0.0]) == (0.5, 0.5)
    assert figures.mean_ci95(["g", "h"], [0.0, 1.0]) == (0.0, 1.0)


def test_a_sentence_is_unsplit_if_a_statement_copies_it() -> None:
    whole = reference("Kemp teaches, in London!", "Kemp was born in Leeds.")
    assert figures.n_unsplit(whole) == 1
    assert figures.n_unsplit(reference("Kemp teaches.")) == 0


def test_a_sentence_that_opens_a_reference_has_nothing_before_it_that_tells_what_its_pronoun_is() -> None:
    lone = figures.Reference(group="g", sentences=("He sails.", "It rains.", "Kemp left."), human=("a",), made=("b",))
    assert figures.split_of([lone]).n_resolvable == 1


def test_without_a_sample_that_both_scored_there_is_no_agreement() -> None:
    with pytest.raises(ValueError, match="no sample has a recall by claims"):
        figures.less_of({"A": 0.5}, {"B": 0.5}, "claims")


def test_runs_of_a_named_judge_lie_in_a_folder_of_their_own() -> None:
    def folder(*options: str) -> Path:
        asked = run.parser().parse_args(["--runs", "kept", *options])
        return run.folder_of(asked, "factcheck_bench_responses", "claims")

    assert folder() == Path("kept/factcheck_bench_responses-12-claims")
    assert folder("--first", "2", "--judge", "big") == Path("kept/big/factcheck_bench_responses-2-claims")
    assert folder("--base-url", "http://x", "--model", "a/b") == Path("kept/a_b/factcheck_bench_responses-12-claims")


def test_the_whole_benchmark_runs_and_goes_on_where_it_was(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(name, 2) for name in ("A", "B")]
    for one in rows:
        one["statements"] = [{**told, "label": n} for n, told in zip((1, 0), one["statements"], strict=True)]  # type: ignore[call-overload]
    (tmp_path / "wice_subclaims.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    monkeypatch.setattr(run, "DATA", tmp_path)
    monkeypatch.setattr(Judge, "find", None)  # the stub is to be asked, and no judge to be started
    monkeypatch.setenv("AIRJUDGE_API_KEY", stub.api_key or "")
    places = ("--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "claims.json"))
    server = ("--base-url", stub.base_url, "--model", stub.model)
    monkeypatch.setattr("sys.argv", ["claims", "--set", "wice_subclaims", *places, *server])
    run.main()
    measured = run.Measured.model_validate_json((tmp_path / "claims.json").read_bytes())
    assert [one.maker for one in measured.rows] == ["given", "sentences", "claims"]
    given = measured.rows[0]
    assert (given.split.covered, given.split.per_human, given.agreed.n_verdicts) == (1.0, 1.0, 4)
    # The judge finds all supported, people half: recall 1 beside 1/2, by whatever statements.
    assert (given.agreed.human_mean, given.agreed.bias, given.agreed.mean_absolute_error) == (0.5, 0.5, 0.5)
    assert [one.agreed.less_sentences for one in measured.rows] == [0, 0, 0]
    assert (given.agreed.same, given.agreed.on_human) == (1.0, 0.5)
    assert [one.errors for one in measured.rows] == [{}, {}, {}]
    assert stub.chats
    printed, asked = capsys.readouterr().out, len(stub.chats)
    assert printed.count("| wice_subclaims |") == 9
    monkeypatch.setattr(Judge, "connect", None)  # nothing is left to ask
    run.main()
    assert (capsys.readouterr().out, len(stub.chats)) == (printed, asked)
