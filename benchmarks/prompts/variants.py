"""The prompts under test: questions make messages, variants weigh their log-odds.

A question's name is ``instruction.layout.ask``, so ``brief.plain.nli`` is the system text
``brief``, the user text without the sample's question, and the ask ``nli``. All questions
with one instruction share the contexts' cached prefix, whatever follows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Message = dict[str, str]
Weights = Mapping[str, float]


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

INSTRUCTIONS = {
    "p1": (
        "You check a statement against numbered contexts. Rely on the contexts alone, not on what you know."
    ),
    "p2": (
        "You decide whether contexts support a statement. 1: the contexts, taken together, state or directly "
        "imply all of the statement. 0: some part of the statement is missing from the contexts or contradicted "
        "by them. Rely on the contexts alone, not on what you know."
    ),
}

ASKS = {
    "base": "Reply with 1 if the contexts support the statement, otherwise with 0.",
    "imply": (
        "Do the contexts state or directly imply everything the statement says? Reply 1 for yes, 0 for no."
    ),
    "true": (
        "According to the contexts, is the statement true? Reply 1 for true, 0 for false or not stated."
    ),
    "nli": (
        "Is the statement entailed by the contexts? Reply 1 if it is entailed, 0 if it is neutral or contradicted."
    ),
    "nli2": (
        "Do the contexts entail the statement? Reply 1 for entailment, 0 for neutral or contradiction."
    ),
    "nli4": (
        "Is the whole statement entailed by the contexts? "
        "Reply 1 if all of it is entailed, 0 if any part of it is neutral or contradicted."
    ),
    "nli5": (
        "The contexts are the premise, the statement is the hypothesis. "
        "Reply 1 for entailment, 0 for neutral or contradiction."
    ),
    "yes": (
        "Is everything in the statement supported by the contexts? "
        "Reply 1 if it is supported, 0 if it is missing or contradicted."
    ),
    "code": "Complete the line of code with 1 or 0:\nis_supported = ",
    "c2": 'Complete the JSON with 1 for true or 0 for false:\n{"supported_by_contexts": ',
    "c7": "Complete the line of code with 1 or 0:\nis_true_according_to_contexts = ",
    "short": "Verdict, 1 or 0:",
    "rany": "Does the statement say anything that the contexts do not support? Reply 1 for yes, 0 for no.",
    "rlab": (
        "Reply with 0 if the contexts support all of the statement, "
        "1 if any part of it is unsupported or contradicted."
    ),
    "rhal": (
        "Is the statement a hallucination? "
        "Reply 1 if it adds to or contradicts the contexts, 0 if it is faithful to them."
    ),
    "rfalse": (
        "According to the contexts, is the statement false or not stated? "
        "Reply 1 for false or not stated, 0 for true."
    ),
    "rnli": (
        "Is the statement neutral to the contexts or contradicted by them? "
        "Reply 1 if it is neutral or contradicted, 0 if it is entailed."
    ),
    "rn": (
        "Is anything in the statement missing from the contexts or contradicted by them? "
        "Reply 1 if it is missing or contradicted, 0 if it is supported."
    ),
}


SHOTS: dict[str, list[tuple[tuple[str, ...], str, str]]] = {
    "fs": [
        (("The ferry to Holm runs every day from May to September.", "A single ticket costs 12 euros."), "The ferry to Holm runs in June.", "1"),
        (("The ferry to Holm runs every day from May to September.", "A single ticket costs 12 euros."), "A single ticket for the ferry costs 20 euros.", "0"),
        (("Lena Varga, a chemist, joined the institute in 1987 and led it from 1995.",), "Lena Varga won a prize for her work on polymers.", "0"),
        (("Lena Varga, a chemist, joined the institute in 1987 and led it from 1995.",), "A chemist led the institute in 1996.", "1"),
    ],
}
INSTRUCTIONS["fs"] = INSTRUCTIONS["fs2"] = INSTRUCTIONS["p1"]
INSTRUCTIONS["fs3"] = INSTRUCTIONS["p1"]
SHOTS["fs3"] = [
    SHOTS["fs"][0],
    SHOTS["fs"][1],
    SHOTS["fs"][3],
    (SHOTS["fs"][2][0], "Lena Varga led the institute from 1987.", "0"),
    (("The old mill was turned into a library after the war.", "Mill Street is closed on Sundays."), "The library stands in a former mill.", "1"),
    (("The old mill was turned into a library after the war.", "Mill Street is closed on Sundays."), "The library is closed on Sundays.", "0"),
    (SHOTS["fs"][2][0], "Lena Varga won a prize for her work on polymers.", "0"),
]
SHOTS["fs2"] = [SHOTS["fs"][i] for i in (0, 1, 3, 2)]


def numbered(contexts: tuple[str, ...]) -> str:
    """The contexts, each behind its number in brackets, a blank line between."""
    return "\n\n".join(f"[{i}] {text}" for i, text in enumerate(contexts, 1))


def question(instruction: str, layout: str, ask: str, *, contexts: tuple[str, ...] | None = None) -> Question:
    """Make one question; ``contexts`` replaces the sample's own (for a content-free prompt)."""

    def messages(sample: Sample, statement: Statement) -> list[Message]:
        shown = sample.contexts if contexts is None else contexts
        user_input = f"Question: {sample.user_input}\n\n" if layout == "q" else ""
        text = f"Contexts:\n{numbered(shown)}\n\n{user_input}Statement: {statement.text}\n\n{ASKS[ask]}"
        turns: list[Message] = []
        for passages, claim, verdict in SHOTS.get(instruction, []):
            shot = f"Contexts:\n{numbered(passages)}\n\nStatement: {claim}\n\n{ASKS[ask]}"
            turns += [{"role": "user", "content": shot}, {"role": "assistant", "content": verdict}]
        return [
            {"role": "system", "content": INSTRUCTIONS[instruction]},
            *turns,
            {"role": "user", "content": text},
        ]

    return messages


QUESTIONS: dict[str, Question] = {
    f"{i}.{layout}.{ask}": question(i, layout, ask) for i in INSTRUCTIONS for layout in "nq" for ask in ASKS
} | {f"{i}.n.{ask}.null": question(i, "n", ask, contexts=("N/A",)) for i in INSTRUCTIONS for ask in ASKS}

VARIANTS: dict[str, Weights] = {"base": {"p1.n.base": 1.0}}
