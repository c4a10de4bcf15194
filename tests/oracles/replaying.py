"""A judge that says what a test dictates, to whoever asks and under whatever response format.

It is the stub, so airjudge's own proofs pass (version, the probe by `json_object`, canary, warm-up) and its
questions on single statements are ruled on as the stub rules. Any other question, an original's or
ours, under `json_object`, a schema or nothing, gets the next of the test's replies as it stands.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple

from aiohttp import web

from airjudge import decoding, prompts
from tests.stub import Fault, RecordedRequest, Stub, StubConfig
from tests.stub.faults import Call, Twist, chat

PROBE = "Reply with {}"
WARM_UP = "One. Two. Three."
OWN_SCHEMAS = {one.name for one in (*decoding.ALL_SCHEMAS, *decoding.OBJECT_FORMS.values())} - {"classifications"}
"""Schemas of airjudge's questions that no original asks: on one statement, for a reason, for claims."""


class Reply(NamedTuple):
    """A reply as it goes out; `finish_reason` `length` is one that was cut."""

    text: str
    finish_reason: str = "stop"


Script = Sequence[str | Reply] | Callable[[Mapping[str, object]], str | Reply]
"""Replies in the order of questions, or what is said to a request's body."""


class Replay:
    """The replies of one test; `stub` has its faults, its configuration and all requests."""

    def __init__(self, stub: Stub) -> None:
        """Take a running stub over."""
        self.stub = stub
        self.reset()

    @property
    def base_url(self) -> str:
        """The address for clients, originals and ours."""
        return self.stub.base_url

    @property
    def api_key(self) -> str:
        """The key that it wants."""
        return self.stub.api_key or ""

    @property
    def model(self) -> str:
        """The name of the served model."""
        return self.stub.model

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which airjudge and OpenAI's client find it."""
        return {
            "AIRJUDGE_BASE_URL": self.base_url,
            "AIRJUDGE_MODEL": self.model,
            "AIRJUDGE_API_KEY": self.api_key,
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_API_KEY": self.api_key,
        }

    @property
    def replies(self) -> Script:
        """What is said; after the last reply of a sequence, that one again. Setting it starts at the first."""
        return self._replies

    @replies.setter
    def replies(self, replies: Script) -> None:
        self._replies, self._n_said = replies, 0

    @property
    def asked(self) -> list[RecordedRequest]:
        """The questions that were answered by a reply of the test, in order; proofs are not among them."""
        return [one for one in self.stub.chats if is_scripted(one)]

    def reset(self) -> None:
        """Forget replies, requests, faults and changes of the configuration."""
        self.replies = ()
        for one in fields(StubConfig):
            setattr(self.stub.config, one.name, getattr(StubConfig(), one.name))
        self.stub.clear()
        self.stub.faults[:] = [Fault(self._say, when=is_scripted)]

    def before_reply(self, fault: Fault) -> None:
        """Let a fault act first, on the requests that it applies to."""
        self.stub.faults.insert(0, fault)

    async def _say(self, call: Call) -> web.StreamResponse:
        reply = self._next(call.record.body)
        text, reason = reply if isinstance(reply, Reply) else Reply(reply)
        return await call.reply(Twist(say=text, enforce=False, finish_reason=reason))

    def _next(self, body: Mapping[str, object]) -> str | Reply:
        if callable(self._replies):
            return self._replies(body)
        assert self._replies, "the test has not set replay.replies"
        self._n_said += 1
        return self._replies[min(self._n_said, len(self._replies)) - 1]


def is_scripted(request: RecordedRequest) -> bool:
    """Say whether a request is a metric's question rather than one of airjudge's proofs or its completion."""
    return chat(request) and request.schema_name not in OWN_SCHEMAS and not _is_proof(request)


def _is_proof(request: RecordedRequest) -> bool:
    return request.text in {PROBE, prompts.FREE} or WARM_UP in request.text
