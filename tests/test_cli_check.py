"""`airjudge check`: what it prints, what it exits with, and that it needs no judge."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from airjudge import prompts, weights
from airjudge.cli import main
from airjudge.errors import WeightsMissing
from airjudge.profiles import load_profile
from airjudge.schema import Message
from airjudge.weights import JudgeTokenizer
from tests import weightsmith
from tests.inputs import GOOD, good, write_lines
from tests.test_egress import GUARD


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Check = Callable[..., Ended]


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Check:
    """Run the command in this process, without weights unless a test brings them."""
    monkeypatch.setenv("AIRJUDGE_CACHE", str(tmp_path / "empty cache"))

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["airjudge", "check", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Ended(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A profile and the cache with its weights: a tokenizer of bytes, in which "ab" is one token."""
    pytest.importorskip("gguf")
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("tiny")
    content = weightsmith.write_gguf(folder / "tiny.gguf")
    path = folder / "tiny.toml"
    path.write_text(
        f"""
id = "tiny"
summary = "A tiny judge."
licence = "Apache-2.0"
parameters = 8000
device = "cpu"
purpose = "tests"
context_length = 64
vllm_args = ["--max-model-len", "2000"]
run_here = true
files = [{{ name = "tiny.gguf", size = {len(content)}, sha256 = "{weightsmith.sha256(content)}" }}]
[memory]
weights_bytes = 40000
kv_layers = 1
kv_heads = 2
head_dim = 16
[[sources]]
kind = "folder"
path = "{folder}"
""",
        encoding="utf-8",
    )
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("AIRJUDGE_CACHE", str(folder / "cache"))
        weights.pull(load_profile(str(path)))
    return path, folder / "cache"


def by_hand(*texts: str) -> int:
    """Tokens of chats in the tiny judge's vocabulary: one a byte, one for "ab", and one for each mark of a turn."""
    return sum(len(text.encode()) - text.count("ab") for text in texts)


def test_a_data_set_without_a_bad_line_is_told_and_ends_with_0(check: Check, tmp_path: Path) -> None:
    row: dict[str, object] = {"question": "Where?", "contexts": ["It is here."], "ground_truth": "Here. There."}
    ended = check(write_lines(tmp_path, row, row))
    assert ended.code == 0
    assert (
        "columns: user_input from question, reference from ground_truth, retrieved_contexts from contexts" in ended.out
    )
    rows = [" ".join(line.split()) for line in ended.out.splitlines()]
    # The default judge is asked three questions about each statement: two phrasings, and one without contexts.
    assert {"samples 2", "statements 4", "requests 12"} <= set(rows)
    assert "repeated 1 say word for word what an earlier one says" in rows


def test_bad_lines_are_listed_with_file_line_and_reason_and_end_with_1(check: Check, tmp_path: Path) -> None:
    path = write_lines(tmp_path, GOOD, '{"\\u001b[31m": 1, "\\u001b[31m": 2}', good(id="line-1"))
    ended = check(path)
    assert ended.code == 1
    assert f'{path}:2: the field "\\u001b[31m" occurs twice' in ended.out
    assert f'{path}:3: the id "line-1" is already that of line 1' in ended.out
    assert "\x1b" not in ended.out + ended.err


def test_twenty_bad_lines_are_shown_and_all_of_them_with_json(check: Check, tmp_path: Path) -> None:
    path = write_lines(tmp_path, GOOD, *["{"] * 30)
    ended = check(path)
    assert sum(line.startswith(str(path)) for line in ended.out.splitlines()) == 20
    assert "and 10 more bad lines; --json lists all" in ended.out
    found = json.loads(check(path, "--json").out)
    assert [one["line"] for one in found["bad_lines"]] == list(range(2, 32))
    assert (found["n_bad"], found["n_samples"]) == (30, 1)


@pytest.mark.parametrize(
    "arguments",
    [["absent.jsonl"], ["{empty}"], ["{good}", "--map", "reference=gold"], ["{good}", "--map", "x"]],
)
def test_what_cannot_be_read_ends_with_2_and_a_next_step(check: Check, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "empty.jsonl").touch()
    names = {"good": write_lines(tmp_path, GOOD), "empty": tmp_path / "empty.jsonl"}
    ended = check(*(one.format(**names) for one in arguments))
    assert ended.code == 2
    assert "hint: " in ended.err
    assert ended.out == ""


