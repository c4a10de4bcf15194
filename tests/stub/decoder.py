"""Constrained decoding for the stub: the masks are outlines_core's, the wishes are scripted.

The vocabulary has a token for each byte, so every text of every script can be spelled, and a few
longer ones; `0` and `1` have two ids each, as labels have in some real tokenizers. Free text is
decoded too, under an automaton that allows everything: a server that ignores a schema differs
from one that enforces it by its automaton alone.
"""

import json
import math
from collections import deque
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

from outlines_core import Index, Vocabulary
from outlines_core.json_schema import build_regex_from_schema

EOS = 0
EOS_TEXT = "<|im_end|>"
MASKED = -9999.0
"""What vLLM's API gives as the log-probability of a token that the mask forbids."""

_WANTED_SHARE = 0.8
"""Probability of the wanted token (or of both labels together) before the mask."""

_BYTES = {1 + byte: bytes([byte]) for byte in range(256)}
_LONGER = {257: b'{"', 258: b'": ', 259: b'": "', 260: b'", "'}
_TWINS = {261: b"0", 262: b"1"}
TOKENS: Mapping[int, bytes] = {**_BYTES, **_LONGER, **_TWINS}

_NO, _YES = 1 + ord("0"), 1 + ord("1")
_TWIN_OF = {_NO: 261, _YES: 262}
_LABELS = frozenset({_NO, _YES, 261, 262})
_SPACE = 1 + ord(" ")
_LONGEST = max(len(token) for token in TOKENS.values())


class SchemaRefused(Exception):
    """outlines_core cannot turn a schema into a regex."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the model would say if nothing held it back.

    `yes` is the probability of the label 1 wherever a label is due, None to follow the text;
    `twin_share` is the part of a label's probability that its second token id takes.
    """

    text: str
    yes: float | None = None
    twin_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """One generated token, with what its distribution came from.

    `yes` is P(label 1) where the step decides a label, else None.
    """

    token: int
    allowed: Mapping[int, int]
    yes: float | None
    twin_share: float

    def logprobs(self) -> list[tuple[int, float]]:
        """Renormalise the model's distribution over the allowed tokens; best first."""
        mass = _before_mask(self.token, self.yes, self.twin_share)
        other = (1 - _WANTED_SHARE) / (len(TOKENS) + 1 - len(mass))
        weights = {token: mass.get(token, other) for token in self.allowed}
        total = sum(weights.values())
        best_first = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
        return [(token, math.log(w / total) if w > 0 else MASKED) for token, w in best_first]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A reply as vLLM counts it: the end token is one of the steps, but not in the text."""

    text: str
    steps: tuple[Step, ...]
    finish_reason: str


Moves = Mapping[int, Mapping[int, int]]
"""State to allowed token to next state."""


class Grammar:
    """An automaton over the stub's vocabulary."""

    def __init__(self, moves: Moves, *, start: int, final: AbstractSet[int]) -> None:
        """Keep each state's allowed tokens; measure each state's distance to the end."""
        self.start = start
        self._moves = moves
        self._distance = _distances(moves, final)

    @classmethod
    def of_regex(cls, regex: str) -> "Grammar":
        """Compile a regex with outlines_core."""
        index = Index(regex, _vocabulary())
        return cls(index.get_transitions(), start=index.get_initial_state(), final=index.get_final_states())

    def allowed(self, state: int) -> Mapping[int, int]:
        """Give the tokens that the mask lets through, each with the state that it leads to."""
        return self._moves[state]

    def way_out(self, state: int) -> int:
        """Give the token that ends the reply soonest; of equals the one with the lowest id."""
        moves = self._moves[state]
        if EOS in moves:
            return EOS
        return min(moves, key=lambda token: (self._distance[moves[token]], token))


@lru_cache(maxsize=1)
def _vocabulary() -> Vocabulary:
    ids: dict[bytes, list[int]] = {}
    for token, text in TOKENS.items():
        ids.setdefault(text, []).append(token)
    return Vocabulary(EOS, ids)


