import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from airjudge.errors import WeightsMismatch, WeightsMissing, WeightsUnavailable, WeightsUnpinned
from airjudge.profiles import Profile
from airjudge.weights import prepared, pull, verify
from tests import hubsmith, weightsmith
from tests.hubsmith import Hub

pytest.importorskip("huggingface_hub")

JUDGE_FILES = {
    "config.json": b'{"architectures": ["LlamaForCausalLM"]}',
    "model.safetensors": bytes(range(256)) * 4000,
    "tokenizer.json": b"{}",
    "chat_template.jinja": b"{{ messages }}",
}
OTHER_FILES = {
    "README.md": b"# tiny",
    "pytorch_model.bin": b"a pickle",
    "modeling_tiny.py": b"print('code')",
    "original/model.safetensors": b"the same again",
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("AIRJUDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with hubsmith.serve(Hub(JUDGE_FILES | OTHER_FILES)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        yield hub


def pinned_profile(**changed: str) -> Profile:
    """A profile that names every file of the judge; `changed` replaces hashes, by the file's stem."""
    files = [
        {"name": name, "size": len(content), "sha256": changed.get(Path(name).stem, weightsmith.sha256(content))}
        for name, content in JUDGE_FILES.items()
    ]
    return weightsmith.profile(files=files)


def remove_model(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "cache" / "tiny")


def test_only_weights_tokenizer_and_settings_are_brought(hub: Hub) -> None:
    weights = pull(weightsmith.profile())
    brought = {path.name: path.read_bytes() for path in weights.path.iterdir()}
    del brought["airjudge-manifest.json"]
    assert brought == JUDGE_FILES
    assert not any("resolve" in asked and name in asked for asked in hub.asked for name in OTHER_FILES)


def test_nothing_but_the_repository_is_asked_for_and_nothing_is_told(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants
    from huggingface_hub.utils import _detect_agent

    # As in a process that has just begun, and whose hub is this one from the start.
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", False)
    monkeypatch.setattr(constants, "ENDPOINT", hub.address)
    template = "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.address + template)
    monkeypatch.setattr(constants, "AGENT_HARNESSES_PATH", str(tmp_path / "harnesses"))
    monkeypatch.setattr(_detect_agent, "_registry", None)
    pull(weightsmith.profile())
    assert [asked for asked in hub.asked if "acme/tiny" not in asked] == []


def test_progress_counts_bytes_up_to_the_whole(hub: Hub) -> None:
    told: list[tuple[str, int, int]] = []
    pull(weightsmith.profile(), progress=lambda *step: told.append(step))
    total = sum(len(content) for content in JUDGE_FILES.values())
    fetched = [(done, of) for stage, done, of in told if stage == "fetch acme/tiny"]
    assert fetched[-1] == (total, total)
    assert [done for done, _ in fetched] == sorted(done for done, _ in fetched)


def test_the_first_pull_records_commit_and_hashes_of_unpinned_files(hub: Hub, tmp_path: Path) -> None:
    weights = pull(weightsmith.profile())
    assert not weights.verified
    pins = json.loads((tmp_path / "cache" / "pins" / "tiny.json").read_text())
    assert pins == {
        "source": "acme/tiny",
        "revision": hub.commit,
        "files": {name: weightsmith.sha256(content) for name, content in JUDGE_FILES.items()},
    }


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_byte_that_changed_since_the_first_pull_is_refused(name: str, hub: Hub, tmp_path: Path) -> None:
    pull(weightsmith.profile())
    remove_model(tmp_path)
    hub.files[name] = hub.files[name][:-1] + b"!"
    with pytest.raises(WeightsMismatch, match=name) as caught:
        pull(weightsmith.profile())
    assert str(tmp_path / "cache" / "pins" / "tiny.json") in caught.value.hint
    with pytest.raises(WeightsMissing):
        prepared(weightsmith.profile())


def test_what_was_refused_is_accepted_when_its_record_is_deleted(hub: Hub, tmp_path: Path) -> None:
    pull(weightsmith.profile())
    remove_model(tmp_path)
    hub.files["config.json"] += b" "
    with pytest.raises(WeightsMismatch):
        pull(weightsmith.profile())
    (tmp_path / "cache" / "pins" / "tiny.json").unlink()
    assert (pull(weightsmith.profile()).path / "config.json").read_bytes() == hub.files["config.json"]


@pytest.mark.parametrize("change", ["one more", "one less"])
def test_a_list_of_files_that_changed_is_refused(change: str, hub: Hub, tmp_path: Path) -> None:
    pull(weightsmith.profile())
    remove_model(tmp_path)
    if change == "one more":
        hub.files["model-extra.safetensors"] = b"what is this"
    else:
        del hub.files["chat_template.jinja"]
    with pytest.raises(WeightsMismatch, match=r"model-extra\.safetensors|chat_template\.jinja"):
        pull(weightsmith.profile())


def test_a_later_pull_asks_for_the_commit_of_the_first(hub: Hub, tmp_path: Path) -> None:
    pull(weightsmith.profile())
    first = hub.commit
    remove_model(tmp_path)
    hub.asked.clear()
    pull(weightsmith.profile())
    assert f"GET /api/models/acme/tiny/revision/{first}" in hub.asked


def test_a_commit_that_is_gone_is_no_reason_to_take_another(hub: Hub, tmp_path: Path) -> None:
    pull(weightsmith.profile())
    remove_model(tmp_path)
    hub.commit = "2" * 40
    with pytest.raises(WeightsUnavailable):
        pull(weightsmith.profile())


def test_strict_takes_a_profile_that_pins_every_file(hub: Hub, tmp_path: Path) -> None:
    weights = pull(pinned_profile(), strict=True)
    assert weights.verified
    assert not (tmp_path / "cache" / "pins").exists()
    lines = sorted(f"{name} {weightsmith.sha256(content)}" for name, content in JUDGE_FILES.items())
    assert weights.digest == weightsmith.sha256("\n".join(lines).encode())


def test_a_pinned_profile_takes_the_files_that_it_names_and_no_others(hub: Hub) -> None:
    hub.files["special_tokens_map.json"] = b"{}"
    weights = pull(pinned_profile(), strict=True)
    assert not (weights.path / "special_tokens_map.json").exists()


def test_strict_refuses_a_profile_that_pins_some_files_only(hub: Hub) -> None:
    weights_only = [{"name": "model.safetensors", "sha256": weightsmith.sha256(JUDGE_FILES["model.safetensors"])}]
    profile = weightsmith.profile(files=weights_only)
    with pytest.raises(WeightsUnpinned):
        pull(profile, strict=True)
    assert hub.asked == []
    assert not pull(profile).verified


def test_a_file_that_is_not_the_one_that_the_profile_names_is_refused(hub: Hub) -> None:
    with pytest.raises(WeightsMismatch, match=r"model\.safetensors has SHA-256"):
        pull(pinned_profile(model="0" * 64))


def test_a_repository_that_lacks_a_named_file_is_refused(hub: Hub) -> None:
    del hub.files["tokenizer.json"]
    with pytest.raises(WeightsMismatch, match=r"lacks tokenizer\.json"):
        pull(pinned_profile())


def test_an_interrupted_download_goes_on_where_it_ended(hub: Hub) -> None:
    large = bytes(range(256)) * 100_000
    hub.files["model.safetensors"] = large
    hub.cut_after = 15_000_000
    with pytest.raises(WeightsUnavailable) as caught:
        pull(weightsmith.profile())
    assert "Traceback" not in str(caught.value)
    with pytest.raises(WeightsMissing):
        prepared(weightsmith.profile())
    hub.cut_after = hub.status = None
    hub.asked.clear()
    hub.ranges.clear()
    weights = pull(weightsmith.profile())
    assert (weights.path / "model.safetensors").read_bytes() == large
    assert hub.ranges == ["bytes=10485760-"]  # huggingface_hub writes in pieces of 10 MiB


def test_a_beginning_that_is_longer_than_the_file_is_thrown_away(hub: Hub, tmp_path: Path) -> None:
    unfinished = tmp_path / "cache" / "tiny" / "partial" / "model"
    unfinished.mkdir(parents=True)
    (unfinished / f"model.safetensors.{hub.commit}").write_bytes(bytes(2_000_000))
    (unfinished / f"model.safetensors.{'9' * 40}").write_bytes(b"of another commit")
    weights = pull(weightsmith.profile())
    assert (weights.path / "model.safetensors").read_bytes() == JUDGE_FILES["model.safetensors"]
    assert len(list(weights.path.iterdir())) == len(JUDGE_FILES) + 1


def test_a_flipped_bit_on_disk_is_found_and_only_that_file_is_brought_again(hub: Hub) -> None:
    weights = pull(weightsmith.profile())
    damaged = weights.path / "model.safetensors"
    damaged.write_bytes(b"!" + damaged.read_bytes()[1:])
    with pytest.raises(WeightsMismatch):
        verify(weightsmith.profile())
    hub.asked.clear()
    pull(weightsmith.profile())
    assert verify(weightsmith.profile()).n_files == len(JUDGE_FILES)
    assert sum(asked.startswith("GET") and "model.safetensors" in asked for asked in hub.asked) == 1


def test_weights_of_another_revision_are_not_taken_for_those_of_this_one(hub: Hub) -> None:
    source = {"kind": "hub", "repo": "acme/tiny", "revision": hub.commit}
    pull(weightsmith.profile(sources=[source]))
    moved = weightsmith.profile(sources=[source | {"revision": "3" * 40}])
    with pytest.raises(WeightsMissing):
        prepared(moved)


def test_a_folder_is_the_way_into_a_closed_network(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "stick"
    folder.mkdir()
    for name, content in (JUDGE_FILES | {"README.md": b"#"}).items():
        (folder / name).write_bytes(content)
    weights = pull(pinned_profile(), strict=True, origin=folder)
    assert hub.asked == []
    assert {path.name for path in weights.path.iterdir()} == {*JUDGE_FILES, "airjudge-manifest.json"}
    assert verify(pinned_profile()).verified


def test_a_folder_with_a_flipped_bit_is_refused(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "stick"
    folder.mkdir()
    for name, content in JUDGE_FILES.items():
        (folder / name).write_bytes(content)
    (folder / "tokenizer.json").write_bytes(b"[]")
    with pytest.raises(WeightsMismatch, match=r"tokenizer\.json"):
        pull(pinned_profile(), origin=folder)


def test_a_folder_that_is_no_judge_is_refused(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match=r"config\.json"):
        pull(weightsmith.profile(), origin=tmp_path)


def test_another_source_is_asked_when_the_first_has_nothing(hub: Hub) -> None:
    nowhere = {"kind": "folder", "path": "/nowhere/at/all"}
    there = {"kind": "hub", "repo": "acme/tiny"}
    assert pull(weightsmith.profile(sources=[nowhere, there])).path.is_dir()


def gguf_profile(content: bytes) -> Profile:
    file = {"name": "tiny.gguf", "sha256": weightsmith.sha256(content)}
    return weightsmith.profile(files=[file])


def test_a_gguf_file_comes_from_a_hub_as_well(hub: Hub, tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    pytest.importorskip("transformers")
    hub.files["tiny.gguf"] = weightsmith.write_gguf(tmp_path / "tiny.gguf")
    weights = pull(gguf_profile(hub.files["tiny.gguf"]), strict=True)
    assert weights.verified
    assert (weights.path / "config.json").read_bytes() != JUDGE_FILES["config.json"]


def test_another_gguf_file_than_the_profile_names_is_refused(hub: Hub) -> None:
    hub.files["tiny.gguf"] = b"another"
    with pytest.raises(WeightsMismatch, match="the profile names"):
        pull(gguf_profile(b"the one"))


def test_a_hub_without_the_gguf_file_is_reported(hub: Hub) -> None:
    with pytest.raises(WeightsUnavailable, match=r"has no tiny\.gguf") as caught:
        pull(gguf_profile(b"the one"))
    assert "airjudge models pull tiny --from" in caught.value.hint


@pytest.mark.parametrize("commit", ["../../../../tmp/evil", "main", ""])
def test_a_hub_that_names_no_commit_is_not_believed(commit: str, hub: Hub) -> None:
    hub.commit = commit
    with pytest.raises(WeightsUnavailable):
        pull(weightsmith.profile())


def test_a_hub_cannot_write_outside_the_folder_of_the_judge(hub: Hub, tmp_path: Path) -> None:
    hub.files["../evil.json"] = b"{}"
    hub.files["/evil.json"] = b"{}"
    pull(weightsmith.profile())
    assert not list(tmp_path.rglob("evil.json"))


def test_when_a_profile_gets_its_hashes_the_old_record_is_no_hindrance(hub: Hub, tmp_path: Path) -> None:
    hub.files["special_tokens_map.json"] = b"{}"
    pull(weightsmith.profile())
    remove_model(tmp_path)
    assert pull(pinned_profile(), strict=True).verified


def test_when_no_source_has_them_each_says_why(hub: Hub) -> None:
    nowhere = {"kind": "folder", "path": "/nowhere/at/all"}
    there = {"kind": "hub", "repo": "acme/other"}
    with pytest.raises(WeightsUnavailable) as caught:
        pull(weightsmith.profile(sources=[nowhere, there]))
    assert "/nowhere/at/all" in str(caught.value)
    assert "acme/other" in str(caught.value)


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_a_hub_that_refuses_is_reported_in_one_line_with_other_ways(status: int, hub: Hub) -> None:
    hub.status = status
    with pytest.raises(WeightsUnavailable) as caught:
        pull(weightsmith.profile())
    assert "hub:acme/tiny" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "HF_ENDPOINT" in caught.value.hint
    assert "--from" in caught.value.hint


def test_a_hub_that_nobody_answers_for_is_reported(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens on the discard port
    with pytest.raises(WeightsUnavailable, match="cannot fetch hub:acme/tiny"):
        pull(weightsmith.profile())
