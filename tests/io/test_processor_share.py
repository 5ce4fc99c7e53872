"""The share of the processors that --idle keeps to, with a clock that only sleeping and working advance."""

from __future__ import annotations

from random import Random

import pytest

from kdump import idle
from kdump.io import low_impact_reads, processor_share
from kdump.io.processor_share import AT_WORK, FREE, LOOK, SHARE, ProcessorShare, machine_time
from tests.conftest import few

CORES = 4


class Machine:
    """A machine on which this process and others work."""

    def __init__(self, others: float) -> None:
        self.now = self.own = self.rest = 0.0
        self.others = others
        """Part of all processors that others use."""

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        self.rest += seconds * self.others * CORES

    def work(self, seconds: float) -> None:
        self.own += seconds
        self.pass_by(seconds)

    def share(self) -> ProcessorShare:
        return ProcessorShare(
            CORES,
            clock=lambda: self.now,
            own=lambda: self.own,
            machine=lambda: self.own + self.rest,
            sleep=self.pass_by,
        )


@pytest.mark.parametrize("seed", few(range(20), 3))
def test_no_more_than_the_share_while_others_work(seed: int) -> None:
    """Whatever the pieces of work between two reads are."""
    random = Random(seed)
    machine = Machine(random.uniform(AT_WORK + 0.02, 1))
    share = machine.share()
    while machine.now < 1000:
        machine.work(random.expovariate(random.choice((10, 100, 1000))))
        share.wait()
    allowed = FREE + 1000 * CORES * SHARE
    assert allowed * 0.95 < machine.own < allowed * 1.05 + 0.5


def test_all_of_a_processor_while_others_do_nothing() -> None:
    machine = Machine(AT_WORK / 2)
    share = machine.share()
    for _ in range(10_000):
        machine.work(0.01)
        share.wait()
    assert machine.now < 100 + FREE + 2 * LOOK


def test_a_short_command_does_not_wait() -> None:
    machine = Machine(1.0)
    share = machine.share()
    machine.work(FREE)
    share.wait()
    assert machine.now == FREE


def test_others_that_begin_and_end_are_seen() -> None:
    machine = Machine(0.9)
    share = machine.share()
    machine.work(FREE + 100)  # which would have to wait for 2,500 s

    def pass_by(seconds: float) -> None:
        machine.pass_by(seconds)
        if machine.now > 200:
            machine.others = 0.0

    share._pause = pass_by
    share.wait()
    assert 200 < machine.now < 200 + 3 * LOOK
    share._pause = machine.pass_by
    machine.others, before, began = 0.9, machine.own, machine.now
    for _ in range(1000):
        machine.work(0.01)
        share.wait()
    assert machine.own - before == pytest.approx(10)
    assert machine.now - began == pytest.approx((10 - LOOK) / (CORES * SHARE), rel=0.2)


def test_a_system_that_does_not_say_what_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_share, "STAT", "/there/is/none")
    slept: list[float] = []
    machine = Machine(1.0)
    share = ProcessorShare(CORES, clock=lambda: machine.now, own=lambda: machine.own, sleep=slept.append)
    for _ in range(10):
        machine.work(10)
        share.wait()
    assert slept == []


def test_the_time_of_this_machine_passes() -> None:
    before = machine_time()
    while machine_time() == before:
        sum(range(10_000))
    assert machine_time() > before


def test_only_reads_with_idle_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[int] = []
    monkeypatch.setattr(ProcessorShare, "wait", lambda self: waited.append(1))
    low_impact_reads.before_read(1)
    assert waited == []
    monkeypatch.setattr(idle, "_is_idle", True)
    low_impact_reads.before_read(1)
    assert waited == [1]
