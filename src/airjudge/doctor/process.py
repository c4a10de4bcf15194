"""What can be told of a server's process where it runs on this machine: its arguments and its variables."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import psutil

from airjudge.doctor.findings import Finding, Level
from airjudge.server import OFFLINE

AREA: Final = "process"


class Seen(NamedTuple):
    """A process as its owner may see it."""

    pid: int
    arguments: Sequence[str]
    environment: Mapping[str, str] | None


class _Bad(NamedTuple):
    level: Level
    found: str
    consequence: str
    fix: str


_ARGUMENTS: Final[Mapping[str, _Bad]] = {
    "--api-key": _Bad(
        "warning",
        "its API key stands among its arguments",
        "every user of this machine can read it in the list of processes",
        "pass it as VLLM_API_KEY, or: airjudge serve",
    ),
    "--enable-log-requests": _Bad(
        "serious",
        "it logs requests",
        "your data stand in its log",
        "leave --enable-log-requests out",
    ),
    "--trust-remote-code": _Bad(
        "warning",
        "it runs code that came with the weights (--trust-remote-code)",
        "whoever made the weights runs programs on this machine",
        "leave --trust-remote-code out; no shipped judge needs it",
    ),
}
_VARIABLES: Final[Mapping[str, tuple[re.Pattern[str], _Bad]]] = {
    "VLLM_SERVER_DEV_MODE": (
        re.compile(r"[1-9]"),
        _Bad("serious", "it runs in developer mode", "routes that control the engine are open", "unset it"),
    ),
    "VLLM_LOGGING_LEVEL": (
        re.compile("debug", re.IGNORECASE),
        _Bad("serious", "it logs at level DEBUG", "prompts may stand in its log", "unset it"),
    ),
    "VLLM_DEBUG_LOG_API_SERVER_RESPONSE": (
        re.compile("1|true", re.IGNORECASE),
        _Bad("serious", "it logs replies", "what the judge says of your data stands in its log", "unset it"),
    ),
}
_WEIGHTS: Final = ("--model", "--tokenizer")
_QUIET: Final = ("VLLM_NO_USAGE_STATS", "VLLM_DO_NOT_TRACK", "DO_NOT_TRACK")


def listening_on(port: int) -> Seen | None:
    """The process that listens on a TCP port here; None if there is none, or it may not be looked at."""
    for process in psutil.process_iter():
        try:
            if any(one.laddr.port == port for one in process.net_connections("tcp") if one.status == "LISTEN"):
                return Seen(process.pid, process.cmdline(), _environment(process))
        except psutil.Error:
            continue  # gone, or another user's
    return None


def of_process(seen: Seen) -> Iterator[Finding]:
    """What its arguments and variables say of it, if it is a vLLM."""
    if not any("vllm" in word.lower() for word in seen.arguments):
        yield Finding(
            area=AREA,
            level="note",
            found=f"process {seen.pid}, which holds the port, is no vLLM",
            consequence="whether the server behind it logs requests, or sends usage statistics, cannot be told",
            fix="name the vLLM server itself with --base-url",
        )
        return
    yield from _of_weights(seen)
    bad = [one for name, one in _ARGUMENTS.items() if any(_is_option(word, name) for word in seen.arguments)]
    if seen.environment is None:
        yield Finding(
            area=AREA,
            level="note",
            found=f"the variables of process {seen.pid} cannot be read from here",
            consequence="whether it sends usage statistics cannot be told",
            fix="run airjudge doctor as the user who started it",
        )
    else:
        bad += [one for name, (pattern, one) in _VARIABLES.items() if pattern.search(seen.environment.get(name, ""))]
        yield from _of_quiet(seen.environment)
    for one in bad:
        yield Finding(area=AREA, level=one.level, found=one.found, consequence=one.consequence, fix=one.fix)
    if not bad:
        yield Finding(area=AREA, level="ok", found=f"process {seen.pid}: no request logging, no developer mode")


def _of_weights(seen: Seen) -> Iterator[Finding]:
    """Whether what it serves is a path, or a name that vLLM looks up on the hub where it is not kept from it."""
    offline = (seen.environment or {}).get("HF_HUB_OFFLINE") == "1"
    for name in dict.fromkeys(_weights_named(seen.arguments)):
        if name.startswith(("/", ".", "~")):
            yield Finding(area=AREA, level="ok", found=f"it serves what lies at {name}")
        else:
            yield Finding(
                area=AREA,
                level="note" if offline else "warning",
                found=f"it was started with {name}, which is no path but a name of the hub",
                consequence="it serves what is in its cache"
                if offline
                else "at each start it asks the hub for that name",
                fix=f"start it with the folder that holds the weights, as ./{name} or /path/to/{name}",
            )


def _weights_named(arguments: Sequence[str]) -> Iterator[str]:
    for word, following in pairwise([*arguments, ""]):
        option, equals, value = word.partition("=")
        if option in _WEIGHTS:
            yield value if equals else following
        elif word == "serve" and following and not following.startswith("-"):
            yield following


def _of_quiet(environment: Mapping[str, str]) -> Iterator[Finding]:
    if not any(environment.get(name) == "1" for name in _QUIET):
        yield Finding(
            area=AREA,
            level="serious",
            found="vLLM's usage statistics are on",
            consequence="it tells its makers about this machine and the model (not about your data)",
            fix="start it with VLLM_NO_USAGE_STATS=1, or: airjudge serve",
        )
    unset = [name for name, value in OFFLINE.items() if name not in _QUIET and environment.get(name) != value]
    if unset:
        yield Finding(
            area=AREA,
            level="note",
            found=f"not set for it: {', '.join(unset)}",
            consequence="its libraries may look for newer files, or count their use",
            fix="set them for the server, or: airjudge serve",
        )
    else:
        yield Finding(area=AREA, level="ok", found="all variables that keep it offline are set for it")


def _is_option(word: str, name: str) -> bool:
    return word.partition("=")[0] == name


def _environment(process: psutil.Process) -> Mapping[str, str] | None:
    try:
        return process.environ()
    except psutil.Error:
        return None
