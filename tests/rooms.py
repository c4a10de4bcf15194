"""A room without a network: commands in a network namespace of their own, whose loopback alone is up."""

import subprocess
from collections.abc import Sequence

# SIOCSIFFLAGS with IFF_UP | IFF_LOOPBACK | IFF_RUNNING: not every machine has the command `ip`.
_LOOPBACK_UP = """
import fcntl, os, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    fcntl.ioctl(one, 0x8914, struct.pack("16sh", b"lo", 0x49))
os.execvp(sys.argv[1], sys.argv[1:])
"""


def in_a_room(command: Sequence[str]) -> list[str]:
    """Give the command line that runs a command where there is no route but to loopback."""
    return ["unshare", "--map-root-user", "--net", "python3", "-c", _LOOPBACK_UP, *command]


def missing_room() -> str:
    """Say why there can be no such room here; empty if there can."""
    found = subprocess.run(in_a_room(["true"]), capture_output=True, text=True, check=False)
    return found.stderr.strip() if found.returncode else ""
