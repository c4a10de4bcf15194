"""How fast and for how much a judge is asked, by a clock that the tests move."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge import JudgeSettings
from airjudge.decoding import VERDICT
from airjudge.judge.allowance import Allowance, Bucket, estimated_tokens
from airjudge.schema import Message, Price, Question, Usage


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def question(n_bytes: int, max_tokens: int = 1) -> Question:
    return Question((Message("user", "x" * n_bytes),), VERDICT, max_tokens=max_tokens)


def test_requests_of_a_slow_allowance_stand_the_same_time_apart() -> None:
    # Thirty a minute: one at once, and from then on one each two seconds, each behind those before it.
    bucket = Bucket(30, 0.0)
    assert [bucket.take(1, 0.0) for _ in range(4)] == [0, 2, 4, 6]
    assert bucket.take(1, 100.0) == 0
    assert bucket.take(1, 100.0) == 2


def test_a_bucket_is_a_second_deep_however_long_nothing_was_taken() -> None:
    # 600 a minute are 10 a second: after an hour ten go at once, the eleventh a tenth of a second later.
    bucket = Bucket(600, 0.0)
    assert [bucket.take(1, 3600.0) for _ in range(12)] == pytest.approx([0] * 10 + [0.1, 0.2])


@given(st.floats(1, 10_000), st.lists(st.tuples(st.floats(0, 5), st.floats(0, 500)), min_size=1, max_size=60))
def test_no_stretch_of_time_sees_more_than_its_share_and_a_seconds_worth(
    per_minute: float, taken: list[tuple[float, float]]
) -> None:
    bucket, at, used = Bucket(per_minute, 0.0), 0.0, []
    for pause, amount in taken:
        at += pause
        used.append((at + bucket.take(amount, at), amount))
    for first, (start, _) in enumerate(used):
        for last in range(first, len(used)):
            # What was used up to `end` was waited for, so it is bounded by the rate, the depth and nothing else.
            total = sum(amount for _, amount in used[first : last + 1])
            share = (used[last][0] - start) * per_minute / 60
            first_amount = used[first][1]
            assert total <= share + max(1.0, per_minute / 60) + first_amount + 1e-6 * (1 + total)


async def test_a_minute_of_requests_takes_a_minute() -> None:
    clock = Clock()
    allowance = Allowance(JudgeSettings(requests_per_minute=60), clock=clock, sleep=clock.sleep)
    for _ in range(61):
        await allowance.turn(question(10))
    assert clock.now == pytest.approx(60)


async def test_tokens_are_taken_as_estimated_and_corrected_by_what_the_reply_says() -> None:
    # 6000 a minute are 100 a second. 400 bytes are 100 tokens, with one of reply 101: a debt of one.
    clock = Clock()
    allowance = Allowance(JudgeSettings(tokens_per_minute=6000), clock=clock, sleep=clock.sleep)
    estimate = await allowance.turn(question(400))
    assert estimate == 101
    assert clock.now == pytest.approx(0.01)
    # It was 301 in truth: 200 more are owed, and then the 101 of the next one.
    allowance.used(estimate, Usage(requests=1, prompt_tokens=300, completion_tokens=1))
    await allowance.turn(question(400))
    assert clock.now == pytest.approx(0.01 + 3.01)


async def test_without_limits_nobody_waits() -> None:
    clock = Clock()
    allowance = Allowance(JudgeSettings(), clock=clock, sleep=clock.sleep)
    assert [await allowance.turn(question(4000)) for _ in range(1000)] == [0] * 1000
    assert clock.now == 0


def test_bytes_and_the_longest_reply_make_the_estimate() -> None:
    # "é" has two bytes: 8 bytes are 2 tokens.
    asked = Question((Message("system", "éé"), Message("user", "abcd")), VERDICT, max_tokens=33)
    assert estimated_tokens(asked) == 35


async def test_a_budget_is_spent_when_those_in_flight_would_go_beyond_it() -> None:
    # A request of 1000 and 10 tokens costs 1000 * 2 + 10 * 10 = 2100 millionths.
    settings = JudgeSettings(price=Price(input=2, output=10), max_cost=0.0105)
    allowance = Allowance(settings)
    used = Usage(requests=3, prompt_tokens=3000, completion_tokens=30)
    assert not allowance.is_spent(used, n_open=2)
    assert allowance.is_spent(used, n_open=3)
    allowance.count(used)
    assert allowance.is_spent(used, n_open=0)
    assert allowance.cost(used) == Price(input=2, output=10).cost(used + used)


def test_requests_without_told_tokens_have_no_known_cost() -> None:
    assert Price(input=2, output=10).cost(Usage(requests=3)) is None
    nothing = Price(input=2, output=10).cost(Usage())
    assert nothing is not None
    assert nothing.amount == 0


def test_a_limit_of_cost_needs_a_price() -> None:
    with pytest.raises(ValueError, match="price"):
        JudgeSettings(max_cost=1)
