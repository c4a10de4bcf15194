"""What a rule is, and how rules are made from words.

A pattern takes its text folded: lower case, wide and styled letters made plain, nothing invisible in it. Repeats are
bounded, and nothing in one can match in two ways, so that a search takes time in proportion to the text. It is made
only where the text has a word of each group of the rule, which a set tells at once.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from airjudge.schema import SuspicionKind

_CONTINUED: Final = bytes(range(0x80, 0xC0))
"""What follows the first byte of a character beyond ASCII in UTF-8."""
_TABLE: Final = bytes(
    ord(chr(one).lower()) if one < 0x80 and (chr(one).isalnum() or chr(one) in "_+/=") else 0x20 for one in range(0x100)
)
_ASCII: Final = bytes(range(0x80))


@dataclass(frozen=True, slots=True)
class Looked:
    """A text, its ASCII words in lower case (letters beyond ASCII part them), and its characters beyond ASCII."""

    text: str
    words: frozenset[bytes]
    characters: frozenset[str]


def look(text: str) -> Looked:
    """What is cheap to know of a text."""
    data = text.encode("utf-8", "surrogatepass")
    words = frozenset(data.translate(_TABLE, _CONTINUED).split())
    beyond = "" if len(data) == len(text) else data.translate(None, _ASCII).decode("utf-8", "surrogatepass")
    return Looked(text, words, frozenset(beyond))


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A pattern that marks a text, which has a word of each of `groups` and, if there are any, one of `literals`."""

    kind: SuspicionKind
    pattern: re.Pattern[str]
    groups: tuple[frozenset[bytes], ...] = ()
    literals: tuple[str, ...] = ()

    def may_match(self, looked: Looked) -> bool:
        """Whether the pattern is worth a search."""
        return all(not group.isdisjoint(looked.words) for group in self.groups) and (
            not self.literals or any(one in looked.text for one in self.literals)
        )


def rule(kind: SuspicionKind, pattern: str, *groups: str, literals: str = "") -> Rule:
    """A rule by its pattern; groups and literals are alternatives, parted by bars."""
    return Rule(
        kind,
        re.compile(pattern, re.MULTILINE),
        tuple(frozenset(map(_anchor, group.split("|"))) for group in groups),
        tuple(
            form for one in literals.split("|") if one for form in dict.fromkeys((one, one.capitalize(), one.upper()))
        ),
    )


def forgotten(verbs: str, nouns: str, priors: str) -> Rule:
    """To ignore the instructions above, or the above instructions."""
    gap = r"(?:\W{1,3}\w{1,20}){0,4}?\W{1,3}"
    either = rf"(?:(?:{priors}){gap}(?:{nouns})|(?:{nouns}){gap}(?:{priors}))"
    pattern = rf"\b(?:{verbs})(?:\W{{1,3}}\w{{1,20}}){{0,3}}?\W{{1,3}}{either}\b"
    return _worded(pattern, verbs, nouns, priors)


def answered(verbs: str, links: str, tails: str = "") -> Rule:
    """To answer with a 1 or a 0, at a clause's end or before a word that says when."""
    end = r"\W{0,3}(?:$|\n|[.,;!?)\]\"'»”])"
    when = rf"|\s(?:{tails})\b" if tails else ""
    pattern = rf"\b(?:{verbs})(?:\s{{1,2}}(?:{links})){{0,6}}\s{{1,2}}[\"'“«„(]{{0,2}}[01]"
    return _worded(rf"{pattern}\b(?![.,:]?\d)(?={end}{when})", verbs, "0|1")


def settled(nouns: str, links: str) -> Rule:
    """That the verdict is settled: it is 1."""
    pattern = (
        rf"\b(?:{nouns})(?:\W{{1,3}}(?:{links})){{1,8}}\W{{1,3}}[01]\b(?![.,:]?\d)(?=\W{{0,3}}(?:$|\n|[.,;!?)\]\"'»”]))"
    )
    return _worded(pattern, nouns, "0|1")


def addressed(calls: str, audience: str) -> Rule:
    """Important, to whoever judges."""
    return _worded(rf"\b(?:{calls})(?:\W{{1,3}}\w{{1,12}}){{0,3}}?\W{{1,3}}(?:{audience})\b", calls, audience)


def _worded(pattern: str, *groups: str) -> Rule:
    """A rule for orders; words without ASCII letters enough are looked for as they are."""
    in_ascii = [group for group in groups if all(len(_anchor(one)) > 2 or one in "01" for one in group.split("|"))]
    others = next((group for group in groups if group not in in_ascii), "")
    return rule("instruction", pattern, *in_ascii, literals=others)


def _anchor(alternative: str) -> bytes:
    """The longest ASCII word of an alternative."""
    return max(look(alternative).words, key=lambda one: (len(one), one), default=b"")


def _rarest(groups: Sequence[frozenset[bytes]]) -> frozenset[bytes]:
    """The group of which a text is least likely to have a word: not the digits, the pronouns, or what is short."""
    return max(groups, key=lambda group: min(map(len, group)), default=frozenset())


def _beyond_ascii(literal: str) -> str:
    """The first character of a literal that is none of ASCII; empty if there is none."""
    return next((one for one in literal if not one.isascii()), "")


class Rules:
    """Rules, found by a word of one of their groups or by a character of their literals."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Make the index, by numbers; a rule with neither is tried on every text."""
        words: dict[bytes, list[int]] = defaultdict(list)
        characters: dict[str, list[int]] = defaultdict(list)
        self._rules = tuple(rules)
        self._always: list[int] = []
        for number, one in enumerate(rules):
            telling = {_beyond_ascii(literal) for literal in one.literals} or {""}
            if "" not in telling:
                for character in telling:
                    characters[character].append(number)
            elif one.groups:
                for word in _rarest(one.groups):
                    words[word].append(number)
            else:
                self._always.append(number)
        self._words, self._characters = dict(words), dict(characters)

    def met(self, looked: Looked) -> Iterator[tuple[SuspicionKind, int]]:
        """The kinds of rules that a text meets, and where the first rule of each does."""
        found = set(self._always)
        for word in self._words.keys() & looked.words:
            found.update(self._words[word])
        for character in self._characters.keys() & looked.characters:
            found.update(self._characters[character])
        # In the order of the rules, of which the first one that matches tells the place.
        worth = sorted(one for one in found if self._rules[one].may_match(looked))
        if not worth:
            return
        folded = looked.text.lower()
        kinds: set[SuspicionKind] = set()
        for one in map(self._rules.__getitem__, worth):
            if one.kind not in kinds and (match := one.pattern.search(folded)):
                kinds.add(one.kind)
                yield one.kind, match.start()