def test_two_candidates_are_settled_by_map(check: Check, tmp_path: Path) -> None:
    path = write_lines(tmp_path, good(ground_truth="Else."))
    ended = check(path)
    assert ended.code == 2
    assert "reference, ground_truth" in ended.err
    assert "--map reference=reference" in ended.err
    ended = check(path, "--map", "reference=ground_truth", "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["mapping"]["reference"] == "ground_truth"


def test_standard_input_is_read(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = SimpleNamespace(buffer=io.BytesIO(json.dumps(GOOD).encode() + b"\n{"), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stdin)
    ended = check("-")
    assert ended.code == 1
    assert "-:2: not JSON" in ended.out


def test_without_weights_bytes_are_counted_and_it_says_how_to_bring_them(check: Check, tmp_path: Path) -> None:
    ended = check(write_lines(tmp_path, GOOD), "--judge", "smollm2-135m", "--rate", "100", "--json")
    found = json.loads(ended.out)
    assert found["unit"] == "bytes"
    assert found["prompt_bytes"] > found["computed_bytes"] > 0
    assert found["seconds"] is None
    assert "airjudge models pull smollm2-135m" in found["note"]
    with pytest.raises(WeightsMissing):
        JudgeTokenizer(load_profile("smollm2-135m"))


def test_tokens_are_those_of_the_judges_tokenizer_and_template(
    check: Check, tiny: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile, cache = tiny
    monkeypatch.setenv("AIRJUDGE_CACHE", str(cache))
    tokenizer = JudgeTokenizer(load_profile(str(profile)))
    chat = [Message("system", "about"), Message("user", "ä")]
    # Three turns open, the last of them the judge's own; two of them close.
    expected = 5 + by_hand("system\nabout\n", "user\nä\n", "assistant\n")
    assert [len(one) for one in tokenizer.encode([chat, chat])] == [expected, expected]

    ended = check(write_lines(tmp_path, GOOD), "--judge", profile, "--rate", "10", "--json")
    found = json.loads(ended.out)
    assert (found["unit"], found["max_context"], found["n_too_long"]) == ("tokens", 2000, 0)
    assert found["longest_prompt"] > sum(by_hand(one.content) for one in prompts.canary().messages)
    assert found["seconds"] == pytest.approx(found["computed_tokens"] / 10, abs=0.05)


def test_counting_tokens_contacts_nobody(tiny: tuple[Path, Path], tmp_path: Path) -> None:
    profile, cache = tiny
    command = [sys.executable, "-c", GUARD, "check", str(write_lines(tmp_path, GOOD)), "--judge", str(profile)]
    environment = {**os.environ, "AIRJUDGE_CACHE": str(cache), "HOME": "/nonexistent"}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "tokens, " in ended.stdout
    assert ended.stderr.splitlines()[-1] == "SEEN []"


def test_prompts_that_the_judge_cannot_read_are_named(
    check: Check, tiny: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile, cache = tiny
    monkeypatch.setenv("AIRJUDGE_CACHE", str(cache))
    path = write_lines(tmp_path, GOOD, good(id="long", retrieved_contexts=["x" * 3000]))
    ended = check(path, "--judge", profile)
    assert ended.code == 0
    assert f"{path}:2: long: " in ended.out
    assert "too long" in ended.out


def test_the_rate_of_a_finished_run_gives_the_time(
    check: Check, tiny: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile, cache = tiny
    monkeypatch.setenv("AIRJUDGE_CACHE", str(cache))
    usage = {"requests": 9, "prompt_tokens": 900, "cached_tokens": 100, "completion_tokens": 9}
    (tmp_path / "run.json").write_text(json.dumps({"usage": usage, "seconds": 40.0}))
    found = json.loads(check(write_lines(tmp_path, GOOD), "--judge", profile, "--like", tmp_path, "--json").out)
    # 800 tokens computed in 40 s.
    assert found["rate"] == 20.0
    assert found["seconds"] == pytest.approx(found["computed_tokens"] / 20, abs=0.05)


@pytest.mark.parametrize("header", [None, "{", "[]", '{"usage": {}, "seconds": 1}', '{"usage": null}'])
def test_a_run_that_tells_no_rate_is_an_input_error(check: Check, tmp_path: Path, header: str | None) -> None:
    if header is not None:
        (tmp_path / "run.json").write_text(header)
    ended = check(write_lines(tmp_path, GOOD), "--like", tmp_path)
    assert ended.code == 2
    assert "--like names the folder of a finished run" in ended.err


def test_two_rates_are_a_usage_error(check: Check, tmp_path: Path) -> None:
    assert check(write_lines(tmp_path, GOOD), "--like", tmp_path, "--rate", "5").code == 2
