"""Method `ragas`: the account of its single call, in the record, through stops, and beside the original's number."""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airjudge import ContextRecall, JudgeSettings, prompts
from airjudge.journal import Reader, Store
from airjudge.run import export_table, open_run, read_scored, verify_run
from airjudge.schema import Echoes, Sample, ScoredSample, Statement
from tests.commands import Command, options
from tests.killing import KilledRun, findings, statement_asked
from tests.rows import connected, row
from tests.runs import exports, run, stopped_at, write
from tests.stub import Fault, Stub
from tests.stub import faults as faults_of

RAGAS = JudgeSettings(method="ragas", concurrency=1)
IS_SINGLE = faults_of.schema_named("classifications")
ABOUT = faults_of.all_of(IS_SINGLE, faults_of.mentions("Harbour"))
Item = tuple[str, int]

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def server() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.fixture
def stub(server: Stub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setenv("STUB_KEY", server.api_key or "")
    server.clear()
    yield server
    server.faults.clear()
    server.config.latency_s = 0.0


def reply(*items: Item) -> str:
    listed = [{"statement": text, "reason": "so", "attributed": label} for text, label in items]
    return json.dumps({"classifications": listed}, ensure_ascii=False)


def says(stub: Stub, text: str, finish_reason: str = "stop") -> None:
    """Let the server reply so to each single call on data of a test."""
    stub.faults.append(Fault(faults_of.say(text, finish_reason=finish_reason), when=ABOUT))


def pier(name: str, number: str) -> str:
    return f"Harbour {name} opened pier {number}."


def scored(stub: Stub, texts: Sequence[str], *items: Item) -> ScoredSample:
    """The record of a sample with these statements, about which the single call says these items."""
    says(stub, reply(*items))
    statements = tuple(Statement(id=str(n), text=text) for n, text in enumerate(texts, 1))
    sample = Sample(
        id="s",
        user_input="What did Harbour North open?",
        reference=" ".join(texts),
        retrieved_contexts=("Nothing is known.",),
        statements=statements,
    )
    try:
        [found] = asyncio.run(ContextRecall(connected(stub, RAGAS)).score_samples([sample]))
    finally:
        stub.faults.clear()
    return found


def share_of_ones(items: Sequence[Item]) -> float | None:
    """What the original makes of a reply: the share of ones over all of its items."""
    return sum(label for _, label in items) / len(items) if items else None


# The account of one sample

THREE = [pier("North", number) for number in ("one", "two", "three")]


def test_a_reply_on_each_statement_once_covers_all_and_nothing_else_is_asked(stub: Stub) -> None:
    found = scored(stub, THREE, *((text, 1) for text in THREE))
    assert found.echoes == Echoes(
        n_items=3, n_once=3, n_split=0, n_repeated=0, n_invented=0, n_missing=0, coverage=1.0, error=None
    )
    assert not [one for one in stub.chats if statement_asked(one)]


def test_repeated_split_invented_and_missing_are_told_apart(stub: Stub) -> None:
    texts = [THREE[0], "The pump was replaced in May and the filter was cleaned in June.", "Whales sing.", "Owls fly."]
    found = scored(
        stub, texts,
        (texts[0], 1), (texts[0], 1), ("The pump was replaced in May.", 1), ("The filter was cleaned in June.", 0),
        ("Bread is baked at dawn.", 1), ("whales sing", 0),
    )  # fmt: skip
    assert found.echoes == Echoes(
        n_items=6, n_once=1, n_split=1, n_repeated=1, n_invented=1, n_missing=1, coverage=0.75, error=None
    )
    # The last one was asked one by one: its verdict has no reason.
    assert [one.reason is None for one in found.statements] == [False, False, False, True]


@pytest.mark.parametrize(
    ("text", "finish_reason", "kind", "n_items"),
    [
        (reply((THREE[0], 1))[:-2] + ', {"statement": "Harb', "length", "reply_truncated", 1),
        (reply((THREE[0], 1))[:-2] + ', {"statement": "' + "so on " * 100, "length", "reply_runaway", 1),
        (" " * 1000, "length", "reply_runaway", 0),
        ("Sure, here you are!", "stop", "reply_refused", 0),
        (json.dumps({"classifications": []}), "stop", "reply_refused", 0),
        (reply((THREE[0], 7)), "stop", "reply_refused", 0),
    ],
)
def test_what_cut_a_reply_is_told_by_its_kind_and_what_it_leaves_out_is_missing(
    stub: Stub, tmp_path: Path, text: str, finish_reason: str, kind: str, n_items: int
) -> None:
    says(stub, text, finish_reason)
    header = run(stub, write(tmp_path, row("North", 3)), tmp_path / "out", asked=RAGAS)
    [found] = read_scored(tmp_path / "out")
    assert found.status == "scored"
    assert found.echoes is not None
    assert (found.echoes.error, found.echoes.n_items, found.echoes.n_missing) == (kind, n_items, 3 - n_items)
    assert header.summary.echoes is not None
    assert header.summary.echoes.errors == {kind: 1}
    assert len([one for one in stub.chats if statement_asked(one)]) == 3 - n_items


def test_nothing_is_ever_asked_again_with_a_longer_prompt_or_more_room(stub: Stub, tmp_path: Path) -> None:
    says(stub, reply((pier("A", "one"), 1))[:-2] + ', {"statement": "Harb', "length")
    run(stub, write(tmp_path, row("A", 4), row("B", 2)), tmp_path / "out", asked=RAGAS)
    singles = [one for one in stub.chats if ABOUT(one)]
    assert [sum(f"Harbour {name} " in one.text for one in singles) for name in "AB"] == [1, 1]
    assert {one.body["max_completion_tokens"] for one in singles} == {prompts.RAGAS_TOKENS}
    for name in "AB":
        single, *others = [one for one in stub.chats if f"Harbour {name} " in one.text]
        assert all(one.schema_name == "verdict" for one in others)
        assert all(one.body["max_completion_tokens"] == 1 for one in others)
        assert all(len(one.text) < len(single.text) for one in others)
    asked = Counter(statement_asked(one) for one in stub.chats if one.schema_name == "verdict")
    del asked[None]
    assert set(asked.values()) == {1}


def test_a_single_call_that_fails_has_no_account_and_is_made_again_on_demand(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.respond(400), when=ABOUT))
    data = write(tmp_path, row("North", 2))
    header = run(stub, data, tmp_path / "out", asked=RAGAS)
    assert (header.summary.failures, header.summary.echoes) == ({"request_failed": 1}, None)
    stub.faults.clear()
    header = run(stub, data, tmp_path / "out", asked=RAGAS, retry_failed=True)
    assert header.summary.echoes is not None
    assert header.summary.echoes.coverage == 1
    assert verify_run(tmp_path / "out").findings == ()


