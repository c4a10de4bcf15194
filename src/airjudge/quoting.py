"""How texts of a sample leave us: as data, never as turns of a chat in a prompt, never run in a spreadsheet."""

import re
from collections.abc import Sequence
from typing import Final

_OPENING: Final = re.compile("[<\uff1c\ufe64]")
"""What opens a mark such as `<|im_end|>`, `</s>` or `<<SYS>>`; the wide and small forms become `<` by NFKC."""
_BRACKETED: Final = re.compile(
    r"[\[\uff3b](?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_(?:CALLS|RESULTS|CONTENT)|CALL_ID|ARGS|THINK|PREFIX"
    r"|MIDDLE|SUFFIX|MODEL_SETTINGS|IMG(?:_BREAK|_END)?|(?:BEGIN_)?AUDIO|TRANSCRIBE|[gs]?MASK|CLS|SEP|PAD|UNK)[\]\uff3d])"
)
"""Control tokens of Mistral's tokenizers (`SpecialTokens` of mistral-common), of GLM's and of BERT's."""

_RUN: Final = re.compile(r"(^|[;\t\r\n])( *)('*[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""What a spreadsheet may take for a formula: at a cell's start, or where another separator would start one."""
_GUARDED: Final = re.compile(r"(^|[;\t\r\n])( *)'('*[=+\-@\uff1d\uff0b\uff0d\uff20])")
_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)


def as_data(text: str) -> str:
    """A sample's text as it enters a prompt: trimmed, and free of chat-template tokens.

    Templates mark turns with `<|…|>`, `<…_of_turn>`, `[INST]` and the like. A space behind the first
    character keeps the text readable and makes it ordinary tokens.
    """
    return _BRACKETED.sub(r"\g<0> ", _OPENING.sub(r"\g<0> ", text.strip()))


def numbered(contexts: Sequence[tuple[int, str]], heading: str = "Contexts:") -> str:
    """Contexts under a heading and their numbers."""
    return f"{heading}\n" + "\n".join(f"[{number}] {as_data(text)}" for number, text in contexts)


def as_cell(text: str) -> str:
    """A text as a cell of CSV: an apostrophe before what a spreadsheet would run as a formula.

    Semicolons, tabs and line ends count as starts of a cell too, since a spreadsheet may split there whatever
    the quotes say (OWASP, "CSV Injection"). Numbers stay as they are.
    """
    return text if _NUMBER.fullmatch(text) else _RUN.sub(r"\1\2'\3", text)


def from_cell(cell: str) -> str:
    """The text that `as_cell` made a cell of."""
    return _GUARDED.sub(r"\1\2\3", cell)
