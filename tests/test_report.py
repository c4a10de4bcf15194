"""A report of runs, as far as it can be tested without a browser: what is in it, what is not, and what is refused."""

import json
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from airjudge.cli import app
from airjudge.datasets import open_source
from airjudge.errors import AirjudgeError, InputError
from airjudge.labels import Label, Labels
from airjudge.report import Evidence, ReportSettings, Written, check_target, comparison_of, named, write_report
from airjudge.report.charts import score_bins
from airjudge.report.choosing import chosen
from airjudge.report.joining import JoinedSample, joined
from airjudge.report.markup import data_json, element, visible, written
from airjudge.report.plots import spread
from airjudge.report.samples import samples_data
from airjudge.run import OpenedRun, open_run
from airjudge.schema import SampleError, ScoredSample, Support, Verdict
from tests.rows import Row, row
from tests.runs import numbered, run, stopped_at, write
from tests.stub import Stub


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


def report_of(
    path: Path, *folders: Path, labels: Labels | None = None, n: int = 500, data: Path | None = None
) -> Written:
    runs = named([open_run(folder) for folder in folders])
    source = None if data is None else open_source([str(data)])
    evidence = Evidence(labels, source, comparison_of(runs, labels))
    return write_report(runs, path, evidence=evidence, settings=ReportSettings(samples=n))