def test_what_asks_no_judge_or_asks_otherwise_has_no_account(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, row("A") | {"retrieved_contexts": []}, row("B") | {"statements": []}, "{")
    header = run(stub, data, tmp_path / "out", asked=RAGAS)
    assert (header.summary.n_scored, header.summary.n_undefined, header.summary.echoes) == (1, 1, None)
    assert not [one for one in stub.chats if "Harbour" in one.text]
    assert verify_run(tmp_path / "out").findings == ()
    assert run(stub, write(tmp_path, row("A")), tmp_path / "pointwise").summary.echoes is None


async def test_the_metric_gives_the_account_beside_its_value(stub: Stub) -> None:
    metric = ContextRecall(connected(stub, RAGAS))
    fields = {name: row("North", 2)[name] for name in ("user_input", "reference", "retrieved_contexts")}
    one = await metric.ascore(**fields)  # type: ignore[arg-type]
    [same] = await metric.abatch_score([fields])
    assert one.echoes is not None
    assert one.echoes.coverage == 1
    assert same.echoes == one.echoes


# The account of a run


def half_told(stub: Stub) -> None:
    """Let each single call tell the first statement twice, invent one, and leave the rest out; that on B is cut."""
    for name in "ABCDEF":
        text = reply((pier(name, "one"), 1), (pier(name, "one"), 1), ("Bread is baked at dawn.", 0))
        cut = (text[:-2] + ', {"statement": "', "length") if name == "B" else (text, "stop")
        about = faults_of.all_of(IS_SINGLE, faults_of.mentions(f"Harbour {name} "))
        stub.faults.append(Fault(faults_of.say(cut[0], finish_reason=cut[1]), when=about))


