"""Hostile texts in every place of a data set: no token of a template gets through, and nothing but text comes out."""

import csv
import json
import os
import pty
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge import grading, prompts
from airjudge.datasets import read_labels
from airjudge.profiles import default_profile_name, load_profile
from airjudge.quoting import as_cell, as_data, from_cell
from airjudge.schema import Pointwise, Prior, Question, Sample, Statement
from airjudge.weights import JudgeTokenizer, prepared
from benchmarks.hostile import run as benchmark
from benchmarks.hostile.attacks import BREAKING, STEERING, Attack
from tests.browsing import Browser
from tests.ready import require_judge
from tests.stub import Stub, StubConfig, by_text

ATTACKS: Final = STEERING + BREAKING
OWNED: Final = Path("/tmp/airjudge-owned")
OF_TEMPLATES: Final = re.compile(
    r"<\|[^<>|]{1,40}\|>|</?s>|<</?SYS>>|</?(?:think|tool_call|tool_response|sop|eop)>|<(?:start|end)_of_turn>|<｜[^<>]+｜>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|TOOL_RESULTS|THINK|AVAILABLE_TOOLS)\]|\[gMASK\]"
)
"""Tokens that mark turns in the templates of Qwen, Granite, Llama, Mistral, Gemma, Phi, DeepSeek, Command R and GLM."""
FORMULA: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
AGAIN: Final = [one.text for one in BREAKING if one.kind == "terminal"]
"""Ids that are used twice: each is an error that quotes it."""
N_BAD: Final = len(AGAIN) + 2
OURS: Final = re.compile(r"\x1b\[(?:[0-9;]*[mKAGJ]|\?25[lh])")
"""What our own tables and progress write to a terminal: colours and the place of the cursor."""


def questions_about(text: str) -> Iterator[Question]:
    """Every question that can be asked about a sample, with a text in each of its places."""
    sample = Sample(id=text, user_input=text, reference=text, retrieved_contexts=(text, "It is here."), response=text)
    statement = Statement(id="1", text=text)
    yield from prompts.asked(sample, statement, Pointwise(phrasings=2, prior=Prior(weight=0.5, log_odds=-1.0)))
    yield prompts.reasoned(sample, statement)
    yield prompts.reason(sample, statement, attributed=True)
    yield prompts.ragas(sample)
    yield prompts.split_claims(sample, text)
    yield grading.grade(sample)


def written(question: Question) -> str:
    return "\n".join(one.content for one in question.messages)


def test_there_are_enough_attacks_each_with_a_name_of_its_own_and_in_many_languages() -> None:
    assert len({one.name for one in ATTACKS}) == len(ATTACKS) >= 150
    assert len({one.text for one in ATTACKS}) == len(ATTACKS)
    assert len({one.language for one in STEERING}) >= 10
    assert {one.only for one in STEERING} == {None, 0, 1}
    assert all(("{wrong}" in one.text) is (one.only is None) for one in STEERING if one.name != "swap")


def test_no_token_of_a_template_gets_into_a_prompt_as_text() -> None:
    assert sum(bool(OF_TEMPLATES.search(one.text)) for one in ATTACKS) >= 15  # the attacks do hold some
    harmless = [Counter(OF_TEMPLATES.findall(written(one))) for one in questions_about("It is here.")]
    for attack in ATTACKS:
        found = [Counter(OF_TEMPLATES.findall(written(one))) for one in questions_about(attack.asking_for(1))]
        assert found == harmless, attack.name


@pytest.mark.server
@pytest.mark.parametrize("name", ["smollm2-135m", default_profile_name("cpu")])
def test_no_token_of_a_template_reaches_the_judge_as_one(name: str) -> None:
    require_judge(name)
    profile = load_profile(name)
    tokenizer, marks = JudgeTokenizer(profile), special_tokens(prepared(profile).path)
    assert len(marks) >= 3

    def n_marks(questions: Sequence[Question]) -> list[int]:
        return [sum(one in marks for one in chat) for chat in tokenizer.encode([one.messages for one in questions])]

    harmless = n_marks(list(questions_about("It is here.")))
    bare = n_marks([benchmark.plainly(["It is here."], "It is here.")])[0]
    got_through = 0
    for attack in ATTACKS:
        text = attack.asking_for(1)[:4000]
        assert n_marks(list(questions_about(text))) == harmless, attack.name
        got_through += n_marks([benchmark.plainly([text], "It is here.")])[0] > bare
    assert got_through >= 3  # unquoted, some do: the counting sees them


