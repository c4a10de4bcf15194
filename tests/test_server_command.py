import json
from pathlib import Path

import pytest

from airjudge.errors import ServerFailed
from airjudge.profiles import GIB, Profile, load_profile
from airjudge.server.command import Device, Plan, arguments, choose_device, environment, kv_cache_bytes

KEY = "a-secret-key"


def plan(device: Device = "cpu", *, cpus: tuple[int, ...] = (0, 1), profile: Profile | None = None) -> Plan:
    return Plan(
        profile=profile or load_profile("smollm2-135m"),
        weights=Path("/cache/with space/model"),
        digest="0" * 64,
        model="gpt-4o-mini",
        port=8123,
        device=device,
        cpus=cpus,
        cache=Path("/cache/vllm"),
        kv_cache_bytes=2 * GIB,
    )


def option(argv: list[str], name: str) -> str:
    """The value that the last mention of an option has, as argparse takes it."""
    return argv[len(argv) - 1 - argv[::-1].index(name) + 1]


def gpu_profile() -> Profile:
    return load_profile("smollm2-135m").model_copy(update={"device": "gpu"})


def test_the_server_listens_on_loopback_only() -> None:
    env = environment(plan(), KEY, {})
    assert option(arguments(plan()), "--host") == "127.0.0.1"
    assert env["VLLM_HOST_IP"] == "127.0.0.1"
    assert env["GLOO_SOCKET_IFNAME"] == env["NCCL_SOCKET_IFNAME"] == "lo"


def test_the_key_is_in_the_environment_and_not_in_the_arguments() -> None:
    assert environment(plan(), KEY, {"VLLM_API_KEY": "other"})["VLLM_API_KEY"] == KEY
    assert KEY not in " ".join(arguments(plan()))


def test_outlines_enforces_and_the_models_own_sampling_file_is_ignored() -> None:
    argv = arguments(plan())
    assert json.loads(option(argv, "--structured-outputs-config")) == {"backend": "outlines"}
    assert option(argv, "--generation-config") == "vllm"
    assert {"--enable-prefix-caching", "--enable-prompt-tokens-details"} <= set(argv)


def test_requests_are_not_logged_and_no_code_of_the_model_runs() -> None:
    argv = arguments(plan())
    assert {"--no-enable-log-requests", "--disable-uvicorn-access-log"} <= set(argv)
    assert "--trust-remote-code" not in argv
    assert option(argv, "--load-format") == "safetensors"


def test_our_guard_is_asked_before_anything_that_a_profile_puts_in() -> None:
    profile = load_profile("smollm2-135m").model_copy(update={"vllm_args": ("--middleware", "theirs.Middleware")})
    argv = arguments(plan(profile=profile))
    assert option(argv, "--middleware") == "airjudge.guard.Guard"  # the last one stands before the others
    assert option(argv, "--uvicorn-log-level") == "error"


@pytest.mark.parametrize(("model_reads", "at_most"), [(8192, 2**20), (32768, 2**21)])
def test_a_body_may_be_as_long_as_what_the_judge_reads(model_reads: int, at_most: int) -> None:
    serves = {"vllm_args": ("--max-model-len", str(model_reads))}
    env = environment(
        plan(profile=load_profile("smollm2-135m").model_copy(update=serves)), KEY, {"AIRJUDGE_MAX_BODY_BYTES": "7"}
    )
    assert env["AIRJUDGE_MAX_BODY_BYTES"] == str(at_most)


