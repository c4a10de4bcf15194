"""How alike two texts are, letter by letter: the measures of rapidfuzz, which know nothing of meaning."""

from collections.abc import Callable
from typing import Final, Literal, get_args

from airjudge.errors import ExtraMissing

Distance = Literal["levenshtein", "hamming", "jaro", "jaro_winkler"]
Similarity = Callable[[str, str], float]
"""Of two texts, in [0, 1]: 1 is equal."""

INSTALL: Final = "pip install 'airjudge[similarity]'"
DISTANCES: Final[tuple[Distance, ...]] = get_args(Distance)


def similarity(distance: Distance) -> Similarity:
    """One minus a normalised distance; two empty texts are equal.

    Raises:
        ValueError: If there is no such distance.
        ExtraMissing: If rapidfuzz is not installed.
    """
    if distance not in DISTANCES:
        msg = f"there is no distance {distance!r}: use {', '.join(DISTANCES)}"
        raise ValueError(msg)
    try:
        from rapidfuzz import distance as measures  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise _missing() from error
    distances: dict[Distance, Callable[[str, str], float]] = {
        "levenshtein": measures.Levenshtein.normalized_distance,
        "hamming": measures.Hamming.normalized_distance,
        "jaro": measures.Jaro.normalized_distance,
        "jaro_winkler": measures.JaroWinkler.normalized_distance,
    }
    normalised = distances[distance]
    return lambda a, b: 1 - normalised(a, b)


def library() -> str:
    """What measures, with the part of its version that may change a number.

    Raises:
        ExtraMissing: If rapidfuzz is not installed.
    """
    try:
        from rapidfuzz import __version__  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise _missing() from error
    return f"rapidfuzz-{'.'.join(__version__.split('.')[:2])}"


def _missing() -> ExtraMissing:
    return ExtraMissing("similarity of texts needs rapidfuzz, which is not installed", INSTALL)
