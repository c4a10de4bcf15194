"""From token probabilities to a verdict, and from verdicts to a score."""

import math
from collections.abc import Iterable, Sequence
from typing import Final

from airjudge.schema import Prior, Verdict

CLIP: Final = 1e-6
"""Probabilities are kept this far from 0 and 1 before their logits are averaged."""


THRESHOLD: Final = 0.5
"""A statement is attributed from this probability on, unless a calibration says otherwise."""


def context_recall(verdicts: Sequence[Verdict]) -> float | None:
    """Share of the reference's statements that the contexts support.

    Args:
        verdicts: One verdict per statement, in any order.

    Returns:
        attributed / total, in [0, 1]; None if there is no statement, because
        0/0 is neither a miss nor a hit and must not enter a mean.

    Raises:
        ValueError: If a statement has no verdict: such a sample failed, and has `recall_bounds`.
    """
    if not verdicts:
        return None
    unjudged = [v.id for v in verdicts if v.attributed is None]
    if unjudged:
        msg = f"no recall without a verdict on every statement; missing: {', '.join(unjudged[:5])}"
        raise ValueError(msg)
    return sum(v.attributed is True for v in verdicts) / len(verdicts)


def recall_bounds(verdicts: Sequence[Verdict]) -> tuple[float, float]:
    """Least and greatest recall that the verdicts allow.

    Args:
        verdicts: One entry per statement; `attributed` is None where the question failed.

    Returns:
        Recall if every statement without verdict were missed, and if every one were attributed.
        (0, 1) without any statement: nothing is known about that sample.
    """
    if not verdicts:
        return 0.0, 1.0
    attributed = sum(v.attributed is True for v in verdicts)
    unjudged = sum(v.attributed is None for v in verdicts)
    return attributed / len(verdicts), (attributed + unjudged) / len(verdicts)


def verdict_probability(
    alternatives: Iterable[tuple[bytes, float]], *, positive: str = "1", negative: str = "0"
) -> float | None:
    """Probability of the positive label, given that the reply is one of the two labels.

    Every alternative that spells a label counts, with or without leading whitespace, because a
    label has several tokenisations and its probability is spread over them.

    Args:
        alternatives: (token bytes, natural log of its probability) in place of the first token.
        positive: The label whose probability is wanted.
        negative: The other label.

    Returns:
        p(positive) / (p(positive) + p(negative)), in [0, 1]; a label that is not among the
        alternatives counts as 0. None if neither is, or both have no mass.
    """
    tokens = [(token.lstrip(), logprob) for token, logprob in alternatives]
    yes, no = (_log_sum(lp for token, lp in tokens if token == label.encode()) for label in (positive, negative))
    if max(yes, no) == -math.inf:
        return None
    return logistic(yes - no)


def mean_probability(probabilities: Sequence[float]) -> float:
    """Mean of several probabilities of one statement, taken in logit space.

    A phrasing that is sure then weighs more than one that wavers. Probabilities are clipped to
    [CLIP, 1 - CLIP]: beyond that the server's float32 logprobs say nothing, and a logit of
    infinity would outvote all others.

    Raises:
        ValueError: If there is none, or one is outside [0, 1].
    """
    if not probabilities or not all(0 <= p <= 1 for p in probabilities):
        msg = f"a mean needs at least one probability, each in [0, 1]: got {list(probabilities)}"
        raise ValueError(msg)
    return logistic(math.fsum(map(log_odds, probabilities)) / len(probabilities))


def without_prior(probability: float, prior_probability: float, prior: Prior) -> float:
    """Take off a probability what the judge would say about the statement without contexts.

    In logit space: logit(p) - weight * (logit(p without contexts) - log_odds). With weight 1 and
    log_odds 0 it is the log-odds ratio of the two, so that what a judge believes on its own cancels.

    Args:
        probability: That of the statement being attributed, with the contexts, in [0, 1].
        prior_probability: The same without them.
        prior: How much is taken off, and the mean that stays.

    Source:
        The content-free input of Zhao et al. (2021), "Calibrate Before Use", arXiv:2102.09690,
        here with the statement in it and the contexts gone.
    """
    return logistic(log_odds(probability) - prior.weight * (log_odds(prior_probability) - prior.log_odds))


def log_odds(probability: float) -> float:
    """Natural log of p / (1 - p), of a probability clipped to [CLIP, 1 - CLIP]."""
    clipped = min(max(probability, CLIP), 1 - CLIP)
    return math.log(clipped / (1 - clipped))


def logistic(odds: float) -> float:
    """Probability of natural log-odds, without overflow at either end."""
    if odds >= 0:
        return 1 / (1 + math.exp(-odds))
    return math.exp(odds) / (1 + math.exp(odds))


def _log_sum(logprobs: Iterable[float]) -> float:
    """Log of the sum of probabilities, stable where each alone would underflow; -inf for none."""
    values = [logprob for logprob in logprobs if logprob > -math.inf]  # false for NaN too
    if not values:
        return -math.inf
    top = max(values)
    return top + math.log(math.fsum(math.exp(value - top) for value in values))
