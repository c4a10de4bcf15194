"""What the pages for those who come from another system say is so: snippets and commands run, tables name tests."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.commands import Command
from tests.pages import PAGES, ROOT, Page, commands, in_order, printed, told
from tests.stub import HostedConfig, HostedStub, Stub, StubConfig

HOSTED = "https://api.openai.com/v1"
"""The address of a provider that pages name; here a stub of one stands for it."""

RUN = {"score", "compare", "verify", "export", "import-verdicts"}
"""Commands that are run as they stand; of others the options are looked up."""

ROWS = [
    {
        "id": f"s{n}",
        "user_input": f"What of pier {n}?",
        "response": f"Pier {n} is open.",
        "reference": f"Pier {n} opened in spring. Whales sing loudly.",
        "retrieved_contexts": [f"Pier {n} opened in spring.", "It carries no cars."],
        "reference_contexts": [f"Pier {n} opened in spring."],
        "retrieved_context_ids": ["a", "b"],
        "reference_context_ids": ["a", "c"],
    }
    for n in range(1, 5)
]
LABELS = [
    {"id": row["id"], "text": text, "attributed": number}
    for row in ROWS
    for text, number in ((str(row["reference"]).split(". ")[0] + ".", 1), ("Whales sing loudly.", 0))
]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """A served model under the name that the pages' scripts use."""
    with Stub(StubConfig(model="gpt-4o-mini")) as running:
        for name, value in environment(running).items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader stands: beside the data set and the labels that the pages name."""
    for name, rows in (("data.jsonl", ROWS), ("labels.jsonl", LABELS)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def environment(stub: Stub) -> Mapping[str, str]:
    named = {"BASE_URL": stub.base_url, "API_KEY": stub.api_key or ""}
    return {f"{prefix}_{name}": value for prefix in ("AIRJUDGE", "OPENAI") for name, value in named.items()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_script_after_the_change_runs_and_prints_what_it_says(page: Page, judge: Stub, folder: Path) -> None:
    snippets = page.snippets(ours=True)
    assert snippets
    for snippet in snippets:
        lines = printed(snippet, folder, environment(judge))
        assert lines
        assert in_order(told(snippet), lines), (told(snippet), lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_little_but_the_imports_differs(page: Page) -> None:
    before, after = page.snippets(ours=False)[0], page.snippets(ours=True)[0]
    kept = set(before.splitlines()) & set(after.splitlines())
    assert len(kept) >= len(before.splitlines()) - 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_run(
    page: Page, judge: Stub, folder: Path, airjudge: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = [words for words in commands(page) if words[:1] == ["airjudge"] and words[1] in RUN]
    assert {words[1] for words in run} >= {"score", "compare"}
    with HostedStub(HostedConfig(model="gpt-4o-mini")) as hosted:
        monkeypatch.setenv("OPENAI_API_KEY", hosted.api_key or "")
        for words in run:
            ended = airjudge(*(hosted.base_url if word == HOSTED else word for word in words[1:]))
            assert ended.code == 0, (words, ended.err)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_other_commands_exist_with_their_options(page: Page, airjudge: Command) -> None:
    for words in commands(page):
        if words[0] == "airjudge" and words[1] not in RUN:
            help_text = airjudge(words[1], "--help").out
            assert all(word in help_text for word in words if word.startswith("--"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_row_names_a_test_that_exists(page: Page) -> None:
    assert page.rows_without_a_test() == []
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    known = {name for source in sources for name in re.findall(r"^(?:async )?def (test_\w+)", source, re.MULTILINE)}
    named = page.tests()
    assert len(named) >= 8
    assert [name for name in named if name not in known] == []
