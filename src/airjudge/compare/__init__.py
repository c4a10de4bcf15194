"""Judges held against each other and against people: do they agree, where not, and does a decision change."""

from airjudge.compare.comparing import compare_runs
from airjudge.compare.disagreements import write_disagreements
from airjudge.compare.records import PEOPLE, Comparison
from airjudge.compare.repeats import repeats_of_run
from airjudge.compare.settings import CompareSettings

__all__ = ["PEOPLE", "CompareSettings", "Comparison", "compare_runs", "repeats_of_run", "write_disagreements"]
