"""airjudge: context recall by a judge that never leaves your box."""

from importlib import import_module
from typing import TYPE_CHECKING

from airjudge.version import __version__

if TYPE_CHECKING:
    from airjudge.judge import Judge, JudgeSettings
    from airjudge.metrics import (
        ContextRecall,
        GradedContextRecall,
        IDBasedContextRecall,
        NonLLMContextRecall,
        RecallResult,
    )

__all__ = [
    "ContextRecall",
    "GradedContextRecall",
    "IDBasedContextRecall",
    "Judge",
    "JudgeSettings",
    "NonLLMContextRecall",
    "RecallResult",
    "__version__",
]

_HOMES = {
    "ContextRecall": "airjudge.metrics",
    "GradedContextRecall": "airjudge.metrics",
    "IDBasedContextRecall": "airjudge.metrics",
    "Judge": "airjudge.judge",
    "JudgeSettings": "airjudge.judge",
    "NonLLMContextRecall": "airjudge.metrics",
    "RecallResult": "airjudge.metrics",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `airjudge --help` need not wait for it."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
