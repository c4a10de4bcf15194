"""The first seed's script, with nothing but its import line changed, as a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ready import require_judge
from tests.stub import Stub, StubConfig

SCRIPT = Path(__file__).parent / "seeds" / "ragas_context_recall.py"
MODEL = "gpt-4o-mini"
JUDGE = "qwen2.5-coder-1.5b"
SERVE = [sys.executable, "-c", "from airjudge.cli import main; main()", "serve"]


def printed(base_url: object, api_key: object) -> str:
    """Run the script where its two variables name a server, and give what it prints."""
    named = {"OPENAI_BASE_URL": str(base_url), "OPENAI_API_KEY": str(api_key)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AIRJUDGE_") or "CACHE" in name}
    ended = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=300, env=kept | named, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return ended.stdout


@pytest.fixture
def default_judge_ready() -> None:
    """Skip where vLLM or the weights of the default judge are missing; in CI that is a failure."""
    require_judge(JUDGE)


def test_the_import_line_is_all_that_names_us() -> None:
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if "airjudge" in line] == [
        "from airjudge.compat.ragas import ContextRecall, llm_factory"
    ]


def test_the_script_runs_on_the_server_that_its_two_variables_name() -> None:
    # The stub rules by words shared with the contexts; the first sentence is one of them, the second shares none.
    with Stub(StubConfig(model=MODEL)) as stub:
        assert printed(stub.base_url, stub.api_key) == "0.5\n"


@pytest.mark.server
@pytest.mark.timeout(1200)
def test_the_script_prints_one_half_on_the_default_judge(default_judge_ready: None) -> None:
    command = [*SERVE, JUDGE, "--served-model-name", MODEL, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            served = json.loads(serving.stdout.readline())
            assert printed(served["base_url"], served["api_key"]) == "0.5\n"
        finally:
            serving.terminate()
