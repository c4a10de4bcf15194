"""What the supports of a sample's verdicts say of its contexts: how many are of use, and how early they come.

A context is relevant if it supports an attributed statement by itself. Contexts that the judge did not read for any
statement are not; blank ones have no rank. Where no context is relevant all figures are 0, since to leave such
samples out of a mean would flatter a retriever; where there is none to rank they are None.
"""

from collections.abc import Sequence

from airjudge.schema import Chunks, Verdict


def precision(relevant: Sequence[bool]) -> float | None:
    """Share of contexts that are relevant, in [0, 1]; None if there is no context."""
    return sum(relevant) / len(relevant) if relevant else None


def average_precision(relevant: Sequence[bool]) -> float | None:
    """Mean, over the relevant contexts, of the share of relevant ones down to each.

    Args:
        relevant: One entry a context, in the order of the ranks.

    Returns:
        In [0, 1], 1 if all relevant contexts come first; 0 if none is relevant; None if there is no context.

    Source:
        ragas' context precision: sum over k of precision@k * relevant_k, divided by the number of relevant ones.
    """
    if not relevant:
        return None
    at_each = [sum(relevant[: rank + 1]) / (rank + 1) for rank, one in enumerate(relevant) if one]
    return sum(at_each) / len(at_each) if at_each else 0.0


def reciprocal_rank(relevant: Sequence[bool]) -> float | None:
    """One divided by the rank, from 1, of the first relevant context; 0 if none is, None if there is no context.

    Source:
        Voorhees (1999), "The TREC-8 Question Answering Track Report", where an unanswered question counts 0.
    """
    if not relevant:
        return None
    return 1 / (relevant.index(True) + 1) if True in relevant else 0.0


def chunks_of(verdicts: Sequence[Verdict], contexts: Sequence[str]) -> Chunks:
    """What a scored sample's contexts are worth, by its verdicts with their support."""
    blank = tuple(number for number, text in enumerate(contexts, 1) if not text.strip())
    return ranked(verdicts, n_contexts=len(contexts), blank=blank)


def ranked(verdicts: Sequence[Verdict], *, n_contexts: int, blank: Sequence[int]) -> Chunks:
    """The same by the number of contexts and the numbers, from 1, of the blank ones: their texts do not matter."""
    entries = [one for verdict in verdicts for one in verdict.support or ()]
    supporting = {one.context for one in entries if one.attributed}
    unknown = {one.context for one in entries if one.attributed is None} - supporting
    unknown |= {0 for verdict in verdicts if verdict.attributed and verdict.support is None}
    relevant = [number in supporting for number in range(1, n_contexts + 1) if number not in blank]
    return Chunks(
        n_contexts=n_contexts,
        blank=tuple(blank),
        n_supporting=sum(relevant),
        precision=None if unknown else precision(relevant),
        average_precision=None if unknown else average_precision(relevant),
        reciprocal_rank=None if unknown else reciprocal_rank(relevant),
    )
