"""How fast and how much a judge may be asked: requests and tokens a minute, and what they may cost in all."""

import asyncio
from collections.abc import Awaitable, Callable

from airjudge.judge.settings import JudgeSettings
from airjudge.schema import Cost, Price, Question, Usage

BYTES_PER_TOKEN = 4
"""What providers themselves go by before they count; the reply says what it was."""

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[object]]


class Bucket:
    """A token bucket (a leaky bucket as a meter, ITU-T I.371): filled at a steady rate, a second's worth deep.

    So no stretch of time sees more than its share and that second's worth. What is taken beyond the level is
    a debt, which the next one waits for.
    """

    def __init__(self, per_minute: float, at: float) -> None:
        """Begin full, with room for one request at least; times are in seconds."""
        self._rate = per_minute / 60
        self._depth = max(1.0, self._rate)
        self._level, self._at = self._depth, at

    def take(self, amount: float, at: float) -> float:
        """Take an amount, and give the seconds to wait before it may be used."""
        self._fill(at)
        self._level -= amount
        return max(0.0, -self._level / self._rate)

    def give_back(self, amount: float, at: float) -> None:
        """Correct what was taken by what it turned out to be; a negative amount takes more."""
        self._fill(at)
        self._level = min(self._depth, self._level + amount)

    def _fill(self, at: float) -> None:
        self._level = min(self._depth, self._level + (at - self._at) * self._rate)
        self._at = at


class Allowance:
    """Holds requests back as long as a provider's limits want it, and knows when a run has cost enough."""

    def __init__(self, settings: JudgeSettings, *, clock: Clock | None = None, sleep: Sleep = asyncio.sleep) -> None:
        """Begin with full buckets; what earlier starts of a run have cost is told by `count`."""
        self._clock = clock or asyncio.get_running_loop().time
        self._sleep = sleep
        now, by_request, by_token = self._clock(), settings.requests_per_minute, settings.tokens_per_minute
        self._requests = None if by_request is None else Bucket(by_request, now)
        self._tokens = None if by_token is None else Bucket(by_token, now)
        self._price: Price | None = settings.price
        self._max_cost = settings.max_cost
        self._earlier = Usage()

    def count(self, earlier: Usage) -> None:
        """Count what was used before."""
        self._earlier = earlier

    async def turn(self, question: Question) -> float:
        """Wait until a question may be sent; give the tokens that it was taken to cost."""
        now, waits, estimate = self._clock(), [0.0], 0.0
        if self._requests:
            waits.append(self._requests.take(1, now))
        if self._tokens:
            estimate = estimated_tokens(question)
            waits.append(self._tokens.take(estimate, now))
        if max(waits) > 0:
            await self._sleep(max(waits))
        return estimate

    def used(self, estimate: float, usage: Usage) -> None:
        """Tell what a question that had its turn really cost."""
        if self._tokens:
            self._tokens.give_back(estimate - usage.prompt_tokens - usage.completion_tokens, self._clock())

    def cost(self, usage: Usage) -> Cost | None:
        """What the run has cost with a usage added; None without a price."""
        price = self._price
        return None if price is None else price.cost(self._earlier + usage)

    def is_spent(self, usage: Usage, *, n_open: int) -> bool:
        """Whether so many open requests, each at what one has cost on average, would cost more than allowed."""
        if self._max_cost is None or self._price is None:
            return False
        total = self._earlier + usage
        cost = self._price.cost(total)
        if cost is None:  # nobody told; the user was told that
            return False
        return cost.amount * (1 + n_open / max(1, total.requests)) > self._max_cost


def estimated_tokens(question: Question) -> float:
    """Tokens of a question and its longest reply, where nobody has the judge's tokenizer."""
    n_bytes = sum(len(one.content.encode("utf-8", "replace")) for one in question.messages)
    return n_bytes / BYTES_PER_TOKEN + question.max_tokens
