"""The token bucket, with a clock that only its own sleeping advances."""

from __future__ import annotations

import multiprocessing
from typing import Any

import pytest

from kdump.io.token_bucket import BURST, TokenBucket
from tests.each_case import each_case


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize("size", [1, 100, 4096, 100_000])
def test_bytes_take_their_time(clock: Clock, size: int) -> None:
    rate = TokenBucket(1000, clock=clock, sleep=clock.sleep)
    count = 100_000 // size
    for _ in range(count):
        rate.take(size)
    assert clock.now == pytest.approx(1000 + count * size / 1000 - BURST)


def test_a_burst_is_free_and_a_long_pause_earns_no_more(clock: Clock) -> None:
    rate = TokenBucket(1000, clock=clock, sleep=clock.sleep)
    for _ in range(3):
        before = clock.now
        rate.take(int(1000 * BURST))
        assert clock.now == before
        rate.take(100)
        assert clock.now == pytest.approx(before + 0.1)
        clock.now += 3600


def test_time_that_was_spent_otherwise_counts(clock: Clock) -> None:
    rate = TokenBucket(1000, clock=clock, sleep=clock.sleep)
    rate.take(1000)
    for _ in range(10):
        clock.now += 0.1
        before = clock.now
        rate.take(100)
        assert clock.now == pytest.approx(before)


@each_case("per_second", [0, -1])
def test_no_rate(per_second: int) -> None:
    with pytest.raises(ValueError, match="bytes per second"):
        TokenBucket(per_second)


def stopped() -> float:
    return 1000.0


def skip(_seconds: float) -> None:
    pass


def take_some(rate: TokenBucket) -> None:
    for _ in range(50):
        rate.take(100)


@each_case("method", multiprocessing.get_all_start_methods())
def test_processes_share_one_bucket(method: str) -> None:
    """The next process waits for the bytes that all of them have read."""
    context: Any = multiprocessing.get_context(method)
    waited: list[float] = []
    rate = TokenBucket(1000, context, clock=stopped, sleep=skip)
    workers = [context.Process(target=take_some, args=(rate,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    rate._sleep = waited.append
    rate.take(100)
    assert waited == [pytest.approx((2 * 50 + 1) * 0.1 - BURST)]
