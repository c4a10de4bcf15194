"""What a comparison of judges holds; its JSON is what `airjudge compare --json` prints.

Everywhere: `n` counts statements that all judges concerned ruled on, unless its record says otherwise; intervals
come from resampling whole groups (the samples themselves where no groups are given); undefined is None.
"""

from typing import Final, Literal

from airjudge.schema import Cost, Record, Usage

Interval = tuple[float, float] | None
JudgeKind = Literal["run", "labels"]
PEOPLE: Final = "labels"
"""The name of the judge that the labels are."""


class StatementCounts(Record):
    """What became of the `n` statements of a comparison with one judge; the parts add up to `n`.

    `n_failed` were asked and have no verdict, `n_unlabelled` are those that nobody labelled, `n_missing` were
    never put to this judge: its run lacks the sample, or the sample failed before its statements were known.
    """

    n: int
    n_ruled: int
    n_failed: int
    n_unlabelled: int
    n_missing: int


class SampleCounts(Record):
    """What became of the `n` samples of a comparison with one judge; the parts add up to `n`.

    `n_unlabelled` are those of which people left at least one statement without label.
    """

    n: int
    n_scored: int
    n_undefined: int
    n_failed: int
    n_unlabelled: int
    n_missing: int


class Repeats(Record):
    """How often a judge contradicts itself: no other judge can be asked to agree with it more.

    `k` runs of the same data by the same judge; `n` statements on which at least two of them ruled. `flip_rate` is how
    often two runs differ on a statement: the share of pairs of runs, its mean over statements; one less it is the
    ceiling of raw agreement. `n_flipped` statements are not ruled alike by all. `kappa` is the mean over pairs of runs.
    """

    k: int
    n: int
    n_flipped: int
    flip_rate: float | None
    flip_rate_ci95: Interval
    kappa: float | None

    def __str__(self) -> str:
        """Say it in one line."""
        if self.flip_rate is None:
            return f"{self.k} runs, and no statement that two of them ruled on"
        between = f" ({self.flip_rate_ci95[0]:.4f} to {self.flip_rate_ci95[1]:.4f})" if self.flip_rate_ci95 else ""
        kappa = "undefined" if self.kappa is None else f"{self.kappa:.3f}"
        return (
            f"two of {self.k} runs differ on {self.flip_rate:.4f}{between} of {self.n} statements, "
            f"{self.n_flipped} are not ruled alike by all, kappa between runs {kappa}"
        )


class Accuracy(Record):
    """How a judge rules where people have ruled.

    `n` statements of `n_groups` groups, of which people found `n_positive` attributed. `auc` is over the `n_auc`
    statements to which the judge gave a probability.
    """

    n: int
    n_groups: int
    n_positive: int
    accuracy: float | None
    sensitivity: float | None
    sensitivity_ci95: Interval
    specificity: float | None
    specificity_ci95: Interval
    balanced_accuracy: float | None
    balanced_accuracy_ci95: Interval
    f1: float | None
    f1_ci95: Interval
    kappa: float | None
    kappa_ci95: Interval
    n_auc: int
    auc: float | None
    auc_ci95: Interval


class CorrectedRecall(Record):
    """A recall as the judge gives it, and freed of the errors that labelled samples show.

    `n_labelled` and `n_other` count what was labelled and what was not: statements for micro recall, samples for
    macro recall; `n_groups` are those of the labelled ones.
    """

    raw: float | None
    value: float | None
    ci95: Interval
    n_labelled: int
    n_other: int
    n_groups: int


class Corrections(Record):
    """Recall corrected for a judge's errors, from labelled samples drawn at random and not used for calibration.

    `micro` by Rogan and Gladen, `macro` by prediction-powered inference.
    """

    micro: CorrectedRecall
    macro: CorrectedRecall


class AnnotatorTest(Record):
    """The alternative annotator test: whether a judge may stand in for one of several people.

    `winning_rate` is the share of the `n_tested` annotators than whom the judge is found no farther from the others,
    `epsilon` taken off for what people cost; it passes from .5. `advantage` is how often it is as close as an annotator
    or closer, on average. `n` statements have votes and a verdict. `assumptions` are what the figures rest on.
    """

    epsilon: float
    n: int
    n_annotators: int
    n_tested: int
    winning_rate: float | None
    advantage: float | None
    passed: bool | None
    assumptions: tuple[str, ...]


class AgainstPeople(Record):
    """A judge held against the labels; `without_partial` leaves out statements that are supported in part.

    `corrected` is None unless the labels are said to be of samples drawn at random; `annotators` is None unless there
    are three annotators or more.
    """

    all: Accuracy
    n_partial: int
    without_partial: Accuracy | None = None
    corrected: Corrections | None = None
    annotators: AnnotatorTest | None = None


