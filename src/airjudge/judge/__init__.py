"""Ask a judge: connect to one, prove that it enforces our schemas, and get verdicts."""

from airjudge.judge.judge import NOTHING_KNOWN, Judge, JudgeSettings, fitting, unheard
from airjudge.judge.methods import METHODS, Numbered, OnVerdicts, Outcome

__all__ = [
    "METHODS",
    "NOTHING_KNOWN",
    "Judge",
    "JudgeSettings",
    "Numbered",
    "OnVerdicts",
    "Outcome",
    "fitting",
    "unheard",
]
