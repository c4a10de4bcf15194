"""What makes scores comparable, and many samples in a few numbers."""

from collections.abc import Mapping

from airjudge.schema.records import Record
from airjudge.schema.samples import StatementMaker, SuspicionKind


class Signature(Record):
    """What makes two scores comparable: everything that can change a verdict but the data."""

    judge: str
    weights: str
    method: str
    prompt: str
    statements: StatementMaker
    decoding: str
    enforcement: str
    server: str
    airjudge: str

    @property
    def is_graded(self) -> bool:
        """Whether its scores are grades of responses, which are no recall."""
        return self.method == "opik"

    def __str__(self) -> str:
        """Give all parts in one line, in a fixed order; of the weights' hash the first twelve digits.

        Where no judge was asked there is nothing to say of weights, prompt, decoding and server.
        """
        if self.server == "none":
            return f"{self.judge} {self.method} statements={self.statements} airjudge-{self.airjudge}"
        return (
            f"{self.judge}@{self.weights[:12]} {self.method}#{self.prompt} statements={self.statements} "
            f"{self.decoding} enforced={self.enforcement} {self.server} airjudge-{self.airjudge}"
        )


class Rates(Record):
    """How fast a run went, per second of wall time; computed prompt tokens are those not in the server's cache."""

    verdicts: float
    samples: float
    computed_prompt_tokens: float


class Slice(Record):
    """The samples that share one value of a metadata column; the fields mean what they mean in `Summary`.

    `value` is the column's value as text; `(none)` where a sample has none, `(other)` for the samples
    of all values beyond the first fifty.
    """

    column: str
    value: str
    n: int
    n_scored: int
    n_undefined: int
    n_failed: int
    mean: float | None
    ci95: tuple[float, float] | None
    micro_mean: float | None
    n_statements: int


class ClaimCounts(Record):
    """How the statements of all samples came of claims that a judge wrote; the fields mean what they mean in `Claims`.

    Of the `n_samples` whose claims were asked for, `n_without` have none: they are judged by their sentences.
    """

    n_samples: int
    n_without: int
    n_claims: int
    n_sentences: int
    n_invented: int
    errors: Mapping[str, int]


class EchoCounts(Record):
    """What the single calls of all samples add up to; the fields mean what they mean in `Echoes`.

    `n_samples` are those whose single call was made and answered, `coverage` is over all their statements.
    """

    n_samples: int
    n_items: int
    n_once: int
    n_split: int
    n_repeated: int
    n_invented: int
    n_missing: int
    coverage: float | None
    errors: Mapping[str, int]


class ChunkMeans(Record):
    """What the contexts of all scored samples are worth; the figures mean what they mean in `Chunks`.

    Means are over the `n_samples` that have the figures, with bootstrap intervals over groups; `n_without` scored
    samples have none. Of the `n_supported` attributed statements of scored samples `n_alone` are supported by a
    context by itself, `n_together` by none, only by several; of the others a question failed.
    """

    n_samples: int
    n_without: int
    precision: float | None
    precision_ci95: tuple[float, float] | None
    average_precision: float | None
    average_precision_ci95: tuple[float, float] | None
    reciprocal_rank: float | None
    reciprocal_rank_ci95: tuple[float, float] | None
    n_supported: int
    n_alone: int
    n_together: int


class Abstained(Record):
    """Verdicts that a calibration leaves to people, and the range that they allow recall; of scored samples alone.

    `band` holds their probabilities, ends included. `bounds` are what the summary's `mean` would be if all of them
    were missed, and if all were attributed; `micro_bounds` the same of its `micro_mean`.
    """

    band: tuple[float, float]
    n_statements: int
    n_samples: int
    bounds: tuple[float, float] | None
    micro_bounds: tuple[float, float] | None


class Suspected(Record):
    """Samples with a text that looks as if it were aimed at the judge, by kind of mark, and the mean without them.

    `n_samples` counts marked samples, scored or not; `n_scored_without` is what `mean_without` is over: None if no
    scored sample is left. Marked samples stand in all other figures of a summary.
    """

    n_samples: int
    kinds: Mapping[SuspicionKind, int]
    n_scored_without: int
    mean_without: float | None


class Summary(Record):
    """Many samples in a few numbers; `mean` and its interval are over scored samples. Undefined is None.

    `ci95` is a bootstrap interval over groups. `bounds` are what `mean` would be if every
    statement without verdict were missed, and if every one were attributed. `n_statements` are those
    of the scored samples, which `micro_mean` is over; `n_verdicts` and `n_unjudged` are statements of
    all samples, with and without a verdict, and `n_in_parts` those whose contexts were read in parts. `sample_coverage`
    is the share of samples that are scored, `statement_coverage` the share of known statements that have a verdict;
    `abstained` is there if the run's calibration has a band, `chunks` if contexts were asked about one by one,
    `suspected` if a sample is marked.
    It is made of samples alone: what they cost stands beside it, so that runs with equal results have equal summaries.
    """

    n: int
    n_scored: int
    n_undefined: int
    n_failed: int
    mean: float | None
    ci95: tuple[float, float] | None
    micro_mean: float | None
    micro_ci95: tuple[float, float] | None
    bounds: tuple[float, float] | None
    n_statements: int
    n_verdicts: int
    n_unjudged: int
    sample_coverage: float | None
    statement_coverage: float | None
    n_empty_contexts: int
    n_in_parts: int = 0
    failures: Mapping[str, int]
    claims: ClaimCounts | None = None
    echoes: EchoCounts | None = None
    chunks: ChunkMeans | None = None
    abstained: Abstained | None = None
    suspected: Suspected | None = None
    slices: tuple[Slice, ...] = ()
