"""The prompts under test: questions make messages, variants weigh their log-odds.

A question's name is ``frame.layout.ask``: the frame is what stands before and around the contexts,
the layout says what is shown between them and the statement, the ask is the closing sentence. All
questions with one frame share the contexts' cached keys, whatever follows the contexts.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from airjudge import evidence, profiles, prompts, schema

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

# First round: one system instruction; written examples or none; the closing ask varies.

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


def shots_question(prefix: str, layout: str, ask: str) -> Question:
    """Make one question of the first round.

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


# Second round: the frame, the place of the question and the closest sentences vary as well.


@dataclass(frozen=True)
class Frame:
    """What stands before the statement's part; an empty ``system`` leaves out the system turn."""

    system: str = ""
    heading: str = "Contexts:"
    numbered: bool = True


@dataclass(frozen=True)
class Ask:
    """The words before and after the statement; ``noun`` is what the closest sentences are closest to."""

    after: str
    before: str = "Statement: "
    noun: str = "the statement"


FRAMES = {
    "user": Frame(),
    "user-context": Frame(heading="Context:"),
    "user-running": Frame(heading="Context:", numbered=False),
    "user-premise": Frame(heading="Premise:", numbered=False),
    "decide": Frame(
        "You decide whether contexts support a statement. Output 1 if they do, 0 if they do not.", heading="Context:"
    ),
    "all": Frame(
        "You check whether statements are supported by contexts. Rely on the contexts alone, not on what you know. "
        "A statement is supported only if the contexts say all of it."
    ),
}
TRUE = "Do the contexts say that the following is true? "
SAY_SO = "\n\nAnswer 1 if they say so, 0 if they do not."
ENTAILED = "entailed by the contexts? Answer 1 if it is entailed, 0 if it is neutral or contradicted."
SECOND_ASKS = {
    "supported": Ask("\n\nIs the statement supported by the context? Answer 1 for yes, 0 for no."),
    "silent": Ask(""),
    "premise": Ask(
        "\n\nIs the hypothesis entailed by the premise? "
        "Answer 1 if it is entailed, 0 if it is neutral or contradicted.",
        before="Hypothesis: ",
    ),
    "entailed": Ask(f"\n\nIs the statement {ENTAILED}"),
    "hypothesis": Ask(f"\n\nIs the hypothesis {ENTAILED}", before="Hypothesis: "),
    "attributed": Ask(
        "\n\nCan the statement be attributed to the contexts? Reply with 1 if the contexts support it, else 0."
    ),
    "proved": Ask("\n\nDo the contexts prove that the statement is true? Reply with 1 if they do, else 0."),
    "detail": Ask(
        "\n\nCan every detail of the statement be attributed to the contexts? "
        "Reply with 1 if the contexts support it, else 0."
    ),
    "by-word": Ask(
        "\n\nCheck the statement word by word against the contexts: names, numbers, dates, places and relations. "
        "Reply with 1 if the contexts confirm all of it, 0 if any part is missing or different."
    ),
    "no-guess": Ask(
        "\n\nIs the statement directly supported by the contexts, without any outside knowledge or guessing? "
        "Reply with 1 for yes, 0 for no."
    ),
    "answer": Ask(
        "\n\nReply with 1 if the contexts support it, else 0.",
        before="Is this answer to the question supported by the contexts?\n\n",
    ),
    "rating": Ask(
        '"\n1 = everything in it is stated in the contexts\n0 = something in it is not stated in the contexts\nRating:',
        before='Based only on the contexts above, rate this sentence: "',
    ),
    "cite": Ask(
        '"\n\nWould the contexts let us cite a source for all of that? Reply with 1 for yes, 0 for no.',
        before='A colleague wrote: "',
    ),
    "say": Ask(SAY_SO, before=TRUE, noun="the statement below"),
    "say-question": Ask(SAY_SO, before=f"Question: {TRUE}"),
    "say-nli": Ask("\n\nAnswer 1 if it is entailed by the contexts, 0 if it is neutral or contradicted.", before=TRUE),
    "say-all": Ask(
        "\n\nAnswer 1 if they say all of it, 0 if they say nothing about part of it or contradict it.",
        before="Do the contexts say this? ",
    ),
    "true-false": Ask(
        "\n\nAnswer 1 for true, 0 for false or unknown.", before="True or false according to the contexts? "
    ),
}
LAYOUTS = {"plain": (), "question": ("question",), "closest": ("closest",), "question-closest": ("question", "closest")}


