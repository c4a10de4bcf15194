"""What the stub's model wants to say when a test does not script it."""

import json
import re
from collections.abc import Callable, Mapping

from tests.stub.prompt_tokens import Messages, pieces, text_of

Answer = Callable[[Messages], str]
Probability = Callable[[Messages], float]


def overlap_judge(messages: Messages) -> str:
    """Rule by the words that a statement shares with the text before it.

    The statement is the last line that begins with `Statement:`, else the last line. Without one, a
    `Reference:` is ruled on sentence by sentence, as JSON with `classifications`. A last message with a
    `Sentence to split:` is answered by `claims`, which are what stands between sentence ends, `and` and `;`; one with
    a `Response to grade:` by a grade, the share of its words that stand before it.
    """
    before, graded, behind = text_of(messages[-1]).partition("Response to grade: ") if messages else ("", "", "")
    if graded:
        return _grade(behind.rpartition("\n\n")[0], before)
    _, split, reference = text_of(messages[-1]).partition("Sentence to split: ") if messages else ("", "", "")
    if split:
        return json.dumps({"claims": _split(reference)}, ensure_ascii=False)
    lines = [line for message in messages for line in text_of(message).splitlines() if line.strip()]
    for label, rule in (("Statement:", _rule), ("Reference:", _classify)):
        for place in range(len(lines) - 1, -1, -1):
            if lines[place].startswith(label):
                return rule(lines[place].removeprefix(label), lines[:place])
    return _rule(lines[-1], lines[:-1]) if lines else "0"


def by_text(rulings: Mapping[str, str], default: str = "0") -> Answer:
    """Answer by the first key that occurs in the chat's last message."""

    def answer(messages: Messages) -> str:
        text = text_of(messages[-1])
        return next((ruling for key, ruling in rulings.items() if key in text), default)

    return answer


def _rule(statement: str, known: list[str]) -> str:
    """Give `1` if most words occur in the known lines; short words count only where all are short."""
    words = {word.casefold() for word in pieces(statement) if word.isalnum()}
    long = {word for word in words if len(word) > 3} or words
    seen = {word.casefold() for line in known for word in pieces(line)}
    return "1" if 2 * len(long & seen) > len(long) else "0"


def _grade(response: str, known: str) -> str:
    words = {word.casefold() for word in pieces(response) if len(word) > 3}
    seen = {word.casefold() for word in pieces(known)}
    share = len(words & seen) / len(words) if words else 0.0
    return json.dumps({"score": round(share, 1), "reason": "word overlap"})


def _split(reference: str) -> list[str]:
    return [one for one in re.split(r"(?<=[.!?])\s+|(?<=[。！？])|;\s+|,?\s+and\s+", reference.strip()) if one]


def _classify(reference: str, known: list[str]) -> str:
    items = [
        {"statement": sentence, "reason": "word overlap", "attributed": int(_rule(sentence, known))}
        for sentence in re.split(r"(?<=[.!?])\s+|(?<=[。！？])", reference.strip())
        if sentence
    ]
    return json.dumps({"classifications": items}, ensure_ascii=False)
