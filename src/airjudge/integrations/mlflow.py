"""A finished run in MLflow: its summary as metrics, its signature and settings as parameters, its files as artifacts.

Importing it turns MLflow's telemetry off, unless MLFLOW_DISABLE_TELEMETRY says otherwise.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from airjudge.backends.http import parse_address
from airjudge.errors import InputError
from airjudge.journal import file_hash
from airjudge.report.seal import digest_of
from airjudge.run import RUN, RunHeader, open_state
from airjudge.schema import Summary

if TYPE_CHECKING:
    from pydantic import JsonValue

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("DO_NOT_TRACK", "true")
try:
    from mlflow import MlflowClient, get_tracking_uri
    from mlflow.entities import Experiment, Metric, Param
    from mlflow.utils.validation import MAX_PARAM_VAL_LENGTH
except ImportError as error:
    msg = "airjudge.integrations.mlflow needs mlflow-skinny or mlflow: pip install 'airjudge[mlflow]'"
    raise ImportError(msg) from error

EXPERIMENT: Final = "airjudge"
TAG: Final = "airjudge.run_sha256"
"""Names a run as its report does: by the hash of all that it tells about itself."""

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):|(databricks)", re.IGNORECASE)
_FILES: Final = ("file", "sqlite", "mlflow-artifacts")
"""Schemes of stores in files; those of mlflow-artifacts are kept by the tracking server, which is looked at too."""
_PAIRS: Final = ("ci95", "micro_ci95", "bounds")
_NUMBERS: Final = (
    "n", "n_scored", "n_undefined", "n_failed", "mean", "micro_mean", "n_statements", "n_verdicts", "n_unjudged",
    "sample_coverage", "statement_coverage", "n_empty_contexts",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Logged:
    """Where a run is in MLflow; `is_new` is false if it was there already, and nothing was written."""

    run_id: str
    experiment_id: str
    is_new: bool


def log_run(
    run: Path | str, *, tracking_uri: str | None = None, experiment: str = EXPERIMENT, allow_remote: bool = False
) -> Logged:
    """Log a finished run; one that the experiment holds already is left as it is there.

    What is undefined is no metric. Parameters longer than MLflow takes are cut, and whole in `run.json`.

    Args:
        run: Its folder.
        tracking_uri: A store as MLflow names it, such as `sqlite:////results/mlflow.db`; None means the one that MLflow
            itself would take: MLFLOW_TRACKING_URI, else a database in this folder.
        experiment: Made if there is none of that name; files of a new one lie beside a database that is a file.
        allow_remote: Whether the run may leave this machine: its files quote the data.

    Raises:
        InputError: If the folder holds no finished run, a file of it was changed, or the store is elsewhere.
        StorageFailed: If the run cannot be read.
    """
    folder, state = Path(run), _finished(Path(run))
    uri = tracking_uri or get_tracking_uri()
    _refuse_remote(uri, allow_remote=allow_remote)
    client = MlflowClient(tracking_uri=uri)
    home = _experiment(client, uri, experiment)
    _refuse_remote(home.artifact_location, allow_remote=allow_remote)
    digest = digest_of(state)
    earlier = client.search_runs([home.experiment_id], f"tags.`{TAG}` = '{digest}' and attributes.status = 'FINISHED'")
    if earlier:
        return Logged(earlier[0].info.run_id, home.experiment_id, is_new=False)
    started = round(state.started.timestamp() * 1000)
    tags = {TAG: digest, "airjudge.signature": str(state.signature)}
    made = client.create_run(home.experiment_id, start_time=started, tags=tags, run_name=folder.resolve().name)
    status = "FAILED"
    try:
        _write(client, made.info.run_id, folder=folder, state=state)
        status = "FINISHED"
    finally:
        client.set_terminated(made.info.run_id, status, end_time=started + round(state.seconds * 1000))
    return Logged(made.info.run_id, home.experiment_id, is_new=True)


def _finished(folder: Path) -> RunHeader:
    state = open_state(folder)
    if not isinstance(state, RunHeader) or state.state != "finished":
        msg = f"the run in {folder} is not finished"
        raise InputError(msg, "Give the command that began it again; it goes on.")
    changed = [name for name, told in state.exports.items() if file_hash(folder / name) != told]
    if changed:
        msg = f"{', '.join(changed)} in {folder} are not as the run wrote them"
        raise InputError(msg, f"See what differs: airjudge verify {folder}")
    return state


def _refuse_remote(uri: str, *, allow_remote: bool) -> None:
    """Refuse a store that is neither a file here nor behind a server of this machine.

    Raises:
        InputError: If it is elsewhere, and that is not allowed.
    """
    found = _SCHEME.match(uri)
    scheme = (found[1] or found[2]).lower() if found else "file"  # a path
    if allow_remote or scheme in _FILES or (scheme in {"http", "https"} and _is_here(uri)):
        return
    msg = f"{uri} is not on this machine"
    raise InputError(msg, "Name a file (sqlite:////folder/mlflow.db); or pass allow_remote=True if the data may leave.")


def _is_here(url: str) -> bool:
    host = parse_address(url, allow_remote=True).host
    return host in {"localhost", "::1"} or re.fullmatch(r"127(\.\d+){3}", host) is not None


def _experiment(client: MlflowClient, uri: str, name: str) -> Experiment:
    """The experiment of a name; of a new one in a database of this machine, artifacts lie beside the database."""
    found = client.get_experiment_by_name(name)
    if found is not None:
        return found
    scheme, _, path = uri.partition(":///")
    place = (Path(path).absolute().parent / "mlartifacts" / name).as_uri() if scheme == "sqlite" else None
    return client.get_experiment(client.create_experiment(name, artifact_location=place))


def _write(client: MlflowClient, run_id: str, *, folder: Path, state: RunHeader) -> None:
    at = round((state.started.timestamp() + state.seconds) * 1000)
    metrics = [Metric(name, value, at, 0) for name, value in _metrics(state.summary)]
    params = [Param(name, _cut(text)) for name, text in _params(state)]
    client.log_batch(run_id, metrics=metrics, params=params)
    for name in (RUN, *state.exports):
        client.log_artifact(run_id, str(folder / name))


def _metrics(summary: Summary) -> Iterator[tuple[str, float]]:
    """Numbers of a summary that are defined; a pair as its low and its high end."""
    told = summary.model_dump()
    pairs = [(name, dict(zip(("low", "high"), told[name] or (), strict=False))) for name in _PAIRS]
    ends = {f"{name}_{end}": value for name, pair in pairs for end, value in pair.items()}
    for name, value in ({name: told[name] for name in _NUMBERS} | ends).items():
        if value is not None:
            yield name, float(value)


def _params(state: RunHeader) -> Iterator[tuple[str, str]]:
    """What made the scores, as text: the data, each part of the signature, each setting."""
    groups: Mapping[str, Mapping[str, JsonValue]] = {
        "data": {"path": state.data, "sha256": state.data_sha256},
        "signature": state.signature.model_dump(),
        "settings": state.settings,
    }
    for group, fields in groups.items():
        for name, value in fields.items():
            yield f"{group}.{name}", value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_PARAM_VAL_LENGTH else f"{text[: MAX_PARAM_VAL_LENGTH - 1]}…"
