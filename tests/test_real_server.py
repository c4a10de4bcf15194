"""The whole path on a real vLLM: real weights, real constrained decoding, real logprobs.

SmolLM2-135M is no judge, so nothing here says what it should rule; what is tested holds for any model.
"""

import json
import math
from pathlib import Path

import pytest

from airjudge import ContextRecall, Judge, JudgeSettings
from airjudge.backends.vllm import Connection, VllmBackend
from airjudge.judge.enforcement import prove
from airjudge.run import RunSettings, read_scored, score_dataset
from airjudge.schema import Sample
from airjudge.server import Server

pytestmark = pytest.mark.server

FERRY = {
    "user_input": "When does the ferry leave?",
    "retrieved_contexts": ["The ferry departs at six.", "It carries no cars."],
    "reference": "The ferry departs at six. Whales sing. It carries cars.",
}


def judge_of(server: Server, **settings: object) -> Judge:
    return Judge.connect(
        server.base_url, server.model, api_key=server.api_key, settings=JudgeSettings.model_validate(settings)
    )


async def test_our_server_shows_outlines_by_the_probe_and_passes_the_canary(smollm_server: Server) -> None:
    connection = Connection(smollm_server.base_url, api_key=smollm_server.api_key)
    async with VllmBackend(connection, model=None) as backend:
        facts = await prove(backend, "ragas")
    assert facts.enforcement == "outlines"
    assert facts.model == smollm_server.model
    assert facts.max_model_len is not None
    assert facts.version is not None


async def test_every_statement_of_fifty_samples_gets_a_verdict_with_a_probability(
    smollm_server: Server, tmp_path: Path
) -> None:
    lines = [FERRY | {"reference": f"Ferry {n} departs at {n}. Boat {n} is red."} for n in range(50)]
    data = tmp_path / "d.jsonl"
    data.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    header = await score_dataset(data, ContextRecall(judge_of(smollm_server)), tmp_path / "out")
    assert (header.summary.n, header.summary.n_scored) == (50, 50)
    # One request and one token a statement, and the shared prefix comes from the cache.
    assert (header.usage.requests, header.usage.completion_tokens) == (100, 100)
    assert header.usage.cached_tokens > 0
    for sample in read_scored(tmp_path / "out"):
        for verdict in sample.statements:
            assert verdict.probability is not None
            assert 0 < verdict.probability < 1
            assert verdict.attributed == (verdict.probability >= 0.5)


async def test_the_same_sample_has_the_same_probabilities_alone_and_among_others(smollm_server: Server) -> None:
    metric = ContextRecall(judge_of(smollm_server, cache_salt="alone"))
    sample = Sample(id="s", **FERRY)  # type: ignore[arg-type]
    [alone] = await metric.score_samples([sample])
    among = await metric.score_samples([sample] * 8)
    for other in among:
        for a, b in zip(alone.statements, other.statements, strict=True):
            assert math.isclose(a.probability or 0, b.probability or 0, abs_tol=0.02)


async def test_the_single_call_always_parses_and_always_covers(smollm_server: Server) -> None:
    [scored] = await ContextRecall(judge_of(smollm_server, method="ragas")).score_samples(
        [Sample(id="s", **FERRY)]  # type: ignore[arg-type]
    )
    assert scored.status == "scored"
    assert [one.attributed is None for one in scored.statements] == [False] * 3


async def test_reasons_are_bounded_text(smollm_server: Server) -> None:
    [scored] = await ContextRecall(judge_of(smollm_server), reasons="all").score_samples(
        [Sample(id="s", **FERRY)]  # type: ignore[arg-type]
    )
    assert all(one.reason and len(one.reason) < 2000 for one in scored.statements)


async def test_a_context_longer_than_the_model_reads_is_found_before_it_is_sent(
    smollm_server: Server, tmp_path: Path
) -> None:
    data = tmp_path / "d.jsonl"
    long = FERRY | {"retrieved_contexts": ["the ferry departs at six and " * 4000]}
    data.write_text(json.dumps(FERRY) + "\n" + json.dumps(long) + "\n", encoding="utf-8")
    metric = ContextRecall(judge_of(smollm_server))
    header = await score_dataset(data, metric, tmp_path / "out", settings=RunSettings())
    assert header.summary.failures == {"prompt_too_long": 1}
    assert header.usage.requests == 3
    [_, failed] = read_scored(tmp_path / "out")
    assert failed.error is not None
    # Both counts are told: what the prompt has, and what the judge reads.
    counts = [int(word.rstrip(",")) for word in failed.error.message.split() if word.rstrip(",").isdigit()]
    assert counts[0] > counts[1] > 0
