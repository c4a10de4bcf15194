"""Recall without a judge, held against ragas' own metrics on generated samples: equal to the last bit."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ragas import SingleTurnSample
from ragas.metrics import DistanceMeasure
from ragas.metrics import IDBasedContextRecall as OriginalIds
from ragas.metrics import NonLLMContextRecall as OriginalLikeness

from airjudge import IDBasedContextRecall, NonLLMContextRecall
from airjudge.datasets import source_of
from airjudge.metrics import RecallResult
from airjudge.schema import Sample
from airjudge.similarity import DISTANCES, Distance

N_SAMPLES: Final = 400

Id = str | int


class Original(Protocol):
    """What is used of a metric of ragas."""

    def single_turn_ascore(self, sample: SingleTurnSample) -> Awaitable[float]:
        """A score, or NaN."""


# Few letters and parts that repeat make texts that are alike, and ties; the alphabet holds scripts and surrogate pairs.
WORDS: Final = st.sampled_from(["the ferry", "departs", "at six", "whales", "é", "ß", "埃菲尔铁塔", "𝔘", "", " ", "\n"])
TEXTS: Final = st.one_of(
    st.lists(WORDS, max_size=6).map(" ".join),
    st.text("abc", max_size=8),
    st.text(st.characters(codec="utf-8"), max_size=12),
)
CONTEXTS: Final = st.lists(TEXTS, max_size=4)
THRESHOLDS: Final = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 1.0])
IDS: Final = st.lists(
    st.one_of(st.integers(-3, 12), st.sampled_from(["1", "01", "2", "-1", "a", "A", " a", "", "é"])), max_size=6
)


def original(metric: Original, sample: SingleTurnSample) -> float | type[ValueError] | None:
    """What the original gives; None for its NaN."""
    try:
        value = asyncio.run(_scored(metric, sample))
    except ValueError:
        return ValueError
    return None if math.isnan(value) else value


async def _scored(metric: Original, sample: SingleTurnSample) -> float:
    return await metric.single_turn_ascore(sample)


def ours(score: Callable[[], RecallResult]) -> float | type[ValueError] | None:
    """What ours gives; what is undefined has a typed reason."""
    try:
        result = score()
    except ValueError:
        return ValueError
    assert (result.value is None) == (result.error is not None)
    return result.value


@pytest.mark.parametrize("distance", DISTANCES)
@settings(max_examples=N_SAMPLES)
@given(retrieved=CONTEXTS, reference=CONTEXTS, threshold=THRESHOLDS)
@example(retrieved=[], reference=[], threshold=0.5)
@example(retrieved=[], reference=["a"], threshold=0.5)
@example(retrieved=["a"], reference=[], threshold=0.5)
@example(retrieved=[""], reference=[""], threshold=0.5)
@example(retrieved=["wxyz"], reference=["wx"], threshold=0.5)
def test_likeness_is_that_of_the_original(
    distance: Distance, retrieved: Sequence[str], reference: Sequence[str], threshold: float
) -> None:
    metric = OriginalLikeness(threshold=threshold)
    metric.distance_measure = DistanceMeasure(distance)
    sample = SingleTurnSample(retrieved_contexts=list(retrieved), reference_contexts=list(reference))
    mine = NonLLMContextRecall(threshold=threshold, distance=distance)
    found = ours(lambda: mine.score(retrieved_contexts=retrieved, reference_contexts=reference))
    assert found == original(metric, sample)


def test_the_defaults_are_those_of_the_original() -> None:
    metric, mine = OriginalLikeness(), NonLLMContextRecall()
    assert (metric.name, metric.threshold) == (mine.name, mine.threshold)
    assert metric.distance_measure.distance_measure.value == mine.distance
    assert {one.value for one in DistanceMeasure} == set(DISTANCES)
    assert OriginalIds().name == IDBasedContextRecall.name


@settings(max_examples=N_SAMPLES)
@given(retrieved=IDS, reference=IDS)
@example(retrieved=[], reference=[])
@example(retrieved=[], reference=[1])
@example(retrieved=[1, "1", "2"], reference=["1", 2, 2, 3])
def test_ids_are_found_as_by_the_original(retrieved: Sequence[Id], reference: Sequence[Id]) -> None:
    sample = SingleTurnSample(retrieved_context_ids=list(retrieved), reference_context_ids=list(reference))
    mine = IDBasedContextRecall()
    found = ours(lambda: mine.score(retrieved_context_ids=retrieved, reference_context_ids=reference))
    assert found == original(OriginalIds(), sample)


@settings(max_examples=N_SAMPLES // 2)
@given(retrieved=CONTEXTS, reference=CONTEXTS)
def test_a_data_set_scores_as_the_object_but_for_an_empty_retrieval(
    retrieved: Sequence[str], reference: Sequence[str]
) -> None:
    metric = NonLLMContextRecall()
    rows = [{"retrieved_contexts": list(retrieved), "reference_contexts": list(reference)}]
    (entry,) = source_of(rows, required=metric.required).entries(lambda _: False)
    assert isinstance(entry.value, Sample)
    scored = asyncio.run(metric.score_sample(entry.value))
    if reference and not any(text.strip() for text in retrieved):
        assert (scored.score, scored.empty_contexts) == (0.0, True)
        return
    sample = SingleTurnSample(retrieved_contexts=list(retrieved), reference_contexts=list(reference))
    assert scored.score == original(OriginalLikeness(), sample)


def test_where_the_original_raises_on_an_empty_retrieval_a_data_set_counts_a_miss() -> None:
    sample = SingleTurnSample(retrieved_contexts=[], reference_contexts=["a"])
    assert original(OriginalLikeness(), sample) is ValueError
    mine = Sample(id="1", user_input="", reference="", retrieved_contexts=(), reference_contexts=("a",))
    scored = asyncio.run(NonLLMContextRecall().score_sample(mine))
    assert (scored.score, scored.empty_contexts) == (0.0, True)


def test_a_lone_text_is_refused_by_both() -> None:
    with pytest.raises(ValueError, match="retrieved_contexts"):
        SingleTurnSample(retrieved_contexts="ab", reference_contexts=["a"])
    with pytest.raises(ValueError, match="retrieved_contexts"):
        NonLLMContextRecall().score(retrieved_contexts="ab", reference_contexts=["a"])


def test_what_is_no_id_is_refused_where_the_original_makes_one_of_it() -> None:
    # pydantic reads 7.0 as 7.
    sample = SingleTurnSample(retrieved_context_ids=[7.0], reference_context_ids=["7"])
    assert original(OriginalIds(), sample) == 1.0
    with pytest.raises(ValueError, match="retrieved_context_ids must be a list of strings and whole numbers"):
        IDBasedContextRecall().score(retrieved_context_ids=[7.0], reference_context_ids=["7"])  # type: ignore[list-item]
