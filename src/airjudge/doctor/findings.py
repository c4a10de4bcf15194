"""What the doctor says of one thing: how it is, what follows from that, and the line that mends it."""

from typing import Literal

from airjudge.schema import Record

Level = Literal["ok", "note", "warning", "serious"]
"""`serious` is what data could leave by, or what makes scores worthless; `note` is to be known, not mended."""


class Finding(Record):
    """One thing that was looked at.

    `area` groups findings for people; `consequence` and `fix` are empty where all is well.
    """

    area: str
    level: Level
    found: str
    consequence: str = ""
    fix: str = ""