def _distances(moves: Moves, final: AbstractSet[int]) -> dict[int, int]:
    before: dict[int, set[int]] = {}
    for state, targets in moves.items():
        for target in targets.values():
            before.setdefault(target, set()).add(state)
    distance = dict.fromkeys(final, 0)
    queue = deque(final)
    while queue:
        state = queue.popleft()
        for earlier in before.get(state, ()):
            if earlier not in distance:
                distance[earlier] = distance[state] + 1
                queue.append(earlier)
    return distance


@lru_cache(maxsize=64)
def _grammar_of_text(schema: str) -> Grammar:
    try:
        return Grammar.of_regex(build_regex_from_schema(schema))
    except (TypeError, ValueError) as error:
        raise SchemaRefused(str(error)) from error


def schema_grammar(schema: Mapping[str, object]) -> Grammar:
    """Compile a JSON schema as vLLM's outlines backend does; each schema once.

    Raises:
        SchemaRefused: If outlines_core refuses the schema.
    """
    return _grammar_of_text(json.dumps(schema))


@lru_cache(maxsize=1)
def free_grammar() -> Grammar:
    """Give the automaton of one state that forbids nothing: no schema is enforced."""
    return Grammar({0: dict.fromkeys((EOS, *TOKENS), 0)}, start=0, final={0})


@lru_cache(maxsize=1)
def object_grammar() -> Grammar:
    """Give the automaton of a flat JSON object, for backends that know `json_object`."""
    return Grammar.of_regex(r'\{("[a-z]+": ("[^"\\\x00-\x1F]*"|[0-9]+)(, )?)*\}')


def decode(wish: Wish, grammar: Grammar, max_tokens: int) -> Decoded:
    """Say what the model wants where the mask allows it, else find the shortest way out.

    Bytes of the wish that the mask forbids are dropped up to the next one that it allows, so
    `Sure: {"a": 1}` comes out as `{"a": 1}` under a schema that fits, and `hello` under an enum
    of `canary` comes out as `"canary"`.
    """
    state, rest, label = grammar.start, wish.text.encode(), wish.text.strip() in ("0", "1")
    steps: list[Step] = []
    while len(steps) < max_tokens:
        allowed = grammar.allowed(state)
        wanted, rest = _next_token(rest, allowed)
        token = grammar.way_out(state) if wanted is None else wanted
        decides = token in _LABELS and (label or _is_label_step(allowed))
        if decides and wish.yes is not None:
            token = _YES if wish.yes >= 0.5 else _NO
        yes = (float(token == _YES) if wish.yes is None else wish.yes) if decides else None
        steps.append(Step(token, allowed, yes, wish.twin_share))
        if token == EOS:
            return Decoded(_text(steps[:-1]), tuple(steps), "stop")
        state = allowed[token]
    return Decoded(_text(steps), tuple(steps), "length")


def _next_token(rest: bytes, allowed: Mapping[int, int]) -> tuple[int | None, bytes]:
    """Find the longest allowed token that the wish goes on with, dropping what is forbidden."""
    for start in range(len(rest)):
        for end in range(min(len(rest), start + _LONGEST), start, -1):
            token = _token_id().get(rest[start:end])
            if token in allowed:
                return token, rest[end:]
    return None, b""


@lru_cache(maxsize=1)
def _token_id() -> dict[bytes, int]:
    return {text: token for token, text in TOKENS.items() if token not in _TWINS}


def _is_label_step(allowed: Mapping[int, int]) -> bool:
    return len(allowed) <= len(_LABELS) + 1 and allowed.keys() - {_SPACE} == _LABELS


def _before_mask(token: int, yes: float | None, twin_share: float) -> dict[int, float]:
    if yes is None:
        return {token: _WANTED_SHARE}
    mass = {}
    for label, share in ((_YES, yes), (_NO, 1 - yes)):
        mass[label] = _WANTED_SHARE * share * (1 - twin_share)
        mass[_TWIN_OF[label]] = _WANTED_SHARE * share * twin_share
    return mass


def token_text(token: int) -> str:
    """Give a token as vLLM shows it: a part of a character becomes U+FFFD."""
    return EOS_TEXT if token == EOS else TOKENS[token].decode(errors="replace")


def _text(steps: list[Step]) -> str:
    return b"".join(TOKENS[step.token] for step in steps).decode(errors="replace")
