"""Contexts that exceed a judge together: they fail by name, or are read in parts with nothing left out."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from airjudge import ContextRecall, Judge, evidence
from airjudge.cli.commands import app
from airjudge.errors import RunDiffers
from airjudge.judge import JudgeSettings
from airjudge.prompts import NO_CONTEXT
from airjudge.run import read_scored, score_dataset, verify_run
from airjudge.schema import Pointwise, Prior, ScoredSample
from tests.rows import Row
from tests.runs import exports, run, write
from tests.stub import Fault, HostedConfig, HostedStub, Stub, StubConfig
from tests.stub import faults as faults_of
from tests.stub.prompt_tokens import Messages, text_of

FACT = "Harbour North opened its pier in May."
SPLIT = JudgeSettings(concurrency=1, long_contexts="split")
TWO_WAYS = Pointwise(phrasings=2, prior=Prior(weight=0.5, log_odds=0.0))
TEXTS = st.lists(st.text(alphabet="ab .é埃\n", min_size=1, max_size=400).filter(str.strip), min_size=1, max_size=5)


def filler(number: int) -> str:
    """One sentence of 150 words, none of which is in a statement."""
    return " ".join(f"w{number}x{word}" for word in range(150)) + "."


def long_row(name: str = "A", *, fact_in: int | None = 4, n_contexts: int = 6) -> Row:
    """A row of long contexts, one of which holds the fact."""
    contexts = [filler(n) for n in range(1, n_contexts + 1)]
    if fact_in is not None:
        contexts[fact_in - 1] += f" {FACT}"
    return {"id": name, "user_input": "What?", "reference": FACT, "retrieved_contexts": contexts}


def short_row(name: str) -> Row:
    return {"id": name, "user_input": "What?", "reference": FACT, "retrieved_contexts": [FACT]}


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A judge that reads 700 tokens: instruction and question, and three of the long contexts at most."""
    with Stub(StubConfig(max_model_len=700)) as running:
        yield running


def scored(stub: Stub, folder: Path, *rows: Row, asked: JudgeSettings = SPLIT) -> list[ScoredSample]:
    run(stub, write(folder, *rows), folder / "out", asked=asked)
    return list(read_scored(folder / "out"))


def questions(stub: Stub) -> list[str]:
    """What was asked about the fact, in order."""
    return [text for chat in stub.chats if FACT in (text := chat.text)]


def shown_contexts(stub: Stub) -> list[list[int]]:
    """The numbers of the contexts that each question about them showed."""
    return [[int(n) for n in re.findall(r"w(\d)x0 ", text)] for text in questions(stub) if NO_CONTEXT not in text]


def test_too_long_contexts_fail_by_default(stub: Stub, tmp_path: Path) -> None:
    (one,) = scored(stub, tmp_path, long_row(), asked=JudgeSettings())
    assert one.error is not None
    assert one.error.kind == "prompt_too_long"
    assert one.statements[0].attributed is None
    assert len(shown_contexts(stub)) == 0


def test_in_parts_each_context_is_shown_once_in_order_and_every_prompt_fits(stub: Stub, tmp_path: Path) -> None:
    (one,) = scored(stub, tmp_path, long_row())
    shown = shown_contexts(stub)
    assert [number for part in shown for number in part] == [1, 2, 3, 4, 5, 6]
    assert one.statements[0].n_parts == len(shown) == 2
    assert (one.score, one.error) == (1.0, None)


@pytest.mark.parametrize(("fact_in", "score"), [(1, 1.0), (6, 1.0), (None, 0.0)])
def test_what_one_part_supports_is_supported(stub: Stub, tmp_path: Path, fact_in: int | None, score: float) -> None:
    (one,) = scored(stub, tmp_path, long_row(fact_in=fact_in))
    assert one.score == score


def test_the_probability_is_that_of_the_part_that_supports_most(tmp_path: Path) -> None:
    def probability(messages: Messages) -> float:
        text = text_of(messages[-1])
        return 0.3 if NO_CONTEXT in text else 0.8 if "w4x" in text else 0.2

    with Stub(StubConfig(max_model_len=700, probability=probability)) as judge:
        (one,) = scored(judge, tmp_path, long_row(), asked=SPLIT.model_copy(update={"pointwise": TWO_WAYS}))
        asked = questions(judge)
    # Log-odds 1.386 of .8, less half of -.847 of .3: 1.81.
    assert one.statements[0].probability == pytest.approx(1 / (1 + 2.718281828**-1.80994), abs=1e-4)
    assert sum(NO_CONTEXT in text for text in asked) == 1  # asked once, not in each part
    assert len(asked) == 2 * 2 + 1


def test_a_lone_context_is_divided_between_its_sentences(stub: Stub, tmp_path: Path) -> None:
    row = long_row()
    row["retrieved_contexts"] = [" ".join(row["retrieved_contexts"])]  # type: ignore[arg-type]
    (one,) = scored(stub, tmp_path, row)
    shown = shown_contexts(stub)
    assert [number for part in shown for number in part] == [1, 2, 3, 4, 5, 6]
    assert all("[1]" in text for text in questions(stub))
    assert one.score == 1.0


def test_a_statement_that_is_too_long_itself_fails_after_a_few_tries(stub: Stub, tmp_path: Path) -> None:
    huge = " ".join(f"v{word}" for word in range(900)) + "."
    row = {**long_row(), "statements": [{"id": "1", "text": huge}]}
    (one,) = scored(stub, tmp_path, row)
    assert one.error is not None
    assert one.error.kind == "prompt_too_long"
    assert len(stub.requests) < 60


