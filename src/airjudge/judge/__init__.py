"""Ask a judge: connect to one, prove that it enforces our schemas, and get verdicts."""

from airjudge.judge.enforcement import prove
from airjudge.judge.facts import ServerFacts
from airjudge.judge.flow import first_context_of, together
from airjudge.judge.judge import Judge
from airjudge.judge.loops import refuse_running_loop
from airjudge.judge.methods import METHODS, NOTHING_KNOWN, Numbered, OnVerdicts, Outcome, fitting, unheard, verdict_of
from airjudge.judge.settings import JudgeSettings, check_method

__all__ = [
    "METHODS",
    "NOTHING_KNOWN",
    "Judge",
    "JudgeSettings",
    "Numbered",
    "OnVerdicts",
    "Outcome",
    "ServerFacts",
    "check_method",
    "first_context_of",
    "fitting",
    "prove",
    "refuse_running_loop",
    "together",
    "unheard",
    "verdict_of",
]