def framed_question(frame: Frame, layout: Sequence[str], ask: Ask) -> Question:
    """Make one question of the second round; the layout names what precedes the statement, in order."""

    def messages(sample: Sample, statement: Statement) -> list[Message]:
        contexts = [f"[{i}] {text}" if frame.numbered else text for i, text in enumerate(sample.contexts, 1)]
        shown = {"question": f"Question: {sample.user_input}\n\n", "closest": closest_part(sample, statement, ask.noun)}
        parts = [frame.heading + "\n" + "\n".join(contexts) + "\n\n", *(shown[one] for one in layout)]
        user = {"role": "user", "content": "".join(parts) + ask.before + statement.text + ask.after}
        return [{"role": "system", "content": frame.system}, user] if frame.system else [user]

    return messages


def closest_part(sample: Sample, statement: Statement, noun: str) -> str:
    """The two sentences of the contexts closest to the statement, under their heading."""
    lines = "".join(f"- {one}\n" for one in closest(sample.contexts, statement.text, n=2, n_characters=300))
    return f"Sentences of the contexts that are closest to {noun}:\n{lines}\n"


def closest(contexts: Sequence[str], statement: str, *, n: int, n_characters: int, around: int = 0) -> list[str]:
    """The `n` closest sentences, each with `around` neighbours on either side, in the order of the contexts.

    The rule that was measured, kept apart from airjudge's own so that a variant's name keeps its meaning.
    """
    parts = [one.strip() for text in contexts for one in re.split(r"(?<=[.!?。])\s+|\n+", text)]
    sentences = [one for one in parts if one]
    words = [set(re.findall(r"\w+", one.casefold())) for one in sentences]
    frequency = Counter(word for one in words for word in one)
    wanted = set(re.findall(r"\w+", statement.casefold()))

    def closeness(index: int) -> float:
        weights = (math.log(1 + len(sentences) / frequency[word]) for word in wanted & words[index])
        return math.fsum(weights) / (1 + 0.02 * len(words[index]))

    ranked = sorted(range(len(sentences)), key=closeness, reverse=True)
    near = {place for index in ranked[:n] for place in range(index - around, index + around + 1)}
    return [sentences[place][:n_characters] for place in sorted(near) if 0 <= place < len(sentences)]


# Third round: the closest sentences alone stand for the contexts, or nothing does.

EXTRACTS = {"three": (3, 0), "five": (5, 0), "eight": (8, 0), "twelve": (12, 0), "three-around": (3, 1)}
"""Number of sentences, each numbered like a context, and of neighbours on either side of each."""


def extract_question(extract: str, layout: Sequence[str], ask: Ask) -> Question:
    """Make one question of the third round: `read` is airjudge's own choice, `none` shows no context."""

    def messages(sample: Sample, statement: Statement) -> list[Message]:
        if extract == "read":
            read = evidence.read_for(sample.contexts, statement.text)
        elif extract == "none":
            read = [(1, "N/A")]
        else:
            n, around = EXTRACTS[extract]
            read = list(enumerate(closest(sample.contexts, statement.text, n=n, n_characters=400, around=around), 1))
        shown = {"question": f"Question: {sample.user_input}\n\n", "closest": closest_part(sample, statement, ask.noun)}
        parts = ["Contexts:\n" + "\n".join(f"[{n}] {text}" for n, text in read) + "\n\n", *(shown[x] for x in layout)]
        user = "".join(parts) + ask.before + statement.text + ask.after
        return [{"role": "system", "content": FRAMES["all"].system}, {"role": "user", "content": user}]

    return messages


def shipped(place: int) -> Question:
    """One of the questions that airjudge itself asks about a statement for the default judge."""

    def messages(sample: Sample, statement: Statement) -> list[Message]:
        ours = schema.Sample(
            id=sample.id, user_input=sample.user_input, reference="", retrieved_contexts=sample.contexts
        )
        asked = prompts.asked(ours, schema.Statement(id=statement.id, text=statement.text), DEFAULT)[place]
        return [{"role": one.role, "content": one.content} for one in asked.messages]

    return messages


