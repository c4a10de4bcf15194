"""Our metric in the tools of others: what a tool that is not installed costs."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
sys.modules[{library!r}] = None
try:
    import airjudge.integrations.{module}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("llama_index", "llama_index", "llama-index"),
        ("mlflow", "mlflow", "mlflow"),
        ("pytest_plugin", "pytest", "pytest"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(module: str, library: str, extra: str) -> None:
    code = WITHOUT.format(module=module, library=library)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"airjudge.integrations.{module} needs {library.replace('_', '-')}" in ended.stdout
    assert f"pip install 'airjudge[{extra}]'" in ended.stdout
