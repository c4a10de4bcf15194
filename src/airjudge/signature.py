"""What makes two runs comparable, in one line; and where two of them differ."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from airjudge.schema import Signature, StatementMaker


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who answered, by what: the parts of a signature that no prompt decides.

    `weights` is a hash or `unverified`; `enforcement` is the backend that constrains decoding;
    `server` and `airjudge` are versions.
    """

    judge: str
    weights: str
    enforcement: str
    server: str
    airjudge: str


def digest(content: JsonValue) -> str:
    """Short name of a JSON value: the first 12 hex digits of the SHA-256 of its canonical form.

    Canonical means keys sorted, no whitespace, ASCII escapes: equal values have equal names on
    every machine. Twelve digits tell versions of a prompt apart; they are no proof against forgery.

    Raises:
        ValueError: If the value holds NaN or an infinity.
    """
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:12]


def make_signature(
    provenance: Provenance,
    method: str,
    *,
    prompt: JsonValue,
    statements: StatementMaker,
    decoding: Mapping[str, JsonValue],
) -> Signature:
    """Signature of everything that can change a verdict but the data.

    Args:
        provenance: Who answers.
        method: The name of the method.
        prompt: All that the method sends but the sample: templates, examples, reply schema. Only
            its digest is kept.
        statements: How statements were made.
        decoding: Sampling settings and threshold; written as `name=value` pairs sorted by name.
    """
    settings = ",".join(f"{name}={json.dumps(value)}" for name, value in sorted(decoding.items()))
    return Signature(
        judge=provenance.judge,
        weights=provenance.weights,
        method=method,
        prompt=digest(prompt),
        statements=statements,
        decoding=settings,
        enforcement=provenance.enforcement,
        server=provenance.server,
        airjudge=provenance.airjudge,
    )


def differences(a: Signature, b: Signature) -> list[tuple[str, str, str]]:
    """Fields in which two signatures differ, as (field, value in a, value in b), in field order."""
    ours, theirs = a.model_dump(), b.model_dump()
    return [(name, ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]]
