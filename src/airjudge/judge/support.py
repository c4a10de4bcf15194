"""Which retrieved context supports a statement: each that the judge read for it, asked about alone.

The way is the one that tells best on labelled passages, at a third of the cost of the profile's own questions: the
first phrasing, without a prior (benchmarks/README.md). So a probability here is that of another question than the
verdict's: no calibration is of it, and a context supports from .5 on.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from airjudge import evidence, prompts
from airjudge.errors import EvaluationError
from airjudge.judge.asking import Asker
from airjudge.judge.methods import OnVerdicts, Outcome, all_of, reply_to, verdict_of
from airjudge.schema import Sample, Statement, Support, Verdict


async def with_support(
    asker: Asker, sample: Sample, outcomes: Sequence[Outcome], *, on_verdicts: OnVerdicts
) -> list[Outcome]:
    """Outcomes whose attributed verdicts have their support; each answer is told as it arrives.

    Context by context, each for one statement first and then for the others: instruction and context are in the
    server's cache by then. What a verdict has is not asked again, unless it failed; a failure leaves the verdict
    standing. The only context that was read for a statement supports it without a question, by the verdict's own
    probability.
    """
    verdicts = {number: one for number, one in enumerate(outcomes) if isinstance(one, Verdict) and one.attributed}

    def put(number: int, found: Support) -> None:
        verdicts[number] = verdict = _with(verdicts[number], found)
        if found.attributed is not None:
            on_verdicts({number: verdict})

    async def ask(context: int, number: int) -> None:
        put(number, await _alone(asker, sample, verdicts[number], context=context))

    read = {number: contexts_read(asker.method, sample, one.text) for number, one in verdicts.items()}
    for number, contexts in read.items():
        if len(contexts) == 1 and verdicts[number].support is None:
            put(number, Support(context=contexts[0], probability=verdicts[number].probability, attributed=True))
    for context, wanted in groupby(sorted(_missing(verdicts, read)), key=itemgetter(0)):
        first, *others = [number for _, number in wanted]
        await ask(context, first)
        await all_of(ask(context, number) for number in others)
    return [verdicts.get(number, outcome) for number, outcome in enumerate(outcomes)]


def contexts_read(method: str, sample: Sample, statement: str) -> list[int]:
    """Numbers, from 1, of the contexts that a judge reads before it rules on a statement: all in a single call."""
    if method == "ragas":
        return [number for number, text in enumerate(sample.retrieved_contexts, 1) if text.strip()]
    return [number for number, _ in evidence.read_for(sample.retrieved_contexts, statement)]


def _missing(verdicts: Mapping[int, Verdict], read: Mapping[int, Sequence[int]]) -> Iterator[tuple[int, int]]:
    """What is to be asked: contexts, and the numbers of the statements that each was read for."""
    for number, verdict in verdicts.items():
        known = {one.context for one in verdict.support or () if one.attributed is not None}
        yield from ((context, number) for context in read[number] if context not in known)


async def _alone(asker: Asker, sample: Sample, verdict: Verdict, *, context: int) -> Support:
    """What the judge says of a statement when it reads one context; its failure is an entry too."""
    statement = Statement(id=verdict.id, text=verdict.text)
    try:
        label, probability = await reply_to(asker, prompts.alone(sample, statement, context, words=asker.words))
    except EvaluationError:
        return Support(context=context, probability=None, attributed=None)
    attributed = verdict_of(statement, label=label, probability=probability).attributed
    return Support(context=context, probability=probability, attributed=attributed)


def _with(verdict: Verdict, found: Support) -> Verdict:
    """The verdict with one more entry of its support, in the place of an earlier one on that context."""
    others = [one for one in verdict.support or () if one.context != found.context]
    support = tuple(sorted((*others, found), key=lambda one: one.context))
    return verdict.model_copy(update={"support": support})