def test_accounts_are_added_up_and_shown_by_the_command_and_in_the_report(
    stub: Stub, tmp_path: Path, airjudge: Command
) -> None:
    half_told(stub)
    data, out = write(tmp_path, row("A", 2), row("B", 3), row("C", 1)), tmp_path / "out"
    log = tmp_path / "log.jsonl"
    ended = airjudge("score", data, *options(stub, out), "--method", "ragas", "--log", log)
    assert ended.code == 0
    told = " ".join(ended.out.split())
    assert "3 of 6 statements (50.0%): 0 once, 0 in parts, 3 repeated; 3 asked one by one" in told
    assert "9 in 3 replies, 3 of them no statement of the reference; not whole: reply_truncated: 1" in told
    summary = json.loads((out / "summary.json").read_text())
    assert summary["echoes"] == {
        "n_samples": 3, "n_items": 9, "n_once": 0, "n_split": 0, "n_repeated": 3, "n_invented": 3, "n_missing": 3,
        "coverage": 0.5, "errors": {"reply_truncated": 1},
    }  # fmt: skip
    events = [json.loads(line) for line in log.read_text().splitlines()]
    aligned = [one["fields"] for one in events if one["event"] == "single_call_aligned"]
    assert sorted((one["place"], one["n_missing"]) for one in aligned) == [(0, 1), (1, 2), (2, 0)]
    assert airjudge("report", out, "--output", tmp_path / "report.html").code == 0
    assert "3 of 6 statements (50.0%), 0 of them in parts and 3 repeatedly" in (tmp_path / "report.html").read_text()


def test_exports_have_the_account_in_columns_of_the_samples(stub: Stub, tmp_path: Path) -> None:
    half_told(stub)
    data = write(tmp_path, row("A", 2), row("B", 3), row("Empty") | {"retrieved_contexts": []})
    run(stub, data, tmp_path / "out", asked=RAGAS)
    table = pq.read_table(tmp_path / "out" / "samples.parquet").to_pylist()
    names = ("n_items", "n_once", "n_split", "n_repeated", "n_invented", "n_missing", "coverage", "reply_error")
    assert [tuple(one[name] for name in names) for one in table] == [
        (3, 0, 0, 1, 1, 1, 0.5, None),
        (3, 0, 0, 1, 1, 2, pytest.approx(1 / 3), "reply_truncated"),
        (None,) * 8,
    ]
    path, _ = export_table(tmp_path / "out", "csv")
    head, first, *_ = path.read_text().splitlines()
    assert head.endswith(",".join(names))
    assert first.endswith(",3,0,0,1,1,1,0.5,")
    lines = (tmp_path / "out" / "samples.jsonl").read_text().splitlines()
    assert [ScoredSample.model_validate_json(line) for line in lines] == list(read_scored(tmp_path / "out"))


# Stops, forks, checks


def test_a_stop_in_the_completion_leaves_the_account_and_makes_no_second_call(stub: Stub, tmp_path: Path) -> None:
    half_told(stub)
    data = write(tmp_path, row("A", 3), row("B", 2))
    run(stub, data, tmp_path / "whole", asked=RAGAS)
    stopped_at(stub, f"Statement: {pier('A', 'three')}", data, tmp_path / "out", asked=RAGAS)
    run(stub, data, tmp_path / "out", asked=RAGAS)
    assert [sum(f"Harbour {name} " in one.text for one in stub.chats if ABOUT(one)) for name in "AB"] == [0, 1]
    assert exports(tmp_path / "out") == exports(tmp_path / "whole")
    assert verify_run(tmp_path / "out").findings == ()


def test_a_call_that_told_nothing_is_known_to_have_been_made_after_a_stop(stub: Stub, tmp_path: Path) -> None:
    says(stub, reply(("Bread is baked at dawn.", 1)))
    data = write(tmp_path, row("A", 2))
    stopped_at(stub, f"Statement: {pier('A', 'one')}", data, tmp_path / "out", asked=RAGAS)
    run(stub, data, tmp_path / "out", asked=RAGAS)
    assert not [one for one in stub.chats if ABOUT(one)]
    [found] = read_scored(tmp_path / "out")
    assert found.echoes is not None
    assert (found.echoes.n_items, found.echoes.n_invented, found.echoes.n_missing) == (1, 1, 2)


