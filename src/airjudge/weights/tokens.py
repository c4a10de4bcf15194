"""Prompts in the tokens of a judge, by the tokenizer and the chat template that its server uses."""

import logging
from collections.abc import Sequence
from importlib.util import find_spec

from airjudge.errors import WeightsError
from airjudge.profiles import Profile
from airjudge.schema import Message
from airjudge.weights.prepare import prepared


class JudgeTokenizer:
    """The tokenizer of prepared weights; nothing of the model itself is read."""

    def __init__(self, profile: Profile) -> None:
        """Load what lies in the cache.

        Raises:
            WeightsMissing: If the weights were never pulled.
            WeightsError: If transformers is not installed, or cannot read the tokenizer.
        """
        folder = prepared(profile).path
        if find_spec("transformers") is None:
            msg = "transformers is not installed, which counts tokens"
            raise WeightsError(msg, "pip install 'airjudge[cpu]' or 'airjudge[gpu]'")
        from transformers import AutoTokenizer  # noqa: PLC0415 - heavy

        logging.getLogger("transformers").setLevel(logging.ERROR)  # it warns that long prompts are long
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError) as error:
            msg = f"the tokenizer in {folder} cannot be read: {error}"
            raise WeightsError(msg, f"Pull the judge again: airjudge models pull {profile.id}") from error
        self._options = dict(profile.chat_template_kwargs)

    def encode(self, chats: Sequence[Sequence[Message]]) -> list[list[int]]:
        """Token numbers of each chat, as the server's template writes it."""
        texts = [self._written(chat) for chat in chats]
        encoded: list[list[int]] = self._tokenizer(texts, add_special_tokens=False)["input_ids"]
        return encoded

    def _written(self, chat: Sequence[Message]) -> str:
        turns = [{"role": one.role, "content": one.content} for one in chat]
        text: str = self._tokenizer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True, **self._options
        )
        return text
