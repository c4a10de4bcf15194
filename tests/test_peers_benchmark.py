"""The benchmark of peers: what counts as covered, the figures of a turn, and our own turns against the stub."""

import json
from pathlib import Path

import pytest

from benchmarks import matching
from benchmarks.peers import run, turn
from tests.rows import row
from tests.stub import Stub

WORK = {
    "vllm:prompt_tokens_total": 900.0,
    "vllm:prompt_tokens_cached_total": 300.0,
    "vllm:generation_tokens_total": 40.0,
    "vllm:request_success_total": 6.0,
}


def labelled(text: str, label: int) -> turn.Labelled:
    return turn.Labelled(id=text, text=text, label=label)


def sample(name: str, *statements: turn.Labelled) -> turn.Sample:
    return turn.Sample(id=name, user_input="?", reference="R.", retrieved_contexts=["C."], statements=list(statements))


def told(text: str, *, attributed: bool) -> turn.Verdict:
    return turn.Verdict(text=text, attributed=attributed)


SAMPLES = [
    sample("A", labelled("Kemp teaches in London", 1), labelled("Kemp was born in Leeds", 0)),
    sample("B", labelled("The ferry sails at six", 1)),
]


def played(tool: str, rows: list[turn.Row], *, repeat: int = 1, wall_s: float = 4.0) -> run.Turn:
    brought = turn.Brought(version="1", rows=rows, wall_s=wall_s, client_cpu_s=0.5, client_peak_bytes=1)
    return run.turn_of(run.Played(tool, "wice_subclaims", repeat, told=brought, used=WORK), SAMPLES)


def whole(name: str, *, repeat: int, wall_s: float) -> run.Turn:
    """A turn that rules on all three statements, all supported."""
    rows = [
        turn.Row(
            id=one["id"],
            score=1.0,
            verdicts=[told(statement["text"], attributed=True) for statement in one["statements"]],
            error="",
        )
        for one in SAMPLES
    ]
    return played(name, rows, repeat=repeat, wall_s=wall_s)


def test_word_f1_is_that_of_squad() -> None:
    # Four words and five, three of them shared: precision 3/5, recall 3/4, F1 = 2·3 / (4 + 5).
    assert matching.word_f1("The cat, sat down", "the CAT sat on it.") == pytest.approx(6 / 9)
    assert matching.word_f1("no no no", "no") == pytest.approx(2 / 4)
    assert matching.word_f1("…", "…") == 0


def test_statements_are_matched_one_to_one_as_many_as_can_be() -> None:
    # "a b" is closest to "a b", but "a b c d" has no other partner that reaches .5: both are matched.
    assert matching.one_to_one(["a b", "a b c d"], ["a b", "x", "a z"]) == [(0, 2), (1, 0)]
    assert matching.one_to_one(["a b"], ["a b c", "a b"]) == [(0, 1)]
    assert matching.one_to_one(["a b"], ["c d"]) == []
    assert matching.one_to_one([], ["a"]) == []


def test_figures_of_a_turn_are_those_of_its_samples() -> None:
    # A: one of two statements covered, with the right verdict, score .5 against the human 1/2; B failed.
    rows = [
        turn.Row(id="A", score=1.0, verdicts=[told("Kemp teaches at London.", attributed=True)], error=""),
        turn.Row(id="B", score=None, verdicts=[], error="ValueError: no JSON"),
    ]
    found = played("ragas", rows)
    assert (found.covered, found.n_statements, found.n_verdicts, found.failures) == (1, 3, 1, 1)
    assert found.mean_absolute_error == pytest.approx(0.5)
    assert found.covered_statements_per_s == pytest.approx(1 / 4)
    assert (found.requests, found.generated_tokens, found.prompt_tokens, found.cached_tokens) == (6, 40, 900, 300)


def test_verdicts_that_do_not_say_on_what_cover_nothing_and_have_no_kappa() -> None:
    rows = [turn.Row(id=name, score=1.0, verdicts=[told("", attributed=True)], error="") for name in "AB"]
    found = played("deepeval", rows)
    assert (found.covered, found.kappa, found.covered_statements_per_s) == (None, None, None)
    assert found.n_verdicts == 2
    assert found.mean_absolute_error == pytest.approx((0.5 + 0) / 2)


def test_a_ratio_is_the_median_over_pairs_of_the_same_repeat() -> None:
    # Ours take 2 and 3 s, ragas 6 and 6 s, over the same three statements: 3 and 2 times as fast.
    ours = [whole("airjudge pointwise", repeat=1, wall_s=2), whole("airjudge pointwise", repeat=2, wall_s=3)]
    theirs = [whole("ragas", repeat=2, wall_s=6), whole("ragas", repeat=1, wall_s=6)]
    assert run.ratio_to(ours, theirs) == pytest.approx(2.5)
    assert run.ratio_to(ours, []) is None


@pytest.mark.parametrize("tool", run.OURS)
def test_our_turns_rule_on_every_statement(
    tool: str, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(name, 2) for name in ("A", "B")]
    data, out, asked = tmp_path / "data.jsonl", tmp_path / "out.json", tmp_path / "turn.json"
    data.write_text("".join(json.dumps(one) + "\n" for one in rows))
    asked.write_text(
        json.dumps(
            turn.Asked(
                tool=tool,
                base_url=stub.base_url,
                api_key=stub.api_key or "",
                model=stub.model,
                profile="qwen2.5-coder-1.5b",
                data=str(data),
                out=str(out),
                concurrency=2,
            )
        )
    )
    monkeypatch.setattr("sys.argv", ["turn.py", str(asked)])
    turn.main()
    brought = json.loads(out.read_bytes())
    assert [one["id"] for one in brought["rows"]] == ["A", "B"]
    texts = [[statement["text"] for statement in one["statements"]] for one in rows]  # type: ignore[attr-defined]
    assert [[verdict["text"] for verdict in one["verdicts"]] for one in brought["rows"]] == texts
    assert all(one["score"] is not None and not one["error"] for one in brought["rows"])
    assert brought["wall_s"] > 0
