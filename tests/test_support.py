"""`--evidence`: which contexts support a statement, each asked alone; stored, gone on with, forked, verified, told."""

import csv
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airjudge import ContextRecall, JudgeSettings
from airjudge.errors import JudgeUnauthorized
from airjudge.journal import JOURNAL
from airjudge.run import export_table, open_run, read_scored, verify_run
from airjudge.schema import Pointwise, Prior, Sample, ScoredSample, Support, Verdict
from tests.commands import Command, options
from tests.rows import Row, connected, row
from tests.runs import exports, run, write
from tests.stub import Fault, HostedConfig, HostedStub, Stub
from tests.stub import faults as faults_of
from tests.stub.faults import RecordedRequest
from tests.test_calibrate import made_by_hand

FERRY, WHALES, LAMPS = "The ferry departs at six.", "Whales sing.", "Amber lamps glow beside quiet harbours."
CONTEXTS = (
    "Amber lamps glow nightly.",
    " ",
    FERRY,
    "Beside quiet harbours.",
    "When six bells ring, the ferry departs.",
)
"""The ferry departs by 3 and by 5, the lamps glow by 1 and 4 together, and no whale sings."""
ROW: Row = {
    "id": "s",
    "user_input": "What is there?",
    "reference": f"{FERRY} {WHALES} {LAMPS}",
    "retrieved_contexts": CONTEXTS,
    "statements": [{"id": str(n), "text": text} for n, text in enumerate((FERRY, WHALES, LAMPS), 1)],
}
SAMPLE = Sample.model_validate(ROW)
ONE = JudgeSettings(concurrency=1)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


async def scored(stub: Stub, sample: Sample = SAMPLE, settings: JudgeSettings = ONE) -> ScoredSample:
    [found] = await ContextRecall(connected(stub, settings), evidence=True).score_samples([sample])
    return found


def alone(request: RecordedRequest) -> bool:
    """Whether a question is on one of several contexts."""
    return request.schema_name == "verdict" and len(re.findall(r"^\[\d+\] ", request.text, re.MULTILINE)) == 1


def asked_alone(stub: Stub) -> list[tuple[int, str]]:
    """The contexts and statements of questions on one context, in order; warm-up is none of them."""
    questions = [one.text for one in stub.chats if alone(one) and "Probe" not in one.text]
    found = [(re.search(r"^\[(\d+)\] ", one, re.MULTILINE), one) for one in questions]
    return [
        (int(number[1]), text.rpartition("Statement: ")[2].partition("\n")[0])
        for number, text in found
        if number is not None and "One. Two. Three." not in text
    ]


def entries(verdict: Verdict) -> list[tuple[int, bool | None]] | None:
    return None if verdict.support is None else [(one.context, one.attributed) for one in verdict.support]


# What is asked


async def test_each_context_is_asked_about_alone_for_each_supported_statement(stub: Stub) -> None:
    found = await scored(stub)
    assert [one.attributed for one in found.statements] == [True, False, True]
    assert [entries(one) for one in found.statements] == [
        [(1, False), (3, True), (4, False), (5, True)],
        None,  # a statement that is missed has no support
        [(1, False), (3, False), (4, False), (5, False)],  # it takes two contexts
    ]
    assert [one.probability for one in found.statements[0].support or ()] == pytest.approx([0.1, 0.9, 0.1, 0.9])
    # Ranks are those of the contexts 1, 3, 4, 5: .x.x, average precision (1/2 + 2/4) / 2.
    assert found.chunks is not None
    figures = found.chunks.precision, found.chunks.average_precision, found.chunks.reciprocal_rank
    assert figures == (0.5, 0.5, 0.5)


async def test_the_questions_go_out_context_by_context_after_the_verdicts(stub: Stub) -> None:
    await scored(stub)
    assert asked_alone(stub) == [(context, text) for context in (1, 3, 4, 5) for text in (FERRY, LAMPS)]
    is_alone = [alone(one) for one in stub.chats if "Amber lamps" in one.text or "ferry" in one.text]
    assert is_alone == sorted(is_alone)


