"""Run a command; end it, and all that it started, when it ends, when asked to, or when our parent dies.

Run as a script, `python -P supervisor.py PARENT_PID PROGRAM [ARGUMENT...]`, in a session of its own:
it stays for as long as vLLM does and must neither import the package nor get the terminal's Ctrl-C.
Being a subreaper, it inherits every descendant whose parent has died, so that none is out of its
reach, whatever session or process group it moved to. From signal to silence it takes at most
about eight seconds.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

POLL_S = 0.2
GRACE_S = 5.0
"""For an orderly end, in which vLLM removes its shared memory; idle it takes under a second."""

ORPHANS_S = 1.0
"""For helpers that end by themselves once their parent has, Python's resource trackers among them."""

KILL_S = 2.0
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(parent: int, command: list[str]) -> int:
    """Supervise until there is nothing left; the exit code is the command's, 128 + N after signal N."""
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _frame: asked.append(got))
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    # preexec_fn is safe here: this process has one thread.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_end_with_us)  # noqa: PLW1509
    while child.poll() is None and not asked and os.getppid() == parent:
        time.sleep(POLL_S)
    code = _end_child(child)
    _end_orphans()
    return code if code >= 0 else 128 - code


def _end_child(child: "subprocess.Popen[bytes]") -> int:
    """End the command, in order if it can."""
    child.terminate()
    try:
        return child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def _end_orphans() -> None:
    """End what the command left behind; one that forks while it is killed is met in the next round."""
    psutil.wait_procs(_descendants(), timeout=ORPHANS_S)
    deadline = time.monotonic() + KILL_S
    while (left := _descendants()) and time.monotonic() < deadline:
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=POLL_S)


def _descendants() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def _end_with_us() -> None:
    """Ask the kernel to end the command should this process itself be killed."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def command(program: list[str]) -> list[str]:
    """The command that runs a program under this supervisor, for the current process as parent."""
    return [sys.executable, "-P", str(Path(__file__).resolve()), str(os.getpid()), *program]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
