"""What the stub's vLLM does once a request is in: prompt cost, decoding, reply bodies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from tests.stub import replies
from tests.stub.answers import Answer, Probability, overlap_judge
from tests.stub.decoder import (
    Decoded,
    Grammar,
    SchemaRefused,
    Wish,
    decode,
    free_grammar,
    object_grammar,
    schema_grammar,
)
from tests.stub.faults import Twist
from tests.stub.prompt_tokens import Messages, PrefixCache, chat_pieces, pieces, token_ids
from tests.stub.replies import Body, PromptCost, ReplyMessage

Received = Mapping[str, object]

MAX_LOGPROBS = 20
"""vLLM's default for the most `top_logprobs` that a request may ask for."""

NOT_PLAYED = ("stream", "tools", "structured_outputs", "logprob_token_ids")
"""Fields that change a reply of vLLM's and that the stub would have to ignore."""


@dataclass
class StubConfig:
    """How the stub behaves; may be changed while it runs.

    `backend` is what enforces schemas; `none` drops the field with HTTP 200, as old servers and
    proxies do. `probability` gives P(label 1); without it an answer of 1 has .9, of 0 has .1.
    `twin_share`, at most .5, is the part of a label's probability that its second token id takes. `shows_cached_tokens`
    is vLLM's --enable-prompt-tokens-details. `places` bounds the chats that run at once, as vLLM's batch does:
    the others wait, and /metrics says how many. `prefix` is a path in front of all routes, as gateways have.
    """

    model: str = "judge"
    other_models: tuple[str, ...] = ()
    api_key: str | None = "stub-key"
    version: str = "0.32.0"
    backend: Literal["outlines", "xgrammar", "none"] = "outlines"
    max_model_len: int = 8192
    latency_s: float = 0.0
    places: int | None = None
    answer: Answer = overlap_judge
    probability: Probability | None = None
    twin_share: float = 0.0
    block_tokens: int = 16
    shows_cached_tokens: bool = True
    prefix: str = ""
    port: int = 0


class Refusal(Exception):
    """A request that the server answers with an error."""

    def __init__(self, status: int, body: Body) -> None:
        """Keep the status and the whole body."""
        super().__init__(status, body)
        self.status, self.body = status, body


def refusal(status: int, message: str, kind: str = "BadRequestError", *, param: str | None = None) -> Refusal:
    """Build a refusal in the form that vLLM gives its errors."""
    return Refusal(status, replies.error_body(message, status, kind, param=param))


@dataclass(frozen=True, slots=True)
class Admission:
    """A prompt as the scheduler sees it on arrival, before others that are open have ended."""

    messages: Messages
    n_tokens: int
    blocks: Sequence[int]
    cached_tokens: int


