"""Token counts and a prefix cache for prompts, by rules simple enough to compute by hand.

One token for each word, each Chinese or Japanese character, each Hangul syllable and each other
mark; three for the frame of a message (start, role, end); two that open the reply.
"""

import re
import zlib
from collections.abc import Mapping, Sequence

Messages = Sequence[Mapping[str, object]]

_ALONE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_PIECE = re.compile(rf"[{_ALONE}]|[^\W{_ALONE}]+|[^\w\s]")


def text_of(message: Mapping[str, object]) -> str:
    """Give the text of a message, whose content is a string or a list of text parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def pieces(text: str) -> list[str]:
    """Split a text into tokens."""
    return _PIECE.findall(text)


def chat_pieces(messages: Messages) -> list[str]:
    """Split a chat into tokens, with the frame that a chat template gives it."""
    tokens: list[str] = []
    for message in messages:
        tokens += ["<|im_start|>", str(message.get("role")), *pieces(text_of(message)), "<|im_end|>"]
    return [*tokens, "<|im_start|>", "assistant"]


def token_ids(tokens: Sequence[str]) -> list[int]:
    """Give each token a stable number."""
    return [zlib.crc32(token.encode()) & 0xFFFF for token in tokens]


class PrefixCache:
    """Which full blocks of earlier prompts are known, as vLLM's prefix cache counts them."""

    def __init__(self, block_tokens: int) -> None:
        """Start empty."""
        self._block_tokens = block_tokens
        self._known: set[int] = set()

    def blocks(self, tokens: Sequence[str], salt: str) -> list[int]:
        """Name the full blocks of a prompt; a name stands for all tokens up to its block's end."""
        names, name, size = [], hash(salt), self._block_tokens
        for end in range(size, len(tokens) + 1, size):
            name = hash((name, *tokens[end - size : end]))
            names.append(name)
        return names

    def cached_tokens(self, blocks: Sequence[int], n_tokens: int) -> int:
        """Count the tokens that need no computing; the last token of a prompt always does."""
        known = 0
        for name in blocks[: (n_tokens - 1) // self._block_tokens]:
            if name not in self._known:
                break
            known += 1
        return known * self._block_tokens

    def add(self, blocks: Sequence[int]) -> None:
        """Remember the blocks of a computed prompt."""
        self._known.update(blocks)
