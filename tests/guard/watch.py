"""Watches whom a Python process contacts: an audit hook refuses all but loopback, and notes who was tried.

`tests.guard` puts a copy of this file, called sitecustomize.py, into a folder that comes first on PYTHONPATH, so that
every Python started by a test runs it; the hook puts that folder back where a test hands a process an environment of
its own. It imports next to nothing, since it runs at each start and notes until the very end of a process.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType
    from typing import Any

FOLDER = __file__.rpartition("/")[0]
NOTES = f"{FOLDER}/notes"
ALLOWED = f"{FOLDER}/allowed"

ADDRESS_AT = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1, "socket.getnameinfo": 0}
LOOKUPS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
STARTS = {"subprocess.Popen", "os.exec", "os.posix_spawn"}
HERE = {"", "localhost", "None", "0.0.0.0", "::1", "::"}

PIP = "python -m pip"
"""Where this is allowed, pip alone may contact anybody."""
N_FRAMES = 16


class ContactRefused(ConnectionRefusedError):
    """A contact outside of this machine; libraries take it for a missing network."""


def hear(event: str, arguments: Sequence[object]) -> None:
    """Refuse and note a contact outside of this machine, or a Python that would be started without this hook."""
    if event in STARTS:
        _guard_child(event, arguments)
    elif (host := _host_of(event, arguments)) is not None and not _is_here(host) and not _is_allowed(host):
        _refuse(host, event)


def _host_of(event: str, arguments: Sequence[object]) -> str | None:
    """Give the host that an event is about; None if it is about none, or about a socket that has a path."""
    if event in LOOKUPS:
        return _text(arguments[0])
    if event not in ADDRESS_AT:
        return None
    address = arguments[ADDRESS_AT[event]]
    return _text(address[0]) if isinstance(address, tuple) and isinstance(address[0], str | bytes) else None


def _text(host: object) -> str:
    return host.decode(errors="replace") if isinstance(host, bytes) else str(host)


def _is_here(host: str) -> bool:
    return host in HERE or host.startswith(("127.", "::ffff:127."))


def _is_allowed(host: str) -> bool:
    with open(ALLOWED, encoding="utf-8") as file:  # noqa: PTH123 - pathlib would be imported at each start
        allowed = file.read().splitlines()
    return host in allowed or (PIP in allowed and " -m pip " in " ".join(sys.orig_argv))


def _guard_child(event: str, arguments: Sequence[Any]) -> None:
    """Bring PYTHONPATH into the environment of a process that is about to start, or refuse to start it."""
    command = [_text(one) for one in arguments[1]] if isinstance(arguments[1], list | tuple) else [_text(arguments[1])]
    environment = os.environ if arguments[-1] is None else arguments[-1]
    path = environment.get("PYTHONPATH", "")
    escape = _escape(command)
    if FOLDER not in path.split(":"):
        if event == "subprocess.Popen" or environment is os.environ:
            environment["PYTHONPATH"] = f"{FOLDER}:{path}" if path else FOLDER
        else:  # the others have read it by now
            escape = escape or command[0]
    if escape and not _is_allowed(escape):
        _refuse(escape, "starts without the guard")


def _escape(command: Sequence[str]) -> str:
    """Give the option by which a Python takes neither PYTHONPATH nor sitecustomize; empty if there is none."""
    if not command or not command[0].rpartition("/")[2].startswith("python"):
        return ""
    return next((f"python {word}" for word in _switches(command[1:]) if set("IES") & set(word)), "")


def _switches(words: Sequence[str]) -> Iterator[str]:
    """Give the options of an interpreter that are letters, up to what it runs."""
    rest = iter(words)
    for word in rest:
        if word in {"-X", "-W"}:
            next(rest, None)
        elif not word.startswith("-") or word.startswith(("-c", "-m")):
            return
        elif not word.startswith(("-X", "-W", "--")):
            yield word


def _refuse(what: str, event: str) -> None:
    line = ascii((what, event, " ".join(sys.orig_argv)[:200], os.environ.get("PYTEST_CURRENT_TEST", ""), _frames()))
    file = os.open(NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.close(file)
    raise ContactRefused(what)


def _frames() -> list[str]:
    """Give the last frames outside of this file, the innermost first."""
    frame: FrameType | None = sys._getframe()
    frames: list[str] = []
    while frame is not None and len(frames) < N_FRAMES:
        if frame.f_code.co_filename != __file__:
            frames.append(f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}")
        frame = frame.f_back
    return frames


if __name__ == "sitecustomize":
    sys.addaudithook(hear)
