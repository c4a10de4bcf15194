"""How texts of a sample enter a prompt: as data between headings of ours, never as turns of a chat."""

from collections.abc import Sequence


def as_data(text: str) -> str:
    """A sample's text as it enters a prompt: trimmed, and free of chat-template tokens.

    Templates mark turns with `<|…|>`, `<…_of_turn>`, `[INST]` and the like. A space behind the first
    character keeps the text readable and makes it ordinary tokens.
    """
    return text.strip().replace("<", "< ").replace("[INST", "[ INST").replace("[/INST", "[ /INST")


def numbered(contexts: Sequence[tuple[int, str]]) -> str:
    """Contexts under their numbers."""
    return "Contexts:\n" + "\n".join(f"[{number}] {as_data(text)}" for number, text in contexts)
