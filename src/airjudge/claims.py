"""Claims that a judge wrote out of a reference, held against it without a model.

Each sentence of the reference is covered once: by its claims, if they are of the reference and together
hold the sentence, else by itself. So a judge that invents, forgets or repeats costs nothing but fineness.
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
RULE = (SHARE, _NUMBER.pattern, _NEGATION.pattern, _LEANS.pattern)
"""All that decides what stays beside the code: part of a judge's signature where it makes claims."""


def statements_of(sample: Sample, claims: Sequence[str]) -> Made:
    """The statements of a reference whose claims a judge wrote out.

    A claim belongs to the sentence with most of the words that no earlier claim has: what it repeats of other
    sentences stands in for their pronouns. A claim without a new word repeats what was claimed, and goes.

    Args:
        sample: Its reference is what counts; its question may tell what words of the reference stand for.
        claims: In the judge's order; they may be blank, repeated, invented.

    Returns:
        Sentence by sentence, either its claims (ids "2.1", "2.2", … for the second sentence) or the sentence
        itself (id "2", as where sentences are the statements).
    """
    sentences = split_statements(sample, "claims")
    words = [words_of(one.text) for one in sentences]
    told = f"{sample.reference}\n{sample.user_input}"
    known, numbers = words_of(told), _numbers(told)
    claimed: set[str] = set()
    own: list[list[str]] = [[] for _ in sentences]
    n_invented = 0
    for text in filter(None, map(str.strip, claims)):
        held = words_of(text)
        if len(held & known) < SHARE * len(held) or not _numbers(text) <= numbers:
            n_invented += 1
            continue
        new = [len((held - claimed) & one) for one in words]
        if any(new):
            own[new.index(max(new))].append(text)
            claimed |= held
    statements = [
        one
        for sentence, texts in zip(sentences, own, strict=True)
        for one in (_numbered(sentence, texts) if _stand_for(texts, sentence.text) else [sentence])
    ]
    n_sentences = len(set(sentences) & set(statements))
    note = Claims(n_claims=len(statements) - n_sentences, n_sentences=n_sentences, n_invented=n_invented)
    return Made(statements=tuple(statements), claims=note)


def without_claims(sample: Sample, error: str) -> Made:
    """The sentences of a reference whose claims nobody could read; `error` is the kind of what went wrong."""
    sentences = split_statements(sample, "claims")
    return Made(statements=sentences, claims=Claims(n_sentences=len(sentences), error=error))


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