class Engine:
    """A model that says what its configuration wants, under the schema of the request."""

    def __init__(self, config: StubConfig) -> None:
        """Start with an empty prefix cache."""
        self.config = config
        self.prompt_tokens = self.cached_tokens = self.generated_tokens = self.succeeded = 0
        self._cache = PrefixCache(config.block_tokens)

    def models(self) -> Body:
        """Reply to /v1/models."""
        return replies.model_list((self.config.model, *self.config.other_models), self.config.max_model_len)

    def tokenize(self, body: Received) -> Body:
        """Reply to /tokenize.

        Raises:
            Refusal: If the model is not served or the body has neither prompt nor messages.
        """
        self._check_model(body)
        prompt = body.get("prompt")
        tokens = pieces(prompt) if isinstance(prompt, str) else chat_pieces(_messages(body))
        counts = {"count": len(tokens), "max_model_len": self.config.max_model_len}
        return {**counts, "tokens": token_ids(tokens), "token_strs": None}

    def admit(self, body: Received) -> Admission:
        """Look a prompt up in the cache as it is now.

        Raises:
            Refusal: If the body has no messages.
        """
        messages = _messages(body)
        tokens = chat_pieces(messages)
        blocks = self._cache.blocks(tokens, str(body.get("cache_salt") or ""))
        return Admission(messages, len(tokens), blocks, self._cache.cached_tokens(blocks, len(tokens)))

    def chat(self, body: Received, prompt: Admission, twist: Twist) -> Body:
        """Reply to /v1/chat/completions.

        Raises:
            Refusal: If vLLM, or this imitation of it, would not answer.
        """
        self._check_model(body)
        _check_played(body)
        top = _top_logprobs(body)
        grammar = self._grammar(body) if twist.enforce else free_grammar()
        made, message = self._decode(grammar, prompt, twist=twist, limit=self._limit(body, prompt))
        cost = self._charge(prompt, made)
        found = replies.completion(self.config.model, self.config.version, message=message, cost=cost, made=made)
        if top is not None:
            cast("list[Body]", found["choices"])[0]["logprobs"] = replies.logprobs(made, top)
        return found

    def _decode(self, grammar: Grammar, prompt: Admission, *, twist: Twist, limit: int) -> tuple[Decoded, ReplyMessage]:
        if twist.say is None:
            made = decode(self._wish(prompt.messages, twist), grammar, limit)
            return made, ReplyMessage(made.text, twist.finish_reason or made.finish_reason)
        made = decode(Wish(twist.say), free_grammar(), len(twist.say.encode()) + 1)
        reason = twist.finish_reason or "stop"
        if twist.say_in == "content":
            return made, ReplyMessage(twist.say, reason)
        return made, ReplyMessage(None, reason, **{twist.say_in: twist.say})

    def _wish(self, messages: Messages, twist: Twist) -> Wish:
        text = self.config.answer(messages) if twist.wish is None else twist.wish
        yes = {"1": 0.9, "0": 0.1}.get(text.strip())
        if self.config.probability is not None and twist.wish is None:
            yes = self.config.probability(messages)
        return Wish(text, yes, self.config.twin_share)

    def _limit(self, body: Received, prompt: Admission) -> int:
        """Give the most tokens that a reply may have; vLLM cuts it to what the context leaves."""
        room = self.config.max_model_len - prompt.n_tokens
        if room <= 0:
            message = replies.over_length_message(prompt.n_tokens, self.config.max_model_len)
            raise refusal(400, message, param="input_tokens")
        asked = body.get("max_completion_tokens", body.get("max_tokens"))
        return min(asked, room) if isinstance(asked, int) else room

    def _charge(self, prompt: Admission, made: Decoded) -> PromptCost:
        self._cache.add(prompt.blocks)
        self.prompt_tokens += prompt.n_tokens
        self.cached_tokens += prompt.cached_tokens
        self.generated_tokens += len(made.steps)
        self.succeeded += 1
        return PromptCost(prompt.n_tokens, prompt.cached_tokens if self.config.shows_cached_tokens else None)

    def _check_model(self, body: Received) -> None:
        name = body.get("model")
        if name and name not in (self.config.model, *self.config.other_models):
            raise refusal(404, f"The model `{name}` does not exist.", "NotFoundError", param="model")

    def _grammar(self, body: Received) -> Grammar:
        wanted = body.get("response_format")
        kind = wanted.get("type") if isinstance(wanted, dict) else None
        if self.config.backend == "none" or not isinstance(wanted, dict) or kind == "text":
            return free_grammar()
        if kind == "json_object":
            if self.config.backend == "outlines":
                raise refusal(400, replies.JSON_OBJECT_REFUSED)
            return object_grammar()
        inner = wanted.get("json_schema")
        schema = inner.get("schema") if isinstance(inner, dict) else None
        if kind != "json_schema" or not isinstance(schema, dict):
            raise refusal(400, f"response_format of type {kind!r} without a schema")
        try:
            return schema_grammar(schema)
        except SchemaRefused as error:
            raise refusal(400, f"Failed to transform json schema into a regex: {error}") from error


def _messages(body: Received) -> Messages:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        raise refusal(400, "messages must be a list of chat messages", param="messages")
    return messages


def _check_played(body: Received) -> None:
    asked = [name for name in NOT_PLAYED if body.get(name)]
    if asked or body.get("n", 1) != 1:
        raise refusal(400, f"the stub does not play {', '.join(asked) or 'n'}")


def _top_logprobs(body: Received) -> int | None:
    """Give how many alternatives each token is to have; None without logprobs."""
    top = body.get("top_logprobs") or 0
    if not body.get("logprobs"):
        if top:
            raise refusal(400, "when using `top_logprobs`, `logprobs` must be set to true.", param="top_logprobs")
        return None
    if not isinstance(top, int) or not 0 <= top <= MAX_LOGPROBS:
        message = f"Requested sample logprobs of {top}, which is greater than max allowed: {MAX_LOGPROBS}"
        raise refusal(400, message)
    return top
