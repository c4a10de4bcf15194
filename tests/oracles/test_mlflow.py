"""A finished run in MLflow: what arrives there, that it arrives once, and that it goes nowhere else."""

import asyncio
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.utils.validation import MAX_PARAM_VAL_LENGTH

from airjudge import ContextRecall, Judge, JudgeSettings
from airjudge.errors import InputError
from airjudge.integrations.mlflow import TAG, log_run
from airjudge.report.seal import digest_of
from airjudge.run import RunSettings, open_state, score_dataset
from tests.rows import row
from tests.stub import Stub

STORES = ["file", "sqlite"] if importlib.util.find_spec("alembic") else ["file"]


@pytest.fixture(params=STORES)
def uri(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # MLflow 3.17 wants to be told
    return f"sqlite:///{tmp_path}/store/mlflow.db" if request.param == "sqlite" else f"file://{tmp_path}/store"


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.fixture
def run(stub: Stub, tmp_path: Path) -> Path:
    """A finished run: one sample of recall 1, one of 1/2, one whose prompt is too long."""
    rows = [row("A", 2), row("B", 2), row("C")]
    rows[1]["retrieved_contexts"] = ["Harbour B opened pier one."]
    rows[1]["statements"] = [
        {"id": "1", "text": "Harbour B opened pier one."},
        {"id": "2", "text": "Sven sang loudly."},
    ]
    rows[2]["retrieved_contexts"] = ["boat " * 100_000]
    data, out = tmp_path / "rows.jsonl", tmp_path / "run"
    data.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    judge = Judge.connect(stub.base_url, stub.model, api_key=stub.api_key, settings=JudgeSettings(concurrency=1))
    asyncio.run(score_dataset(data, ContextRecall(judge), out, settings=RunSettings()))
    return out


def test_summary_signature_settings_and_files_arrive(run: Path, uri: str, tmp_path: Path) -> None:
    logged = log_run(run, tracking_uri=uri, experiment="nightly")
    client, state = MlflowClient(tracking_uri=uri), open_state(run)
    found = client.get_run(logged.run_id)
    assert client.get_experiment(found.info.experiment_id).name == "nightly"
    assert (found.info.status, found.info.run_name) == ("FINISHED", "run")
    metrics = found.data.metrics
    # Scores 1, 1/2 and a failure of one statement: mean 3/4; if it were missed 1/2, if attributed 5/6.
    assert metrics["mean"] == metrics["micro_mean"] == 0.75
    assert (metrics["bounds_low"], metrics["bounds_high"]) == pytest.approx((0.5, 2.5 / 3))
    assert (metrics["n"], metrics["n_scored"], metrics["n_failed"], metrics["n_unjudged"]) == (3, 2, 1, 1)
    assert metrics["sample_coverage"] == pytest.approx(2 / 3)
    assert metrics["ci95_low"] <= 0.75 <= metrics["ci95_high"]
    params = found.data.params
    assert params["signature.enforcement"] == "outlines"
    assert params["signature.method"] == params["settings.method"] == "pointwise"
    assert params["data.sha256"] == state.data_sha256
    assert found.data.tags[TAG] == digest_of(state)
    assert found.data.tags["airjudge.signature"] == str(state.signature)
    names = ("run.json", "samples.jsonl", "samples.parquet", "statements.parquet", "summary.json")
    assert tuple(sorted(one.path for one in client.list_artifacts(logged.run_id))) == names
    for name in names:
        copies = list((tmp_path / "store").rglob(name))
        assert [one.read_bytes() for one in copies] == [(run / name).read_bytes()]


def test_a_run_is_logged_once_in_each_experiment(run: Path, uri: str) -> None:
    first = log_run(run, tracking_uri=uri)
    again = log_run(str(run), tracking_uri=uri)
    other = log_run(run, tracking_uri=uri, experiment="other")
    assert (first.is_new, again.is_new, other.is_new) == (True, False, True)
    assert again.run_id == first.run_id
    assert len(MlflowClient(tracking_uri=uri).search_runs([first.experiment_id])) == 1


def test_a_logging_that_broke_off_does_not_count(run: Path, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(MlflowClient, "log_artifact", breaks)
        with pytest.raises(KeyboardInterrupt):
            log_run(run, tracking_uri=uri)
    logged = log_run(run, tracking_uri=uri)
    runs = MlflowClient(tracking_uri=uri).search_runs([logged.experiment_id])
    assert {one.info.run_id == logged.run_id: one.info.status for one in runs} == {True: "FINISHED", False: "FAILED"}


def test_a_long_setting_is_cut_to_what_mlflow_takes(run: Path, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = open_state(run)
    long = state.model_copy(update={"settings": {**state.settings, "note": "x" * 10_000}})
    monkeypatch.setattr("airjudge.integrations.mlflow.open_state", lambda _: long)
    logged = log_run(run, tracking_uri=uri)
    note = MlflowClient(tracking_uri=uri).get_run(logged.run_id).data.params["settings.note"]
    assert note == "x" * (MAX_PARAM_VAL_LENGTH - 1) + "…"


@pytest.mark.parametrize(
    "remote",
    [
        "https://mlflow.example.com",
        "HTTPS://mlflow.example.com",
        "http://localhost.example.com:5000",
        "http://localhost:5000@example.com",
        "http://192.0.2.1:5000",
        "databricks",
        "databricks://profile",
        "postgresql://localhost/mlflow",
        "s3://bucket/mlruns",
    ],
)
def test_a_store_elsewhere_is_refused_before_it_is_contacted(run: Path, remote: str) -> None:
    with pytest.raises(InputError, match=r"is not on this machine|no user name"):
        log_run(run, tracking_uri=remote)


def test_an_experiment_whose_files_lie_elsewhere_is_refused(run: Path, uri: str) -> None:
    MlflowClient(tracking_uri=uri).create_experiment("airjudge", artifact_location="s3://bucket/runs")
    with pytest.raises(InputError, match="s3://bucket/runs"):
        log_run(run, tracking_uri=uri)


def test_what_is_no_finished_run_is_refused(run: Path, uri: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no run"):
        log_run(tmp_path, tracking_uri=uri)
    (run / "summary.json").write_text("{}")
    with pytest.raises(InputError, match=r"summary\.json in .* not as the run wrote"):
        log_run(run, tracking_uri=uri)


LOGGING = """
import sys
def hook(event, args):
    if event == "socket.connect" or event.startswith(("socket.getaddrinfo", "socket.gethostby")):
        print("SEEN", event, args[1:])
sys.addaudithook(hook)
from airjudge.integrations.mlflow import log_run
print("LOGGED", log_run(sys.argv[1], tracking_uri=sys.argv[2]).is_new)
"""


def test_nobody_is_contacted(run: Path, uri: str) -> None:
    # An environment without the switches that this folder sets: the module's own have to do.
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(run.parent), "MLFLOW_ALLOW_FILE_STORE": "true"}
    bare["PYTHONPATH"] = ":".join(one for one in sys.path if one)
    command = [sys.executable, "-c", LOGGING, str(run), uri]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=bare, timeout=120)
    assert "LOGGED True" in ended.stdout, ended.stderr
    assert "SEEN" not in ended.stdout
