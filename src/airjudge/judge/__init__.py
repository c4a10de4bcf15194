"""Ask a judge: connect to one, prove that it enforces our schemas, and get verdicts."""

from airjudge.judge.judge import Judge, JudgeSettings
from airjudge.judge.methods import METHODS, Outcome

__all__ = ["METHODS", "Judge", "JudgeSettings", "Outcome"]
