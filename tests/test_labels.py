"""Labels find the statements that they are on."""

from airjudge.labels import Label, Labels
from airjudge.schema import ScoredSample, Verdict


def scored(*statements: tuple[str, str], group: str | None = None) -> ScoredSample:
    verdicts = tuple(Verdict(id=name, text=text, attributed=True) for name, text in statements)
    return ScoredSample(id="q", score=1.0, status="scored", statements=verdicts, group=group)


def labels(*told: tuple[str | None, str | None, bool]) -> Labels:
    return Labels("people", {"q": tuple(Label(sample="q", id=a, text=b, attributed=c) for a, b, c in told)})


def found(known: Labels, sample: ScoredSample) -> list[bool | None]:
    return [one.attributed if one else None for one in known.on(sample)]


def test_a_label_is_found_by_id_by_text_or_by_both() -> None:
    known = labels(("1", None, True), (None, "B. ", False), ("3", "C.", True))
    assert found(known, scored(("1", "A."), ("2", "B."), ("3", "C."))) == [True, False, True]


def test_a_label_whose_text_is_another_is_on_no_statement() -> None:
    assert found(labels(("1", "Another text.", True)), scored(("1", "A."))) == [None]


def test_a_label_by_text_is_on_each_statement_with_that_text() -> None:
    known = labels((None, "A.", True), ("3", "A.", False))
    assert found(known, scored(("1", "A."), ("2", "B."), ("3", "A."))) == [True, None, True]


def test_a_name_that_may_be_id_or_text_is_looked_for_as_both() -> None:
    known = Labels("people", {"q": (Label(sample="q", named="2", attributed=True),)})
    assert found(known, scored(("1", "A."), ("2", "B."), ("3", "2"))) == [None, True, True]


def test_the_group_is_that_of_the_sample_then_that_of_the_labels_then_the_sample_itself() -> None:
    known = Labels("people", {}, {"q": "document"})
    assert known.group_of(scored(group="own")) == "own"
    assert known.group_of(scored()) == "document"
    assert labels().group_of(scored()) == "q"
