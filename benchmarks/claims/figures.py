"""What is computed of claims beside those of people: how they split a reference, and what that does to recall."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from airjudge import agreement
from airjudge.agreement import percentile_interval
from airjudge.evidence import words_of
from airjudge.labels import Labels
from airjudge.run import OpenedRun
from airjudge.schema import Record, ScoredSample, StatementMaker
from benchmarks.agreement.methods import human_recall
from benchmarks.agreement.run import Interval
from benchmarks.matching import one_to_one, word_f1

STRICT_F1: Final = 0.7
REPEATED: Final = 0.9
COPIED_F1: Final = 0.9
N_RESAMPLES: Final = 2000
SEED: Final = 20_261_201

_LEANS: Final = re.compile(
    r"(?:he|she|it|they|his|her|its|their|him|them|this|that|these|those|there|such|one|both|the (?:former|latter))\b",
    re.IGNORECASE,
)


class Split(Record):
    """How the statements of one maker compare with those of people, over all references of a set.

    `covered` is the share of human claims that have a partner, `covered_strictly` by an F1 of .7; `matched` the share
    of made statements that have one. `per_human` is made statements a human one. `unsplit` is the share of the
    references' sentences that stayed one statement, as they are or copied; `n_resolvable` counts sentences that lean
    and are not the first of their reference: only there does the reference tell what a pronoun stands for.
    """

    n: int
    per_human: float
    covered: float
    covered_ci95: Interval
    covered_strictly: float
    matched: float
    repeats: float
    leans: float
    unsplit: float
    n_resolvable: int


class Agreed(Record):
    """Recall by one maker's statements against the share that people found supported, over samples with both.

    `bias` is recall less that share. `less_sentences` is the mean absolute error less that by sentences, on the
    samples that both have. `balanced_accuracy` is of verdicts on statements that are, or match, one that people
    labelled; `on_human` is that of the same judge's verdicts on these people's statements themselves, and `same` the
    share of the pairs where both verdicts are one.
    """

    n_samples: int
    mean: float
    human_mean: float
    bias: float
    bias_ci95: Interval
    mean_absolute_error: float
    mean_absolute_error_ci95: Interval
    less_sentences: float
    less_sentences_ci95: Interval
    pearson: float | None
    spearman: float | None
    n_verdicts: int
    balanced_accuracy: float | None
    kappa: float | None
    on_human: float | None
    same: float | None


class Reference(Record):
    """What people and a maker wrote out of one reference, its sentences and its group."""

    group: str
    sentences: tuple[str, ...]
    human: tuple[str, ...]
    made: tuple[str, ...]

    def covered(self, least: float) -> int:
        """Human claims that have a partner."""
        return len(one_to_one(self.human, self.made, least))


def split_of(references: Sequence[Reference]) -> Split:
    """How a maker's statements compare with those of people."""
    n_human, n_made = sum(len(one.human) for one in references), sum(len(one.made) for one in references)
    n_sentences = sum(len(one.sentences) for one in references)
    covered = [one.covered(0.5) for one in references]
    return Split(
        n=n_made,
        per_human=n_made / n_human,
        covered=sum(covered) / n_human,
        covered_ci95=ratio_ci95([one.group for one in references], covered, [len(one.human) for one in references]),
        covered_strictly=sum(one.covered(STRICT_F1) for one in references) / n_human,
        matched=sum(covered) / n_made,
        repeats=sum(n_repeated(one.made) for one in references) / n_made,
        leans=sum(leans(text) for one in references for text in one.made) / n_made,
        unsplit=sum(n_unsplit(one) for one in references) / n_sentences,
        n_resolvable=sum(leans(text) for one in references for text in one.sentences[1:]),
    )


def n_repeated(texts: Sequence[str]) -> int:
    """Statements of which nearly every word is in another; of two that say the same one counts."""
    held = [words_of(text) for text in texts]
    return sum(
        any(
            len(own & other) >= REPEATED * len(own) and (len(own) < len(other) or at > place)
            for place, other in enumerate(held)
            if place != at
        )
        for at, own in enumerate(held)
    )


def n_unsplit(reference: Reference) -> int:
    """Sentences of a reference that one of the statements copies, but for a word in ten or so."""
    return sum(any(word_f1(text, made) >= COPIED_F1 for made in reference.made) for text in reference.sentences)


def leans(text: str) -> bool:
    """Whether an English statement opens with a word that stands for something said before."""
    return _LEANS.match(text.strip()) is not None


def mean_ci95(groups: Sequence[str], values: Sequence[float]) -> Interval:
    """Interval of a mean, groups drawn with replacement."""
    return ratio_ci95(groups, values, [1] * len(values))


