"""A fresh vLLM for one turn, started as airjudge starts it but for the backend that constrains decoding.

Under the outlines backend a request for `json_object`, which ragas sends, ends in an error: the peers get the
backend that vLLM chooses by itself. Every turn has a new process, so that none finds another's prompts in the cache.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import psutil

from airjudge.profiles import load_profile, this_machine
from airjudge.server import supervisor
from airjudge.server.command import HOST, Plan, arguments, choose_device, environment, kv_cache_bytes
from airjudge.server.process import answers, installed_distribution
from airjudge.server.registry import private_folder
from airjudge.weights import prepared
from benchmarks.efficiency.run import Target

Backend = Literal["outlines", "auto"]

START_LIMIT_S: Final = 600.0


@contextmanager
def serving(judge: str, backend: Backend, log: Path, *, max_model_len: int | None = None) -> Iterator[Target]:
    """A judge's vLLM for the block, under one backend; its weights must be prepared.

    `max_model_len` is the most tokens of a prompt and its reply, None what the profile says.

    Raises:
        TimeoutError: If it does not answer in time; its log is named.
    """
    plan, key = _plan(judge), secrets.token_urlsafe(32)
    command = [one.replace('"outlines"', f'"{backend}"') for one in arguments(plan)]
    if max_model_len is not None:
        command += ["--max-model-len", str(max_model_len)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            supervisor.command([sys.executable, *command]),
            env=environment(plan, key, os.environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        _wait(process, plan.port, log)
        found = Target(f"http://{HOST}:{plan.port}/v1", plan.model, key)
        _warm_up(found)
        yield found
    finally:
        _end(process)


def _warm_up(target: Target) -> None:
    """Let it answer once: the first request after a start pays for what is set up late."""
    body = {"model": target.model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
    headers = {"Authorization": f"Bearer {target.api_key}", "Content-Type": "application/json"}
    content = json.dumps({**body, "logprobs": True, "top_logprobs": 5}).encode()
    request = urllib.request.Request(f"{target.base_url}/chat/completions", content, headers)
    with urllib.request.urlopen(request, timeout=300) as reply:
        reply.read()


def _plan(judge: str) -> Plan:
    profile, machine = load_profile(judge), this_machine()
    device = choose_device(profile, installed_distribution(), gpu_here=bool(machine.gpus))
    weights = prepared(profile)
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    free = min(psutil.virtual_memory().available, machine.ram_bytes)
    return Plan(
        profile=profile,
        weights=weights.path,
        digest=weights.digest,
        model=profile.id,
        port=port,
        device=device,
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        cache=private_folder("vllm"),
        kv_cache_bytes=kv_cache_bytes(profile, free) if device == "cpu" else None,
    )


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    end = time.monotonic() + START_LIMIT_S
    while not answers(process.pid, port):
        if process.poll() is not None or time.monotonic() > end:
            msg = f"vLLM is not up; read {log}"
            raise TimeoutError(msg)
        time.sleep(0.5)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the supervisor, which ends vLLM and all that it started."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
