"""Rows that are not in English: split where their readers would, and ruled on with reasons in their own language.

The cases are H of what users of local judges reported in public: ragas#985, #402, #1101, #1298, deepeval#2578, #718.
"""

import csv
import json
from pathlib import Path

import pytest

from airjudge.run import open_run, read_scored
from airjudge.wordings import WORDINGS, Wording
from tests.browsing import Browser
from tests.commands import Command, options
from tests.rows import Row
from tests.runs import write
from tests.stub import Fault, Stub, by_text
from tests.stub import faults as faults_of

STATEMENTS = {
    "zh": ("长桥建于1889年，全长3.5公里。", "它由谁设计？", "设计者是“李工程师”。"),
    "ar": ("هل الجسر قديم؟", "نعم، قال د. أحمد ذلك.", "بُني الجسر عام 1889."),
    "de": ("Die Brücke ist z. B. für Dr. Müller wichtig.", "Sie wurde u. a. am 3. März 1889 genannt.", "Sie hält."),
    "en": ("Dr. Smith crossed it, e.g. at night.", "He paid 3.5 EUR.", "It opened in 1889."),
}
REASONS = {
    "zh": "上下文没有说设计者是“李工程师”，只说了年份。",
    "ar": "لا تذكر السياقات أن الجسر بُني عام 1889.",
    "de": "Die Kontexte sagen nichts darüber, dass sie „hält“.",
    "en": "The contexts name no year.",
}
IN_ITS_LANGUAGE = {
    "arabic": "بلغة العبارة",
    "chinese": "陈述所用的语言",
    "english": "in the language of the statement",
    "french": "dans la langue de l'affirmation",
    "german": "in der Sprache der Aussage",
    "hindi": "कथन की भाषा में",
    "japanese": "記述と同じ言語で",
    "korean": "진술과 같은 언어로",
    "portuguese": "na língua da afirmação",
    "russian": "на языке утверждения",
    "spanish": "en el idioma de la afirmación",
}
LAID_OUT = """
return [...document.querySelectorAll('.statement .text, .statement blockquote')]
  .map((one) => [one.innerText, getComputedStyle(one).direction])
"""
languages = pytest.mark.parametrize("lang", STATEMENTS)


@pytest.fixture
def stub(stub: Stub) -> Stub:
    """A stub that supports all statements but the last of each row, and says why in the row's language."""
    stub.config.answer = by_text({texts[-1]: "0" for texts in STATEMENTS.values()}, default="1")
    for lang, texts in STATEMENTS.items():
        reply = json.dumps(REASONS[lang], ensure_ascii=False)
        about = faults_of.all_of(faults_of.schema_named("reason"), faults_of.mentions(f"Statement: {texts[-1]}"))
        stub.faults.append(Fault(faults_of.say(reply), when=about))
    return stub


def row(lang: str) -> Row:
    """Build a row without a tag of its language."""
    joint = "" if lang == "zh" else " "
    texts = STATEMENTS[lang]
    return {"id": lang, "user_input": texts[1], "reference": joint.join(texts), "retrieved_contexts": [texts[0]]}


@pytest.fixture
def out(airjudge: Command, stub: Stub, tmp_path: Path) -> Path:
    """A run over a row of each language, with reasons for misses."""
    data = write(tmp_path, *map(row, STATEMENTS))
    ended = airjudge("score", data, *options(stub, tmp_path / "run"), "--reasons", "misses")
    assert ended.code == 0, ended.err
    return tmp_path / "run"


def test_a_row_is_split_where_its_readers_would_and_scored(out: Path) -> None:
    found = {one.id: one for one in read_scored(out)}
    assert {lang: tuple(one.text for one in found[lang].statements) for lang in STATEMENTS} == STATEMENTS
    assert [found[lang].score for lang in STATEMENTS] == [pytest.approx(2 / 3)] * 4
    assert [[one.attributed for one in found[lang].statements] for lang in STATEMENTS] == [[True, True, False]] * 4


def test_a_reason_arrives_unchanged_in_records_table_and_report(airjudge: Command, out: Path, tmp_path: Path) -> None:
    assert {one.id: one.statements[-1].reason for one in read_scored(out)} == REASONS
    assert {one.id: one.statements[-1].reason for one in open_run(out).samples} == REASONS
    table, report = tmp_path / "samples.csv", tmp_path / "report.html"
    assert airjudge("export", out, "--format", "csv", "--table", "statements", "-o", table).code == 0
    with table.open(encoding="utf-8-sig", newline="") as file:
        cells = "\n".join(cell for one in csv.DictReader(file) for cell in one.values())
    assert airjudge("report", out, "-o", report).code == 0
    page = report.read_text(encoding="utf-8")
    for text in (*REASONS.values(), *(text for texts in STATEMENTS.values() for text in texts)):
        assert text in page
    for reason in REASONS.values():
        assert reason in cells


@languages
def test_a_reason_is_asked_for_in_the_language_of_the_statement(out: Path, stub: Stub, lang: str) -> None:
    last = STATEMENTS[lang][-1]
    [asked] = [one for one in stub.chats if one.schema_name == "reason" and f"Statement: {last}" in one.text]
    assert json.loads(asked.raw)["messages"][-1]["content"].startswith(
        "In one sentence, in the language of the statement: "
    )


@pytest.mark.parametrize("words", WORDINGS.values(), ids=list(WORDINGS))
def test_each_wording_asks_for_reasons_in_the_language_of_the_statement(words: Wording) -> None:
    for asked in (words.why_attributed, words.why_missed):
        assert IN_ITS_LANGUAGE[words.language] in asked.replace("In der", "in der")


@pytest.mark.browser
def test_a_browser_lays_each_text_out_in_the_direction_of_its_script(
    airjudge: Command, browser: Browser, out: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    assert airjudge("report", out, "-o", report).code == 0
    browser.open(report)
    for button in browser.all(".sample h3 button"):
        button.click()
    laid_out = dict(browser.script(LAID_OUT))
    for lang, texts in STATEMENTS.items():
        for text in (*texts, REASONS[lang]):
            assert laid_out[text] == ("rtl" if lang == "ar" else "ltr")