def ratio_ci95(groups: Sequence[str], above: Sequence[float], below: Sequence[float]) -> Interval:
    """Interval of a ratio of sums, groups drawn with replacement."""
    known = sorted(set(groups))
    sums = np.zeros((len(known), 2))
    for group, numerator, denominator in zip(groups, above, below, strict=True):
        sums[known.index(group)] += (numerator, denominator)
    drawn = np.random.default_rng(SEED).integers(len(known), size=(N_RESAMPLES, len(known)))
    totals = sums[drawn].sum(axis=1)
    return percentile_interval(totals[:, 0] / totals[:, 1])


def agreed_of(
    runs: Mapping[StatementMaker, OpenedRun], maker: StatementMaker, *, labels: Labels, groups: Mapping[str, str]
) -> Agreed:
    """Recall and verdicts of the run of one maker against people, beside those by sentences and on people's own.

    Args:
        runs: By maker, of the same judge on the same samples; `given` and `sentences` are there.
        maker: The one in question.
        labels: Those of people.
        groups: The group of each sample.

    Raises:
        ValueError: If no sample has a recall by this maker's statements and by sentences.
    """
    differences, by_sentences = (differences_of(runs[name].samples, labels) for name in (maker, "sentences"))
    ids = list(differences)
    errors = [abs(differences[name]) for name in ids]
    less = less_of(differences, by_sentences, maker)
    human = np.array([human_recall(labels, name) for name in ids], dtype=np.float64)
    signed = np.array([differences[name] for name in ids], dtype=np.float64)
    pairs = paired_verdicts(runs[maker].samples, runs["given"].samples, labels)
    label, ruled, own = (np.array([pair[at] for pair in pairs], dtype=bool) for at in (0, 1, 2))
    at = [groups[name] for name in ids]
    return Agreed(
        n_samples=len(ids),
        mean=float((human + signed).mean()),
        human_mean=float(human.mean()),
        bias=float(signed.mean()),
        bias_ci95=mean_ci95(at, list(signed)),
        mean_absolute_error=float(np.mean(errors)),
        mean_absolute_error_ci95=mean_ci95(at, errors),
        less_sentences=float(np.mean(list(less.values()))),
        less_sentences_ci95=mean_ci95([groups[name] for name in less], list(less.values())),
        pearson=agreement.pearson(human + signed, human),
        spearman=agreement.spearman(human + signed, human),
        n_verdicts=len(pairs),
        balanced_accuracy=balanced_accuracy(label, ruled),
        kappa=agreement.cohen_kappa(label, ruled),
        on_human=balanced_accuracy(label, own),
        same=float((ruled == own).mean()) if pairs else None,
    )


def differences_of(samples: Iterable[ScoredSample], labels: Labels) -> dict[str, float]:
    """Recall less the share that people found supported, by sample, where both are there."""
    return {
        one.id: one.score - human
        for one in samples
        if one.score is not None and (human := human_recall(labels, one.id)) is not None
    }


def less_of(differences: Mapping[str, float], by_sentences: Mapping[str, float], maker: str) -> dict[str, float]:
    """Absolute error less that by sentences, by sample, where both are there.

    Raises:
        ValueError: If there is no such sample.
    """
    both = [name for name in differences if name in by_sentences]
    if not both:
        msg = f"no sample has a recall by {maker} and by sentences that people's labels can be held against"
        raise ValueError(msg)
    return {name: abs(differences[name]) - abs(by_sentences[name]) for name in both}


def balanced_accuracy(people: agreement.Bools, judge: agreement.Bools) -> float | None:
    """Mean of sensitivity and specificity; None where people found all, or none, supported."""
    if people.all() or not people.any():
        return None
    return float((judge[people].mean() + (~judge[~people]).mean()) / 2)


def paired_verdicts(
    samples: Iterable[ScoredSample], given: Iterable[ScoredSample], labels: Labels
) -> list[tuple[bool, bool, bool]]:
    """People's label, the verdict on its partner, and that on the labelled statement itself, where all three are."""
    own = {one.id: one for one in given}
    return [pair for one in samples if one.id in own for pair in _pairs(one, own[one.id], labels)]


def _pairs(sample: ScoredSample, given: ScoredSample, labels: Labels) -> list[tuple[bool, bool, bool]]:
    known = [
        (label.attributed, ruled.attributed, ruled.text)
        for label, ruled in zip(labels.on(given), given.statements, strict=True)
        if label is not None and label.attributed is not None and ruled.attributed is not None
    ]
    places = one_to_one([text for _, _, text in known], [one.text for one in sample.statements])
    return [
        (bool(known[at][0]), verdict, bool(known[at][1]))
        for at, made in places
        if (verdict := sample.statements[made].attributed) is not None
    ]