async def test_all_statements_but_the_first_are_asked_beside_each_other_behind_the_same_text(stub: Stub) -> None:
    contexts = ("Fact one holds.", "Fact two holds.")
    sample = Sample(
        id="s", user_input="Q?", retrieved_contexts=contexts, reference=" ".join(f"Fact {n} holds." for n in range(5))
    )
    stub.config.latency_s = 0.05
    found = await scored(stub, sample, JudgeSettings(concurrency=8))
    assert all(one.attributed for one in found.statements)
    questions = [one for one in stub.chats if alone(one) and "Fact" in one.text]
    assert [one.in_flight for one in questions[::5]] == [1, 1]
    assert [one.in_flight for one in questions[1::5]] == [1, 1]  # the first of each context had its reply by then
    assert max(one.in_flight for one in questions) > 1
    behind = {one.text.partition("Statement: ")[0] for one in questions[:5]}
    assert len(behind) == 1


async def test_it_is_one_question_in_the_first_phrasing_however_many_the_profile_asks(stub: Stub) -> None:
    how = Pointwise(phrasings=2, prior=Prior(weight=0.5, log_odds=0.0))
    plain = await scored(stub)
    n_alone = len(asked_alone(stub))
    stub.clear()
    found = await scored(stub, settings=JudgeSettings(concurrency=1, pointwise=how))
    assert Counter(context for context, _ in asked_alone(stub) if context > 1) == {3: 2, 4: 2, 5: 2}
    assert n_alone == 8
    assert [one.support for one in found.statements] == [one.support for one in plain.statements]


@pytest.mark.parametrize("contexts", [(FERRY,), ("", FERRY, "\n"), (FERRY, "Nothing is here. " * 9)])
async def test_the_only_context_that_was_read_supports_by_the_verdicts_own_probability(
    stub: Stub, contexts: tuple[str, ...]
) -> None:
    if len(contexts) == 2:  # eight sentences are read, and the closest are all of the first context
        contexts = (" ".join(f"The ferry departs at six on day {n}." for n in range(8)), contexts[1])
    sample = SAMPLE.model_copy(update={"retrieved_contexts": contexts, "statements": None, "reference": FERRY})
    found = await scored(stub, sample)
    [verdict] = found.statements
    [number] = [number for number, text in enumerate(contexts, 1) if "ferry" in text]
    assert verdict.support == (Support(context=number, probability=verdict.probability, attributed=True),)
    assert sum(FERRY in one.text for one in stub.chats) == 1
    assert found.chunks is not None
    assert found.chunks.n_supporting == 1


@pytest.mark.parametrize("method", ["reasoned", "ragas"])
async def test_the_other_methods_on_statements_are_asked_for_support_alike(stub: Stub, method: Any) -> None:
    if method == "reasoned":
        reply = faults_of.want('{"reason": "so", "attributed": 1}')
        stub.faults.append(Fault(reply, when=faults_of.schema_named("reasoned")))
    found = await scored(stub, settings=JudgeSettings(method=method, concurrency=1))
    assert entries(found.statements[0]) == [(1, False), (3, True), (4, False), (5, True)]


async def test_a_single_call_shows_all_contexts_so_all_are_asked_about(stub: Stub) -> None:
    long = " ".join(f"The ferry departs at six on day {n}." for n in range(9))
    sample = SAMPLE.model_copy(update={"retrieved_contexts": (long, "Nothing is here."), "statements": None})
    found = await scored(stub, sample, JudgeSettings(method="ragas"))
    assert entries(found.statements[0]) == [(1, True), (2, False)]