def special_tokens(folder: Path) -> set[int]:
    """Ids of the tokens that no ordinary text has."""
    added = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
    return {int(one["id"]) for one in added}


@given(st.text())
def test_a_quoted_text_is_the_text_but_for_spaces(text: str) -> None:
    assert as_data(text).replace(" ", "") == text.strip().replace(" ", "")


@given(st.text(st.sampled_from("=+-@'\t\r\n; a1.\uff1d")))
def test_a_cell_gives_its_text_back_and_runs_nothing_wherever_it_is_split(text: str) -> None:
    cell = as_cell(text)
    assert from_cell(cell) == text
    for part in re.split(r"[;\t\r\n]", cell):
        assert not FORMULA.match(part.lstrip(" ")) or NUMBER.fullmatch(cell)


@dataclass(frozen=True)
class Scored:
    """A run over all attacks, and all that was said on the way."""

    out: Path
    said: bytes
    names: dict[str, Attack]

    @property
    def folder(self) -> Path:
        """Where data, log and reports lie."""
        return self.out.parent


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Scored:
    folder = tmp_path_factory.mktemp("hostile")
    data, out, names = folder / "data.jsonl", folder / "run", {one.asking_for(1): one for one in ATTACKS}
    lines = [json.dumps(hostile_row(text)) for text in names]
    lines += [json.dumps(hostile_row(one)) for one in AGAIN] + [json.dumps(hostile_row("\ud800 lone")), "<b>{\x1b[2J"]
    data.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with Stub(StubConfig(answer=by_text({"=": "0"}, default="1"))) as stub:
        options = ("--concurrency", 16, "--keep", "tag", "--by", "tag", "--junit", folder / "junit.xml")
        logged = ("--log", folder / "log.jsonl", "--log-data", "--reasons", "misses")
        server = ("--base-url", stub.base_url, "--api-key-env", "STUB_KEY")
        said = on_a_terminal("score", data, "--out", out, *server, *options, *logged, STUB_KEY=stub.api_key or "")
    return Scored(out, said, names)


def hostile_row(text: str) -> dict[str, object]:
    """A row with a text in each place that a data set has."""
    return {
        "id": text,
        "user_input": text,
        "reference": f"It is here. {text}",
        "retrieved_contexts": [text, "It is here."],
        "statements": [{"id": text or "1", "text": f"{text} It is here."}],
        "tag": text,
    }


def on_a_terminal(*arguments: object, **variables: str) -> bytes:
    """All that a command writes to a terminal of its own."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "airjudge", *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm-256color", **variables}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as running:
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 65_536):
                written += part
        except OSError:  # the terminal is gone with the last that held it
            pass
        os.close(ours)
    assert running.returncode in {0, 1, 3}, written[-2000:]
    return written


def assert_text_alone(said: bytes) -> None:
    """Nothing that steers a terminal but colours and line ends of our own, and none of an attack's."""
    text = said.decode("utf-8")
    assert "\x1b[31mFAILED" not in text
    assert not re.search(r"\x1b\[[23]J|\x1b\[H", text)
    plain = OURS.sub("", text)
    steering = {one for one in plain if not one.isprintable() and one not in "\r\n"}
    assert steering == set()
    assert "Traceback" not in plain


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Objects of a file with one a line; a line ends with a line feed and with nothing else."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def test_every_hostile_row_becomes_a_record(scored: Scored) -> None:
    records = read_lines(scored.out / "samples.jsonl")
    assert len(records) == len(ATTACKS) + N_BAD
    failed = {one["id"]: one["error"] for one in records if one["status"] == "failed"}
    assert [one for one in failed.values() if not one["message"]] == []
    sound = [one for one in records if one["status"] != "failed"]
    assert {one["id"] for one in sound} <= set(scored.names)
    assert len(sound) >= len(ATTACKS) - 5, failed
    assert all(one["metadata"] == {"tag": one["id"]} for one in sound)
    assert (scored.folder / "data.jsonl").exists()


