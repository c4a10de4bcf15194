"""Ask a judge: connect to one, prove that it enforces our schemas, and get verdicts."""

from airjudge.judge.flow import first_context_of, together
from airjudge.judge.judge import NOTHING_KNOWN, Judge, fitting, unheard
from airjudge.judge.methods import METHODS, Numbered, OnVerdicts, Outcome
from airjudge.judge.settings import JudgeSettings

__all__ = [
    "METHODS",
    "NOTHING_KNOWN",
    "Judge",
    "JudgeSettings",
    "Numbered",
    "OnVerdicts",
    "Outcome",
    "first_context_of",
    "fitting",
    "together",
    "unheard",
]
