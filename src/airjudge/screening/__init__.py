"""Texts of a sample that look as if they were aimed at a judge: marked for people, never dropped."""

from airjudge.screening.screening import MAX_SUSPICIONS, screen, screened

__all__ = ["MAX_SUSPICIONS", "screen", "screened"]