@pytest.mark.parametrize("point", ["before_commit:5", "after_commit:4", "after_commit:7", "during_export:3"])
def test_a_run_that_is_killed_ends_as_one_that_was_not(stub: Stub, tmp_path: Path, point: str) -> None:
    half_told(stub)
    stub.config.latency_s = 0.06  # more than a group waits: the account and what completes it are commits apart
    data, method = write(tmp_path, *(row(name, 3) for name in "ABCD")), ("--method", "ragas", "--concurrency", "1")
    whole = KilledRun(stub, data, tmp_path / "whole", *method)
    assert whole.once() == 0
    killed = KilledRun(stub, data, tmp_path / "out", *method)
    assert killed.once(environment={"AIRJUDGE_FAILPOINT": point}) == -signal.SIGKILL
    known = accounted(tmp_path / "out")
    stub.clear()
    assert findings(killed, whole, killed.once()) == []
    again = [one.text for one in stub.chats if ABOUT(one)]
    assert len(again) == 4 - len(known)


def accounted(out: Path) -> set[int]:
    """Places whose single call is accounted for; each has the verdicts that came with it."""
    with Reader(out) as journal:
        places = {int(str(place)) for (place,) in journal.rows("SELECT place FROM echoes")}
        assert all(len(journal.verdicts(place)) >= 1 for place in places)
        begun = {int(str(place)) for (place,) in journal.rows("SELECT DISTINCT place FROM verdicts")}
        assert begun == places
        return places


def test_a_fork_takes_the_account_over_with_the_verdicts(stub: Stub, tmp_path: Path) -> None:
    half_told(stub)
    run(stub, write(tmp_path, row("A", 2), row("B", 2)), tmp_path / "old", asked=RAGAS)
    stub.clear()
    data = write(tmp_path, row("C", 2), row("B", 2), row("A", 2))
    header = run(stub, data, tmp_path / "new", asked=RAGAS, fork=tmp_path / "old")
    assert header.n_taken_over == 2
    assert [text for one in stub.chats if ABOUT(one) for text in "ABC" if f"Harbour {text} " in one.text] == ["C"]
    run(stub, data, tmp_path / "fresh", asked=RAGAS)
    assert exports(tmp_path / "new") == exports(tmp_path / "fresh")
    assert verify_run(tmp_path / "new").findings == ()


def test_a_fork_with_other_statements_is_asked_anew_for_an_account_is_of_all_of_them(
    stub: Stub, tmp_path: Path
) -> None:
    run(stub, write(tmp_path, row("A", 3)), tmp_path / "old", asked=RAGAS)
    stub.clear()
    fewer = row("A", 3)
    fewer["statements"] = fewer["statements"][:2]  # type: ignore[index]
    header = run(stub, write(tmp_path, fewer), tmp_path / "new", asked=RAGAS, fork=tmp_path / "old")
    assert header.n_taken_over == 0
    assert len([one for one in stub.chats if ABOUT(one)]) == 1
    assert verify_run(tmp_path / "new").findings == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DELETE FROM echoes WHERE place = 0", "there is no account of its single call"),
        (
            """UPDATE echoes SET account = json_set(account, '$.n_missing', 2)""",
            "the account of its single call is of 3 statements, it has 2",
        ),
        (
            """UPDATE echoes SET account = json_set(account, '$.coverage', 1)""",
            "the account of its single call gives another coverage than 1.0",
        ),
        (
            """UPDATE echoes SET account = json_set(account, '$.n_items', 1)""",
            "the account of its single call has fewer items than statements that they tell",
        ),
    ],
)
def test_an_account_that_does_not_fit_the_statements_is_found(
    stub: Stub, tmp_path: Path, change: str, told: str
) -> None:
    half_told(stub)
    run(stub, write(tmp_path, row("A", 2)), tmp_path / "out", asked=RAGAS)
    with Store(tmp_path / "out") as store, store.transaction() as database:
        database.execute(change)
    assert any(told in one for one in verify_run(tmp_path / "out").findings)


