"""The core is light: importing it or asking for help loads no model library."""

import subprocess
import sys

import pytest

HEAVY = {
    "accelerate", "gguf", "huggingface_hub", "outlines", "pyarrow", "safetensors", "scipy", "tokenizers", "torch",
    "transformers", "vllm",
}  # fmt: skip
HELP = "import sys; from airjudge.cli import main; sys.argv = ['airjudge', {}]; main()"


def imported_packages(code: str) -> set[str]:
    """Run code in a fresh interpreter and return the top-level packages that it imported."""
    run = subprocess.run([sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True)
    rows = [line for line in run.stderr.splitlines() if line.startswith("import time:")]
    return {row.rsplit("|", 1)[1].strip().partition(".")[0] for row in rows}


def test_an_import_outside_the_core_is_seen() -> None:
    # The check itself can fail: safetensors is installed and heavy, and light to load.
    pytest.importorskip("safetensors")
    assert imported_packages("import airjudge, safetensors") & HEAVY == {"safetensors"}


def test_importing_airjudge_loads_no_model_library() -> None:
    packages = imported_packages("import airjudge")
    assert "airjudge" in packages
    assert packages & HEAVY == set()


@pytest.mark.parametrize(
    "words",
    [
        "'--help'",
        "'--version'",
        "'models', '--help'",
        "'score', '--help'",
        "'check', '--help'",
        "'compare', '--help'",
        "'calibrate', '--help'",
        "'report', '--help'",
        "'import-verdicts', '--help'",
        "'batch', 'export', '--help'",
        "'doctor', '--help'",
        "'bundle', '--help'",
    ],
)
def test_asking_the_command_for_help_loads_no_model_library(words: str) -> None:
    packages = imported_packages(HELP.format(words))
    assert "typer" in packages
    assert packages & HEAVY == set()


def test_only_the_metric_that_measures_likeness_loads_what_measures_it() -> None:
    code = "from airjudge import IDBasedContextRecall, NonLLMContextRecall; {}()"
    assert "rapidfuzz" not in imported_packages(code.format("IDBasedContextRecall"))
    assert "rapidfuzz" in imported_packages(code.format("NonLLMContextRecall"))


def test_public_names_can_be_imported_without_a_model_library() -> None:
    packages = imported_packages("from airjudge import *")
    assert packages & HEAVY == set()
