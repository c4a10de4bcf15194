"""How a judge is asked: a small registry of methods, each from a sample and its statements to outcomes."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol, TypeGuard

from airjudge import decoding, evidence, prompts, scoring
from airjudge.alignment import align
from airjudge.errors import EvaluationError, PromptTooLong, ReplyRefused, ReplyRunaway, ReplyTruncated
from airjudge.judge.asking import Asker
from airjudge.schema import Echoes, Made, Prior, Question, ReasonsPolicy, Sample, Statement, Verdict

Outcome = Verdict | EvaluationError
"""What became of one statement."""

Numbered = Mapping[int, Verdict]
"""Verdicts by the 0-based number of their statement in the sample."""


class OnVerdicts(Protocol):
    """Takes verdicts as they arrive; those of one reply come together, with the account of a single call."""

    def __call__(self, verdicts: Numbered, /, echoes: Echoes | None = None) -> None:
        """Take verdicts of one reply, and how its items fit all statements if it was on all of them."""


Reply = tuple[bool, float | None]
"""A label and its probability."""

Ask = Callable[[Asker, Sample, Statement], Coroutine[None, None, Outcome]]
"""Asks about one statement."""

_NO_VERDICT: Final = (ReplyTruncated, ReplyRunaway, ReplyRefused, PromptTooLong)
"""What keeps a judge from a verdict behind a reason, and perhaps not from one alone: it takes no room."""

MIN_PARTS: Final = 2

NOTHING_KNOWN: Final[Numbered] = MappingProxyType({})
"""No statement has a verdict yet."""


def unheard(_: Numbered, /, echoes: Echoes | None = None) -> None:
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
        self, asker: Asker, sample: Sample, made: Made, *, known: Numbered, on_verdicts: OnVerdicts
    ) -> list[Outcome]:
        """Give one outcome a statement, in order; known ones are not asked, new ones are told as they arrive."""


async def pointwise(
    asker: Asker, sample: Sample, made: Made, *, known: Numbered, on_verdicts: OnVerdicts
) -> list[Outcome]:
    """One constrained token a question; several questions a statement where the judge is better by that."""
    return await _one_by_one(_Asked(asker, sample, _ruled), made.statements, known=known, on_verdicts=on_verdicts)


async def reasoned(
    asker: Asker, sample: Sample, made: Made, *, known: Numbered, on_verdicts: OnVerdicts
) -> list[Outcome]:
    """A reason and then the verdict, one statement a call; without a usable reply the one-token question decides.

    So every statement gets a verdict that parses. The probability is that of the digit behind the reason, which
    has settled it: it saturates. One that the one-token question gives is of another kind; its verdict has no reason.
    """
    asked = _Asked(asker, sample, _ruled_with_reason)
    return await _one_by_one(asked, made.statements, known=known, on_verdicts=on_verdicts)


@dataclass(frozen=True, slots=True)
class _Asked:
    """How statements of a sample are asked about, one by one."""

    asker: Asker
    sample: Sample
    ask: Ask


async def _one_by_one(
    asked: _Asked, statements: Sequence[Statement], *, known: Numbered, on_verdicts: OnVerdicts
) -> list[Outcome]:
    """One outcome a statement: the first statement goes alone, the others follow on its cached prefix."""
    outcomes: dict[int, Outcome] = dict(known)

    async def rule(number: int) -> None:
        outcome = await asked.ask(asked.asker, asked.sample, statements[number])
        outcomes[number] = outcome
        if isinstance(outcome, Verdict):
            on_verdicts({number: outcome})

    missing = [number for number in range(len(statements)) if number not in known]
    for number in missing[:1]:
        await rule(number)
    await all_of(rule(number) for number in missing[1:])
    return [outcomes[number] for number in range(len(statements))]


async def all_of(questions: Iterable[Coroutine[None, None, None]]) -> None:
    """Wait for all; when one raises, none of the others is left behind in flight."""
    tasks = [asyncio.ensure_future(question) for question in questions]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ruled(asker: Asker, sample: Sample, statement: Statement) -> Outcome:
    """Rule on one statement by all questions about it, one after the other on its prefix; its failure is its own.

    Where its contexts are read in parts it is as supported as by the part that supports it most: all parts are asked,
    or the verdict fails, since none that is missing may have been that one.
    """
    prior = asker.pointwise.prior
    try:
        read = evidence.read_for(sample.retrieved_contexts, statement.text)
        parts = await _read(asker, sample, statement, read=read)
        alone = [] if prior is None else [await reply_to(asker, prompts.prior(statement, asker.words))]
    except EvaluationError as error:
        return error
    joint = [_joint_probability([one for _, one in [*replies, *alone]], prior) for replies in parts]
    known = [one for one in joint if one is not None]
    probability = max(known) if len(known) == len(joint) else None
    verdict = verdict_of(statement, label=any(replies[0][0] for replies in parts), probability=probability)
    return asker.calibrated(verdict.model_copy(update={"n_parts": len(parts)}) if len(parts) > 1 else verdict)


async def _read(
    asker: Asker, sample: Sample, statement: Statement, *, read: Sequence[tuple[int, str]]
) -> list[list[Reply]]:
    """The replies to all phrasings of a question, part by part where what is read of the contexts is too long."""
    try:
        phrasings = prompts.phrased(sample, statement, read, how=asker.pointwise, words=asker.words)
        return [[await reply_to(asker, question) for question in phrasings]]
    except PromptTooLong as error:
        parts = evidence.divided(read, _n_parts(error)) if asker.splits else []
        if len(parts) < MIN_PARTS:
            raise
    return [replies for part in parts for replies in await _read(asker, sample, statement, read=part)]


def _n_parts(error: PromptTooLong) -> int:
    """In how many parts a prompt may fit: what stands before and behind its contexts is in each, so perhaps in more."""
    if error.prompt_tokens is None or not error.limit or error.limit < 0:
        return MIN_PARTS
    return max(MIN_PARTS, -(-error.prompt_tokens // error.limit))


async def _ruled_with_reason(asker: Asker, sample: Sample, statement: Statement) -> Outcome:
    """Rule on one statement after a reason; one that led to no verdict is dropped, as it may argue for the other."""
    posed = asker.form(prompts.reasoned(sample, statement, asker.words))
    try:
        reason, label, probability = decoding.read_reasoned(posed.schema, await asker.ask(posed))
    except _NO_VERDICT:
        return await _ruled(asker, sample, statement)
    except EvaluationError as error:
        return error
    verdict = verdict_of(statement, label=label, probability=probability).model_copy(update={"reason": reason})
    return asker.calibrated(verdict)


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


async def reply_to(asker: Asker, question: Question) -> Reply:
    """The label of a reply, and its probability where the server gives logprobs."""
    posed = asker.form(question)
    return decoding.read_verdict(posed.schema, await asker.ask(posed))


def verdict_of(statement: Statement, *, label: bool, probability: float | None) -> Verdict:
    """A verdict by its raw probability; by the label alone where the server gives no logprobs."""
    attributed = label if probability is None else probability >= scoring.THRESHOLD
    return Verdict(id=statement.id, text=statement.text, attributed=attributed, probability=probability)


async def ragas(asker: Asker, sample: Sample, made: Made, *, known: Numbered, on_verdicts: OnVerdicts) -> list[Outcome]:
    """The seed's single call for all statements; those that its reply leaves out are asked pointwise.

    The judge echoes, splits and drops statements as it likes, so its items are aligned to ours, and the account of
    that is told with the verdicts. A statement in several items is attributed if all of them are. An account, or
    known verdicts, show that the single call was made before: only the completion is left. It is made once, never
    with a longer prompt.
    """
    if made.statements and made.echoes is None and not known:
        try:
            known, echoes = await _single_call(asker, sample, made.statements)
        except EvaluationError as error:
            return [error for _ in made.statements]
        on_verdicts(known, echoes)
    return await pointwise(asker, sample, made, known=known, on_verdicts=on_verdicts)


async def _single_call(
    asker: Asker, sample: Sample, statements: Sequence[Statement]
) -> tuple[dict[int, Verdict], Echoes]:
    """Verdicts on the statements that the reply has items for, and its account; a useless reply has no items."""
    question = asker.form(prompts.ragas(sample, asker.words, max_tokens=asker.single_call_tokens))
    try:
        completion = await asker.ask(question)
        items = decoding.read_classifications(completion)
        short: EvaluationError | None = decoding.why_short(question.schema, completion)
    except ReplyRefused as error:
        items, short = [], error
    except PromptTooLong as error:
        if not asker.splits:
            raise
        items, short = [], error  # pointwise its contexts can be read in parts
    aligned = align(statements, [item.statement for item, _ in items])
    verdicts = {
        number: asker.calibrated(_joined(statements[number], [items[index] for index in indices]))
        for number, indices in enumerate(aligned.ruled)
        if indices
    }
    return verdicts, aligned.echoes.model_copy(update={"error": short.kind if short else None})


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


METHODS: Mapping[str, Method] = {"pointwise": pointwise, "reasoned": reasoned, "ragas": ragas}