def test_a_run_by_another_method_has_no_account_to_hold(stub: Stub, tmp_path: Path) -> None:
    run(stub, write(tmp_path, row("A", 1)), tmp_path / "out")
    account = Echoes(n_items=1, n_once=1, n_split=0, n_repeated=0, n_invented=0, n_missing=0, coverage=1.0)
    with Store(tmp_path / "out") as store, store.transaction() as database:
        database.execute("INSERT INTO echoes VALUES (0, ?)", (account.model_dump_json(),))
    assert any("none was to be made" in one for one in verify_run(tmp_path / "out").findings)


def test_an_opened_run_tells_the_accounts(stub: Stub, tmp_path: Path) -> None:
    run(stub, write(tmp_path, row("A", 2)), tmp_path / "out", asked=RAGAS)
    [sample] = open_run(tmp_path / "out").samples
    assert sample.echoes is not None
    assert sample.echoes.n_once == 2


# Beside the original

words = st.sampled_from(
    [
        "The ferry to Ystad leaves at six.", "Harbour North opened pier nine in spring.", "Whales sing at night.",
        "埃菲尔铁塔位于巴黎。", "他的名字叫汤姆。", "Der Kuchen kostet vier Euro.", "Mount Everest.", "42 people came.",
    ]
)  # fmt: skip


@settings(max_examples=60)
@given(st.lists(words, min_size=1, max_size=8, unique=True), st.data())
def test_where_items_and_statements_are_one_to_one_our_number_is_the_originals(
    server: Stub, texts: list[str], data: st.DataObject
) -> None:
    labels = data.draw(st.lists(st.sampled_from([0, 1]), min_size=len(texts), max_size=len(texts)))
    items = data.draw(st.permutations(list(zip(texts, labels, strict=True))))
    says(server, reply(*items))
    sample = Sample(
        id="s",
        user_input="What did Harbour North open?",
        reference=" ".join(texts),
        retrieved_contexts=("Nothing is known.",),
        statements=tuple(Statement(id=str(n), text=text) for n, text in enumerate(texts, 1)),
    )
    try:
        [found] = asyncio.run(ContextRecall(connected(server, RAGAS)).score_samples([sample]))
    finally:
        server.faults.clear()
    assert found.score == share_of_ones(items)
    assert found.echoes is not None
    assert (found.echoes.n_once, found.echoes.n_items, found.echoes.coverage) == (len(texts), len(texts), 1)


PUMP, WHALES = "The pump was replaced in May and the filter was cleaned in June.", "Whales sing at night."


@pytest.mark.parametrize(
    ("items", "original", "ours"),
    [
        # In parts, of which one is not supported: two of three items, but one of two statements.
        ([("The pump was replaced in May.", 1), ("The filter was cleaned in June.", 0), (WHALES, 1)], 2 / 3, 1 / 2),
        # Said twice: two of three items, but one of two statements.
        ([(PUMP, 1), (PUMP, 1), (WHALES, 0)], 2 / 3, 1 / 2),
        # Said twice, and ruled on differently: as supported as its least supported telling.
        ([(PUMP, 1), (PUMP, 0), (WHALES, 1)], 2 / 3, 1 / 2),
        # Invented: two of three items, but one of two statements.
        ([(PUMP, 1), ("Bread is baked at dawn.", 1), (WHALES, 0)], 2 / 3, 1 / 2),
        # Dropped: one of one, but the other statement is asked one by one, and no context speaks of whales.
        ([(PUMP, 1)], 1, 1 / 2),
        # Two statements in one item: none of one, and both are asked one by one.
        ([(f"{PUMP[:-1]}, and {WHALES}", 0)], 0, 0),
    ],
    ids=["split", "repeated", "contradicted", "invented", "dropped", "joined"],
)
def test_where_items_are_not_the_statements_the_denominator_stays_that_of_the_reference(
    stub: Stub, items: list[Item], original: float, ours: float
) -> None:
    assert share_of_ones(items) == pytest.approx(original)
    assert scored(stub, [PUMP, WHALES], *items).score == pytest.approx(ours)
