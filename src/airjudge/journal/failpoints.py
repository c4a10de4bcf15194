"""Named points at which a test can end the process as a power cut would.

For tests alone: AIRJUDGE_FAILPOINT=NAME ends it at the first passage of that point, NAME:N at the Nth.
"""

import os
import signal
from collections import Counter
from typing import Literal

Failpoint = Literal["before_commit", "after_commit", "during_export", "before_rename", "after_rename", "after_finish"]
_passed: Counter[str] = Counter()


def failpoint(name: Failpoint) -> None:
    """End this process by SIGKILL, if the environment asks for it at this point."""
    wanted, _, count = os.environ.get("AIRJUDGE_FAILPOINT", "").partition(":")
    if wanted != name:
        return
    _passed[name] += 1
    if _passed[name] == int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)
