"""`airjudge score --judge hosted`: options, prices, limits, resumption; and profiles behind a base URL."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from airjudge.profiles import load_profile
from airjudge.run import verify_run
from tests.commands import Command
from tests.rows import row
from tests.runs import write
from tests.stub import Fault, HostedConfig, HostedStub, Stub
from tests.stub import faults as faults_of

PROFILE = "qwen2.5-coder-1.5b"
PRICE = ("--price-in", "2", "--price-out", "10", "--currency", "EUR")


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostedStub]:
    with HostedStub() as running:
        monkeypatch.setenv("KEY", running.api_key or "")
        yield running


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path, *(row(f"N{n}") for n in range(6)))


def hosted(provider: HostedStub, out: Path, *more: object) -> tuple[object, ...]:
    address = ("--judge", "hosted", "--base-url", provider.base_url, "--model", provider.model)
    return (*address, "--api-key-env", "KEY", "--out", out, *more)


def contents(body: Mapping[str, Any]) -> list[str]:
    return [str(message["content"]) for message in body["messages"]]


def told(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "run.json").read_text())
    return found


def test_a_hosted_run_is_scored_shown_verified_and_never_holds_the_key(
    airjudge: Command, provider: HostedStub, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ended = airjudge("score", data, *hosted(provider, out), "--json", "--log", tmp_path / "log", "--log-data")
    assert ended.code == 0
    summary = json.loads(ended.out)
    assert (summary["n_scored"], summary["cost"]) == (6, None)
    assert summary["signature"].startswith("gpt-stub@unverified pointwise#")
    assert not verify_run(out).findings
    for file in (*out.iterdir(), tmp_path / "log"):
        assert b"sk-hosted-secret" not in file.read_bytes()
    assert airjudge("export", out, "--format", "csv").code == 0


def test_an_address_outside_needs_allow_remote(airjudge: Command, data: Path, tmp_path: Path) -> None:
    address = ("--judge", "hosted", "--base-url", "https://192.0.2.7/v1", "--model", "m", "--out", tmp_path / "out")
    ended = airjudge("score", data, *address)
    assert ended.code == 3
    assert "--allow-remote" in ended.err


@pytest.mark.parametrize(
    "options",
    [
        ("--judge", "hosted"),
        ("--judge", "hosted", "--base-url", "http://127.0.0.1:9"),
        ("--judge", "hosted", "--base-url", "http://127.0.0.1:9", "--base-url", "http://127.0.0.1:8", "--model", "m"),
        ("--allow-remote",),
        ("--price-in", "1"),
        ("--price-out", "1"),
        ("--currency", "EUR"),
        ("--max-cost", "1"),
        ("--price-in", "nan", "--price-out", "1"),
        ("--judge", "hosted", "--base-url", "http://127.0.0.1:9", "--model", "m", "--api-key-env", "NOT_SET_HERE"),
    ],
)
def test_options_that_lack_their_other_half_are_refused(
    airjudge: Command, data: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    assert airjudge("score", data, "--out", tmp_path / "out", *options).code == 2


def test_the_cost_is_told_before_and_after(airjudge: Command, provider: HostedStub, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = airjudge("score", data, *hosted(provider, out), *PRICE, "--json")
    summary = json.loads(ended.out)
    # Prices are per million tokens, 2 for prompts and 10 for replies.
    amount = (summary["prompt_tokens"] * 2 + summary["completion_tokens"] * 10) / 1e6
    assert summary["cost"] == told(out)["cost"] == {"amount": pytest.approx(amount), "currency": "EUR"}
    (line,) = [one for one in ended.err.splitlines() if one.startswith("cost: about")]
    assert "6 requests" in line
    assert "(bytes / 4)" in line
    # Eight tokens a reply.
    assert "48 generated" in line
    asked = provider.bodies("Harbour")
    n_bytes = sum(len(text.encode()) for body in asked for text in contents(body))
    assert f"{n_bytes // 4:,} tokens in prompts" in line
    assert f"{amount:.4g} EUR" in airjudge("score", data, *hosted(provider, out), *PRICE).out


def test_evidence_is_in_the_estimate_as_if_all_were_supported(
    airjudge: Command, provider: HostedStub, tmp_path: Path
) -> None:
    data = write(tmp_path, row("A", 2), row("B", 3))
    ended = airjudge("score", data, *hosted(provider, tmp_path / "out"), *PRICE, "--evidence", "--json")
    (line,) = [one for one in ended.err.splitlines() if one.startswith("cost: about")]
    summary = json.loads(ended.out)
    assert summary["mean"] == 1  # so that the most that it can cost is what it costs
    assert summary["requests"] == 2 + 3 + 2 * 2 + 3 * 3
    assert f"without reasons, with evidence as if all were supported: {summary['requests']} requests" in line
    n_bytes = sum(len(text.encode()) for body in provider.bodies("Harbour") for text in contents(body))
    assert f"{n_bytes // 4:,} tokens in prompts" in line


def test_the_cost_of_the_first_samples_is_told_where_only_they_are_scored(
    airjudge: Command, provider: HostedStub, data: Path, tmp_path: Path
) -> None:
    ended = airjudge("score", data, *hosted(provider, tmp_path / "out"), *PRICE, "--limit", 1)
    (line,) = [one for one in ended.err.splitlines() if one.startswith("cost: about")]
    assert "for the first sample, without" in line
    told = json.loads(airjudge("check", data, "--judge", "hosted", *PRICE, "--limit", 1, "--json").out)
    assert f"{told['n_requests']} requests" in line
    assert 0 < told["n_requests"] < 6
    assert (told["n_samples"], told["limit"]) == (1, 1)
    assert "nothing behind the first 1 rows was read" in told["note"]
    ended = airjudge("score", data, *hosted(provider, tmp_path / "more"), *PRICE, "--limit", 100)
    assert "for the whole data set, without" in ended.err


def test_check_tells_the_cost_without_a_judge(airjudge: Command, data: Path) -> None:
    ended = airjudge("check", data, "--judge", "hosted", *PRICE, "--json")
    assert ended.code == 0
    found = json.loads(ended.out)
    # Six requests of eight tokens of reply each; a token of prompt is four bytes.
    amount = (found["prompt_bytes"] // 4 * 2 + 6 * 8 * 10) / 1e6
    assert found["cost"] == {"amount": pytest.approx(amount), "currency": "EUR"}
    assert (found["judge"], found["max_context"], found["n_requests"]) == ("hosted", None, 6)
    assert f"about {amount:.4g} EUR" in airjudge("check", data, "--judge", "hosted", *PRICE).out
    assert airjudge("check", data, "--judge", "hosted", "--price-in", "1").code == 2


def test_a_run_stops_at_its_maximal_cost_and_goes_on_with_a_higher_one(
    airjudge: Command, provider: HostedStub, data: Path, tmp_path: Path
) -> None:
    whole = json.loads(airjudge("score", data, *hosted(provider, tmp_path / "whole"), *PRICE, "--json").out)
    provider.clear()
    out, half = tmp_path / "out", whole["cost"]["amount"] * 0.5
    one_by_one = (*PRICE, "--concurrency", "1", "--json")
    ended = airjudge("score", data, *hosted(provider, out), *one_by_one, "--max-cost", half)
    assert ended.code == 3
    assert "--max-cost" in ended.err
    assert "the run will stop at --max-cost" in ended.err
    assert told(out)["state"] == "interrupted"
    assert 0 < told(out)["cost"]["amount"] <= half
    # Six questions cost the same each: three are half of all.
    assert told(out)["usage"]["requests"] == 3
    assert airjudge("score", data, *hosted(provider, out), *one_by_one, "--max-cost", half).code == 3
    assert told(out)["usage"]["requests"] == 3
    ended = airjudge("score", data, *hosted(provider, out), *one_by_one, "--max-cost", 1)
    assert ended.code == 0
    summary = json.loads(ended.out)
    assert summary["n_scored"] == 6
    assert summary["cost"] == whole["cost"]
    assert len(provider.bodies("Harbour N")) == 6


def test_what_is_in_flight_when_the_budget_is_spent_is_kept(
    airjudge: Command, provider: HostedStub, tmp_path: Path
) -> None:
    data = write(tmp_path, row("Wide", 9))
    provider.config.latency_s = 0.05
    out = tmp_path / "out"
    ended = airjudge("score", data, *hosted(provider, out), *PRICE, "--concurrency", "4", "--max-cost", "0.002")
    assert ended.code == 3
    n_paid = len(provider.bodies("Harbour Wide"))
    assert 0 < n_paid < 9
    assert told(out)["usage"]["requests"] == n_paid
    provider.clear()
    assert airjudge("score", data, *hosted(provider, out), *PRICE).code == 0
    assert len(provider.bodies("Harbour Wide")) == 9 - n_paid


def test_a_run_goes_on_at_the_same_provider_and_is_refused_for_another_host_or_model(
    airjudge: Command, provider: HostedStub, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    provider.faults.append(Fault(faults_of.respond(401), when=faults_of.mentions("Harbour N4")))
    assert airjudge("score", data, *hosted(provider, out), "--concurrency", "1").code == 3
    provider.faults.clear()
    with HostedStub(HostedConfig(port=0)) as other:
        ended = airjudge("score", data, *hosted(other, out))
        assert ended.code == 2
        assert "signature.server" in ended.err
    provider.config.model = "gpt-other"
    ended = airjudge("score", data, *hosted(provider, out))
    assert ended.code == 2
    assert "signature.judge: gpt-stub there, gpt-other now" in ended.err
    provider.config.model = "gpt-stub"
    provider.config.refuses = ("seed",)
    ended = airjudge("score", data, *hosted(provider, out))
    assert ended.code == 2
    assert "signature.decoding" in ended.err
    provider.config.refuses = ()
    provider.clear()
    assert airjudge("score", data, *hosted(provider, out)).code == 0
    assert not provider.bodies("Harbour N3 opened pier one.")
    fork = airjudge("score", data, *hosted(provider, tmp_path / "fork"), "--fork", out, "--json")
    assert json.loads(fork.out)["n_taken_over"] == 6


def test_what_is_left_out_and_not_enforced_is_told(
    airjudge: Command, provider: HostedStub, data: Path, tmp_path: Path
) -> None:
    provider.config.refuses = ("seed",)
    provider.config.schema = "ignored"
    ended = airjudge("score", data, *hosted(provider, tmp_path / "out"))
    assert ended.code == 0
    assert "without seed" in ended.err
    assert "reply schema not enforced" in ended.err
    # The stub's judge says 0 or 1 where nothing holds it to an object: each reply is a failure.
    assert "reply_refused: 6" in ended.out


def test_a_limit_of_requests_and_tokens_is_taken(
    airjudge: Command, provider: HostedStub, data: Path, tmp_path: Path
) -> None:
    limits = ("--requests-per-minute", "60000", "--tokens-per-minute", "6000000")
    assert airjudge("score", data, *hosted(provider, tmp_path / "out"), *limits).code == 0
    assert told(tmp_path / "out")["settings"]["requests_per_minute"] == 60000
    assert airjudge("score", data, *hosted(provider, tmp_path / "no"), "--requests-per-minute", "0").code == 2


def test_a_server_that_is_said_to_run_a_profile_is_asked_what_the_profile_says(
    airjudge: Command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = load_profile(PROFILE)
    assert profile.pointwise.phrasings == 2
    with Stub() as stub:
        monkeypatch.setenv("KEY", stub.api_key or "")
        address = ("--base-url", stub.base_url, "--api-key-env", "KEY")
        ended = airjudge("score", data, "--judge", PROFILE, *address, "--out", tmp_path / "out", "--json")
        assert ended.code == 0
        # Two phrasings and one without contexts, for each of six statements.
        assert len(stub.bodies("Harbour N")) == 18
        signature = told(tmp_path / "out")["signature"]
        assert (signature["judge"], signature["weights"]) == (PROFILE, "unverified")
        assert "phrasings=2" in signature["decoding"]
        ended = airjudge("score", data, "--judge", "no-such", *address, "--out", tmp_path / "no")
        assert ended.code == 2
        assert "models list" in ended.err
