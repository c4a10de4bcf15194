"""A hosted judge: any provider behind an OpenAI-compatible API, asked by standard fields alone.

Providers differ in the fields that they take. A form says which of them are sent; it begins with all, and the
proof before a run takes away what the provider refuses (`judge.hosted`).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import JsonValue

from airjudge.backends.faults import may_pass
from airjudge.backends.http import HttpFault, HttpSession, parse_address
from airjudge.backends.vllm import CHECK_TIMEOUT_S, Connection, response_format, wire_messages
from airjudge.backends.wire import ChatCompletion, read_reply
from airjudge.errors import JudgeForeign, JudgeUnauthorized, JudgeUnreachable, PromptTooLong, RequestTimeout
from airjudge.schema import Completion, Message, Question

MOST_LOGPROBS: Final = 20
"""OpenAI's own limit of `top_logprobs`."""
FEWER_LOGPROBS: Final = 5
"""A limit of others."""
THINKING_TOKENS: Final = 4096
"""Room for what a model writes before its reply, if it does."""
OPTIONAL: Final[Mapping[str, tuple[str, ...]]] = {
    "response_format": ("response_format",),
    "logprobs": ("logprobs", "top_logprobs"),
    "seed": ("seed",),
    "temperature": ("temperature",),
}
"""What a form may leave out, each with the fields of a request that go with it."""

_NAMED = re.compile(
    r"(?<!\w)(max_completion_tokens|max_tokens|top_logprobs|logprobs|response_format|json_schema|structured outputs?"
    r"|seed|temperature)(?!\w)",
    re.IGNORECASE,
)
_TOO_SHORT = re.compile(r"higher max_tokens|output limit was reached", re.IGNORECASE)
_VERSIONED = re.compile(r"/v\d\w*(/|$)")


@dataclass(frozen=True, slots=True)
class HostedForm:
    """What a request looks like to one provider and model.

    `left_out` are keys of `OPTIONAL`; `length_field` is how the reply's limit is called; `thinking_tokens` is
    added to that limit, where a model thinks before it replies.
    """

    left_out: frozenset[str] = frozenset()
    length_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    thinking_tokens: int = 0
    most_logprobs: int = MOST_LOGPROBS

    def without(self, name: str) -> "HostedForm":
        """The form that leaves out one thing more."""
        return replace(self, left_out=self.left_out | {name})


def hosted_body(question: Question, *, model: str, form: HostedForm | None = None) -> dict[str, JsonValue]:
    """The body of a request to `/v1/chat/completions`, also as a line of a batch file holds it.

    Args:
        question: In its object form, from `prompts.as_object`.
        model: The provider's name of the model.
        form: What the provider takes; all standard fields if it is not known.
    """
    form = form or HostedForm()
    body: dict[str, JsonValue] = {
        "model": model,
        "messages": wire_messages(question.messages),
        **response_format(question.schema),
        form.length_field: question.max_tokens + form.thinking_tokens,
        "temperature": question.sampling.temperature or 0,
        "seed": question.sampling.seed,
    }
    if question.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": min(question.top_logprobs, form.most_logprobs)}
    for name in form.left_out:
        for field in OPTIONAL[name]:
            body.pop(field, None)
    return body


def without_refused(form: HostedForm, words: str) -> HostedForm | None:
    """The form without what a provider's refusal names first; None if it names nothing that is sent.

    "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead." names two: the first one is
    what is refused.
    """
    if _TOO_SHORT.search(words):
        return None if form.thinking_tokens else replace(form, thinking_tokens=THINKING_TOKENS)
    found = _NAMED.search(words)
    name = found[1].lower() if found else ""
    if name.startswith("max_"):
        return replace(form, length_field="max_tokens") if form.length_field != "max_tokens" else None
    if name == "top_logprobs" and form.most_logprobs > FEWER_LOGPROBS:
        return replace(form, most_logprobs=FEWER_LOGPROBS)
    group = {"top_logprobs": "logprobs", "logprobs": "logprobs", "seed": "seed", "temperature": "temperature"}
    left_out = group.get(name, "response_format" if name else "")
    return form.without(left_out) if left_out and left_out not in form.left_out else None


def one_less(form: HostedForm) -> Iterator[HostedForm]:
    """Forms that leave out one thing more each, for a refusal that names nothing."""
    return (form.without(name) for name in OPTIONAL if name not in form.left_out)


class HostedBackend:
    """Asks one provider for one model; must be entered before use, in the event loop that uses it."""

    def __init__(self, connection: Connection, *, model: str) -> None:
        """Read the address; nothing is contacted.

        Raises:
            InputError: If the base URL is not one.
            JudgeRemote: If it is an address outside and remote ones are not allowed.
        """
        self.connection, self.model = connection, model
        self.form = HostedForm()
        address = parse_address(connection.base_url, allow_remote=connection.allow_remote)
        told = connection.base_url.strip().rstrip("/").removesuffix("/chat/completions")
        self.bases = [told] if _VERSIONED.search(urlsplit(told).path) else [address.base_url, told]
        """Where the API may be, most likely first: providers hide it behind /v1, /v1beta/openai or nothing."""
        self._http = HttpSession(address, api_key=connection.api_key, allow_remote=connection.allow_remote)

    async def __aenter__(self) -> Self:
        """Open the connection pool."""
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection pool."""
        await self._http.__aexit__(kind, error, trace)

    @property
    def root(self) -> str:
        """The provider's address: two that share it are one."""
        return self._http.address.root

    @property
    def host(self) -> str:
        """The provider's name, with its port if it has one."""
        return urlsplit(self.root).netloc

    async def ask(self, question: Question) -> Completion:
        """Ask a question in its object form, once.

        Raises:
            Fault: As `backends.faults` tells them apart.
        """
        body = json.dumps(hosted_body(question, model=self.model, form=self.form), ensure_ascii=False)
        url = f"{self.bases[0]}/chat/completions"
        raw = await self._http.post(url, body.encode("utf-8", "replace"), timeout_s=self.connection.timeout_s)
        return read_reply(ChatCompletion, raw, url).completion()

    async def check_there(self) -> None:
        """Ask whether the provider answers at all; what it says to a request without a question does not matter.

        Raises:
            JudgeUnreachable: If it does not.
        """
        url = f"{self.bases[0]}/models"
        try:
            await self._http.get(url, timeout_s=CHECK_TIMEOUT_S)
        except (JudgeForeign, JudgeUnauthorized):
            return
        except HttpFault as fault:
            if may_pass(fault) and fault.status != 429:
                msg = f"{url} fails: {fault}"
                raise JudgeUnreachable(msg, "Look at the provider's status page.") from fault
        except RequestTimeout as error:
            msg = f"{url} accepts connections and does not answer: {error}"
            raise JudgeUnreachable(msg, "Look at the provider's status page.") from error

    async def n_waiting(self) -> float | None:
        """How many requests wait there: providers do not say."""
        return None

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of a chat: providers do not count before they are asked.

        Raises:
            HttpFault: Always.
        """
        raise HttpFault(404, f"{self.host} does not count the tokens of {len(messages)} messages")

    async def too_long(self, _question: Question, words: str) -> PromptTooLong:
        """What an over-length refusal amounts to, with the numbers that its words give."""
        count = re.search(r"resulted in (\d+)|requested (\d+)|(\d+) tokens >", words)
        limit = re.search(r"context length is (\d+)|> (\d+) maximum", words)
        return PromptTooLong(*(int(next(filter(None, one.groups()))) if one else None for one in (count, limit)))