DEFAULT = profiles.load_profile("qwen2.5-coder-1.5b").pointwise
PRIOR = DEFAULT.prior or schema.Prior(weight=1, log_odds=0)


FIRST_ROUND: dict[str, Question] = {
    f"{prefix}.{layout}.{ask}": shots_question(prefix, layout, ask)
    for prefix in PREFIXES
    for layout in ("plain", "question", "null")
    for ask in ASKS
}
SECOND_ROUND: dict[str, Question] = {
    f"{frame}.{layout}.{ask}": framed_question(FRAMES[frame], LAYOUTS[layout], SECOND_ASKS[ask])
    for frame in FRAMES
    for layout in LAYOUTS
    for ask in SECOND_ASKS
}
THIRD_ROUND: dict[str, Question] = {
    f"{extract}.{layout}.{ask}": extract_question(extract, LAYOUTS[layout], SECOND_ASKS[ask])
    for extract in (*EXTRACTS, "read", "none")
    for layout in LAYOUTS
    for ask in SECOND_ASKS
}
QUESTIONS: dict[str, Question] = (
    FIRST_ROUND | SECOND_ROUND | THIRD_ROUND | {f"shipped.{n}": shipped(n) for n in range(3)}
)

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
    "user-running.supported": {"user-running.plain.supported": 1},
    "user-context.supported": {"user-context.plain.supported": 1},
    "user-premise.premise": {"user-premise.plain.premise": 1},
    "decide.silent": {"decide.plain.silent": 1},
    "user.entailed": {"user.plain.entailed": 1},
    "user.hypothesis": {"user.plain.hypothesis": 1},
    "user.attributed": {"user.plain.attributed": 1},
    "user.proved": {"user.plain.proved": 1},
    "user.detail": {"user.plain.detail": 1},
    "user.by-word": {"user.plain.by-word": 1},
    "user.no-guess": {"user.plain.no-guess": 1},
    "user.rating": {"user.plain.rating": 1},
    "user.cite": {"user.plain.cite": 1},
    "user.say-question": {"user.plain.say-question": 1},
    "user.say-nli": {"user.plain.say-nli": 1},
    "user.say-all": {"user.plain.say-all": 1},
    "user.true-false": {"user.plain.true-false": 1},
    "user.entailed+question": {"user.question.entailed": 1},
    "user.attributed+question": {"user.question.attributed": 1},
    "user.by-word+question": {"user.question.by-word": 1},
    "user.no-guess+question": {"user.question.no-guess": 1},
    "user.answer+question": {"user.question.answer": 1},
    "user.say+question": {"user.question.say": 1},
    "all.entailed": {"all.plain.entailed": 1},
    "all.hypothesis": {"all.plain.hypothesis": 1},
    "all.say": {"all.plain.say": 1},
    "all.say-all": {"all.plain.say-all": 1},
    "all.entailed+question": {"all.question.entailed": 1},
    "closest.entailed": {"all.closest.entailed": 1},
    "closest.say": {"all.closest.say": 1},
    "closest.entailed+question": {"all.question-closest.entailed": 1},
    **{f"{extract}.entailed": {f"{extract}.plain.entailed": 1} for extract in (*EXTRACTS, "read", "none")},
    **{f"{extract}.say": {f"{extract}.plain.say": 1} for extract in ("eight", "read", "none")},
    "eight.say-all": {"eight.plain.say-all": 1},
    "eight.entailed+question": {"eight.question.entailed": 1},
    "eight.entailed+closest": {"eight.closest.entailed": 1},
    "read.both": {"read.plain.entailed": 0.5, "read.plain.say": 0.5},
    **{
        f"read.both-{weight}": {"read.plain.entailed": 0.5, "read.plain.say": 0.5, "none.plain.entailed": -weight}
        for weight in (0.5, 0.8, 0.85, 1.0)
    },
    "shipped": {"shipped.0": 0.5, "shipped.1": 0.5, "shipped.2": -PRIOR.weight},
}

OFFSETS: Mapping[str, float] = {
    **{f"read.both-{weight}": -1.4 * weight for weight in (0.5, 0.8, 0.85, 1.0)},
    "shipped": PRIOR.log_odds * PRIOR.weight,
}
"""Added to a variant's log-odds: the mean log-odds without contexts, -1.4, stays in the verdict."""