def test_nothing_phones_home() -> None:
    env = environment(plan(), KEY, {"HF_HUB_OFFLINE": "0", "VLLM_NO_USAGE_STATS": "0"})
    on = {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"}
    on |= {"VLLM_NO_USAGE_STATS", "VLLM_DO_NOT_TRACK", "DO_NOT_TRACK"}
    assert {env[name] for name in on} == {"1"}
    assert env["RAY_USAGE_STATS_ENABLED"] == "0"


def test_secrets_proxies_and_developer_switches_stay_behind() -> None:
    parent = {
        "OPENAI_API_KEY": "x",
        "HF_TOKEN": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "A_SECRET_NOBODY_THOUGHT_OF": "x",
        "HTTPS_PROXY": "http://outside",
        "https_proxy": "http://outside",
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_V1_USE_OUTLINES_CACHE": "1",
        "VLLM_LOGGING_LEVEL": "DEBUG",
    }
    assert not set(parent) & set(environment(plan(), KEY, parent))


def test_what_a_process_needs_to_run_passes() -> None:
    parent = {"PATH": "/bin", "HOME": "/home/a", "LD_LIBRARY_PATH": "/lib", "CUDA_VISIBLE_DEVICES": "1", "LC_ALL": "C"}
    assert parent.items() <= environment(plan(), KEY, parent).items()


def test_the_users_own_tuning_of_vllm_wins() -> None:
    parent = {"VLLM_CPU_OMP_THREADS_BIND": "0", "VLLM_REGEX_COMPILATION_TIMEOUT_S": "600"}
    assert parent.items() <= environment(plan(), KEY, parent).items()


def test_a_small_machine_computes_on_every_core_that_it_may_use_in_one_process() -> None:
    env = environment(plan(cpus=(3, 1)), KEY, {})
    assert env["OMP_NUM_THREADS"] == "2"
    assert env["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"


def test_a_small_machine_takes_small_steps_and_a_large_one_vllms_own() -> None:
    argv = arguments(plan(cpus=(0, 1)))
    assert argv[argv.index("--max-num-batched-tokens") + 1] == "256"
    assert "--max-num-batched-tokens" not in arguments(plan(cpus=tuple(range(64))))


def test_who_binds_threads_gets_the_process_in_which_vllm_can() -> None:
    env = environment(plan(cpus=(0, 1)), KEY, {"VLLM_CPU_OMP_THREADS_BIND": "1"})
    assert env["VLLM_CPU_OMP_THREADS_BIND"] == "1"
    assert not {"OMP_NUM_THREADS", "VLLM_ENABLE_V1_MULTIPROCESSING"} & set(env)


def test_a_large_machine_is_left_to_vllm() -> None:
    env = environment(plan(cpus=tuple(range(64))), KEY, {})
    assert not {"OMP_NUM_THREADS", "VLLM_ENABLE_V1_MULTIPROCESSING"} & set(env)


def test_on_a_cpu_nothing_needs_a_compiler_and_blocks_are_small() -> None:
    argv = arguments(plan())
    assert environment(plan(), KEY, {})["TORCHDYNAMO_DISABLE"] == "1"
    assert "--enforce-eager" in argv
    assert option(argv, "--block-size") == "32"
    assert option(argv, "--kv-cache-memory-bytes") == str(2 * GIB)


def test_on_a_gpu_vllm_compiles_and_sizes_its_cache_itself() -> None:
    argv, env = arguments(plan("gpu")), environment(plan("gpu"), KEY, {})
    assert not {"--enforce-eager", "--block-size", "--kv-cache-memory-bytes"} & set(argv)
    assert not [name for name in env if name.startswith("VLLM_CPU") or name == "TORCHDYNAMO_DISABLE"]


def test_a_profile_cannot_open_the_server_to_the_network() -> None:
    profile = load_profile("smollm2-135m").model_copy(
        update={"vllm_args": ("--host", "0.0.0.0", "--structured-outputs-config", "{}", "--enable-log-requests")}
    )
    argv = arguments(plan(profile=profile))
    assert option(argv, "--host") == "127.0.0.1"
    assert "outlines" in option(argv, "--structured-outputs-config")
    assert argv.index("--no-enable-log-requests") > argv.index("--enable-log-requests")


def test_name_port_and_weights_are_those_of_the_plan() -> None:
    argv = arguments(plan())
    assert option(argv, "--served-model-name") == "gpt-4o-mini"
    assert option(argv, "--port") == "8123"
    assert option(argv, "--model") == "/cache/with space/model"


@pytest.mark.parametrize(
    ("profile", "distribution", "gpu_here", "device"),
    [
        (load_profile("smollm2-135m"), "vllm-cpu", False, "cpu"),
        (load_profile("smollm2-135m"), "vllm-cpu", True, "cpu"),
        (load_profile("smollm2-135m"), "vllm", True, "gpu"),
        (gpu_profile(), "vllm", True, "gpu"),
    ],
)
def test_the_device_follows_from_the_installed_vllm(
    profile: Profile, distribution: str, gpu_here: bool, device: Device
) -> None:
    assert choose_device(profile, distribution, gpu_here=gpu_here) == device


@pytest.mark.parametrize(
    ("profile", "distribution", "gpu_here", "said", "next_step"),
    [
        (load_profile("smollm2-135m"), None, False, "not installed", "airjudge[cpu]"),
        (load_profile("smollm2-135m"), None, True, "not installed", "airjudge[gpu]"),
        (load_profile("smollm2-135m"), "vllm", False, "needs an NVIDIA GPU", "airjudge[cpu]"),
        (gpu_profile(), "vllm-cpu", False, "needs an NVIDIA GPU", "models list"),
        (gpu_profile(), "vllm-cpu", True, "made for the CPU", "airjudge[gpu]"),
    ],
)
def test_a_vllm_that_cannot_serve_here_is_explained(
    profile: Profile, distribution: str | None, gpu_here: bool, said: str, next_step: str
) -> None:
    with pytest.raises(ServerFailed, match=said) as refused:
        choose_device(profile, distribution, gpu_here=gpu_here)
    assert next_step in refused.value.hint


def test_the_cache_holds_two_requests_of_full_length_where_memory_allows() -> None:
    # 30 layers x (key, value) x 3 heads x 64 x 2 bytes = 23040 bytes a token; 8192 tokens; 2 requests.
    assert kv_cache_bytes(load_profile("smollm2-135m"), 64 * GIB) == 2 * 8192 * 23040


def test_the_cache_shrinks_to_what_is_free() -> None:
    profile = load_profile("smollm2-135m")
    free = 269_060_552 + profile.memory.runtime_bytes + GIB // 4
    assert kv_cache_bytes(profile, free) == GIB // 4


def test_too_little_memory_for_one_request_is_refused_before_anything_starts() -> None:
    profile = load_profile("smollm2-135m")
    free = 269_060_552 + profile.memory.runtime_bytes + 8192 * 23040 - 1
    with pytest.raises(ServerFailed, match=r"needs \d+\.\d GiB of memory") as refused:
        kv_cache_bytes(profile, free)
    assert "smaller judge" in refused.value.hint
