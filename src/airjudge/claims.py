"""Claims that a judge wrote out of the sentences of a reference, held against it without a model.

Each sentence is covered once: by its claims, if they are of it and together hold it, else by itself. So a judge that
invents, forgets or repeats costs nothing but fineness.
"""

import re
from collections.abc import Sequence

from airjudge.evidence import words_of
from airjudge.schema import Claims, Made, Sample, Statement
from airjudge.statements import split_statements

SHARE = 0.7
"""Least share of a claim's words that the reference or the question must have, and of a sentence's words that its
claims must have. Of 378 claims that people or large models wrote out of references 97 % have it, and of the 147
sentences that have at least .6 of their words in them, 98 %."""

_NUMBER = re.compile(r"\d+")
_NEGATION = re.compile(
    r"""\b(?:
    no(?=\s) | not | never | none | nor | neither | nobody | nothing | nowhere | without | cannot  # en, and no: es
    | \w+n['’]t                                                                                    # en: don't
    | nicht | nichts | nie | niemals | niemand | ohne | weder | kein\w{0,2}                        # de
    | ne | jamais | sans | aucune? | ni                                                            # fr
    | nunca | jamás | sin | tampoco | ning[uú]n\w? | nadie                                         # es
    | non | senza | nessun\w? | né                                                                # it
    | não | sem | nenhuma? | ninguém                                                               # pt
    | niet | niets | geen | nooit | zonder | noch                                                  # nl
    | bez | nigdy | żaden                                                                          # pl
    | не | нет | ни | никогда | без                                                                # ru
    | değil | yok | hiç                                                                            # tr
    | لا | لم | لن | ليس\w? | ليست | نہیں | नहीं | बिना
    )(?!\w) | \bn['’](?=\w) | 不 | 没 | 沒 | 无 | 無 | 未 | 非 | 别 | ない | なかっ | ません | ずに | 않 | 없 | 아니""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words that turn a fact around. A word of one language that is another in a second (Portuguese "no") costs nothing
but fineness: it has to be held too. Words that are negative by their ends alone, as Turkish verbs, are not seen."""
_LEANS = re.compile(
    r"\W*(?:he|she|it|they|this|these|those|his|her|its|their|er|sie|dieser?|elle|elles|ils|cela|ellos|ellas|egli"
    r"|essi|ele|eles|elas|hij|zij|он|она|оно|они|هو|هي)\b|\W*[他她它彼]",
    re.IGNORECASE,
)
"""A claim that opens so does not stand alone."""
OWN_SHARE = 0.3
"""Least share of a claim's words that its own sentence must have; the others stand for its pronouns."""
RULE = (SHARE, OWN_SHARE, _NUMBER.pattern, _NEGATION.pattern, _LEANS.pattern)
"""All that decides what stays beside the code: part of a judge's signature where it makes claims."""


def statements_of(sample: Sample, claims: Sequence[Sequence[str]], error: str | None = None) -> Made:
    """The statements of a reference whose claims a judge wrote out, sentence by sentence.

    A claim that has no word of its sentence which no earlier claim has repeats what was claimed, and goes.

    Args:
        sample: Its reference is what counts; its question may tell what words of the reference stand for.
        claims: Those of each sentence, in the judge's order; they may be blank, repeated, invented, or none.
        error: The kind of what kept the judge from claims of some sentence, for the record.

    Returns:
        Sentence by sentence, either its claims (ids "2.1", "2.2", … for the second sentence) or the sentence
        itself (id "2", as where sentences are the statements).
    """
    sentences = split_statements(sample, "claims")
    told = f"{sample.reference}\n{sample.user_input}"
    known, numbers = words_of(told), _numbers(told)
    statements: list[Statement] = []
    claimed: frozenset[str] = frozenset()
    n_sentences = n_invented = 0
    for sentence, texts in zip(sentences, claims, strict=True):
        own = [text for text in map(str.strip, texts) if text]
        held = [text for text in own if _is_of(text, sentence.text, known=known, numbers=numbers)]
        n_invented += len(own) - len(held)
        kept, words = _new(held, words_of(sentence.text), claimed)
        if _stand_for(kept, sentence.text):
            statements += _numbered(sentence, kept)
            claimed |= words
        else:
            statements.append(sentence)
            claimed |= words_of(sentence.text)
            n_sentences += 1
    note = Claims(n_claims=len(statements) - n_sentences, n_sentences=n_sentences, n_invented=n_invented, error=error)
    return Made(statements=tuple(statements), claims=note)


def _is_of(claim: str, sentence: str, *, known: frozenset[str], numbers: set[str]) -> bool:
    """Whether a claim is of the reference, and in part at least of its sentence."""
    held = words_of(claim)
    ours = len(held & words_of(sentence)) >= OWN_SHARE * len(held)
    return ours and len(held & known) >= SHARE * len(held) and _numbers(claim) <= numbers


def _new(claims: Sequence[str], sentence: frozenset[str], claimed: frozenset[str]) -> tuple[list[str], frozenset[str]]:
    """The claims that have a word of their sentence which none before them has, and all their words."""
    kept: list[str] = []
    words: frozenset[str] = frozenset()
    for claim in claims:
        held = words_of(claim)
        if (held & sentence) - claimed - words:
            kept.append(claim)
            words |= held
    return kept, words


def _numbered(sentence: Statement, texts: Sequence[str]) -> list[Statement]:
    return [Statement(id=f"{sentence.id}.{number}", text=text) for number, text in enumerate(texts, 1)]


def _stand_for(texts: Sequence[str], sentence: str) -> bool:
    """Whether claims together hold a sentence, most of its words and all of its numbers, and say no more than it.

    None of its negations may be lost, and none be added; no claim may lean on its neighbours where the sentence
    does not. Two names that are swapped pass: in a third of people's own claims names change their order.
    """
    wanted, joined = words_of(sentence), "\n".join(texts)
    denied, turned = len(_NEGATION.findall(sentence)), len(_NEGATION.findall(joined))
    return (
        bool(texts)
        and len(wanted & words_of(joined)) >= SHARE * len(wanted)
        and _numbers(sentence) <= _numbers(joined)
        and (turned >= denied if denied else not turned)
        and (bool(_LEANS.match(sentence)) or not any(map(_LEANS.match, texts)))
    )


def _numbers(text: str) -> set[str]:
    return set(_NUMBER.findall(text))
