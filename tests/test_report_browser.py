"""The report in a real Chromium: it works without a network, by keyboard, on a phone, in print, on hostile data."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from airjudge import JudgeSettings
from airjudge.datasets import read_labels
from airjudge.report import Evidence, ReportSettings, comparison_of, named, write_report
from airjudge.run import open_run
from tests.browsing import Browser
from tests.rows import Row, row
from tests.runs import run, write
from tests.stub import Stub, StubConfig, by_text

pytestmark = pytest.mark.browser

OWNED = "document.documentElement.dataset.owned='yes'"
MARKUP = f'</script><script>{OWNED}</script><img src=x onerror="{OWNED}"><!-- {{{{7*7}}}} ${{7*7}} ]]> &lt;b&gt;'
BIDI = "abc\u202edcba\u2066x"
HOSTILE: Row = {
    "id": f"evil {MARKUP}",
    "user_input": f"Question {MARKUP} {BIDI}",
    "reference": f"Stated {MARKUP}",
    "retrieved_contexts": [f"Context {MARKUP} \u0007bell", "שלום עולם, this is mixed."],
    "statements": [{"id": f"<b>{MARKUP}", "text": f"Stated {MARKUP}"}],
    "<i>column</i>": f"value {MARKUP}",
}
N_ROWS = 60
FERRY, LAMPS = "The ferry departs at six.", "Amber lamps glow beside quiet harbours."


@dataclass(frozen=True)
class Reports:
    """Reports: of one run over hostile data, of two over the same rows with labels, of one that tells its evidence."""

    hostile: Path
    compared: Path
    evident: Path


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    folder = tmp_path_factory.mktemp("reports")
    return Reports(hostile_report(folder), compared_report(folder), evident_report(folder))


def hostile_report(folder: Path) -> Path:
    data = write(folder, HOSTILE, "not json <b>", name="<svg onload=alert(1)>.jsonl")
    out = folder / "<b>run"
    with Stub(StubConfig(model="<i>judge</i>")) as stub:
        run(stub, data, out, by=("<i>column</i>",))
    return reported(folder / "hostile.html", out)


def compared_report(folder: Path) -> Path:
    """Judge `other` finds each `pier one` unsupported, `judge` all supported; people side with `other` on N0 alone."""
    rows = [row(f"N{n}", 2 if n < 9 else 1) for n in range(N_ROWS)]
    data = write(folder, *rows, name="rows.jsonl")
    quick = JudgeSettings(concurrency=16)
    with Stub() as stub:
        run(stub, data, folder / "judge", asked=quick)
    with Stub(StubConfig(answer=by_text({"pier one.": "0"}, default="1"))) as stub:
        run(stub, data, folder / "other", asked=quick)
    labels = folder / "labels.jsonl"
    rulings = [
        {"id": f"N{n}", "statement_id": str(s), "attributed": (n, s) != (0, 1)} for n in range(9) for s in (1, 2)
    ]
    labels.write_text("".join(json.dumps(one) + "\n" for one in rulings), encoding="utf-8")
    return reported(folder / "compared.html", folder / "judge", folder / "other", labels=labels)


def evident_report(folder: Path) -> Path:
    """Of one row, the first statement is supported by the third context, the second by two together; long contexts."""
    filler = " ".join(f"Nothing of number {n} is told." for n in range(3)) + "x" * 900
    contexts = [f"Amber lamps glow nightly. {filler}", f"Beside quiet harbours. {filler}", f"{FERRY} {filler}"]
    statements = [{"id": str(n), "text": text} for n, text in enumerate((FERRY, LAMPS), 1)]
    told: Row = {"id": MARKUP, "user_input": "What?", "reference": f"{FERRY} {LAMPS}", "statements": statements}
    with Stub() as stub:
        run(stub, write(folder, told | {"retrieved_contexts": contexts}, name="e.jsonl"), folder / "e", evidence=True)
    return reported(folder / "evident.html", folder / "e")


def reported(path: Path, *folders: Path, labels: Path | None = None) -> Path:
    runs = named([open_run(folder) for folder in folders])
    known = None if labels is None else read_labels(labels)
    evidence = Evidence(known, comparison=comparison_of(runs, known))
    write_report(runs, path, evidence=evidence, settings=ReportSettings())
    return path


@pytest.fixture(autouse=True)
def quiet(browser: Browser) -> Iterator[None]:
    """After each test: no word on the console, and no request but for the file itself."""
    yield
    assert browser.console() == []
    assert [address for address in browser.requests() if not address.startswith("file:///")] == []
    assert len(browser.requests()) == 0  # the log was emptied by the line above: nothing came late


def shown(browser: Browser) -> list[str]:
    """Ids of the samples in the list."""
    return [element.text for element in browser.all(".sample .id")]


def test_a_report_asks_for_nothing_but_itself(browser: Browser, reports: Reports) -> None:
    browser.open(reports.compared)
    browser.one(".sample button").click()
    assert browser.requests() == [reports.compared.absolute().as_uri()]


def test_the_policy_lets_no_other_script_run_and_no_markup_be_made_of_text(browser: Browser, reports: Reports) -> None:
    browser.open(reports.compared)
    refused = browser.script(
        "const made = document.createElement('script'); made.append('window.ran = 1'); let error = '';"
        "try { document.body.append(made); document.body.innerHTML = '<b>x</b>'; }"
        "catch (caught) { error = caught.name; }"
        "return [window.ran === undefined, error];"
    )
    assert refused == [True, "TypeError"]
    assert browser.console() != []  # Chromium tells what it refused; this test alone makes it


def test_a_sample_opens_down_to_question_reference_statements_and_contexts(browser: Browser, reports: Reports) -> None:
    browser.open(reports.compared)
    button = browser.one(".sample button")
    assert button.get_attribute("aria-expanded") == "false"
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    body = browser.one(".sample .panel-body")
    assert body.get_attribute("id") == button.get_attribute("aria-controls")
    text = body.text
    assert "What did Harbour N0 open?" in text
    assert "Harbour N0 opened pier one. 1 ✓ Harbour N0 opened pier two. 2 ✓".replace(" ", "") in text.replace(
        "\n", ""
    ).replace(" ", "")
    chips = [chip.text.replace("\n", " ") for chip in browser.all(".sample:first-child .statement:first-child .chip")]
    assert chips == ["judge ✓ attributed 0.90", "other ✗ not attributed 0.10", "people ✗ not attributed"]
    assert len(browser.all(".sample:first-child .contexts details[open]")) == 2
    button.click()
    assert not body.is_displayed()


def test_a_supported_statement_leads_by_the_keyboard_to_the_context_that_supports_it(
    browser: Browser, reports: Reports
) -> None:
    browser.open(reports.evident)
    browser.one(".sample button").click()
    told = [" ".join(one.text.split()) for one in browser.all(".statement .support")]
    assert told == [
        "supported by context 3 0.90",
        "supported only by several contexts together, most by context 1 0.10",
    ]
    shown = "return [...document.querySelectorAll('.contexts .supports')].map((one) => one.textContent.trim())"
    assert browser.script(shown) == ["supports statement 1"]
    assert browser.all(".contexts details[open]") == []
    link = browser.one(".support a")
    link.send_keys(Keys.ENTER)
    assert browser.script("return document.activeElement.parentElement.id") == "context-0-3"
    [opened] = browser.all(".contexts details[open]")
    assert "pointed" in (opened.get_attribute("class") or "")
    assert FERRY in opened.text
    assert "Supported statements 2: 1 by one context alone, 1 only together" in " ".join(
        browser.one(".panel").text.split()
    )
    ratios = browser.script(CONTRAST, [".support", ".support a", ".support .probability", ".contexts .supports"])
    assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}
    assert len(ratios) == 4


def test_the_filter_shows_disagreements_alone(browser: Browser, reports: Reports) -> None:
    browser.open(reports.compared)
    options = {option.get_attribute("value"): option.text for option in browser.all("#filter option")}
    assert options["differ"] == f"Judges disagree ({N_ROWS})"
    # `judge` finds all attributed, so it differs from people on N0 alone; `other` misses `pier one` of N1 to N8 too.
    assert options["people"] == "A judge and people disagree (9)"
    browser.one("#filter option[value=people]").click()
    assert shown(browser) == [f"N{n}" for n in range(9)]
    assert browser.one("[role=status]").text == "9 of 9 samples shown"


def test_the_search_finds_by_statement_and_says_when_nothing_matches(browser: Browser, reports: Reports) -> None:
    browser.open(reports.compared)
    search = browser.one("#search")
    search.send_keys("harbour n17 ")
    assert shown(browser) == ["N17"]
    search.send_keys("and no whale")
    assert shown(browser) == []
    assert browser.one("[role=status]").text == "No sample matches."


def test_a_long_list_comes_a_page_at_a_time(browser: Browser, reports: Reports) -> None:
    browser.open(reports.compared)
    assert len(shown(browser)) == 50
    more = browser.one("button.more")
    assert more.text == "Show 10 more"
    more.click()
    assert len(shown(browser)) == N_ROWS
    assert not more.is_displayed()


def test_a_link_to_a_sample_opens_it_wherever_it_is_in_the_list(browser: Browser, reports: Reports) -> None:
    browser.open(reports.compared, fragment="#sample-57")
    assert browser.one("#sample-57 button").get_attribute("aria-expanded") == "true"
    assert browser.script("return document.getElementById('sample-57').getBoundingClientRect().top") < 1000
    browser.one("body").send_keys(Keys.TAB)
    assert browser.script("return document.activeElement.closest('.sample').id") == "sample-57"


def test_hostile_texts_are_shown_as_text_and_run_nothing(browser: Browser, reports: Reports) -> None:
    browser.open(reports.hostile)
    for button in browser.all(".sample h3 button"):
        button.click()
    text = browser.script("return document.body.innerText")
    for part in (f"evil {MARKUP}", f"Question {MARKUP}", f"Stated {MARKUP}", f"Context {MARKUP}", f"value {MARKUP}"):
        assert part in text
    for part in ("<svg onload=alert(1)>.jsonl", "<b>run · judged by", "<i>judge</i>", "<i>column</i>"):
        assert part in text
    assert "abc[U+202E]dcba[U+2066]x" in text
    assert "␇bell" in text
    assert browser.script("return document.documentElement.dataset.owned") is None
    assert browser.all("img, iframe, object, b b, svg[onload], i") == []
    assert browser.script("return document.scripts.length") == 2  # the data and our own


def test_a_marked_sample_has_a_badge_and_says_where_and_what_as_text(browser: Browser, reports: Reports) -> None:
    browser.open(reports.hostile)  # its question turns its own text round
    assert [one.text for one in browser.all(".sample .aimed")] == ["marked"]
    browser.one(".sample h3 button").click()
    [mark] = browser.all(".marks li")
    assert mark.text.startswith("hidden characters in user_input: ")
    assert "abc\\u202edcba" in mark.text
    browser.open(reports.compared)
    assert browser.all(".aimed") == []


def test_text_of_a_script_from_right_to_left_is_laid_out_so(browser: Browser, reports: Reports) -> None:
    browser.open(reports.hostile)
    browser.one(".sample h3 button").click()
    directions = browser.script(
        "return [...document.querySelectorAll('.context')].map((one) => getComputedStyle(one).direction)"
    )
    assert directions == ["ltr", "rtl"]


def test_dark_follows_the_system_until_the_reader_chooses(browser: Browser, reports: Reports) -> None:
    paper = "return getComputedStyle(document.body).backgroundColor"
    browser.open(reports.compared, dark=False)
    light = browser.script(paper)
    browser.open(reports.compared, dark=True)
    dark = browser.script(paper)
    assert light != dark
    browser.one("#theme").click()
    assert browser.script(paper) == light
    assert browser.one("#theme").get_attribute("aria-label") == "Switch to dark colours"


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_ground_by_the_ratio_that_wcag_asks_for(
    browser: Browser, reports: Reports, dark: bool
) -> None:
    browser.open(reports.compared, dark=dark)
    browser.one(".sample button").click()
    ratios = browser.script(CONTRAST, [".lede", ".span", ".chip.yes", ".chip.no", ".chip .who", "nav a", ".score.zero",
                                       ".facts dt", "caption", ".cell", ".two .disagree", "summary"])  # fmt: skip
    assert len(ratios) >= 10
    assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}


CONTRAST = """
const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const over = (colour, ground) => {
  pen.globalCompositeOperation = 'source-over';
  pen.fillStyle = ground; pen.fillRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
  const [r, g, b] = pen.getImageData(0, 0, 1, 1).data; return `rgb(${r},${g},${b})`; };
