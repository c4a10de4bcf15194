"""What a status that is not 2xx says: the server's own words, its code, and how long it wants to be left alone."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

_UNIT_S: Mapping[str, float] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Refusal:
    """The words of an error body on one line; `code` is what providers name it by, empty if they do not."""

    words: str
    code: str = ""


def read_refusal(raw: bytes) -> Refusal:
    """The message and code of an OpenAI error body, else the start of the body."""
    text = raw[:2000].decode("utf-8", errors="replace")
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    code = ""
    if isinstance(found, list) and found:  # as Google wraps it
        found = found[0]
    if isinstance(found, dict):
        inner = found.get("error")
        told = inner if isinstance(inner, dict) else found
        message = told.get("message") or told.get("detail") or told.get("error")
        text = message if isinstance(message, str) else text
        code = next((one for one in (told.get("code"), told.get("type")) if isinstance(one, str)), "")
    return Refusal(" ".join(text.split())[:500] or "no message", code)


def asked_pause_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server wants to be left alone; None if it does not say.

    Retry-After comes first, in milliseconds, seconds or as a date beside the server's own; then the resets of
    those `x-ratelimit-*` counters that are used up, the latest of them.

    Args:
        headers: Of the reply; looked up by any case.
    """
    asked = _milliseconds(headers.get("retry-after-ms")) or _retry_after_s(headers)
    if asked is not None:
        return asked
    resets = [
        duration_s(headers.get(f"x-ratelimit-reset-{kind}"))
        for kind in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{kind}") == "0"
    ]
    return max((one for one in resets if one is not None), default=None)


def _milliseconds(header: str | None) -> float | None:
    seconds = duration_s(header)
    return None if seconds is None else seconds / 1000


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    header = headers.get("Retry-After")
    seconds = duration_s(header)
    if seconds is not None or not header:
        return seconds
    try:
        until, now = parsedate_to_datetime(header), parsedate_to_datetime(headers.get("Date", ""))
        return max(0.0, (until - now).total_seconds())
    except (TypeError, ValueError):  # no date, or one of them without a zone
        return None


def duration_s(text: str | None) -> float | None:
    """Seconds of `1.5`, `20ms`, `6m0s` or `1h2m3s`; None if it is nothing of that kind."""
    if not text:
        return None
    if re.fullmatch(r"-?\d+(\.\d+)?", text):
        return max(0.0, float(text))
    if not re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h|d))+", text):
        return None
    return sum(float(number) * _UNIT_S[unit] for number, unit in re.findall(r"([\d.]+)(ms|s|m|h|d)", text))