class JudgeFigures(Record):
    """One judge of a comparison: a run, or the people whose labels were given.

    `n` are statements with a verdict, of which the share `prevalence` is attributed. `mean` and `micro_mean` are
    recall over its own scored samples, as in its summary. `usage` and `seconds` are what its run took, None for
    people; `cost` is known where a price was told. `signature` is its line; None for people.
    """

    name: str
    kind: JudgeKind
    signature: str | None
    state: str | None
    n: int
    prevalence: float | None
    statements: StatementCounts
    samples: SampleCounts
    mean: float | None
    ci95: Interval
    micro_mean: float | None
    micro_ci95: Interval
    usage: Usage | None
    seconds: float | None
    cost: Cost | None = None
    repeats: Repeats | None = None
    people: AgainstPeople | None = None


class RecallDifference(Record):
    """Mean recall of two judges over the `n` samples, of `n_groups` groups, that both gave a score.

    `difference` is that of `a` less that of `b`. They are `equivalent` if it lies within `margin` on both sides by two
    one-sided tests at 5 %, of which `equivalence_p` is the larger p: `ci90` lies within the margin.
    """

    n: int
    n_groups: int
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    ci95: Interval
    margin: float
    ci90: Interval
    equivalence_p: float | None
    equivalent: bool | None
    pearson: float | None
    spearman: float | None


class PairSlice(Record):
    """Two judges on the samples that share one value of a column; fields mean what they mean in `Pair`."""

    column: str
    value: str
    n: int
    agreement: float | None
    prevalence_a: float | None
    prevalence_b: float | None
    kappa: float | None
    ac1: float | None
    recall_difference: float | None


class Ruling(Record):
    """What one judge said of a statement on which two differ."""

    attributed: bool
    probability: float | None
    reason: str | None = None


class Disagreement(Record):
    """A statement on which two judges differ.

    `confidence` is the smaller of the probabilities that they give their own verdicts, as far as they give any; None
    if neither does.
    """

    sample: str
    statement: str
    text: str
    a: Ruling
    b: Ruling
    confidence: float | None


class Pair(Record):
    """How two judges rule on the `n` statements of `n_samples` samples, of `n_groups` groups, that both ruled on.

    `table[i][j]` counts statements that `a` ruled i and `b` ruled j (0 not attributed, 1 attributed). `n_left_out` are
    statements of the comparison that one of them, or both, did not rule on. `mcnemar_p` is exact and takes statements
    for independent; `permutation_p` swaps the judges over whole groups. Of a comparison of scores alone, and of
    judges who share no statement, what concerns statements is None or 0.
    """

    a: str
    b: str
    n: int
    n_samples: int
    n_groups: int
    n_left_out: int
    agreement: float | None
    agreement_ci95: Interval
    prevalence_a: float | None
    prevalence_b: float | None
    kappa: float | None
    kappa_ci95: Interval
    ac1: float | None
    ac1_ci95: Interval
    table: tuple[tuple[int, int], tuple[int, int]]
    mcnemar_p: float | None
    permutation_p: float | None
    recall: RecallDifference
    slices: tuple[PairSlice, ...] = ()
    n_disagreements: int = 0
    disagreements: tuple[Disagreement, ...] = ()


class GateOutcome(Record):
    """Whether a judge's mean recall passes the gate."""

    judge: str
    value: float | None
    passed: bool


class GateDecision(Record):
    """A gate on mean recall held against every judge; it `flips` if some let it pass and others do not."""

    limit: float
    outcomes: tuple[GateOutcome, ...]
    flips: bool


class SystemMeans(Record):
    """Mean recall of each system by one judge, in the order of `Ranking.systems`, over the samples that it scored."""

    judge: str
    means: tuple[float | None, ...]
    n_samples: tuple[int, ...]


class RankingPair(Record):
    """How two judges order the systems by mean recall over the `n_samples` samples that both scored.

    `tau` is Kendall's tau-b; `flipped` are pairs of systems of which `a` finds the first better, and `b` the second.
    """

    a: str
    b: str
    n_samples: int
    tau: float | None
    flipped: tuple[tuple[str, str], ...]


class Ranking(Record):
    """The systems, values of `column`, by mean recall of each judge; `flips` if two judges order a pair otherwise."""

    column: str
    systems: tuple[str, ...]
    judges: tuple[SystemMeans, ...]
    pairs: tuple[RankingPair, ...]
    flips: bool


class Comparison(Record):
    """Judges held against each other, pair by pair, and against people.

    `n_statements`, `n_samples` and `n_groups` are all that at least one judge was given. `alpha` is Krippendorff's over
    all judges, people among them, on the `alpha_n` statements that at least two ruled on. `scores_only` says that the
    runs differ in their statements, in the `n_differing` samples of which `differing` names the first.
    `notes` are sentences that a reader of the figures must know.
    """

    judges: tuple[JudgeFigures, ...]
    pairs: tuple[Pair, ...]
    alpha: float | None
    alpha_ci95: Interval
    alpha_n: int
    n_statements: int
    n_samples: int
    n_groups: int
    scores_only: bool = False
    n_differing: int = 0
    differing: tuple[str, ...] = ()
    gate: GateDecision | None = None
    ranking: Ranking | None = None
    notes: tuple[str, ...] = ()
