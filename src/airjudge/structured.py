"""Questions of others, answered by our judge under their own pydantic models.

The prompt is theirs, word for word; the schema is that of their model, as far as outlines enforces it in full. A
reply is a whole model or a typed error: half a one is never made up.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeVar

from pydantic import JsonValue, ValidationError

from airjudge import decoding
from airjudge.enforceable import NOTHING_NARROWED, Narrowed, adapter_of, brief, enforceable, json_schema_of
from airjudge.errors import ReplyInvalid, ReplyRunaway, ReplyTruncated, SchemaRefused
from airjudge.judge import Judge
from airjudge.schema import Completion, Message, Question, ReplySchema

T = TypeVar("T")

MAX_TOKENS: Final = 1024
"""Tokens of a reply where the caller says nothing: ragas' own limit."""
CUT_HINT: Final = "Allow the reply more tokens (max_tokens), ask for less at once, or judge by a larger model."


class Structured:
    """Asks an open judge for what others want to know.

    Each model's schema is compiled by the judge's servers at its first use, one after the other, before it is asked
    under by many at once. What a server cannot compile is refused from then on without asking. A reply that its token
    limit cuts is asked for once more in the brief form of its schema, whose texts and lists end.
    """

    def __init__(self, judge: Judge, *, narrowed: Narrowed = NOTHING_NARROWED) -> None:
        """Ask nothing yet; `narrowed` holds fields to values beyond their schema, by `Model.field`."""
        self._judge, self._narrowed = judge, narrowed

    async def ask(self, messages: Sequence[Message], model: type[T], *, max_tokens: int = MAX_TOKENS) -> T:
        """The reply to a chat as an instance of a model.

        Args:
            messages: What is asked, as it goes out.
            model: A pydantic model, or a type that pydantic knows, such as a list of models.
            max_tokens: The most tokens of the reply.

        Raises:
            SchemaRefused: If outlines would not enforce all that the model's schema says.
            SchemaNotCompiled: If the server cannot compile it.
            EvaluationError: If this question has no usable reply: `ReplyTruncated` and `ReplyRunaway` of one that
                was cut, `ReplyInvalid` of one that a validator of the model refuses.
            JudgeError: If no question can be answered any more.
        """
        return _read(model, await self._text(messages, model, max_tokens))

    async def ask_json(self, messages: Sequence[Message], model: type[T], *, max_tokens: int = MAX_TOKENS) -> str:
        """The same reply as the text that was written, which is JSON and valid under the model; raises as `ask`."""
        text = await self._text(messages, model, max_tokens)
        _read(model, text)
        return text

    async def ask_text(self, messages: Sequence[Message], *, max_tokens: int = MAX_TOKENS) -> str:
        """The reply to a chat as free text: no schema is asked for, and nothing is enforced.

        Raises:
            EvaluationError: If this question has no usable reply; one that was cut is none.
            JudgeError: If no question can be answered any more.
        """
        question = Question(tuple(messages), decoding.FREE_TEXT, max_tokens=max_tokens)
        return _whole(question, await self._judge.ask(question))

    async def _text(self, messages: Sequence[Message], model: type[T], max_tokens: int) -> str:
        # Equal schemas are one: a server compiles it once, whoever asks under it.
        wanted = json.dumps(json_schema_of(model)), json.dumps(dict(self._narrowed))
        schema = _reply_schema(*wanted, by_provider=self._judge.is_hosted)
        question = Question(tuple(messages), schema, max_tokens=max_tokens)
        completion = await self._judge.ask(question)
        if not decoding.matches(schema, completion.text) and not self._judge.is_hosted:
            shorter = _brief_form(schema, "" if completion.text.isascii() else "…")
            if shorter is not None:
                # The same words again, of the same length: only the reply has less room to go on in.
                question = replace(question, schema=shorter)
                completion = await self._judge.ask(question)
        return _whole(question, completion)


def _whole(question: Question, completion: Completion) -> str:
    try:
        decoding.check_whole(question.schema, completion)
    except (ReplyTruncated, ReplyRunaway) as error:
        error.hint = CUT_HINT
        raise
    return completion.text


@lru_cache(maxsize=512)
def _reply_schema(wanted: str, narrowed: str, *, by_provider: bool) -> ReplySchema:
    """The schema that is sent for one that a caller's model has; both come as JSON, to be told apart.

    Raises:
        SchemaRefused: If there is none.
    """
    given: dict[str, JsonValue] = json.loads(wanted)
    made = enforceable(given, narrowed=json.loads(narrowed))
    if by_provider and made.get("type") != "object":
        msg = "$: hosted providers take an object alone at the root"
        raise SchemaRefused(msg, "Wrap it: a model with one field.")
    name = re.sub(r"\W", "_", str(given.get("title", "reply")), flags=re.ASCII)[:64]
    return ReplySchema(name, made, by_provider=by_provider)


@lru_cache(maxsize=512)
def _brief_form(schema: ReplySchema, cut: str) -> ReplySchema | None:
    made = brief(schema.json_schema, cut=cut)
    return None if made is None else ReplySchema(f"{schema.name[:58]}_brief", made)


def _read(model: type[T], text: str) -> T:
    try:
        return adapter_of(model).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "$"
        raise ReplyInvalid(getattr(model, "__name__", str(model)), f"{place}: {first['msg']}") from error