const ground = (one) => one === null ? 'rgb(255,255,255)'
  : over(getComputedStyle(one).backgroundColor, ground(one.parentElement));
const linear = (part) => part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4;
const light = (colour) => { const [r, g, b] = colour.match(/[0-9]+/g).map(Number).map(linear);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const contrast = (one) => { const back = ground(one);
  const [high, low] = [light(over(getComputedStyle(one).color, back)), light(back)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05); };
return Object.fromEntries(arguments[0].map((name) => [name, document.querySelector(name)])
  .filter(([, one]) => one).map(([name, one]) => [name, contrast(one)]));
"""
"""The contrast of elements against what lies behind them. Source: WCAG 2.2, relative luminance and contrast ratio."""


@pytest.mark.parametrize("which", ["compared", "hostile", "evident"])
def test_a_phone_shows_the_whole_width(browser: Browser, reports: Reports, which: str) -> None:
    browser.open(getattr(reports, which), width=360, height=740)
    browser.script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    for button in browser.all(".sample h3 button")[:3]:
        browser.script("arguments[0].click()", button)
    assert browser.script("return document.documentElement.scrollWidth") == 360


def test_the_keyboard_alone_reaches_and_opens_a_sample(browser: Browser, reports: Reports) -> None:
    browser.open(reports.compared)
    active = browser.driver.switch_to
    browser.one("body").send_keys(Keys.TAB)
    assert active.active_element.text == "Skip to the content"
    active.active_element.send_keys(Keys.ENTER)
    assert browser.script("return document.activeElement.id") == "content"
    browser.script("document.getElementById('open-all').focus()")
    active.active_element.send_keys(Keys.TAB)
    first = active.active_element
    assert first.get_attribute("aria-expanded") == "false"
    outline = browser.script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    first.send_keys(Keys.ENTER)
    assert first.get_attribute("aria-expanded") == "true"
    first.send_keys(Keys.SPACE)
    assert first.get_attribute("aria-expanded") == "false"


def test_a_screen_reader_finds_landmarks_headings_and_named_tables(browser: Browser, reports: Reports) -> None:
    browser.open(reports.compared)
    nodes = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named_roles = [
        (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]
    ]
    roles = {role for role, _ in named_roles}
    assert {"banner", "navigation", "main", "contentinfo", "search", "status"} <= roles
    for role in ("button", "table", "region", "textbox", "searchbox", "combobox", "link", "heading"):
        assert [name for found, name in named_roles if found == role and not name] == [], role
    levels = browser.script("return [...document.querySelectorAll('h1,h2,h3,h4')].map((one) => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = browser.script("return [...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))


def test_print_opens_what_is_folded_and_leaves_the_controls_out(browser: Browser, reports: Reports) -> None:
    browser.open(reports.compared, media="print", dark=True)
    browser.script(
        "const all = document.getElementById('filter'); all.value = 'people'; all.dispatchEvent(new Event('change'))"
    )
    assert browser.script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not browser.one(".toolbar").is_displayed()
    assert not browser.one("nav").is_displayed()
    browser.script("dispatchEvent(new Event('beforeprint'))")
    assert browser.all("details:not([open])") == []
    assert len(browser.all(".sample button[aria-expanded=false]")) == 0
    browser.script("dispatchEvent(new Event('afterprint'))")
    assert len(browser.all(".sample button[aria-expanded=true]")) == 0
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"pageRanges": "1"})
    assert len(printed["data"]) > 10_000


def test_nothing_moves_for_a_reader_who_wants_no_motion(browser: Browser, reports: Reports) -> None:
    browser.open(reports.compared)
    assert browser.script("return getComputedStyle(document.documentElement).scrollBehavior") == "auto"