def test_a_part_without_a_reply_leaves_the_statement_without_a_verdict(stub: Stub, tmp_path: Path) -> None:
    stub.faults.append(Fault(faults_of.respond(500), when=faults_of.mentions("w6x0 ")))
    (one,) = scored(stub, tmp_path, long_row(fact_in=1))
    assert one.status == "failed"
    assert one.statements[0].attributed is None


def test_the_single_call_gives_way_to_one_by_one(stub: Stub, tmp_path: Path) -> None:
    asked = SPLIT.model_copy(update={"method": "ragas"})
    (one,) = scored(stub, tmp_path, long_row(), asked=asked)
    assert one.echoes is not None
    assert (one.echoes.error, one.echoes.n_missing) == ("prompt_too_long", 1)
    assert (one.score, one.statements[0].n_parts) == (1.0, 2)
    assert verify_run(tmp_path / "out").findings == ()
    run(stub, write(tmp_path, long_row()), tmp_path / "fail", asked=JudgeSettings(method="ragas"))
    (other,) = read_scored(tmp_path / "fail")
    assert other.status == "failed"


def test_a_provider_that_only_refuses_is_asked_in_halves(tmp_path: Path) -> None:
    with HostedStub(HostedConfig(max_model_len=800)) as provider:
        judge = Judge.hosted(provider.base_url, provider.config.model, api_key=provider.config.api_key, settings=SPLIT)
        data = write(tmp_path, long_row())
        asyncio.run(score_dataset(data, ContextRecall(judge), tmp_path / "out"))
    (one,) = read_scored(tmp_path / "out")
    assert one.score == 1.0
    assert one.statements[0].n_parts == 2


def test_a_run_accounts_for_what_was_read_in_parts(stub: Stub, tmp_path: Path) -> None:
    header = run(stub, write(tmp_path, long_row("A"), short_row("B")), tmp_path / "out", asked=SPLIT)
    assert header.summary.n_in_parts == 1
    assert 'long_contexts="split"' in header.signature.decoding
    assert verify_run(tmp_path / "out").findings == ()
    assert [one.statements[0].n_parts for one in read_scored(tmp_path / "out")] == [2, None]
    assert '"n_parts":2' in (tmp_path / "out" / "samples.jsonl").read_text()


def test_splitting_takes_over_what_the_same_judge_read_at_once_and_asks_the_rest(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, short_row("B"), long_row("A"))
    run(stub, data, tmp_path / "first", asked=JudgeSettings(concurrency=1))
    n_before = len(stub.chats)
    header = run(stub, data, tmp_path / "second", asked=SPLIT, fork=tmp_path / "first")
    about = [str(chat.body) for chat in stub.chats[n_before:] if FACT in str(chat.body)]
    assert len(about) == 2
    assert all("w" in text for text in about)
    assert (header.summary.n_scored, header.n_taken_over) == (2, 1)
    # The other way round its verdicts would not be those of a judge that reads everything at once.
    with pytest.raises(RunDiffers, match="long_contexts"):
        run(stub, data, tmp_path / "third", asked=JudgeSettings(concurrency=1), fork=tmp_path / "second")


def test_a_run_that_splits_goes_on_where_it_stopped_with_the_same_exports(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, long_row("A"), long_row("B", fact_in=None))
    run(stub, data, tmp_path / "whole", asked=SPLIT)
    run(stub, data, tmp_path / "again", asked=SPLIT, limit=2)
    run(stub, data, tmp_path / "again", asked=SPLIT, limit=2)
    assert exports(tmp_path / "whole") == exports(tmp_path / "again")


def test_a_grade_cannot_be_of_parts() -> None:
    with pytest.raises(ValueError, match="all contexts together"):
        JudgeSettings(method="opik", long_contexts="split")


def test_the_option_reaches_the_judge(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, long_row())
    told = ["score", str(data), "--out", str(tmp_path / "out"), "--base-url", stub.base_url, "--api-key-env", "KEY"]
    done = CliRunner(env={"KEY": stub.api_key}).invoke(app, [*told, "--long-contexts", "split"])
    assert done.exit_code == 0, done.output
    assert "for 1 statements" in done.output
    refused = CliRunner(env={"KEY": stub.api_key}).invoke(
        app, [*told, "--method", "opik", "--long-contexts", "split", "--overwrite"]
    )
    assert refused.exit_code == 2
    assert "leave --long-contexts out" in refused.output


@given(TEXTS, st.integers(2, 9))
def test_parts_hold_everything_once_in_order(texts: list[str], n: int) -> None:
    read = list(enumerate(texts, 1))
    parts = evidence.divided(read, n)
    assert 1 <= len(parts) <= n
    assert [number for part in parts for number, _ in part] == sorted(number for part in parts for number, _ in part)
    joined = "".join(text for part in parts for _, text in part)
    assert "".join(joined.split()) == "".join("".join(texts).split())
    if len(texts) > 1 or len(texts[0].strip()) >= 2 * evidence.LEAST_PART:
        assert len(parts) > 1


@given(st.integers(2 * evidence.LEAST_PART, 5000), st.integers(2, 9))
def test_parts_are_of_much_the_same_length(length: int, n: int) -> None:
    parts = evidence.divided([(1, "x" * length)], n)
    lengths = [len(text) for part in parts for _, text in part]
    assert max(lengths) - min(lengths) <= 1
    assert len(parts) == n
