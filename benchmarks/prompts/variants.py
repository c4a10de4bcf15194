"""The prompts under test: questions make messages, variants weigh their log-odds.

A question's name is ``prefix.layout.ask``: the prefix is what stands before the contexts,
the layout says whether the sample's question is shown, the ask is the closing sentence. All
questions with one prefix share the contexts' cached keys, whatever follows the contexts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Message = dict[str, str]
Weights = Mapping[str, float]
Shot = tuple[tuple[str, ...], str, str]  # contexts, statement, verdict


@dataclass(frozen=True)
class Statement:
    """One human-labelled statement; label 1 means attributable to the contexts."""

    id: str
    text: str
    label: int


@dataclass(frozen=True)
class Sample:
    """One question with its contexts; ``group`` is the unit of independence."""

    id: str
    group: str
    user_input: str
    contexts: tuple[str, ...]
    statements: tuple[Statement, ...]


Question = Callable[[Sample, Statement], list[Message]]

INSTRUCTION = "You check a statement against numbered contexts. Rely on the contexts alone, not on what you know."

ASKS = {
    "base": "Reply with 1 if the contexts support the statement, otherwise with 0.",
    "nli": "Is the statement entailed by the contexts? Reply 1 if it is entailed, 0 if it is neutral or contradicted.",
    "true": "According to the contexts, is the statement true? Reply 1 for true, 0 for false or not stated.",
    "supported": (
        "Is everything in the statement supported by the contexts? "
        "Reply 1 if it is supported, 0 if it is missing or contradicted."
    ),
    "imply": "Do the contexts state or directly imply everything the statement says? Reply 1 for yes, 0 for no.",
    "code": "Complete the line of code with 1 or 0:\nis_supported = ",
    "entail": "Do the contexts entail the statement? Reply 1 for entailment, 0 for neutral or contradiction.",
    "whole": (
        "Is the whole statement entailed by the contexts? "
        "Reply 1 if all of it is entailed, 0 if any part of it is neutral or contradicted."
    ),
    "premise": (
        "The contexts are the premise, the statement is the hypothesis. "
        "Reply 1 for entailment, 0 for neutral or contradiction."
    ),
    # Asks whose 1 means unsupported; a variant weighs them with -1.
    "not-any": "Does the statement say anything that the contexts do not support? Reply 1 for yes, 0 for no.",
    "not-label": (
        "Reply with 0 if the contexts support all of the statement, 1 if any part of it is unsupported or contradicted."
    ),
    "not-faithful": (
        "Is the statement a hallucination? "
        "Reply 1 if it adds to or contradicts the contexts, 0 if it is faithful to them."
    ),
    "not-nli": (
        "Is the statement neutral to the contexts or contradicted by them? "
        "Reply 1 if it is neutral or contradicted, 0 if it is entailed."
    ),
}

FERRY = ("The ferry to Holm runs every day from May to September.", "A single ticket costs 12 euros.")
CHEMIST = ("Lena Varga, a chemist, joined the institute in 1987 and led it from 1995.",)
MILL = ("The old mill was turned into a library after the war.", "Mill Street is closed on Sundays.")
JUNE: Shot = (FERRY, "The ferry to Holm runs in June.", "1")
PRICE: Shot = (FERRY, "A single ticket for the ferry costs 20 euros.", "0")
PRIZE: Shot = (CHEMIST, "Lena Varga won a prize for her work on polymers.", "0")
LED: Shot = (CHEMIST, "A chemist led the institute in 1996.", "1")
EARLY: Shot = (CHEMIST, "Lena Varga led the institute from 1987.", "0")
LIBRARY: Shot = (MILL, "The library stands in a former mill.", "1")
SUNDAY: Shot = (MILL, "The library is closed on Sundays.", "0")

PREFIXES: dict[str, tuple[Shot, ...]] = {
    "zero": (),
    "shots1001": (JUNE, PRICE, PRIZE, LED),
    "shots1010": (JUNE, PRICE, LED, PRIZE),
    "shots0101": (PRICE, JUNE, PRIZE, LED),
    "shots1010100": (JUNE, PRICE, LED, EARLY, LIBRARY, SUNDAY, PRIZE),
    "shots00": (PRICE, PRIZE),
    "shots11": (JUNE, LED),
}


def user_text(contexts: tuple[str, ...], statement: str, *, user_input: str, ask: str) -> str:
    """The user turn; no question is shown where ``user_input`` is empty."""
    numbered = "\n\n".join(f"[{i}] {text}" for i, text in enumerate(contexts, 1))
    shown = f"Question: {user_input}\n\n" if user_input else ""
    return f"Contexts:\n{numbered}\n\n{shown}Statement: {statement}\n\n{ASKS[ask]}"


def question(prefix: str, layout: str, ask: str) -> Question:
    """Make one question.

    The layout ``null`` shows "N/A" in place of the contexts: what the statement alone brings.
    """

    def messages(sample: Sample, statement: Statement) -> list[Message]:
        turns = [{"role": "system", "content": INSTRUCTION}]
        for contexts, claim, verdict in PREFIXES[prefix]:
            turns.append({"role": "user", "content": user_text(contexts, claim, user_input="", ask=ask)})
            turns.append({"role": "assistant", "content": verdict})
        contexts = ("N/A",) if layout == "null" else sample.contexts
        user_input = sample.user_input if layout == "question" else ""
        turns.append({"role": "user", "content": user_text(contexts, statement.text, user_input=user_input, ask=ask)})
        return turns

    return messages


QUESTIONS: dict[str, Question] = {
    f"{prefix}.{layout}.{ask}": question(prefix, layout, ask)
    for prefix in PREFIXES
    for layout in ("plain", "question", "null")
    for ask in ASKS
}

VARIANTS: dict[str, Weights] = {
    "base": {"zero.plain.base": 1},
    "nli": {"zero.plain.nli": 1},
    "true": {"zero.plain.true": 1},
    "supported": {"zero.plain.supported": 1},
    "imply": {"zero.plain.imply": 1},
    "code": {"zero.plain.code": 1},
    "entail": {"zero.plain.entail": 1},
    "whole": {"zero.plain.whole": 1},
    "premise": {"zero.plain.premise": 1},
    "not-any": {"zero.plain.not-any": -1},
    "not-label": {"zero.plain.not-label": -1},
    "not-faithful": {"zero.plain.not-faithful": -1},
    "not-nli": {"zero.plain.not-nli": -1},
    "nli+question": {"zero.question.nli": 1},
    "nli+true": {"zero.plain.nli": 0.5, "zero.plain.true": 0.5},
    "nli+base": {"zero.plain.nli": 0.5, "zero.plain.base": 0.5},
    "nli+base+true": {"zero.plain.nli": 1 / 3, "zero.plain.base": 1 / 3, "zero.plain.true": 1 / 3},
    "nli-not-label": {"zero.plain.nli": 0.5, "zero.plain.not-label": -0.5},
    "nli-not-nli": {"zero.plain.nli": 0.5, "zero.plain.not-nli": -0.5},
    "nli-null": {"zero.plain.nli": 1, "zero.null.nli": -1},
    "shots1001": {"shots1001.plain.nli": 1},
    "shots1001-whole": {"shots1001.plain.whole": 1},
    "shots1010": {"shots1010.plain.nli": 1},
    "shots0101": {"shots0101.plain.nli": 1},
    "shots1010100": {"shots1010100.plain.nli": 1},
    "shots00": {"shots00.plain.nli": 1},
    "shots11": {"shots11.plain.nli": 1},
}
