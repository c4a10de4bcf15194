"""From a reference to the numbered statements that every judge rules on."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import sentencex

from airjudge.schema import Sample, Statement, StatementMaker

DEFAULT_MAKER: Final[StatementMaker] = "given"

_LANGUAGE_OF_SCRIPT: Final = {
    "ARABIC": "ar", "ARMENIAN": "hy", "BENGALI": "bn", "CJK": "zh", "CYRILLIC": "ru", "DEVANAGARI": "hi",
    "ETHIOPIC": "am", "GREEK": "el", "HANGUL": "ko", "HEBREW": "he", "LATIN": "en", "MYANMAR": "my",
    "TAMIL": "ta", "THAI": "th",
}  # fmt: skip

# sentencex indexes into text as if every space were one byte, and panics on "J.\u00a0Smith". It gets a copy,
# character for character, with plain spaces and line ends, and without surrogates, which UTF-8 cannot hold.
_PLAIN_SPACES: Final = dict.fromkeys(map(ord, "\u00a0\u1680\u202f\u205f\u3000"), " ")
_PLAIN_SPACES.update(dict.fromkeys(range(0x2000, 0x200B), " "))
_PLAIN_SPACES.update(dict.fromkeys((0x85, 0x2028, 0x2029), "\n"))
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")

# Pieces that sentencex cuts although they are one sentence: how the first ends, how the next begins.
_JOINTS: Final = tuple(
    (re.compile(end), re.compile(start))
    for end, start in (
        (r"[:：]\s*\Z", r""),  # "They are:" before its list
        (r"\n\s*\d{1,3}[.)]\s*\Z", r""),  # a list number
        (r"\b[^\W\d_]\.\s?\Z", r"[^\W\d_]\."),  # an initial and the next one
        (r"\b[А-ЯЁ]\.[^\S\n]*\Z", r"[А-ЯЁ][а-яё]"),  # an initial and a name
        (r"(?:\A|\s)(?:डॉ|प्रो|ড|د)\.[^\S\n]*\Z", r""),  # "Dr." and the like
        (r"\d．\Z", r"\d"),  # ３．５ in full-width digits
        (r"\b(?:approx|art|avr|déc|févr|godz|janv|juil|n|nov|oct|рис|стр|ص)\.[^\S\n]*\Z", r"\d"),
        (r"\d\.[^\S\n]*\Z", r"Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez"),  # German without `lang`
        (r"[」』]\Z", r"と|って"),  # 「…。」と言った: the quotation goes on
        (r"[\"'”’」』]\Z", r"이?라[고는]|하고"),  # the same in Korean
        (r"", r"[^\w]*\Z"),  # nothing but marks or blanks: an ellipsis, a lone quote
    )
)
_BEFORE_SMALL: Final = re.compile(r"(?:\d|\b[a-zа-я]{1,2})\.[^\S\n]*\Z")  # "den 3. mars", "p. ex."
_STUB: Final = re.compile(r"\W*(?:[^\s.]{1,3}\.\s*)+")  # "2.", "M. Dupont", "Yes.": no claim of its own
_REACH: Final = 16  # characters that the rules look back


def split_statements(sample: Sample, maker: StatementMaker = DEFAULT_MAKER) -> tuple[Statement, ...]:
    """Numbered statements of a sample's reference, in the order of the text.

    Args:
        sample: Its `metadata["lang"]`, a BCP-47 tag, is believed; without it the script decides.
        maker: `given` takes the statements that the sample carries, and sentences if it carries
            none; `sentences` never looks at the given ones, nor does `claims`, which are made of
            sentences by a judge: here they are those sentences.

    Returns:
        Statements with text that is trimmed and not blank; sentences get the ids "1", "2", ….
        Nothing for a blank reference, and for a sample that carries an empty list.
    """
    if maker == "given" and sample.statements is not None:
        return sample.statements
    language = sample.metadata.get("lang")
    tag = language if isinstance(language, str) else guess_language(sample.reference)
    sentences = split_sentences(sample.reference, tag)
    return tuple(Statement(id=str(n), text=text) for n, text in enumerate(sentences, start=1))


def guess_language(text: str) -> str:
    """Language code that stands for the script of the first thousand characters.

    It chooses the abbreviations that do not end a sentence, so the Latin script needs no finer
    guess than `en`: sentencex knows "z. B." and "Sr." there too.
    """
    if text[:1000].isascii():
        return "en"
    scripts = Counter(map(_script, filter(str.isalpha, text[:1000])))
    if scripts["HIRAGANA"] or scripts["KATAKANA"]:
        return "ja"
    known = [script for script, _ in scripts.most_common() if script in _LANGUAGE_OF_SCRIPT or script == "LATIN"]
    return _LANGUAGE_OF_SCRIPT.get(known[0], "en") if known else "en"


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0]


def split_sentences(text: str, language: str) -> list[str]:
    """Sentences of a text: trimmed, never blank, and together all of its non-space characters.

    Args:
        text: Any text; line breaks alone do not end a sentence, blank lines and list items do.
        language: A BCP-47 tag; one that sentencex does not know is read by general rules.
    """
    bounds: list[tuple[int, int]] = []
    for start, end in _pieces(text, language):
        if bounds and _goes_on(text[max(bounds[-1][0], start - _REACH) : start], text[start:end]):
            bounds[-1] = (bounds[-1][0], end)
        else:
            bounds.append((start, end))
    return [sentence for start, end in bounds if (sentence := text[start:end].strip())]


def _pieces(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Start and end of what sentencex takes for sentences; together they cover the text."""
    plain = _LONE_SURROGATE.sub("\ufffd", text.translate(_PLAIN_SPACES))
    start = 0
    pieces: list[str] = sentencex.segment(language.partition("-")[0].lower(), plain)
    for piece in pieces:
        yield start, start + len(piece)
        start += len(piece)
    if start < len(text):  # a splitter that drops text would drop facts
        yield start, len(text)


def _goes_on(tail: str, piece: str) -> bool:
    """Whether a piece goes on with the sentence before it, whose last characters are `tail`."""
    if len(tail) < _REACH and _STUB.fullmatch(tail):  # only a short tail is the whole sentence
        return True
    if piece[:1].islower() and _BEFORE_SMALL.search(tail):
        return True
    return any(end.search(tail) and start.match(piece) for end, start in _JOINTS)
