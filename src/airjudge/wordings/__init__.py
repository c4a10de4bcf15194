"""What a judge is told, in eleven languages; English is what everything was measured with."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from airjudge.wordings.eastern import ARABIC, CHINESE, HINDI, JAPANESE, KOREAN
from airjudge.wordings.english import ENGLISH
from airjudge.wordings.record import Example, Phrasing, Wording
from airjudge.wordings.western import FRENCH, GERMAN, PORTUGUESE, RUSSIAN, SPANISH

__all__ = ["ENGLISH", "WORDINGS", "Example", "Phrasing", "Wording", "find_wording"]

_ALL: Final = (ARABIC, CHINESE, ENGLISH, FRENCH, GERMAN, HINDI, JAPANESE, KOREAN, PORTUGUESE, RUSSIAN, SPANISH)
WORDINGS: Final[Mapping[str, Wording]] = MappingProxyType({one.language: one for one in _ALL})
"""Wordings by the English name of their language."""

_NAMES: Final = {
    "arabic": ("ar", "العربية", "عربي"),
    "chinese": ("zh", "cmn", "mandarin", "中文", "汉语", "漢語", "简体中文", "simplified chinese"),
    "english": ("en",),
    "french": ("fr", "français", "francais"),
    "german": ("de", "deutsch"),
    "hindi": ("hi", "हिन्दी", "हिंदी"),
    "japanese": ("ja", "日本語"),
    "korean": ("ko", "한국어"),
    "portuguese": ("pt", "português", "portugues"),
    "russian": ("ru", "русский"),
    "spanish": ("es", "español", "espanol", "castellano"),
}
_BY_NAME: Final = {name: language for language, names in _NAMES.items() for name in (language, *names)}


def find_wording(language: str) -> Wording:
    """The wording of a language.

    Args:
        language: Its English name, its own name, or a BCP 47 tag, of which the first part counts; in any case.

    Raises:
        ValueError: If there is none, with those that there are.
    """
    name = language.strip().casefold()
    found = _BY_NAME.get(name) or _BY_NAME.get(name.replace("_", "-").partition("-")[0])
    if found is None:
        msg = (
            f"there are no words in {language!r}: there are {', '.join(WORDINGS)}. "
            "For another language write prompt.instruction and prompt.examples yourself"
        )
        raise ValueError(msg)
    return WORDINGS[found]
