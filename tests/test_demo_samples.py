from statistics import fmean

import pytest

from airjudge.datasets import demo_samples
from airjudge.schema import Sample
from airjudge.statements import split_statements

SAMPLES = demo_samples()


def labels(sample: Sample) -> list[int]:
    found = sample.metadata["expected_labels"]
    assert isinstance(found, list)
    return [int(label) for label in found if isinstance(label, int)]


def by_id(name: str) -> Sample:
    return next(sample for sample in SAMPLES if sample.id == name)


def test_there_are_ten_samples_or_more_in_six_languages_or_more() -> None:
    assert len(SAMPLES) >= 10
    assert len({sample.metadata["lang"] for sample in SAMPLES}) >= 6


def test_the_seed_s_sample_is_there_word_for_word() -> None:
    eiffel = by_id("eiffel")
    assert eiffel.user_input == "埃菲尔铁塔位于哪里？"
    assert eiffel.retrieved_contexts == ("巴黎是法国的首都。", "埃菲尔铁塔位于巴黎。")
    assert eiffel.reference == "埃菲尔铁塔位于巴黎。他的名字叫汤姆。"
    assert [s.text for s in split_statements(eiffel)] == ["埃菲尔铁塔位于巴黎。", "他的名字叫汤姆。"]
    assert eiffel.metadata["expected"] == 0.5


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)
def test_the_expected_recall_follows_from_the_labels_of_the_statements(sample: Sample) -> None:
    assert len(labels(sample)) == len(split_statements(sample))
    assert sample.metadata["expected"] == pytest.approx(fmean(labels(sample)), abs=1e-6)


def test_the_samples_cover_all_that_they_claim_to_show() -> None:
    shown = [str(sample.metadata["shows"]) for sample in SAMPLES]
    assert len(set(shown)) == len(SAMPLES)
    assert any(sample.retrieved_contexts == () and sample.metadata["expected"] == 0 for sample in SAMPLES)
    assert any(len(sample.reference.split()) == 1 for sample in SAMPLES if sample.metadata["lang"] == "en")
    assert any(sample.statements and len(sample.statements) > 1 for sample in SAMPLES)
    assert {sample.metadata["expected"] for sample in SAMPLES} >= {0.0, 0.5, 1.0}
