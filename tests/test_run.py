"""A data set in, a folder out: order kept, every line accounted for, nothing half written under its final name."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from airjudge import ContextRecall, Judge, JudgeSettings
from airjudge.errors import EnforcementMissing, InputError, JudgeUnreachable
from airjudge.run import RunHeader, RunSettings, read_scored, score_dataset
from airjudge.schema import RunCounts
from tests.stub import Fault, Stub
from tests.stub import faults as faults_of

GOOD = {"user_input": "When?", "retrieved_contexts": ["The ferry departs at six."]}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


def write_jsonl(path: Path, *lines: object) -> Path:
    path.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines), encoding="utf-8")
    return path


def run(stub: Stub, data: Path, out: Path, *, settings: RunSettings | None = None, **asked: object) -> RunHeader:
    judge = Judge.connect(stub.base_url, stub.model, api_key=stub.api_key, settings=JudgeSettings.model_validate(asked))
    return asyncio.run(score_dataset(data, ContextRecall(judge), out, settings=settings))


def test_samples_come_out_in_input_order_whatever_finished_first(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.hang(0.5), when=faults_of.mentions("Slow")))
    lines = [GOOD | {"id": f"s{n}", "reference": "Slow." if n == 0 else f"Quick {n}."} for n in range(12)]
    run(stub, write_jsonl(tmp_path / "d.jsonl", *lines), tmp_path / "out")
    assert [one.id for one in read_scored(tmp_path / "out")] == [f"s{n}" for n in range(12)]


def test_the_output_has_the_documented_fields(stub: Stub, tmp_path: Path) -> None:
    data = write_jsonl(tmp_path / "d.jsonl", GOOD | {"reference": "The ferry departs at six. Whales sing."})
    run(stub, data, tmp_path / "out")
    [line] = (tmp_path / "out" / "samples.jsonl").read_text().splitlines()
    sample = json.loads(line)
    assert sample["id"] == "line-1"
    assert (sample["score"], sample["status"], sample["error"]) == (0.5, "scored", None)
    assert set(sample["statements"][0]) == {
        *("id", "text", "attributed", "probability", "reason", "support", "n_parts"),
    }
    header = json.loads((tmp_path / "out" / "run.json").read_text())
    assert header["summary"]["mean"] == 0.5
    assert header["usage"]["completion_tokens"] == 2
    assert header["usage"]["requests"] == 2
    assert len(header["data_sha256"]) == 64


def test_bad_lines_are_records_and_the_others_go_on(stub: Stub, tmp_path: Path) -> None:
    good = GOOD | {"reference": "The ferry departs at six."}
    lines = ["not json", "[1]", good | {"id": "a"}, good | {"id": "a"}, {"user_input": "x"}, good]
    header = run(stub, write_jsonl(tmp_path / "d.jsonl", *lines), tmp_path / "out")
    found = [(one.id, one.status, one.error.kind if one.error else None) for one in read_scored(tmp_path / "out")]
    assert found == [
        ("line-1", "failed", "bad_line"),
        ("line-2", "failed", "bad_line"),
        ("a", "scored", None),
        ("line-4", "failed", "duplicate_id"),
        ("line-5", "failed", "bad_line"),
        ("line-6", "scored", None),
    ]
    summary = header.summary
    assert (summary.n, summary.n_scored, summary.n_failed, summary.mean) == (6, 2, 4, 1.0)
    # Four unknown samples of six: anything from 2/6 to 1.
    assert summary.bounds == pytest.approx((2 / 6, 1.0))


def test_a_timeout_loses_one_sample_and_no_other(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.hang(30), when=faults_of.mentions("Slow")))
    lines = [GOOD | {"reference": text} for text in ("The ferry departs.", "Slow.", "The ferry departs.")]
    header = run(stub, write_jsonl(tmp_path / "d.jsonl", *lines), tmp_path / "out", timeout_s=1.0)
    assert (header.summary.n_scored, header.summary.failures) == (2, {"timeout": 1})


def test_empty_contexts_are_zero_or_an_error_as_asked(stub: Stub, tmp_path: Path) -> None:
    data = write_jsonl(tmp_path / "d.jsonl", {"user_input": "a", "reference": "B.", "retrieved_contexts": []})
    header = run(stub, data, tmp_path / "zero")
    assert (header.summary.mean, header.summary.n_empty_contexts) == (0.0, 1)
    header = run(stub, data, tmp_path / "error", settings=RunSettings(zero_if_empty=False))
    assert (header.summary.mean, header.summary.failures) == (None, {"empty_contexts": 1})
    assert header.usage.requests == 0


@pytest.mark.parametrize("limit", [2, 16])
def test_as_many_requests_are_in_flight_as_asked_and_no_more(stub: Stub, tmp_path: Path, limit: int) -> None:
    stub.config.latency_s = 0.1
    lines = [GOOD | {"reference": f"A{n} is one. B{n} is two."} for n in range(20)]
    run(stub, write_jsonl(tmp_path / "d.jsonl", *lines), tmp_path / "out", concurrency=limit)
    assert max(one.in_flight for one in stub.requests if one.schema_name == "verdict") == limit


def test_a_server_that_stops_enforcing_stops_the_run_and_keeps_what_was_scored(stub: Stub, tmp_path: Path) -> None:
    lines = [GOOD | {"reference": f"Fact {n}."} for n in range(5)]
    data = write_jsonl(tmp_path / "d.jsonl", *lines)
    # The canary, the warm-up and two verdicts pass; then the model says "maybe" and the canary fails.
    stub.faults.append(Fault(faults_of.say("maybe"), when=faults_of.schema_named("verdict"), after=3))
    stub.faults.append(Fault(faults_of.say("hello"), when=faults_of.schema_named("canary"), after=1))
    with pytest.raises(EnforcementMissing):
        run(stub, data, tmp_path / "out", concurrency=1)
    assert [one.id for one in read_scored(tmp_path / "out")] == ["line-1", "line-2"]
    assert not (tmp_path / "out" / "samples.jsonl").exists()


def test_one_reply_outside_its_automaton_is_that_samples_failure(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.say("7"), when=faults_of.mentions("Fact 1.")))
    lines = [GOOD | {"reference": f"Fact {n}."} for n in range(3)]
    header = run(stub, write_jsonl(tmp_path / "d.jsonl", *lines), tmp_path / "out")
    assert (header.summary.n_scored, header.summary.failures) == (2, {"reply_refused": 1})
    assert sum(one.schema_name == "canary" for one in stub.requests) == 2


def test_files_of_something_else_are_not_overwritten_unless_asked(stub: Stub, tmp_path: Path) -> None:
    data = write_jsonl(tmp_path / "d.jsonl", GOOD | {"reference": "One."})
    (tmp_path / "out").mkdir()
    write_jsonl(tmp_path / "out" / "samples.jsonl", "mine")
    with pytest.raises(InputError, match=r"samples\.jsonl"):
        run(stub, data, tmp_path / "out")
    assert not stub.requests
    assert (tmp_path / "out" / "samples.jsonl").read_text() == "mine\n"
    assert run(stub, data, tmp_path / "out", settings=RunSettings(overwrite=True)).summary.n == 1


def test_a_limit_takes_the_first_samples(stub: Stub, tmp_path: Path) -> None:
    data = write_jsonl(tmp_path / "d.jsonl", *(GOOD | {"reference": f"Fact {n}."} for n in range(9)))
    assert run(stub, data, tmp_path / "out", settings=RunSettings(limit=4)).summary.n == 4


def test_an_output_that_cannot_be_written_is_an_input_error(stub: Stub, tmp_path: Path) -> None:
    data = write_jsonl(tmp_path / "d.jsonl", GOOD | {"reference": "One."})
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        run(stub, data, tmp_path / "file" / "out")


def test_a_server_that_dies_during_a_run_stops_it_after_the_wait(tmp_path: Path) -> None:
    lines = [GOOD | {"reference": f"Fact {n}."} for n in range(400)]
    data = write_jsonl(tmp_path / "d.jsonl", *lines)
    with ExitStack() as stack:
        stub = stack.enter_context(Stub())
        stub.config.latency_s = 0.05
        settings = JudgeSettings(wait_for_server_s=0.5)
        judge = Judge.connect(stub.base_url, stub.model, api_key=stub.api_key, settings=settings)

        async def scored() -> None:
            begun = asyncio.Event()

            def on_counts(counts: RunCounts) -> None:
                if counts.n_samples >= 8:
                    begun.set()

            scoring = score_dataset(data, ContextRecall(judge), tmp_path / "out", on_counts=on_counts)
            running = asyncio.create_task(scoring)
            await begun.wait()
            await asyncio.to_thread(stack.close)
            await running

        with pytest.raises(JudgeUnreachable):
            asyncio.run(scored())
    assert list(read_scored(tmp_path / "out"))


def test_the_same_run_twice_gives_the_same_records_and_intervals(stub: Stub, tmp_path: Path) -> None:
    data = write_jsonl(tmp_path / "d.jsonl", *(GOOD | {"reference": f"Fact {n}. The ferry departs."} for n in range(9)))
    a, b = (run(stub, data, tmp_path / name) for name in "ab")
    assert (tmp_path / "a" / "samples.jsonl").read_bytes() == (tmp_path / "b" / "samples.jsonl").read_bytes()
    assert a.summary == b.summary
    assert a.signature == b.signature