async def test_a_failed_question_leaves_the_verdict_standing_and_the_figures_undefined(stub: Stub) -> None:
    about = faults_of.all_of(alone, faults_of.mentions("Beside quiet"), faults_of.mentions(f"Statement: {FERRY}"))
    stub.faults.append(Fault(faults_of.respond(400), when=about))
    found = await scored(stub)
    assert (found.status, found.score) == ("scored", 2 / 3)
    assert entries(found.statements[0]) == [(1, False), (3, True), (4, None), (5, True)]
    assert found.chunks is not None
    assert found.chunks.precision is None


async def test_a_server_that_ends_the_run_ends_it_in_the_middle_of_the_support_too(stub: Stub) -> None:
    stub.faults.append(Fault(faults_of.respond(401), when=faults_of.all_of(alone, faults_of.mentions("Beside quiet"))))
    with pytest.raises(JudgeUnauthorized):
        await scored(stub)


async def test_an_empty_retrieval_is_not_asked_about_and_its_contexts_have_no_figures(stub: Stub) -> None:
    found = await scored(stub, SAMPLE.model_copy(update={"retrieved_contexts": ("  ",)}))
    assert (found.score, [one.support for one in found.statements]) == (0, [None] * 3)
    assert found.chunks is not None
    assert found.chunks.precision is None


def test_one_sample_in_python_has_its_support_and_without_asking_none(stub: Stub) -> None:
    sample = {"user_input": "Q?", "retrieved_contexts": list(CONTEXTS), "reference": FERRY}
    found = ContextRecall(connected(stub, ONE), evidence=True).score(**sample)  # type: ignore[arg-type]
    best = found.statements[0].most_probable
    assert best is not None
    assert best.context == 3
    assert found.chunks is not None
    plain = ContextRecall(connected(stub, ONE)).score(**sample)  # type: ignore[arg-type]
    assert (plain.statements[0].support, plain.chunks) == (None, None)
    assert plain.signature == found.signature  # it changes no verdict
    [batched] = ContextRecall(connected(stub, ONE), evidence=True).batch_score([sample])
    assert batched == found


def test_a_provider_is_asked_about_contexts_too() -> None:
    from tests.providers import hosted

    with HostedStub(HostedConfig()) as provider:
        sample = {"user_input": "Q?", "retrieved_contexts": list(CONTEXTS), "reference": FERRY}
        found = ContextRecall(hosted(provider), evidence=True).score(**sample)  # type: ignore[arg-type]
    assert [one.context for one in found.statements[0].support or ()] == [1, 3, 4, 5]


# Runs


def test_a_run_that_was_stopped_among_contexts_asks_only_those_that_are_missing(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, ROW, row("Next"))
    about = faults_of.all_of(alone, faults_of.mentions("Beside quiet"), faults_of.mentions(f"Statement: {LAMPS}"))
    stub.faults.append(Fault(faults_of.respond(401), when=about))
    with pytest.raises(JudgeUnauthorized):
        run(stub, data, tmp_path / "out", evidence=True)
    stub.faults.clear()
    stub.clear()
    run(stub, data, tmp_path / "out", evidence=True)
    assert asked_alone(stub)[:3] == [(4, LAMPS), (5, FERRY), (5, LAMPS)]
    assert sum("Amber lamps" in one.text and not alone(one) for one in stub.chats) == 0
    run(stub, data, tmp_path / "whole", evidence=True)
    assert exports(tmp_path / "out") == exports(tmp_path / "whole")
    assert verify_run(tmp_path / "out").findings == ()
    stub.clear()
    run(stub, data, tmp_path / "out", evidence=True)
    assert asked_alone(stub) == []


