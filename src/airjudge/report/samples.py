"""The samples inside a report, as the data that its script draws: bounded, and told where something is cut."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pydantic import JsonValue

from airjudge.labels import Label
from airjudge.report.choosing import Chosen
from airjudge.report.joining import JoinedSample, JoinedStatement
from airjudge.schema import Sample, ScoredSample, Verdict

MAX_TEXT: Final = 8_000
"""Characters of one question, reference, context, statement or reason."""
MAX_STATEMENTS: Final = 300
ALL_CONTEXTS: Final = 12_000_000
"""Characters of all contexts in one report."""
EACH_CONTEXTS: Final = (1_500, 40_000)
"""At least and at most that many characters of the contexts of one sample, and as many of its statements."""
MAX_CONTEXTS: Final = 200


@dataclass(slots=True)
class Room:
    """How many characters of one sample's contexts may still be shown."""

    left: int

    def take(self, text: str) -> JsonValue:
        """A text as it is, or its start and how many characters are missing."""
        shown, self.left = min(len(text), MAX_TEXT, self.left), max(0, self.left - len(text))
        return [text[:shown], len(text) - shown]


def samples_data(chosen: Chosen, texts: Mapping[str, Sample]) -> list[JsonValue]:
    """All samples of a report."""
    low, high = EACH_CONTEXTS
    room = max(low, min(high, ALL_CONTEXTS // max(1, len(chosen.samples))))
    return [_sample(one, texts.get(one.id), why=chosen.why[one.number], room=room) for one in chosen.samples]


def _sample(joined: JoinedSample, texts: Sample | None, *, why: str, room: int) -> JsonValue:
    statements = joined.statements
    shown = [_statement(one) for one in islice(_within(statements, room), MAX_STATEMENTS)]
    return {
        "number": joined.number,
        "id": _cut(joined.id),
        "why": why,
        "group": joined.known.group,
        "lowest": joined.lowest,
        "gap": joined.gap,
        "metadata": _cut_all(joined.known.metadata),
        "runs": [_record(record) for record in joined.records],
        "statements": [*shown],
        "more_statements": len(statements) - len(shown),
        "texts": None if texts is None else _texts(texts, Room(room)),
    }


def _within(statements: Sequence[JoinedStatement], room: int) -> Iterator[JoinedStatement]:
    """The first statement, and those after it as long as there is room for their texts."""
    for place, statement in enumerate(statements):
        room -= len(statement.text)
        if place and room < 0:
            return
        yield statement


def _record(record: ScoredSample | None) -> JsonValue:
    if record is None:
        return None
    error = record.error
    return {
        "score": record.score,
        "status": record.status,
        "error": None if error is None else [error.kind, _cut(error.message)],
        "empty": record.empty_contexts,
        "marks": [[one.kind.replace("_", " "), one.place, one.excerpt] for one in record.suspicions],
        "reason": None if record.reason is None else _cut(record.reason),
    }


def _statement(statement: JoinedStatement) -> JsonValue:
    return {
        "id": statement.id,
        "text": _cut(statement.text),
        "verdicts": [_verdict(verdict) for verdict in statement.verdicts],
        "label": _label(statement.label),
        "gap": statement.gap,
    }


def _verdict(verdict: Verdict | None) -> JsonValue:
    if verdict is None:
        return None
    reason = None if verdict.reason is None else _cut(verdict.reason)
    return [verdict.attributed, verdict.probability, reason, _support(verdict)]


def _support(verdict: Verdict) -> JsonValue:
    """The contexts that support a statement alone, else the most probable one, and those whose question failed."""
    if verdict.support is None:
        return None
    found = [one for one in verdict.support if one.attributed]
    best = verdict.most_probable
    failed = [one for one in verdict.support if one.attributed is None]
    shown = (found or ([best] if best else [])) + failed
    return {
        "how": "alone" if found else "unknown" if failed else "together",
        "contexts": [[one.context, one.probability, one.attributed] for one in shown],
    }


def _label(label: Label | None) -> JsonValue:
    if label is None:
        return None
    votes: list[JsonValue] = [*label.votes]
    return {"attributed": label.attributed, "votes": votes, "partial": label.partial}


def _texts(sample: Sample, room: Room) -> JsonValue:
    contexts = sample.retrieved_contexts
    return {
        "question": _cut(sample.user_input),
        "reference": _cut(sample.reference),
        "response": None if sample.response is None else _cut(sample.response),
        "contexts": [room.take(context) for context in contexts[:MAX_CONTEXTS]],
        "more_contexts": max(0, len(contexts) - MAX_CONTEXTS),
    }


def _cut_all(metadata: Mapping[str, JsonValue]) -> JsonValue:
    return {name: _cut(value if isinstance(value, str) else _as_json(value)) for name, value in metadata.items()}


def _as_json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    """A text that is not too long, or its start and how much is missing."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… ({len(text) - MAX_TEXT:,} characters more)"


def why_told(chosen: Chosen, n_each: int) -> Sequence[str]:
    """Sentences that say which samples are inside, and how many are not."""
    reasons = {
        "worst": "with the lowest recall",
        "differ": "on which judges, or judge and people, differ most",
        "failed": "that failed",
        "undefined": "without a statement",
        "drawn": "drawn at random from the rest",
    }
    counts = [(list(chosen.why.values()).count(reason), words) for reason, words in reasons.items()]
    inside = ", ".join(f"{count:,} {words}" for count, words in counts if count)
    if not chosen.n_left_out:
        return (f"All {len(chosen.samples):,} samples are here.",)
    return (
        f"{len(chosen.samples):,} samples are here: {inside} (at most {n_each:,} each, --samples).",
        f"{chosen.n_left_out:,} more are in the files of the run.",
    )