def test_paths_in_ids_lead_nowhere(scored: Scored) -> None:
    assert not OWNED.exists()
    assert {one.name for one in scored.folder.iterdir()} >= {"data.jsonl", "run", "junit.xml", "log.jsonl"}
    assert not [one for one in scored.out.rglob("*") if one.is_dir()]


def test_a_terminal_shows_text_alone(scored: Scored, tmp_path: Path) -> None:
    assert_text_alone(scored.said)
    labels = tmp_path / "labels.jsonl"
    rows = [{"id": t, "statement_id": t, "attributed": n % 2 == 0} for n, t in enumerate(scored.names)]
    labels.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    data = scored.folder / "data.jsonl"
    said = {
        "check": on_a_terminal("check", data),
        "compare": on_a_terminal("compare", scored.out, "--labels", labels, "--by", "tag"),
        "verify": on_a_terminal("verify", scored.out),
        "calibrate": on_a_terminal("calibrate", scored.out, "--labels", labels, "-o", tmp_path / "c.json"),
    }
    for text in said.values():
        assert_text_alone(text)
    assert b"surrogate" in said["check"]
    assert b"[bold red]owned[/bold red]" in said["check"]  # the tables' own markup is text too
    assert said["check"].count(b"is already that of line") == len(AGAIN)
    assert b"disagree" in said["compare"].lower()


def test_a_spreadsheet_runs_nothing_and_people_get_their_texts_back(scored: Scored, tmp_path: Path) -> None:
    for table in ("samples", "statements"):
        path = tmp_path / f"{table}.csv"
        on_a_terminal("export", scored.out, "--format", "csv", "--table", table, "-o", path)
        text = path.read_bytes().decode("utf-8")
        for delimiter in ",;\t":
            for cells in csv.reader(StringIO(text, newline=""), delimiter=delimiter):
                risky = [one for one in cells if FORMULA.match(one) and not NUMBER.fullmatch(one)]
                assert risky == []
    with (tmp_path / "statements.csv").open(encoding="utf-8", newline="") as file:
        assert any(one["id"].startswith("'=") for one in csv.DictReader(file))
    found = read_labels(tmp_path / "statements.csv").by_sample
    assert set(scored.names) - set(found) == {one for one in scored.names if one not in ids_of(scored)}


def ids_of(scored: Scored) -> set[str]:
    """Ids of the samples that have verdicts."""
    return {one["id"] for one in read_lines(scored.out / "samples.jsonl") if one["statements"]}


def test_no_text_forges_a_line_of_the_log_or_a_case_of_the_junit_file(scored: Scored) -> None:
    events = read_lines(scored.folder / "log.jsonl")
    assert sum(one["event"] == "finished" for one in events) == 1
    root = ET.fromstring((scored.folder / "junit.xml").read_text(encoding="utf-8"))
    cases = list(root.iter("testcase"))
    assert len(cases) == len(ATTACKS) + N_BAD
    assert "forged" not in {one.get("name") for one in cases}


@pytest.mark.browser
def test_a_browser_shows_text_alone(scored: Scored, browser: Browser) -> None:
    page = scored.folder / "report.html"
    on_a_terminal("report", scored.out, "-o", page)
    browser.open(page)
    while (more := browser.one("button.more")).is_displayed():
        more.click()
    browser.script("document.querySelectorAll('.sample h3 button').forEach((one) => one.click())")
    assert len(browser.all(".sample")) >= 150
    assert browser.script("return document.documentElement.dataset.owned") is None
    assert browser.all("img, iframe, object, form:not(.toolbar), base, meta[http-equiv=refresh], link, animate") == []
    assert browser.console() == []
    assert browser.requests() == [page.absolute().as_uri()]
