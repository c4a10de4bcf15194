"""A start after a stop: results as if nothing had happened, and nothing completed asked twice."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airjudge import JudgeSettings
from airjudge.errors import InputError, JudgeUnauthorized, RunDiffers, RunLocked
from airjudge.journal import JOURNAL, Reader
from airjudge.run import read_scored, verify_run
from airjudge.schema import RunCounts
from tests.killing import KilledRun, committed
from tests.rows import row
from tests.runs import STOP, exports, numbered, run, statements_asked, stopped_at, write
from tests.stub import Fault, Stub, StubConfig
from tests.stub import faults as faults_of


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


# A start after a stop


# ragas#726, deepeval#2443, lm-eval#2533, evalscope#1416
def test_kill_9_after_about_half_of_ten_rows_and_the_next_start_asks_exactly_the_missing_ones(
    stub: Stub, tmp_path: Path
) -> None:
    stub.config.latency_s = 0.06  # more than a group waits: each sample has a commit of its own
    data = write(tmp_path, *numbered(10))
    killed = KilledRun(stub, data, tmp_path / "out", "--concurrency", "1")
    assert killed.once(environment={"AIRJUDGE_FAILPOINT": "after_commit:8"}) == -signal.SIGKILL
    done = committed(tmp_path / "out")
    assert 0 < len(done) < 10
    stub.clear()
    assert killed.once() == 0
    assert statements_asked(stub) == sorted({f"Harbour N{n} opened pier one." for n in range(10)} - done)
    summary = json.loads((tmp_path / "out" / "run.json").read_text())["summary"]
    assert (summary["n"], summary["mean"]) == (10, 1)


def test_a_run_in_two_starts_leaves_the_same_files_as_one_in_one(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *(row(f"N{n}", 1 + n % 3) for n in range(9)), "{", row("N3"))
    run(stub, data, tmp_path / "whole")
    stopped_at(stub, "Harbour N5 opened pier three", data, tmp_path / "out")
    header = run(stub, data, tmp_path / "out")
    assert exports(tmp_path / "out") == exports(tmp_path / "whole")
    assert [one.ended for one in header.starts] == ["failed", "finished"]
    assert header.usage.completion_tokens == 18  # 3 * (1 + 2 + 3) verdicts, each once


def test_of_a_sample_that_is_partly_done_only_the_missing_statements_are_asked(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, row("Middle", 5))
    stopped_at(stub, "Statement: Harbour Middle opened pier four.", data, tmp_path / "out")
    assert len(committed(tmp_path / "out")) == 3
    run(stub, data, tmp_path / "out")
    assert statements_asked(stub) == ["Harbour Middle opened pier five.", "Harbour Middle opened pier four."]


def test_the_single_call_is_not_made_again_when_its_verdicts_are_committed(stub: Stub, tmp_path: Path) -> None:
    item = {"statement": "Harbour Middle opened pier two.", "reason": "said so", "attributed": 1}
    some = faults_of.say(json.dumps({"classifications": [item]}))
    about = faults_of.all_of(faults_of.mentions("Harbour Middle"), faults_of.schema_named("classifications"))
    stub.faults.append(Fault(some, when=about))
    data, ragas = write(tmp_path, row("Middle", 3)), JudgeSettings(method="ragas", concurrency=1)
    stopped_at(stub, "Statement: Harbour Middle opened pier three.", data, tmp_path / "out", asked=ragas)
    assert len(committed(tmp_path / "out")) == 2
    run(stub, data, tmp_path / "out", asked=ragas)
    assert not [one for one in stub.chats if about(one)]
    assert statements_asked(stub) == ["Harbour Middle opened pier three."]
    [sample] = read_scored(tmp_path / "out")
    assert [one.reason for one in sample.statements] == [None, "said so", None]


def test_a_reason_is_asked_again_until_the_samples_row_is_there_and_never_after(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, row("Middle", 2), row("South"))
    of_a_reason = faults_of.schema_named("reason")
    about_two = faults_of.mentions("Statement: Harbour Middle opened pier two.")
    stub.faults.append(Fault(STOP, when=faults_of.all_of(of_a_reason, about_two)))
    with pytest.raises(JudgeUnauthorized):
        run(stub, data, tmp_path / "out", reasons="all")
    stub.faults.clear()
    stub.clear()
    run(stub, data, tmp_path / "out", reasons="all")
    about = [one.text for one in stub.chats if of_a_reason(one) and "Harbour Middle" in one.text]
    assert len(about) == 1
    assert "Statement: Harbour Middle opened pier two." in about[0]
    assert statements_asked(stub) == ["Harbour South opened pier one."]
    assert all(verdict.reason for one in read_scored(tmp_path / "out") for verdict in one.statements)


# deepeval#734
def test_a_finished_run_started_again_asks_nothing_and_changes_no_byte(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *numbered(4))
    first = run(stub, data, tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.name != "run.lock"}
    stub.clear()
    assert run(stub, data, tmp_path / "out") == first
    assert statements_asked(stub) == []
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.name != "run.lock"} == before


def test_an_export_that_went_missing_is_made_again_by_the_next_start(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *numbered(4))
    run(stub, data, tmp_path / "out")
    before = exports(tmp_path / "out")
    (tmp_path / "out" / "samples.parquet").unlink()
    (tmp_path / "out" / "samples.jsonl").write_text("half")
    stub.clear()
    run(stub, data, tmp_path / "out")
    assert statements_asked(stub) == []
    assert exports(tmp_path / "out") == before


def test_a_second_sample_with_an_id_stays_the_duplicate_whenever_the_run_was_stopped(
    stub: Stub, tmp_path: Path
) -> None:
    rows = [row("A"), row("B"), row("A", 2), row("C"), row("A", 3)]
    data = write(tmp_path, *rows)
    stopped_at(stub, "Harbour C", data, tmp_path / "out")
    run(stub, data, tmp_path / "out")
    found = [(one.id, one.error.kind if one.error else None) for one in read_scored(tmp_path / "out")]
    assert found == [("A", None), ("B", None), ("line-3", "duplicate_id"), ("C", None), ("line-5", "duplicate_id")]


def test_a_sample_is_counted_only_when_the_journal_has_it(stub: Stub, tmp_path: Path) -> None:
    told: list[RunCounts] = []

    def on_counts(counts: RunCounts) -> None:
        with Reader(tmp_path / "out") as journal:
            assert journal.totals().n_samples >= counts.n_samples
        told.append(counts)

    data = write(tmp_path, *numbered(5), "{")
    run(stub, data, tmp_path / "out", asked=JudgeSettings(concurrency=4), on_counts=on_counts)
    assert list(dict.fromkeys(one.n_samples for one in told)) == [0, 1, 2, 3, 4, 5, 6]
    assert told[-1].failures == {"bad_line": 1}
    assert told[-1].n_statements == 5


def test_what_earlier_starts_finished_is_counted_as_restored(stub: Stub, tmp_path: Path) -> None:
    data, told = write(tmp_path, *numbered(5)), list[RunCounts]()
    stopped_at(stub, "Harbour N3", data, tmp_path / "out")
    run(stub, data, tmp_path / "out", on_counts=told.append)
    assert {one.n_restored for one in told} == {3}
    assert (told[0].n_samples, told[0].n_statements) == (3, 3)
    assert (told[-1].n_samples, told[-1].n_statements) == (5, 5)


def test_statements_are_counted_as_their_verdicts_arrive_and_each_once(stub: Stub, tmp_path: Path) -> None:
    told: list[RunCounts] = []
    run(stub, write(tmp_path, row("A", 3)), tmp_path / "out", on_counts=told.append)
    counted = dict.fromkeys((one.n_samples, one.n_statements) for one in told)
    assert list(counted) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 3)]


# What a start is refused for


# ragas#2983
def test_another_judge_on_the_same_folder_is_refused_field_by_field(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *numbered(2))
    run(stub, data, tmp_path / "out")
    before = exports(tmp_path / "out")
    with Stub(StubConfig(model="other", version="0.33.0")) as another:
        with pytest.raises(RunDiffers) as refused:
            run(another, data, tmp_path / "out")
        assert statements_asked(another) == []
    assert "signature.judge: judge there, other now" in str(refused.value)
    assert "signature.server: vllm-0.32.0 there, vllm-0.33.0 now" in str(refused.value)
    assert "--fork" not in refused.value.hint
    assert exports(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"limit": 1}, "limit: none there, 1 now"),
        ({"keep": ("reference",)}, "keep: none there, ['reference'] now"),
        ({"zero_if_empty": False}, "zero_if_empty: True there, False now"),
        ({"reasons": "all"}, "reasons: none there, all now"),
        ({"evidence": True}, "evidence: False there, True now"),
        ({"asked": JudgeSettings(method="ragas")}, "signature.method: pointwise there, ragas now"),
    ],
)
def test_another_setting_that_changes_records_is_refused(
    stub: Stub, tmp_path: Path, settings: dict[str, object], told: str
) -> None:
    data = write(tmp_path, *numbered(2))
    run(stub, data, tmp_path / "out")
    with pytest.raises(RunDiffers) as refused:
        run(stub, data, tmp_path / "out", **settings)  # type: ignore[arg-type]
    assert told in str(refused.value)


def test_settings_that_change_no_verdict_are_free(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *numbered(4))
    stopped_at(stub, "Harbour N2", data, tmp_path / "out")
    run(stub, data, tmp_path / "out", asked=JudgeSettings(concurrency=3, timeout_s=7), bad_lines="stop")
    assert statements_asked(stub) == ["Harbour N2 opened pier one.", "Harbour N3 opened pier one."]


def test_an_input_that_changed_is_refused_by_its_name_before_the_judge_is_asked(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *numbered(3))
    stopped_at(stub, "Harbour N1", data, tmp_path / "out")
    write(tmp_path, *numbered(4))
    with pytest.raises(RunDiffers, match=r"rows\.jsonl has changed") as refused:
        run(stub, data, tmp_path / "out")
    assert "--fork" in refused.value.hint
    assert not stub.requests


def test_the_same_bytes_under_another_name_are_the_same_input(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *numbered(3))
    stopped_at(stub, "Harbour N1", data, tmp_path / "out")
    assert run(stub, write(tmp_path, *numbered(3), name="moved.jsonl"), tmp_path / "out").summary.n == 3


def test_a_second_run_on_a_folder_is_refused_by_the_name_of_the_first_until_that_is_killed(
    stub: Stub, tmp_path: Path
) -> None:
    stub.faults.append(Fault(faults_of.hang(60), when=faults_of.mentions("Harbour N1"), times=1))
    data = write(tmp_path, *numbered(3))
    killed = KilledRun(stub, data, tmp_path / "out")
    with killed.start() as first:
        while not any("N1" in text for text in statements_asked(stub)):
            time.sleep(0.01)
        with pytest.raises(RunLocked, match=f"process {first.pid} on "):
            run(stub, data, tmp_path / "out")
        with pytest.raises(RunLocked):
            run(stub, data, tmp_path / "out", overwrite=True)
        first.kill()
    assert run(stub, data, tmp_path / "out", asked=JudgeSettings(concurrency=4)).summary.n == 3


def test_overwrite_begins_anew(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *numbered(2))
    run(stub, data, tmp_path / "out")
    stub.clear()
    header = run(stub, data, tmp_path / "out", overwrite=True)
    assert len(statements_asked(stub)) == 2
    assert len(header.starts) == 1


# Failed samples, bad lines, columns


def test_failed_samples_are_asked_again_on_demand_and_keep_their_other_verdicts(stub: Stub, tmp_path: Path) -> None:
    fault = Fault(faults_of.say("maybe"), when=faults_of.mentions("Statement: Harbour Middle opened pier two."))
    stub.faults.append(fault)
    data = write(tmp_path, row("North"), row("Middle", 3), "{")
    assert run(stub, data, tmp_path / "out").summary.failures == {"bad_line": 1, "reply_refused": 1}
    stub.faults.clear()
    stub.clear()
    assert run(stub, data, tmp_path / "out").summary.n_failed == 2
    assert statements_asked(stub) == []
    header = run(stub, data, tmp_path / "out", retry_failed=True)
    assert statements_asked(stub) == ["Harbour Middle opened pier two."]
    assert header.summary.failures == {"bad_line": 1}
    assert verify_run(tmp_path / "out").findings == ()


def test_a_retry_that_was_stopped_goes_on_without_being_asked_for_again(stub: Stub, tmp_path: Path) -> None:
    about = faults_of.mentions("Statement: Harbour Middle opened pier two.")
    stub.faults.append(Fault(faults_of.say("maybe"), when=about))
    data = write(tmp_path, row("Middle", 3))
    run(stub, data, tmp_path / "out")
    stub.faults.clear()
    stopped_at(stub, "Statement: Harbour Middle opened pier two.", data, tmp_path / "out", retry_failed=True)
    assert run(stub, data, tmp_path / "out").summary.n_scored == 1


def test_a_bad_line_stops_the_run_where_that_was_asked_and_what_is_done_is_kept(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, row("A"), row("B"), "{", row("C"))
    with pytest.raises(InputError, match=r"rows\.jsonl:3: not JSON") as refused:
        run(stub, data, tmp_path / "out", bad_lines="stop")
    assert "--bad-lines record" in refused.value.hint
    assert [one.id for one in read_scored(tmp_path / "out")] == ["A", "B"]
    stub.clear()
    assert run(stub, data, tmp_path / "out").summary.n == 4
    assert statements_asked(stub) == ["Harbour C opened pier one."]


def test_only_the_columns_to_keep_are_carried_into_the_records(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, row("A") | {"lang": "en", "secret": "x", "tags": [1, None]}, row("B"))
    run(stub, data, tmp_path / "out", keep=("lang", "tags", "user_input"))
    first, second = read_scored(tmp_path / "out")
    assert first.metadata == {"lang": "en", "tags": [1, None], "user_input": "What did Harbour A open?"}
    assert second.metadata == {"user_input": "What did Harbour B open?"}


@pytest.mark.parametrize("options", [{"keep": ("kind", "group", "knid")}, {"by": ("kind", "group", "knid")}])
def test_a_column_that_no_row_has_is_refused_before_anything_is_asked(
    stub: Stub, tmp_path: Path, options: dict[str, Any]
) -> None:
    data = write(tmp_path, row("A") | {"lang": "en", "kind": "short"})
    with pytest.raises(InputError, match="no column knid to carry") as caught:
        run(stub, data, tmp_path / "out", **options)
    assert caught.value.hint == "There are: user_input, reference, retrieved_contexts, group, lang, kind"
    assert not stub.requests
    assert not (tmp_path / "out").exists()


# Forks


def test_a_fork_asks_only_what_changed_wherever_it_stands_now(stub: Stub, tmp_path: Path) -> None:
    run(stub, write(tmp_path, row("A", 2), row("B"), row("C")), tmp_path / "old")
    stub.clear()
    changed = row("B") | {"retrieved_contexts": ["Harbour B opened pier one, and no other."]}
    data = write(tmp_path, row("D"), changed, row("C") | {"lang": "en"}, row("A", 2))
    header = run(stub, data, tmp_path / "new", fork=tmp_path / "old", keep=("lang",))
    assert statements_asked(stub) == ["Harbour B opened pier one.", "Harbour D opened pier one."]
    assert header.n_taken_over == 2
    run(stub, data, tmp_path / "fresh", keep=("lang",))
    assert exports(tmp_path / "new") == exports(tmp_path / "fresh")


def test_a_fork_of_another_judge_is_refused(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, row("A"))
    run(stub, data, tmp_path / "old")
    with Stub(StubConfig(model="other")) as another, pytest.raises(RunDiffers, match=r"signature\.judge"):
        run(another, data, tmp_path / "new", fork=tmp_path / "old")
    assert not (tmp_path / "new" / JOURNAL).exists() or list(read_scored(tmp_path / "new")) == []


def test_a_fork_needs_a_run_and_not_itself(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, row("A"))
    for fork in (tmp_path / "none", tmp_path / "out"):
        with pytest.raises(InputError):
            run(stub, data, tmp_path / "out", fork=fork)
    assert not stub.requests
    assert not (tmp_path / "out").exists()


def test_a_fork_takes_no_miss_over_that_an_empty_retrieval_made(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, row("A") | {"retrieved_contexts": []})
    run(stub, data, tmp_path / "old")
    header = run(stub, data, tmp_path / "new", fork=tmp_path / "old", zero_if_empty=False)
    assert (header.summary.failures, header.n_taken_over) == ({"empty_contexts": 1}, 0)
    assert verify_run(tmp_path / "new").findings == ()
