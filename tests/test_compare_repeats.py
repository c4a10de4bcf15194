"""How often a judge contradicts itself: `score --repeat`, and the repeats that `compare` finds by itself."""

import json
from pathlib import Path

import numpy as np
import pytest

from airjudge.compare import compare_runs, repeats_of_run
from airjudge.compare.frame import by_id, framed
from airjudge.compare.repeats import consistency
from airjudge.run import open_run, open_state, verify_run
from tests.commands import Command, options
from tests.comparing import opened
from tests.rows import row
from tests.runs import run, statements_asked, write
from tests.stub import Fault, Stub, StubConfig
from tests.stub import faults as faults_of

NAN = np.nan
ALTERNATING = ("1", "0")


def alternating() -> Fault:
    """Let verdicts on harbours be 1 and 0 in turn."""
    return Fault(faults_of.want(*ALTERNATING), when=faults_of.mentions("Harbour"))


def test_figures_of_repeats_match_hand_computation() -> None:
    # Three runs, statements 111, 110, 000, 1-0, 1--: of the pairs of runs differ 0, 2/3, 0, 1; mean of four 5/12.
    rows = [[1, 1, 0, 1, 1], [1, 1, 0, NAN, NAN], [1, 0, 0, 0, NAN]]
    frame = framed([by_id(opened("a", {"q1": "xxx", "q2": "xx"}).samples)[0]])
    found = consistency(np.array(rows), frame)
    assert (found.k, found.n, found.n_flipped) == (3, 4, 2)
    assert found.flip_rate == pytest.approx(5 / 12)
    # Kappa of runs 1 and 2 (110|110) is 1; of 1 and 3 (1101|1000): p_o 1/2, p_e 3/16 + 3/16, 1/5; of 2 and 3
    # (110|100): p_o 2/3, p_e 2/9 + 2/9, 2/5.
    assert found.kappa == pytest.approx((1 + 1 / 5 + 2 / 5) / 3)


def test_a_judge_that_alternates_is_told_by_its_flip_rate(airjudge: Command, stub: Stub, tmp_path: Path) -> None:
    # vllm#23138, #5898, vllm-ascend#11317: one JSON classification differs under load. Here those of a
    # statement in five runs are 1, 0, 1, 0, 1: 6 of 10 pairs of runs differ.
    stub.faults.append(alternating())
    data, out = write(tmp_path, row("N")), tmp_path / "run"
    ended = airjudge("score", data, *options(stub, out), "--repeat", 5, "--json")
    assert ended.code == 0
    told = json.loads(ended.out)
    assert (told["n"], told["mean"]) == (1, 1)  # the first run is the one in --out
    repeats = told["repeats"]
    assert (repeats["k"], repeats["n"], repeats["n_flipped"], repeats["flip_rate"]) == (5, 1, 1, 0.6)
    means = [open_run(folder).samples[0].score for folder in (out, *(out / f"repeat-{n}" for n in range(2, 6)))]
    assert means == [1, 0, 1, 0, 1]


def test_the_flip_rate_is_printed_below_the_summary(airjudge: Command, stub: Stub, tmp_path: Path) -> None:
    data, out = write(tmp_path, row("N"), row("M")), tmp_path / "run"
    ended = airjudge("score", data, *options(stub, out), "--repeat", 2)
    assert "repeats: two of 2 runs differ on 0.0000 (0.0000 to 0.0000) of 2 statements" in ended.out


def test_repeats_are_whole_runs_that_the_same_command_goes_on_with(
    airjudge: Command, stub: Stub, tmp_path: Path
) -> None:
    data, out = write(tmp_path, row("N"), row("M")), tmp_path / "run"
    stub.faults.append(Fault(faults_of.respond(401), when=faults_of.mentions("Harbour"), after=3))
    ended = airjudge("score", data, *options(stub, out), "--repeat", 3)
    assert ended.code == 3
    assert open_state(out).state == "finished"
    assert open_state(out / "repeat-2").state == "failed"
    stub.faults.clear()
    stub.clear()
    assert airjudge("score", data, *options(stub, out), "--repeat", 3).code == 0
    # One of two was left of the second run, and both of the third.
    assert len(statements_asked(stub)) == 3
    for folder in (out, out / "repeat-2", out / "repeat-3"):
        assert verify_run(folder).findings == ()


def test_a_repeat_folder_that_holds_another_run_is_refused_before_anything_is_asked(
    airjudge: Command, stub: Stub, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    run(stub, write(tmp_path, row("Other"), name="other.jsonl"), out / "repeat-2")
    stub.clear()
    ended = airjudge("score", write(tmp_path, row("N")), *options(stub, out), "--repeat", 2)
    assert ended.code == 2
    assert stub.chats == []
    assert not (out / "journal.sqlite").exists()


def test_compare_finds_repeats_by_itself(airjudge: Command, stub: Stub, tmp_path: Path) -> None:
    data, out = write(tmp_path, row("N")), tmp_path / "run"
    stub.faults.append(alternating())
    airjudge("score", data, *options(stub, out), "--repeat", 2)
    ended = airjudge("compare", out)
    assert ended.code == 0
    assert "run: two of 2 runs differ on 1.0000 of 1 statements" in ended.out
    [judge] = compare_runs([open_run(out)]).judges
    assert judge.repeats == repeats_of_run(out)


def test_a_repeat_by_another_judge_is_left_out_and_told(stub: Stub, tmp_path: Path) -> None:
    data, out = write(tmp_path, row("N")), tmp_path / "run"
    run(stub, data, out)
    run(stub, data, out / "repeat-2")
    with Stub(StubConfig(version="0.33.0")) as other:
        run(other, data, out / "repeat-3")
    found = compare_runs([open_run(out)])
    assert found.judges[0].repeats is not None
    assert found.judges[0].repeats.k == 2
    assert any("1 repeats of run are of another judge" in note for note in found.notes)


def test_a_run_without_repeats_has_none(stub: Stub, tmp_path: Path) -> None:
    run(stub, write(tmp_path, row("N")), tmp_path / "run")
    assert repeats_of_run(tmp_path / "run") is None
