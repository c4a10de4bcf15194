"""How a judge is asked: a small registry of methods, each from a sample and its statements to outcomes."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from airjudge import decoding, prompts, scoring
from airjudge.alignment import align
from airjudge.errors import EvaluationError, ReplyRefused
from airjudge.judge.asking import Asker
from airjudge.schema import Sample, Statement, Verdict

Outcome = Verdict | EvaluationError
"""What became of one statement."""


class Method(Protocol):
    """Rules on all statements of a sample."""

    async def __call__(self, asker: Asker, sample: Sample, statements: Sequence[Statement]) -> list[Outcome]:
        """Give one outcome a statement, in the order of the statements."""


async def pointwise(asker: Asker, sample: Sample, statements: Sequence[Statement]) -> list[Outcome]:
    """One constrained token a question: the first statement goes alone, the others follow on its cached prefix."""
    lead = [await _ruled(asker, sample, one) for one in statements[:1]]
    followers = await asyncio.gather(*(_ruled(asker, sample, one) for one in statements[1:]))
    return lead + followers


async def _ruled(asker: Asker, sample: Sample, statement: Statement) -> Outcome:
    """Rule on one statement by all phrasings, one after the other on a cached prefix; its failure is its own."""
    labels: list[bool] = []
    probabilities: list[float] = []
    try:
        for question in prompts.pointwise(sample, statement):
            completion = await asker.ask(question)
            labels.append(decoding.read_label(completion))
            found = scoring.verdict_probability(completion.tokens[0].alternatives if completion.tokens else ())
            probabilities += [] if found is None else [found]
    except EvaluationError as error:
        return error
    known = len(probabilities) == len(labels)
    return _verdict(statement, label=labels[0], probability=scoring.mean_probability(probabilities) if known else None)


def _verdict(statement: Statement, *, label: bool, probability: float | None) -> Verdict:
    """A verdict by its probability; by the label alone where the server gives no logprobs."""
    attributed = label if probability is None else probability >= scoring.THRESHOLD
    return Verdict(id=statement.id, text=statement.text, attributed=attributed, probability=probability)


async def ragas(asker: Asker, sample: Sample, statements: Sequence[Statement]) -> list[Outcome]:
    """The seed's single call for all statements; those that its reply leaves out are asked pointwise.

    The judge echoes, splits and drops statements as it likes, so its items are aligned to ours. A
    statement in several items is attributed if all of them are.
    """
    try:
        items = decoding.read_classifications(await asker.ask(prompts.ragas(sample)))
    except ReplyRefused:
        items = []
    except EvaluationError as error:
        return [error for _ in statements]
    found = align(statements, [item.statement for item, _ in items])
    outcomes: dict[str, Outcome] = {
        one.id: _joined(one, [items[index] for index in indices])
        for one, indices in zip(statements, found, strict=True)
        if indices
    }
    missing = [one for one in statements if one.id not in outcomes]
    completed = await pointwise(asker, sample, missing)
    outcomes |= {one.id: outcome for one, outcome in zip(missing, completed, strict=True)}
    return [outcomes[one.id] for one in statements]


def _joined(statement: Statement, items: Sequence[tuple[decoding.Classification, float | None]]) -> Verdict:
    """One verdict from all items of a statement: as supported as its least supported part."""
    known = [probability for _, probability in items if probability is not None]
    verdict = _verdict(
        statement,
        label=all(item.attributed for item, _ in items),
        probability=min(known) if len(known) == len(items) else None,
    )
    return verdict.model_copy(update={"reason": " ".join(item.reason.strip() for item, _ in items)})


async def explained(asker: Asker, sample: Sample, verdict: Verdict) -> Verdict:
    """The verdict with a reason, asked for after it; without one if that question fails."""
    if verdict.attributed is None or verdict.reason is not None:
        return verdict
    statement = Statement(id=verdict.id, text=verdict.text)
    try:
        completion = await asker.ask(prompts.reason(sample, statement, attributed=verdict.attributed))
        return verdict.model_copy(update={"reason": decoding.read_reason(completion)})
    except EvaluationError:
        return verdict  # a verdict stands without its reason


METHODS: Mapping[str, Method] = {"pointwise": pointwise, "ragas": ragas}
