"""The benchmark of claims: what counts as covered, repeated and leaning, and the whole of it against the stub."""

import json
from pathlib import Path

import pytest

from airjudge.judge import Judge
from benchmarks.claims import run
from tests.rows import row
from tests.stub import Stub


def reference(
    *made: str, human: tuple[str, ...] = ("Kemp teaches in London", "Kemp was born in Leeds")
) -> run.Reference:
    return run.Reference(group="g", human=human, made=made)


def test_a_split_is_held_against_that_of_people() -> None:
    # "Kemp teaches in London" is a partner word by word; of the four words of the second human claim's partner three
    # are shared with its five: F1 = 6/9, which is .5 and not .7. The third made statement has no partner.
    found = run.split_of([reference("Kemp teaches in London.", "Kemp, born in 1970.", "He sails.")])
    assert (found.n, found.per_human) == (3, 1.5)
    assert (found.covered, found.covered_strictly) == (1.0, 0.5)
    assert found.matched == pytest.approx(2 / 3)
    assert found.leans == pytest.approx(1 / 3)
    assert found.repeats == 0


def test_a_statement_repeats_if_its_words_are_in_another() -> None:
    assert run.n_repeated(["The ferry sails", "The ferry sails at six", "It rains"]) == 1
    assert run.n_repeated(["Same words", "same words!", "Same words."]) == 2
    assert run.n_repeated(["a b c"]) == 0


@pytest.mark.parametrize("text", ["He moved.", "  their house", "This was in 1895.", "The latter won."])
def test_what_opens_with_a_pronoun_leans(text: str) -> None:
    assert run.leans(text)


@pytest.mark.parametrize("text", ["Hertha moved.", "Thistles grow.", "The ferry sails.", "Italy won.", "Iterations"])
def test_what_opens_with_its_own_subject_does_not(text: str) -> None:
    assert not run.leans(text)


def test_the_whole_benchmark_runs_and_goes_on_where_it_was(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(name, 2) for name in ("A", "B")]
    for one in rows:
        one["statements"] = [{**told, "label": n} for n, told in zip((1, 0), one["statements"], strict=True)]  # type: ignore[call-overload]
    (tmp_path / "wice_subclaims.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    monkeypatch.setattr(run, "DATA", tmp_path)
    for name, value in (("BASE_URL", stub.base_url), ("MODEL", stub.model), ("API_KEY", stub.api_key or "")):
        monkeypatch.setenv(f"AIRJUDGE_{name}", value)
    places = ("--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "claims.json"))
    monkeypatch.setattr("sys.argv", ["claims", "--set", "wice_subclaims", *places])
    run.main()
    measured = run.Measured.model_validate_json((tmp_path / "claims.json").read_bytes())
    assert [one.maker for one in measured.rows] == ["given", "sentences", "claims"]
    given = measured.rows[0]
    assert (given.split.covered, given.split.per_human, given.agreed.n_verdicts) == (1.0, 1.0, 4)
    assert given.agreed.human_mean == 0.5
    printed, asked = capsys.readouterr().out, len(stub.chats)
    assert printed.count("| wice_subclaims |") == 3
    monkeypatch.setattr(Judge, "find", None)  # nothing is left to ask
    run.main()
    assert (capsys.readouterr().out, len(stub.chats)) == (printed, asked)