def test_a_retry_asks_again_about_a_context_whose_question_failed_in_a_failed_sample(
    stub: Stub, tmp_path: Path
) -> None:
    data = write(tmp_path, ROW)
    about = faults_of.all_of(alone, faults_of.mentions("Beside quiet"), faults_of.mentions(f"Statement: {FERRY}"))
    stub.faults.append(Fault(faults_of.respond(400), when=about))
    stub.faults.append(Fault(faults_of.respond(400), when=faults_of.mentions(f"Statement: {WHALES}")))
    run(stub, data, tmp_path / "out", evidence=True)
    assert [one.status for one in read_scored(tmp_path / "out")] == ["failed"]
    assert verify_run(tmp_path / "out").findings == ()
    stub.faults.clear()
    stub.clear()
    run(stub, data, tmp_path / "out", evidence=True, retry_failed=True)
    assert asked_alone(stub) == [(4, FERRY)]
    [found] = read_scored(tmp_path / "out")
    assert found.chunks is not None
    assert found.chunks.precision == 0.5


def test_a_fork_takes_support_over_and_asks_only_where_there_is_none(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, ROW)
    run(stub, data, tmp_path / "bare")
    run(stub, data, tmp_path / "with", evidence=True)
    assert [one.support for one in next(read_scored(tmp_path / "bare")).statements] == [None] * 3
    stub.clear()
    run(stub, data, tmp_path / "taken", evidence=True, fork=tmp_path / "with")
    assert asked_alone(stub) == []
    assert list(read_scored(tmp_path / "taken")) == list(read_scored(tmp_path / "with"))
    run(stub, data, tmp_path / "asked", evidence=True, fork=tmp_path / "bare")
    assert len(asked_alone(stub)) == 8
    assert list(read_scored(tmp_path / "asked")) == list(read_scored(tmp_path / "with"))
    run(stub, data, tmp_path / "left", fork=tmp_path / "with")  # that run was not to ask
    assert list(read_scored(tmp_path / "left")) == list(read_scored(tmp_path / "bare"))
    for name in ("taken", "asked", "left"):
        assert verify_run(tmp_path / name).findings == ()


def test_a_calibration_maps_no_support_and_drops_that_of_what_is_missed_now(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, ROW, row("Lone"))
    header = run(stub, data, tmp_path / "raw", evidence=True)
    raw = list(read_scored(tmp_path / "raw"))
    stub.clear()
    fields = made_by_hand(header.signature.model_dump(), threshold=0.8) | {
        "probability_map": {"kind": "logistic", "slope": 0.5, "intercept": 0}
    }
    low = JudgeSettings.model_validate({"concurrency": 1, "calibration": {**fields, "threshold": 0.7}})
    run(stub, data, tmp_path / "low", asked=low, evidence=True, fork=tmp_path / "raw")
    first, lone = read_scored(tmp_path / "low")
    assert [one.support for one in first.statements] == [one.support for one in raw[0].statements]
    assert first.statements[0].probability == pytest.approx(0.75)  # .9 is 9 to 1, of which 3 to 1 is the root
    [verdict] = lone.statements
    assert verdict.support == (Support(context=1, probability=verdict.probability, attributed=True),)
    assert asked_alone(stub) == []
    high = JudgeSettings.model_validate({"concurrency": 1, "calibration": fields})
    run(stub, data, tmp_path / "high", asked=high, evidence=True, fork=tmp_path / "raw")
    assert [one.support for found in read_scored(tmp_path / "high") for one in found.statements] == [None] * 4
    for name in ("low", "high"):
        assert verify_run(tmp_path / name).findings == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE verdicts SET support = replace(support, '\"context\": 5', '\"context\": 9')", "cannot be"),
        ("UPDATE verdicts SET support = replace(support, '\"context\": 3', '\"context\": 2')", "cannot be"),
        ("UPDATE verdicts SET support = replace(support, 'false', 'true') WHERE number = 2", "cannot be"),
        ("UPDATE verdicts SET support = NULL WHERE number = 0", "'1' has no support"),
        ('UPDATE verdicts SET support = \'[{"context": 3, "probability": 0.2, "attributed": true}]\'', "cannot be"),
        ("UPDATE samples SET chunks = replace(chunks, '0.5', '0.75')", "does not follow"),
        ("UPDATE samples SET chunks = NULL", "is missing"),
    ],
)
def test_what_does_not_follow_from_the_supports_is_found(stub: Stub, tmp_path: Path, change: str, told: str) -> None:
    run(stub, write(tmp_path, ROW), tmp_path / "out", evidence=True)
    with sqlite3.connect(tmp_path / "out" / JOURNAL) as database:
        database.execute(change)
    database.close()
    assert any(told in one for one in verify_run(tmp_path / "out").findings)