def data_in(page: Path) -> Any:
    """What the page's script reads."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


# ---- markup ----


def test_text_and_attributes_are_escaped_when_they_are_written() -> None:
    made = element("a", {"href": '"><script>'}, "<b>&", element("br"))
    assert written(made) == '<a href="&quot;&gt;&lt;script&gt;">&lt;b&gt;&amp;<br></a>'


@given(st.text())
def test_any_text_reads_back_from_the_page_as_it_is_shown(text: str) -> None:
    found: list[str] = []
    parser = HTMLParser(convert_charrefs=True)
    parser.handle_data = found.append  # type: ignore[method-assign, assignment]
    parser.feed(written(element("p", {}, text)))
    parser.close()
    assert "".join(found) == visible(text)


@given(st.text())
def test_any_text_reads_back_from_the_data_and_cannot_end_them(text: str) -> None:
    content = data_json({"text": text}).content
    assert json.loads(content) == {"text": visible(text)}
    assert not set("<>&\u2028\u2029") & set(content)
    content.encode()  # no half of a surrogate pair is left


def test_what_cannot_be_seen_is_shown_by_a_sign() -> None:
    assert visible("a\0b\x1b[31m\x7f") == "a␀b␛[31m␡"
    assert visible("\u202etxt.exe \ud800 \U000e0041") == "[U+202E]txt.exe [U+D800] [U+E0041]"
    assert visible("line\r\nline\rline\n\tend") == "line\nline\nline\n\tend"
    assert visible("\u200fשלום 👩\u200d🔬") == "\u200fשלום 👩\u200d🔬"


# ---- joining and choosing ----


def scored(name: str, score: float | None, *verdicts: tuple[bool, float]) -> ScoredSample:
    statements = tuple(
        Verdict(id=str(n), text=f"{name}.{n}", attributed=attributed, probability=probability)
        for n, (attributed, probability) in enumerate(verdicts)
    )
    error = SampleError(kind="timeout", message="late") if score is None else None
    return ScoredSample(
        id=name, score=score, status="failed" if error else "scored", error=error, statements=statements
    )


def opened(template: OpenedRun, *samples: ScoredSample) -> OpenedRun:
    return OpenedRun("made", template.folder, template.state, samples)


@pytest.fixture(scope="module")
def template(stub: Stub, tmp_path_factory: pytest.TempPathFactory) -> OpenedRun:
    folder = tmp_path_factory.mktemp("template")
    run(stub, write(folder, row("A")), folder / "run")
    return open_run(folder / "run")


def numbers(samples: Sequence[JoinedSample]) -> list[str]:
    return [sample.id for sample in samples]


def test_samples_are_joined_by_id_and_a_repeated_id_stands_alone(template: OpenedRun) -> None:
    a = opened(template, scored("x", 1.0), scored("y", 0.0), scored("y", None))
    b = opened(template, scored("y", 1.0), scored("z", 1.0))
    rows = joined([a, b], None)
    assert [(one.id, *(record and record.score for record in one.records)) for one in rows] == [
        ("x", 1.0, None),
        ("y", 0.0, 1.0),
        ("y", None, None),
        ("z", None, 1.0),
    ]
    assert rows[2].records[0] is not None


def test_the_gap_is_how_far_those_are_apart_who_differ(template: OpenedRun) -> None:
    a = opened(template, scored("x", 1.0, (True, 0.9), (True, 0.6)))
    b = opened(template, scored("x", 0.5, (False, 0.2), (True, 0.99)))
    labels = Labels("people", {"x": (Label(sample="x", id="1", attributed=False),)})
    # On the first statement .9 against .2; on the second the runs agree.
    assert joined([a, b], None)[0].gap == pytest.approx(0.7)
    # People say no to the second, which counts as 0, against .99.
    assert joined([a, b], labels)[0].gap == pytest.approx(0.99)
    assert joined([a], None)[0].gap == 0


def test_worst_failed_and_differing_samples_are_chosen_then_some_at_random(template: OpenedRun) -> None:
    perfect = [scored(f"p{n}", 1.0, (True, 0.9)) for n in range(40)]
    a = opened(template, scored("half", 0.5), scored("none", 0.0), scored("fail", None), *perfect)
    b = opened(template, scored("p7", 0.0, (False, 0.1)))
    found = chosen(joined([a], None), 2, rng=np.random.default_rng(1))
    assert numbers(found.samples)[:2] == ["none", "half"]
    assert numbers(found.samples)[-1] == "fail"
    assert sorted(found.why.values()) == ["drawn", "drawn", "failed", "worst", "worst"]
    assert found.n_left_out == 38
    again = chosen(joined([a], None), 2, rng=np.random.default_rng(1))
    assert again.why == found.why
    # A second run misses p7: with room for one of the lowest, p7 comes in as one that they differ on.
    both = chosen(joined([a, b], None), 1, rng=np.random.default_rng(1))
    assert {one.id: both.why[one.number] for one in both.samples}["p7"] == "differ"


# ---- figures ----


def test_scores_of_0_and_1_have_bars_of_their_own_and_steps_hold_their_upper_end() -> None:
    # .7 * 10 is a little more than 7 in floating point, and belongs to the step from .6 to .7 still.
    assert score_bins([0, 0, 0.05, 0.1, 0.7, 0.95, 1]) == [2, 2, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1]
    assert score_bins([]) == [0] * 12


def test_limits_of_agreement_match_a_hand_computation() -> None:
    # Differences .5, 0, -.5, 0: mean 0, variance (.25 + .25) / 3, so SD = .40825 and 1.96 SD = .80017.
    found = spread([(1, 0.5), (0.5, 0.5), (0, 0.5), (1, 1)])
    assert found is not None
    assert (found.n, found.mean) == (4, 0)
    assert [found.low, found.high] == pytest.approx([-0.80017, 0.80017], abs=1e-5)
    assert spread([(1, 1)]) is None


# ---- texts ----


def test_texts_are_read_again_from_where_the_input_lay(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, row("A"), row("B"), "not json", row("C"))
    run(stub, data, tmp_path / "run")
    told = report_of(tmp_path / "r.html", tmp_path / "run")
    assert (told.n_samples, told.n_inside, told.n_with_texts) == (4, 4, 3)
    samples = {one["id"]: one for one in data_in(tmp_path / "r.html")["samples"]}
    assert samples["C"]["texts"]["question"] == "What did Harbour C open?"
    assert samples["line-3"]["texts"] is None
    assert samples["line-3"]["runs"][0]["error"][0] == "bad_line"


def test_texts_are_found_by_place_where_samples_have_no_ids_and_the_run_took_a_part(stub: Stub, tmp_path: Path) -> None:
    rows: list[Row] = [{**row(name), "id": None} for name in "ABC"]
    first, second = write(tmp_path, *rows, name="1.jsonl"), write(tmp_path, *rows, name="2.jsonl")
    run(stub, open_source([str(first), str(second)]), tmp_path / "run", limit=5)
    report_of(tmp_path / "r.html", tmp_path / "run")
    questions = [one["texts"]["question"] for one in data_in(tmp_path / "r.html")["samples"]]
    assert sorted(questions) == [f"What did Harbour {name} open?" for name in "AABBC"]


def test_texts_of_an_input_that_changed_or_went_away_are_not_shown(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, row("A"))
    run(stub, data, tmp_path / "run")
    write(tmp_path, row("A"), row("B"))
    told = report_of(tmp_path / "r.html", tmp_path / "run")
    assert told.n_with_texts == 0
    assert any("rows.jsonl has changed since the run read it" in note for note in told.notes)
    data.unlink()
    told = report_of(tmp_path / "r.html", tmp_path / "run")
    assert any("is not there any more" in note for note in told.notes)
    [sample] = data_in(tmp_path / "r.html")["samples"]
    assert sample["texts"] is None
    assert sample["statements"][0]["text"] == "Harbour A opened pier one."


def test_data_that_the_user_names_are_matched_by_id_and_other_bytes_are_told(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, row("A"), row("B"))
    run(stub, data, tmp_path / "run")
    data.unlink()
    moved = write(tmp_path, row("B"), row("A"), name="moved.jsonl")
    told = report_of(tmp_path / "r.html", tmp_path / "run", data=moved)
    assert told.n_with_texts == 2
    assert any("moved.jsonl, whose bytes are not those that the runs read" in note for note in told.notes)


def test_a_huge_context_is_shortened_and_the_report_says_by_how_much(stub: Stub, tmp_path: Path) -> None:
    long = {**row("A"), "retrieved_contexts": ["Harbour A opened pier one. " + "x" * 20_000]}
    run(stub, write(tmp_path, long), tmp_path / "run")
    report_of(tmp_path / "r.html", tmp_path / "run")
    [[text, cut]] = data_in(tmp_path / "r.html")["samples"][0]["texts"]["contexts"]
    assert (len(text), cut) == (8_000, 12_027)


def test_very_many_statements_are_counted_where_they_are_not_shown(stub: Stub, tmp_path: Path) -> None:
    texts = [f"Harbour A opened pier {n}." for n in range(310)]
    many = {**row("A"), "statements": [{"id": str(n), "text": text} for n, text in enumerate(texts)]}
    run(stub, write(tmp_path, {**many, "retrieved_contexts": []}), tmp_path / "run")
    report_of(tmp_path / "r.html", tmp_path / "run")
    [sample] = data_in(tmp_path / "r.html")["samples"]
    assert (len(sample["statements"]), sample["more_statements"]) == (300, 10)
    assert sample["runs"][0] == {
        "score": 0.0,
        "status": "scored",
        "error": None,
        "empty": True,
        "reason": None,
        "marks": [],
    }


def test_a_run_of_recorded_verdicts_has_the_texts_of_its_data(tmp_path: Path) -> None:
    data = write(tmp_path, {**row("A"), "statements": [{"id": "1", "text": "It opened.", "label": 1}]})
    words = ["import-verdicts", str(data), "--data", str(data), "--out", str(tmp_path / "people")]
    assert CliRunner().invoke(app, words).exit_code == 0
    told = report_of(tmp_path / "r.html", tmp_path / "people")
    assert told.n_with_texts == 1
    assert "not measured" in (tmp_path / "r.html").read_text()


# ---- the file ----


def test_a_report_holds_no_address_and_nothing_that_is_fetched(stub: Stub, tmp_path: Path) -> None:
    run(stub, write(tmp_path, *numbered(3)), tmp_path / "run", by=("group",))
    report_of(tmp_path / "r.html", tmp_path / "run")
    page = (tmp_path / "r.html").read_text()
    shown_addresses = re.findall(r"https?://[^<\"]+", page)
    assert set(shown_addresses) <= {stub.base_url}  # as text, in the run card
    assert not re.search(r"\b(src|srcset|action|poster|formaction)=|@import|url\(|<link|<iframe|<base", page)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src &#x27;none&#x27;; script-src &#x27;sha256-")
    assert "unsafe" not in policy[1]


def test_many_samples_stay_outside_and_are_linked_where_the_report_lies_beside_the_run(
    stub: Stub, tmp_path: Path
) -> None:
    folder = tmp_path / "a run"
    run(stub, write(tmp_path, *numbered(12)), folder)
    told = report_of(tmp_path / "r.html", folder, n=2)
    assert (told.n_samples, told.n_inside) == (12, 2)
    assert told.notes[1] == "10 more are in the files of the run."
    assert 'href="./a%20run/samples.jsonl"' in (tmp_path / "r.html").read_text()
    (tmp_path / "far" / "away").mkdir(parents=True)
    report_of(tmp_path / "far" / "away" / "r.html", folder, n=2)
    page = (tmp_path / "far" / "away" / "r.html").read_text()
    assert 'href="./' not in page
    assert f"{folder}/samples.jsonl" in page


def test_the_same_runs_give_the_same_file(stub: Stub, tmp_path: Path) -> None:
    run(stub, write(tmp_path, *numbered(6)), tmp_path / "run")
    report_of(tmp_path / "r.html", tmp_path / "run", n=2)
    first = (tmp_path / "r.html").read_bytes()
    report_of(tmp_path / "r.html", tmp_path / "run", n=2)
    assert (tmp_path / "r.html").read_bytes() == first


def test_an_unfinished_run_is_reported_as_one(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *numbered(4))
    stopped_at(stub, "N2", data, tmp_path / "run")
    told = report_of(tmp_path / "r.html", tmp_path / "run")
    assert told.n_samples == 2
    assert "not finished: the figures are of the samples that are done" in (tmp_path / "r.html").read_text()


def test_runs_with_other_statements_are_compared_by_scores_alone(stub: Stub, tmp_path: Path) -> None:
    run(stub, write(tmp_path, row("A", 2), row("B", 2)), tmp_path / "one")
    run(stub, write(tmp_path, row("A", 3), row("B", 2), name="other.jsonl"), tmp_path / "two")
    report_of(tmp_path / "r.html", tmp_path / "one", tmp_path / "two")
    page = (tmp_path / "r.html").read_text()
    assert "The runs hold other statements in 1 samples, for example A: sample scores alone are compared." in page
    assert "Bland and Altman" in page


def test_labels_of_one_run_make_a_part_on_people(stub: Stub, tmp_path: Path) -> None:
    run(stub, write(tmp_path, *numbered(4)), tmp_path / "run")
    labels = Labels("truth", {f"N{n}": (Label(sample=f"N{n}", id="1", attributed=n > 1),) for n in range(4)})
    report_of(tmp_path / "r.html", tmp_path / "run", labels=labels)
    page = (tmp_path / "r.html").read_text()
    assert "Reliability of run" in page
    # All four have probability .9, people find two of them attributed: one bin, |.9 - .5| = .4.
    assert "4 statements in 1 bins" in page
    assert "Expected calibration error 0.400" in page


# ---- the command ----


def test_the_command_says_where_the_report_is_and_how_large(stub: Stub, tmp_path: Path) -> None:
    run(stub, write(tmp_path, *numbered(2)), tmp_path / "run")
    file = tmp_path / "r.html"
    told = CliRunner().invoke(app, ["report", str(tmp_path / "run"), "-o", str(file)])
    assert told.exit_code == 0
    *lines, seal = told.stdout.splitlines()
    assert lines == [f"{file}: {file.stat().st_size / 1e3:.0f} kB", "All 2 samples are here."]
    assert seal.endswith(f"for: airjudge verify RUN --report {file}")
    told = CliRunner().invoke(app, ["report", str(tmp_path / "run"), "-o", str(file), "--json"])
    found = json.loads(told.stdout)
    assert (found["path"], found["n_bytes"], found["n_samples"]) == (str(file), file.stat().st_size, 2)


def test_the_command_takes_labels_and_refuses_half_a_wish(stub: Stub, tmp_path: Path) -> None:
    run(stub, write(tmp_path, *numbered(3)), tmp_path / "run")
    rulings: list[Row] = [{"id": f"N{n}", "statement_id": "1", "attributed": n > 0} for n in range(3)]
    labels = write(tmp_path, *rulings, name="l.jsonl")
    words = ["report", str(tmp_path / "run"), "-o", str(tmp_path / "r.html")]
    assert CliRunner().invoke(app, [*words, "--labels", str(labels), "--labels-random"]).exit_code == 0
    page = (tmp_path / "r.html").read_text()
    assert "Against people" in page
    assert "Recall corrected for the judge's errors" in page
    refused = CliRunner().invoke(app, [*words, "--labels-random"])
    assert refused.exit_code == 2
    assert "need --labels" in refused.output


def test_a_file_that_is_no_report_is_left_alone_unless_told_otherwise(tmp_path: Path) -> None:
    page = tmp_path / "mine.html"
    page.write_text("<html>mine</html>")
    with pytest.raises(InputError, match="is no report of ours") as caught:
        check_target(page, overwrite=False)
    assert "--overwrite" in caught.value.hint
    check_target(page, overwrite=True)
    with pytest.raises(InputError, match="is a folder"):
        check_target(tmp_path, overwrite=True)
    with pytest.raises(InputError, match="does not exist"):
        check_target(tmp_path / "no" / "r.html", overwrite=False)


def test_a_folder_without_a_run_is_an_error_with_a_next_step(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["report", str(tmp_path), "-o", str(tmp_path / "r.html")])
    assert isinstance(told.exception, AirjudgeError)
    assert not (tmp_path / "r.html").exists()


# ---- evidence ----


def test_the_data_tell_the_contexts_that_support_a_statement_or_the_most_probable_one(template: OpenedRun) -> None:
    def entry(context: int, probability: float | None) -> Support:
        return Support(
            context=context, probability=probability, attributed=None if probability is None else probability >= 0.5
        )

    def told(*support: Support) -> Any:
        verdict = Verdict(id="1", text="T.", attributed=True, probability=0.9, support=support)
        made = ScoredSample(id="x", score=1.0, status="scored", statements=(verdict,))
        [sample] = samples_data(chosen(joined([opened(template, made)], None), 1, rng=np.random.default_rng(0)), {})
        assert isinstance(sample, dict)
        return sample["statements"][0]["verdicts"][0][3]  # type: ignore[index, call-overload]

    assert told(entry(1, 0.2), entry(3, 0.7), entry(4, 0.8)) == {
        "how": "alone",
        "contexts": [[3, 0.7, True], [4, 0.8, True]],
    }
    assert told(entry(1, 0.2), entry(3, 0.4)) == {"how": "together", "contexts": [[3, 0.4, False]]}
    assert told(entry(1, None), entry(3, 0.4)) == {"how": "unknown", "contexts": [[3, 0.4, False], [1, None, None]]}


def test_a_report_has_no_word_of_support_where_nobody_asked(stub: Stub, tmp_path: Path) -> None:
    for name, evidence in (("plain", False), ("evident", True)):
        run(stub, write(tmp_path, row("A", 2)), tmp_path / name, evidence=evidence)
        report_of(tmp_path / f"{name}.html", tmp_path / name)
    pages = [(tmp_path / f"{name}.html").read_text() for name in ("plain", "evident")]
    heading = "Contexts that support a statement"
    assert [heading in page for page in pages] == [False, True]
    [sample] = data_in(tmp_path / "plain.html")["samples"]
    assert [verdict[3] for one in sample["statements"] for verdict in one["verdicts"]] == [None, None]
