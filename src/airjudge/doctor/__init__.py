"""Looks at a machine and a judge's server before private data are trusted to them, and says what it found."""

from airjudge.doctor.examining import Examined, Target, examine
from airjudge.doctor.findings import Finding, Level

__all__ = ["Examined", "Finding", "Level", "Target", "examine"]
