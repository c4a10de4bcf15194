"""ragas' older metrics: one sample object in, a number out; None where the original gives NaN."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import Any, ClassVar, get_args

from pydantic import BaseModel

from airjudge.compat.ragas.llm import JudgeLLM
from airjudge.compat.ragas.prompt import Method
from airjudge.compat.ragas.recall import ContextRecall, checked_llm
from airjudge.compat.ragas.result import MetricResult
from airjudge.judge import refuse_running_loop
from airjudge.metrics import IDBasedContextRecall as Ids
from airjudge.metrics import NonLLMContextRecall as Likeness
from airjudge.similarity import DISTANCES, Distance


class SingleTurnSample(BaseModel):
    """One sample; any object with the attributes that a metric reads does as well, ragas' own too."""

    user_input: str | None = None
    retrieved_contexts: list[str] | None = None
    reference_contexts: list[str] | None = None
    retrieved_context_ids: list[str | int] | None = None
    reference_context_ids: list[str | int] | None = None
    response: str | None = None
    multi_responses: list[str] | None = None
    reference: str | None = None
    rubrics: dict[str, str] | None = None
    persona_name: str | None = None
    query_style: str | None = None
    query_length: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields that are set."""
        return self.model_dump(exclude_none=True)


class DistanceMeasure(Enum):
    """What the likeness of two texts is one minus."""

    LEVENSHTEIN = "levenshtein"
    HAMMING = "hamming"
    JARO = "jaro"
    JARO_WINKLER = "jaro_winkler"


class LLMContextRecall:
    """The share of a reference's statements that the retrieved contexts support, by the majority of some votes."""

    required_columns: ClassVar = {"SINGLE_TURN": {"user_input", "retrieved_contexts", "reference"}}

    def __init__(
        self,
        name: str = "context_recall",
        llm: JudgeLLM | None = None,
        max_retries: int = 1,
        *,
        method: Method = "pointwise",
        n_votes: int = 1,
    ) -> None:
        """Ask nothing yet.

        Args:
            name: Names the metric.
            llm: What `llm_factory` made; it may be set later.
            max_retries: Has no effect: replies parse.
            method: As in `ContextRecall`.
            n_votes: How often each sample is judged; of a tie the vote that came first stands. A server repeats itself
                but for what other load does to its arithmetic.

        Raises:
            ValueError: If `llm` is anything else, there is no such method, or there is no vote.
        """
        if n_votes < 1:
            msg = f"n_votes must be at least 1: got {n_votes}"
            raise ValueError(msg)
        self.name, self.max_retries, self.method, self.n_votes = name, max_retries, method, n_votes
        self.llm = llm if llm is None else checked_llm(llm)

    def single_turn_score(self, sample: Any, callbacks: Any = None) -> float | None:
        """Score a sample; `single_turn_ascore` inside an event loop."""
        refuse_running_loop("single_turn_ascore")
        metric, fields = self._metric(), self._fields(sample)
        return self._majority([metric.score(**fields) for _ in range(self.n_votes)])

    async def single_turn_ascore(
        self,
        sample: Any,
        callbacks: Any = None,
        timeout: float | None = None,  # noqa: ASYNC109 -- a foreign signature
    ) -> float | None:
        """Score a sample.

        Raises:
            ValueError: If a field that it reads is empty, or there is no llm.
            TimeoutError: If it takes longer than `timeout` seconds.
        """
        metric, fields = self._metric(), self._fields(sample)

        async def votes() -> list[MetricResult]:
            return [await metric.ascore(**fields) for _ in range(self.n_votes)]

        return self._majority(await asyncio.wait_for(votes(), timeout))

    def _metric(self) -> ContextRecall:
        return ContextRecall(checked_llm(self.llm), self.name, self.method)

    @staticmethod
    def _fields(sample: Any) -> dict[str, Any]:
        return {name: getattr(sample, name, None) for name in ("user_input", "retrieved_contexts", "reference")}

    @staticmethod
    def _majority(votes: Sequence[MetricResult]) -> float | None:
        """The share of statements that most votes attribute; all votes are on the same ones."""
        positions = zip(*(vote.statements for vote in votes), strict=True)
        found = [Counter(one.attributed for one in position).most_common(1)[0][0] for position in positions]
        return sum(map(bool, found)) / len(found) if found else None


class NonLLMContextRecall:
    """The share of reference contexts that a retrieved one is like, letter by letter."""

    required_columns: ClassVar = {"SINGLE_TURN": {"retrieved_contexts", "reference_contexts"}}

    def __init__(self, name: str = "non_llm_context_recall", threshold: float = 0.5) -> None:
        """Compare by Levenshtein's distance; set `distance_measure` for another.

        Raises:
            ValueError: If the threshold is no number in [0, 1].
            ExtraMissing: If rapidfuzz is not installed.
        """
        self.name, self.threshold = name, threshold
        self._distance: Distance = "levenshtein"
        Likeness(threshold=threshold)

    @property
    def distance_measure(self) -> DistanceMeasure:
        """What the likeness is one minus."""
        return DistanceMeasure(self._distance)

    @distance_measure.setter
    def distance_measure(self, measure: Any) -> None:
        wanted = getattr(measure, "value", measure)
        found = next((one for one in get_args(Distance) if one == wanted), None)
        if found is None:
            msg = f"a distance is one of {', '.join(DISTANCES)}: got {measure!r}"
            raise ValueError(msg)
        self._distance = found

    def single_turn_score(self, sample: Any, callbacks: Any = None) -> float | None:
        """Score a sample.

        Raises:
            ValueError: If a field that it reads is no list of strings, or nothing was retrieved.
        """
        return (
            Likeness(threshold=self.threshold, distance=self._distance)
            .score(
                retrieved_contexts=getattr(sample, "retrieved_contexts", ()),
                reference_contexts=getattr(sample, "reference_contexts", ()),
            )
            .value
        )

    async def single_turn_ascore(
        self,
        sample: Any,
        callbacks: Any = None,
        timeout: float | None = None,  # noqa: ASYNC109 -- a foreign signature
    ) -> float | None:
        """Score a sample, as `single_turn_score`."""
        return self.single_turn_score(sample, callbacks)


class IDBasedContextRecall:
    """The share of distinct reference ids that are among those of the retrieved contexts."""

    required_columns: ClassVar = {"SINGLE_TURN": {"retrieved_context_ids", "reference_context_ids"}}

    def __init__(self, name: str = "id_based_context_recall") -> None:
        """Compare ids as texts."""
        self.name = name

    def single_turn_score(self, sample: Any, callbacks: Any = None) -> float | None:
        """Score a sample; None if there is no reference id.

        Raises:
            ValueError: If a field that it reads is no list of strings and whole numbers.
        """
        return (
            Ids()
            .score(
                retrieved_context_ids=getattr(sample, "retrieved_context_ids", ()),
                reference_context_ids=getattr(sample, "reference_context_ids", ()),
            )
            .value
        )

    async def single_turn_ascore(
        self,
        sample: Any,
        callbacks: Any = None,
        timeout: float | None = None,  # noqa: ASYNC109 -- a foreign signature
    ) -> float | None:
        """Score a sample, as `single_turn_score`."""
        return self.single_turn_score(sample, callbacks)
