"""JUnit XML that continuous integration reads: any text in it, whole or not there, of any length."""

import tracemalloc
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge.errors import InputError, StorageFailed
from airjudge.gates import FailUnder, Gate, check_all, parse_max_failed
from airjudge.junit import Suite, check_junit_path, write_junit
from airjudge.schema import SampleError, ScoredSample, Verdict
from airjudge.summary import summarise

STARTED = datetime(2026, 11, 30, 20, 15, 1, 500_000, tzinfo=UTC)

# What the readers' published schema (Jenkins' junit-10.xsd) allows: element -> (required attributes,
# all attributes, children). GitLab reads name and classname of a case and the text of its one child.
SCHEMA: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
        {"testcase"},
    ),
    "testcase": ({"name"}, {"name", "time", "classname"}, {"skipped", "error", "failure", "system-out"}),
    "skipped": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "failure": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}


def scored(name: str = "a", marks: str = "x") -> ScoredSample:
    verdicts = tuple(Verdict(id=str(n), text="t", attributed=mark == "x") for n, mark in enumerate(marks, 1))
    return ScoredSample(id=name, score=marks.count("x") / len(marks), status="scored", statements=verdicts)


def failed(name: str = "f", message: str = "no reply within 1 s") -> ScoredSample:
    return ScoredSample(id=name, score=None, status="failed", error=SampleError(kind="timeout", message=message))


UNDEFINED = ScoredSample(id="u", score=None, status="undefined")


def written(path: Path, samples: Sequence[ScoredSample], *gates: Gate, name: str = "data.jsonl") -> ET.Element:
    summary = summarise(samples, rng=np.random.default_rng(0))
    write_junit(path, samples, Suite(name, summary, STARTED, 12.3456, check_all(gates, summary)))
    root = ET.parse(path).getroot()
    assert_valid(root)
    return root


def assert_valid(element: ET.Element) -> None:
    required, known, children = SCHEMA[element.tag]
    assert required <= set(element.attrib) <= known
    for child in element:
        assert child.tag in children
        assert_valid(child)


def test_each_sample_is_a_case_of_its_data_set(tmp_path: Path) -> None:
    root = written(tmp_path / "junit.xml", [scored("a", "x."), failed(), UNDEFINED])
    [suite] = root
    assert suite.attrib == {
        "name": "data.jsonl", "tests": "3", "failures": "0", "errors": "1", "skipped": "1",
        "time": "12.346", "timestamp": "2026-11-30T20:15:01",
    }  # fmt: skip
    assert [(case.get("name"), case.get("classname"), case[0].tag) for case in suite] == [
        ("a", "data.jsonl", "system-out"),
        ("f", "data.jsonl", "error"),
        ("u", "data.jsonl", "skipped"),
    ]
    assert suite[0][0].text == "recall 0.5, 1 of 2 statements attributed"
    assert (suite[1][0].get("type"), suite[1][0].get("message")) == ("timeout", "no reply within 1 s")
    assert suite[1][0].text == "no reply within 1 s"


def test_a_gate_is_a_case_that_fails_or_passes(tmp_path: Path) -> None:
    root = written(tmp_path / "junit.xml", [scored("a", "x.")], FailUnder(0.6), parse_max_failed("0"))
    assert (root[0].get("tests"), root[0].get("failures"), root.get("failures")) == ("3", "1", "1")
    under, failures = root[0][1:]
    assert (under.get("classname"), under.get("name"), under[0].tag) == ("airjudge.gates", "fail_under_mean", "failure")
    assert under[0].text == "mean recall is 0.5, under 0.6"
    assert failures[0].tag == "system-out"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("\x1b[31mred\x00", "\\u001b[31mred\\u0000"),
        ("\ud800 lone \udfff", "\\ud800 lone \\udfff"),
        ("\ufffe\uffff", "\\ufffe\\uffff"),
        ('<a href="x">&amp;\'</a>]]>', '<a href="x">&amp;\'</a>]]>'),
        ("two\nlines\tand\rmore", "two\nlines\tand\rmore"),
        ("مرحبا 𝒳 学\x85\u2028", "مرحبا 𝒳 学\x85\u2028"),
    ],
)
def test_any_text_can_be_a_name_or_a_message(tmp_path: Path, text: str, read: str) -> None:
    [suite] = written(tmp_path / "junit.xml", [failed(text, text)], name=text)
    assert suite.get("name") == suite[0].get("classname") == suite[0].get("name") == read
    assert suite[0][0].get("message") == read
    # In a text, unlike in an attribute, a reader takes a carriage return for a line's end.
    assert suite[0][0].text == read.replace("\r", "\n")


@given(st.lists(st.text(st.characters(codec=None, exclude_categories=()), max_size=8), max_size=5))
def test_the_file_is_well_formed_whatever_the_texts_hold(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    [suite] = written(tmp_path_factory.getbasetemp() / "any.xml", [failed(text, text) for text in texts])
    assert len(suite) == len(texts)


def test_an_earlier_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    path.write_text("earlier")

    def breaks_off() -> Iterator[ScoredSample]:
        yield scored()
        assert path.read_text() == "earlier"
        raise OSError(28, "No space left on device")

    summary = summarise([scored()], rng=np.random.default_rng(0))
    with pytest.raises(StorageFailed, match="No space left"):
        write_junit(path, breaks_off(), Suite("d", summary, STARTED, 1.0))
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    check_junit_path(tmp_path / "junit.xml")
    with pytest.raises(InputError, match="is a folder"):
        check_junit_path(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        check_junit_path(tmp_path / "missing" / "junit.xml")


def test_samples_are_written_as_they_come(tmp_path: Path) -> None:
    def many() -> Iterator[ScoredSample]:
        for n in range(20_000):
            yield row.model_copy(update={"id": str(n)})

    row = scored()
    summary = summarise([row], rng=np.random.default_rng(0))
    tracemalloc.start()
    write_junit(tmp_path / "junit.xml", many(), Suite("d", summary, STARTED, 1.0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The file has two megabytes.
    assert (tmp_path / "junit.xml").stat().st_size > 2_000_000
    assert peak < 500_000
