"""Whom the originals contact beside the judge while they score one sample: by default, and with all switches off.

What they try is refused, so the lists are of attempts; a test that the silence holds means nothing unless the
same guard notes them without it. ragas#2603, deepeval#757, #2092
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard import Guard
from tests.oracles.replaying import Replay
from tests.oracles.silence import SWITCHES

RAGAS = """
from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import ContextRecall
metric = ContextRecall(llm=llm_factory("judge", client=AsyncOpenAI()))
print(metric.score(user_input="q", retrieved_contexts=["c"], reference="r").value)
"""
OPIK = """
from opik.evaluation.metrics import ContextRecall
metric = ContextRecall(model="openai/judge")
print(metric.score(input="q", output="o", expected_output="e", context=["c"]).value)
"""
DEEPEVAL = """
import os
from deepeval.metrics import ContextualRecallMetric
from deepeval.models import GPTModel
from deepeval.test_case import LLMTestCase
model = GPTModel(model="judge", base_url=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"],
                 cost_per_input_token=0, cost_per_output_token=0)
metric = ContextualRecallMetric(model=model, include_reason=False)
case = LLMTestCase(input="q", actual_output="o", expected_output="e", retrieval_context=["c"])
print(metric.measure(case))
"""
REPLIES = {
    RAGAS: {"classifications": [{"statement": "r", "reason": "b", "attributed": 1}]},
    OPIK: {"context_recall_score": 1.0, "reason": "b"},
    DEEPEVAL: {"verdicts": [{"verdict": "yes", "reason": "b"}]},
}


def measure(replay: Replay, script: str, *, loud: bool, home: Path) -> None:
    """Score a sample by an original in a process of its own, with the switches on or off."""
    replay.replies = [json.dumps(REPLIES[script])]
    environment = {name: value for name, value in os.environ.items() if not (loud and name in SWITCHES)}
    environment |= replay.environment | {"HOME": str(home), "PYTHONWARNINGS": "ignore"}
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        cwd=home,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert "1.0" in ended.stdout.splitlines()


@pytest.mark.parametrize("script", [RAGAS, OPIK, DEEPEVAL], ids=["ragas", "opik", "deepeval"])
def test_with_all_switches_off_an_original_contacts_the_judge_alone(
    replay: Replay, guard: Guard, script: str, tmp_path: Path
) -> None:
    measure(replay, script, loud=False, home=tmp_path)
    assert guard.take() == []


@pytest.mark.parametrize(
    ("script", "hosts"),
    [
        (RAGAS, {"t.explodinggradients.com"}),
        (
            OPIK,
            {"o168229.ingest.us.sentry.io", "raw.githubusercontent.com", "stats.comet.com", "www.comet.com"},
        ),
        (DEEPEVAL, {"us.i.posthog.com"}),
    ],
    ids=["ragas", "opik", "deepeval"],
)
def test_by_default_an_original_contacts_its_makers_too(
    replay: Replay, guard: Guard, script: str, hosts: set[str], tmp_path: Path
) -> None:
    measure(replay, script, loud=True, home=tmp_path)
    assert hosts <= {one.host for one in guard.take()}
