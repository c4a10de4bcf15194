"""How a judge is asked: a small registry of methods, each from a sample and its statements to outcomes."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol, TypeGuard

from airjudge import decoding, prompts, scoring
from airjudge.alignment import align
from airjudge.errors import EvaluationError, ReplyRefused
from airjudge.judge.asking import Asker
from airjudge.schema import Prior, Question, ReasonsPolicy, Sample, Statement, Verdict

Outcome = Verdict | EvaluationError
"""What became of one statement."""

Numbered = Mapping[int, Verdict]
"""Verdicts by the 0-based number of their statement in the sample."""

OnVerdicts = Callable[[Numbered], None]
"""Takes verdicts as they arrive; those of one reply come together."""


NOTHING_KNOWN: Final[Numbered] = MappingProxyType({})
"""No statement has a verdict yet."""


def unheard(_: Numbered) -> None:
    """Let verdicts arrive unheard: they are in the outcomes too."""


def fitting(known: Numbered, statements: Sequence[Statement]) -> Numbered:
    """The verdicts that are on these statements: by number, id and text."""
    return {
        number: known[number]
        for number, one in enumerate(statements)
        if number in known and (known[number].id, known[number].text) == (one.id, one.text)
    }


class Method(Protocol):
    """Rules on all statements of a sample."""

    async def __call__(
        self, asker: Asker, sample: Sample, statements: Sequence[Statement], *, known: Numbered, on_verdicts: OnVerdicts
    ) -> list[Outcome]:
        """Give one outcome a statement, in order; known ones are not asked, new ones are told as they arrive."""


async def pointwise(
    asker: Asker, sample: Sample, statements: Sequence[Statement], *, known: Numbered, on_verdicts: OnVerdicts
) -> list[Outcome]:
    """One constrained token a question: the first statement goes alone, the others follow on its cached prefix."""
    outcomes: dict[int, Outcome] = dict(known)

    async def rule(number: int) -> None:
        outcome = await _ruled(asker, sample, statements[number])
        outcomes[number] = outcome
        if isinstance(outcome, Verdict):
            on_verdicts({number: outcome})

    missing = [number for number in range(len(statements)) if number not in known]
    for number in missing[:1]:
        await rule(number)
    await _all_of(rule(number) for number in missing[1:])
    return [outcomes[number] for number in range(len(statements))]


async def _all_of(questions: Iterable[Coroutine[None, None, None]]) -> None:
    """Wait for all; when one raises, none of the others is left behind in flight."""
    tasks = [asyncio.ensure_future(question) for question in questions]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ruled(asker: Asker, sample: Sample, statement: Statement) -> Outcome:
    """Rule on one statement by all questions about it, one after the other on its prefix; its failure is its own."""
    try:
        replies = [
            await _reply(asker, question)
            for question in prompts.asked(sample, statement, asker.pointwise, words=asker.words)
        ]
    except EvaluationError as error:
        return error
    probability = _joint_probability([one for _, one in replies], asker.pointwise.prior)
    return asker.calibrated(verdict_of(statement, label=replies[0][0], probability=probability))


def _joint_probability(found: Sequence[float | None], prior: Prior | None) -> float | None:
    """One probability from those of all questions about a statement; None where one of them has none.

    With a prior the last is that of the statement without contexts.
    """
    probabilities = [one for one in found if one is not None]
    if len(probabilities) < len(found):
        return None
    if prior is None:
        return scoring.mean_probability(probabilities)
    *phrasings, alone = probabilities
    return scoring.without_prior(scoring.mean_probability(phrasings), alone, prior)


async def _reply(asker: Asker, question: Question) -> tuple[bool, float | None]:
    """The label of a reply, and its probability where the server gives logprobs."""
    posed = asker.form(question)
    return decoding.read_verdict(posed.schema, await asker.ask(posed))


def verdict_of(statement: Statement, *, label: bool, probability: float | None) -> Verdict:
    """A verdict by its raw probability; by the label alone where the server gives no logprobs."""
    attributed = label if probability is None else probability >= scoring.THRESHOLD
    return Verdict(id=statement.id, text=statement.text, attributed=attributed, probability=probability)


async def ragas(
    asker: Asker, sample: Sample, statements: Sequence[Statement], *, known: Numbered, on_verdicts: OnVerdicts
) -> list[Outcome]:
    """The seed's single call for all statements; those that its reply leaves out are asked pointwise.

    The judge echoes, splits and drops statements as it likes, so its items are aligned to ours. A
    statement in several items is attributed if all of them are. Known verdicts show that the single call
    was made before: only the completion is left.
    """
    if not known:
        try:
            known = await _single_call(asker, sample, statements)
        except EvaluationError as error:
            return [error for _ in statements]
        if known:
            on_verdicts(known)
    return await pointwise(asker, sample, statements, known=known, on_verdicts=on_verdicts)


async def _single_call(asker: Asker, sample: Sample, statements: Sequence[Statement]) -> dict[int, Verdict]:
    """Verdicts on the statements that the reply has items for; on none if it is outside its automaton."""
    try:
        question = prompts.ragas(sample, asker.words, max_tokens=asker.single_call_tokens)
        items = decoding.read_classifications(await asker.ask(asker.form(question)))
    except ReplyRefused:
        items = []
    found = align(statements, [item.statement for item, _ in items])
    return {
        number: asker.calibrated(_joined(statements[number], [items[index] for index in indices]))
        for number, indices in enumerate(found)
        if indices
    }


def _joined(statement: Statement, items: Sequence[tuple[decoding.Classification, float | None]]) -> Verdict:
    """One verdict from all items of a statement: as supported as its least supported part."""
    known = [probability for _, probability in items if probability is not None]
    verdict = verdict_of(
        statement,
        label=all(item.attributed for item, _ in items),
        probability=min(known) if len(known) == len(items) else None,
    )
    return verdict.model_copy(update={"reason": " ".join(item.reason.strip() for item, _ in items)})


async def with_reasons(
    asker: Asker, sample: Sample, outcomes: Sequence[Outcome], *, reasons: ReasonsPolicy, on_verdicts: OnVerdicts
) -> list[Outcome]:
    """Outcomes with the reasons that are wanted, asked for one after the other; each is told as it arrives."""
    told = list(outcomes)
    for number, outcome in enumerate(outcomes):
        if _wants_reason(outcome, reasons):
            told[number] = verdict = await _explained(asker, sample, outcome)
            if verdict is not outcome:
                on_verdicts({number: verdict})
    return told


def _wants_reason(outcome: Outcome, reasons: ReasonsPolicy) -> TypeGuard[Verdict]:
    if reasons == "none" or not isinstance(outcome, Verdict):
        return False
    return reasons == "all" or outcome.attributed is False


async def _explained(asker: Asker, sample: Sample, verdict: Verdict) -> Verdict:
    """The verdict with a reason, asked for after it; without one if that question fails."""
    if verdict.attributed is None or verdict.reason is not None:
        return verdict
    statement = Statement(id=verdict.id, text=verdict.text)
    try:
        question = prompts.reason(sample, statement, attributed=verdict.attributed, words=asker.words)
        completion = await asker.ask(asker.form(question))
        return verdict.model_copy(update={"reason": decoding.read_reason(completion)})
    except EvaluationError:
        return verdict  # a verdict stands without its reason


METHODS: Mapping[str, Method] = {"pointwise": pointwise, "ragas": ragas}