def test_support_that_nobody_asked_for_is_found(stub: Stub, tmp_path: Path) -> None:
    run(stub, write(tmp_path, ROW), tmp_path / "out")
    with sqlite3.connect(tmp_path / "out" / JOURNAL) as database:
        database.execute('UPDATE verdicts SET support = \'[{"context": 3, "probability": 0.9, "attributed": true}]\'')
    database.close()
    assert any("none was to be asked" in one for one in verify_run(tmp_path / "out").findings)


def test_the_exports_tell_contexts_and_probabilities(stub: Stub, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(stub, write(tmp_path, ROW), out, evidence=True)
    line = json.loads((out / "samples.jsonl").read_text())
    assert [one["context"] for one in line["statements"][0]["support"]] == [1, 3, 4, 5]
    assert line["chunks"]["precision"] == 0.5
    told = ["support_contexts", "best_context", "support_probability"]
    rows = pq.read_table(out / "statements.parquet").to_pylist()
    assert [[one[name] for name in told] for one in rows] == [
        ["3;5", 3, pytest.approx(0.9)],
        [None, None, None],
        ["", 1, pytest.approx(0.1)],
    ]
    [sample] = pq.read_table(out / "samples.parquet").to_pylist()
    assert (sample["n_contexts"], sample["n_supporting"], sample["chunk_precision"]) == (5, 2, 0.5)
    path, _ = export_table(out, "csv", "statements")
    with path.open(newline="", encoding="utf-8") as file:
        assert [one["support_contexts"] for one in csv.DictReader(file)] == ["3;5", "", ""]


# The command line


def test_the_command_tells_what_contexts_are_worth_and_stores_that_it_was_asked(
    airjudge: Command, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", stub.api_key or "")
    data = write(tmp_path, ROW)
    ended = airjudge("score", data, *options(stub, tmp_path / "out"), "--evidence")
    assert ended.code == 0, ended.err
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert "supported statements 2: 1 by one context alone, 1 only together" in lines
    assert "contexts that support (precision) 0.500" in lines
    assert open_run(tmp_path / "out").state.settings["evidence"] is True
    told = json.loads(airjudge("score", data, *options(stub, tmp_path / "out"), "--evidence", "--json").out)
    assert told["chunks"]["precision"] == 0.5
    refused = airjudge("score", data, *options(stub, tmp_path / "out"))
    assert refused.code == 2
    assert "evidence: True there, False now" in refused.err


def test_check_counts_a_question_for_each_context_that_is_read_as_if_all_were_supported(
    airjudge: Command, tmp_path: Path
) -> None:
    data = write(tmp_path, ROW, row("Lone"))
    checked = [airjudge("check", data, "--judge", "hosted", "--json", *more) for more in ((), ("--evidence",))]
    counts = [json.loads(one.out) for one in checked]
    # Three statements by four contexts that are not blank; the other row has one context.
    assert counts[1]["n_requests"] - counts[0]["n_requests"] == 12
    assert "as if every statement were supported" in counts[1]["note"]


@pytest.mark.server
async def test_a_real_server_gives_each_context_a_probability(smollm_server: Any) -> None:
    from tests.test_real_server import judge_of

    [found] = await ContextRecall(judge_of(smollm_server), evidence=True).score_samples([SAMPLE])
    for verdict in found.statements:
        assert (verdict.support is not None) is verdict.attributed
        for one in verdict.support or ():
            assert one.probability is not None
            assert one.attributed is (one.probability >= 0.5)
