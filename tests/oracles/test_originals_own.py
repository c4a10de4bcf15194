"""The originals' own public tests of these metrics, run on airjudge's doors.

ragas ships its tests in its source, which `make test-oracles` unpacks by the lock's hash. The wheels of opik and
deepeval hold none, nor does deepeval's source hold any of this metric; opik's source cannot be unpacked by pip.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import files
from pathlib import Path
from typing import Any

import pytest

import airjudge
from tests.oracles.replaying import Replay
from tests.stub import overlap_judge

SOURCE = Path(sys.prefix) / "ragas"

SELECTED = {
    "tests/e2e/metrics_migration/test_context_recall_migration.py": 3,
    "tests/unit/llms/test_instructor_factory.py::test_llm_factory_missing_model": 1,
}
"""What is run, with the number of its tests. The first compares the old metric, which stays original, with ours."""

OTHERS = {
    "tests/conftest.py": "no tests",
    "tests/utils/": "no tests: what makes models and draws figures for other tests",
    "tests/benchmarks/": "times ragas' evaluate() over a data set of the hub",
    "tests/docs/": "runs the examples of ragas' documentation on hosted models",
    "tests/e2e/metrics_migration/": "about other metrics",
    "tests/e2e/test_adaptation.py": "translates the old metric's prompts by a hosted model, without a client",
    "tests/e2e/test_amnesty_in_ci.py": "needs a hosted model and a data set of the hub for evaluate()",
    "tests/e2e/test_": "about evaluate(), test sets, DSPy and model wrappers of other libraries",
    "tests/unit/llms/test_instructor_factory.py": "the other tests are about which client of instructor is made",
    "tests/unit/llms/": "about adapters and clients of other libraries",
    "tests/unit/test_metric.py": "about base classes of metrics to be written, which are not here",
    "tests/unit/test_metric_decorators.py": "about decorators that make metrics, which are not here",
    "tests/unit/test_import.py": "about ragas' own modules",
    "tests/unit/": "about other metrics and parts of ragas",
}
"""Why the other files that name what our doors have are not run; the longest name that fits is meant."""

NAMES = re.compile(r"context_recall|ContextRecall|MetricResult|llm_factory")


@pytest.fixture(scope="module")
def source() -> Path:
    if not (SOURCE / "tests").is_dir():
        reason = "the source of ragas is not here: run make test-oracles"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return SOURCE


def classified(body: Mapping[str, Any]) -> str:
    """Rule on what ragas' prompt ends with, as the stub rules on a reference."""
    asked = body["messages"][-1]["content"].rpartition("input: ")[2].removesuffix("\nOutput: ")
    fields = json.loads(asked)
    return overlap_judge([{"role": "user", "content": f"{fields['context']}\nReference: {fields['answer']}"}])


def test_the_tests_of_ragas_pass_on_our_door(source: Path, replay: Replay) -> None:
    replay.replies = classified
    replay.stub.config.other_models = ("gpt-3.5-turbo",)
    alone = ["no:cacheprovider", "no:deepeval", "no:langsmith_plugin", "no:opik", "redirecting"]
    plugins = [word for name in alone for word in ("-p", name)]
    ours = [Path(__file__).parent, Path(airjudge.__file__).parents[1]]
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(source), "-o", "asyncio_mode=auto"]
    ended = subprocess.run(
        [*command, *plugins, "-W", "ignore", *SELECTED],
        capture_output=True,
        text=True,
        check=False,
        cwd=source,
        timeout=600,
        env=os.environ | replay.environment | {"PYTHONPATH": os.pathsep.join(map(str, ours))},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{sum(SELECTED.values())} passed" in ended.stdout
    assert "skipped" not in ended.stdout.splitlines()[-1]
    # Both were asked: the original in single calls, ours on each statement.
    assert replay.asked
    assert any(one.schema_name == "verdict" for one in replay.stub.chats)


def test_each_file_that_names_what_we_offer_is_run_or_has_a_reason_not_to(source: Path) -> None:
    naming = [
        path.relative_to(source).as_posix()
        for path in (source / "tests").rglob("*.py")
        if NAMES.search(path.read_text(encoding="utf-8"))
    ]
    run = {name.split("::")[0] for name in SELECTED}
    assert run <= set(naming)
    assert [name for name in naming if name not in run and not any(map(name.startswith, OTHERS))] == []


@pytest.mark.parametrize("package", ["opik", "deepeval"])
def test_other_originals_ship_no_tests_of_their_metrics(package: str) -> None:
    shipped = [str(one) for one in files(package) or [] if re.search(r"(^|/)tests?/test_\w+\.py$", str(one))]
    assert [name for name in shipped if "recall" in name.lower()] == []
