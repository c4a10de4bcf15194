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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import psutil

from airjudge.profiles import load_profile, this_machine
from airjudge.server import supervisor
from airjudge.server.command import HOST, Plan, arguments, choose_device, environment, kv_cache_bytes
from airjudge.server.process import answers, installed_distribution
from airjudge.server.registry import private_folder
from airjudge.weights import prepared

Backend = Literal["outlines", "auto"]

START_LIMIT_S: Final = 600.0
_COUNTED: Final = (
    "prompt_tokens_total",
    "prompt_tokens_cached_total",
    "generation_tokens_total",
    "request_success_total",
)


@dataclass(frozen=True)
class Serving:
    """A server that is up."""

    base_url: str
    api_key: str
    model: str

    def counters(self) -> dict[str, float]:
        """What it counted so far: tokens of prompts, of those the cached ones, generated ones, requests that ended."""
        text = self._sent("/metrics", None).decode()
        found = dict.fromkeys(_COUNTED, 0.0)
        for line in text.split("\n"):
            name, _, value = line.rpartition(" ")
            short = name.partition("{")[0].removeprefix("vllm:")
            if short in found and not line.startswith("#"):
                found[short] += float(value)
        return found

    def warm_up(self) -> None:
        """Let it answer once: the first request after a start pays for what is set up late."""
        body = {"model": self.model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
        self._sent("/v1/chat/completions", {**body, "logprobs": True, "top_logprobs": 5})

    def _sent(self, path: str, body: Mapping[str, object] | None) -> bytes:
        request = urllib.request.Request(self.base_url.removesuffix("/v1") + path)
        request.add_header("Authorization", f"Bearer {self.api_key}")
        request.add_header("Content-Type", "application/json")
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(request, data, timeout=300) as reply:
            content: bytes = reply.read()
        return content


@contextmanager
def serving(judge: str, backend: Backend, log: Path) -> Iterator[Serving]:
    """A judge's vLLM for the block, under one backend; its weights must be prepared.

    Raises:
        TimeoutError: If it does not answer in time; its log is named.
    """
    plan, key = _plan(judge), secrets.token_urlsafe(32)
    command = [one.replace('"outlines"', f'"{backend}"') for one in arguments(plan)]
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
        found = Serving(f"http://{HOST}:{plan.port}/v1", key, plan.model)
        found.warm_up()
        yield found
    finally:
        _end(process)


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
