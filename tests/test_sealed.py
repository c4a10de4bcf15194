"""The whole road into a room without a network: pack, carry in, install, score, report."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from airjudge.bundle import Wanted, make_bundle
from airjudge.bundle.wanted import this_python
from airjudge.errors import BundleFailed
from tests.rooms import in_a_room, missing_room

SAMPLE = {"user_input": "When?", "reference": "It leaves at six.", "retrieved_contexts": ["It leaves at six."]}


@pytest.mark.server
@pytest.mark.timeout(1500)
@pytest.mark.fetches_packages
def test_a_bundle_is_installed_and_scores_where_there_is_no_network(smollm_ready: None, tmp_path: Path) -> None:
    if reason := missing_room():
        pytest.skip(f"no room without a network can be made here: {reason}")
    here = {"device": "cpu", "judges": ["smollm2-135m"], "python": this_python(), "machine": os.uname().machine}
    wanted = Wanted.model_validate(here)
    try:
        make_bundle(wanted, tmp_path / "bundle")
    except BundleFailed as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"the packages cannot be brought: {error}")
    target, cache = tmp_path / "there", tmp_path / "cache"

    def inside(*command: object) -> str:
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "AIRJUDGE_CACHE": str(cache),
            "PYTHON": sys.executable,
        }
        ended = subprocess.run(
            in_a_room([str(one) for one in command]), capture_output=True, text=True, env=environment, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    told = inside(tmp_path / "bundle" / "install.sh", target)
    assert "signature: smollm2-135m@" in told  # the demo ran
    shutil.rmtree(tmp_path / "bundle")
    command = target / "bin" / "airjudge"
    data, run = tmp_path / "data.jsonl", tmp_path / "run"
    data.write_text(json.dumps(SAMPLE) + "\n")
    summary = json.loads(inside(command, "score", data, "--judge", "smollm2-135m", "--out", run, "--json"))
    assert summary["n_scored"] == 1
    inside(command, "report", run, "-o", tmp_path / "report.html")
    assert "It leaves at six." in (tmp_path / "report.html").read_text()
    assert "everything holds" in inside(command, "verify", run)
