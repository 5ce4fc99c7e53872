"""Checks that records are checked ahead in threads where that pays, and that nothing else is read ahead."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdump.check.engine import records_ahead
from kdump.check.engine.batch_runs import BatchRunChecker
from kdump.check.engine.records_ahead import RUNS_PER_THREAD, checked_ahead
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import SegmentContext
from kdump.forensics.postmortem.run import postmortem
from kdump.log.errors import SourceError
from kdump.log.partition_directory import SegmentFiles
from kdump.log.paths import Target
from kdump.log.region import BatchRun, Region
from kdump.log.region_reader import CHECKED, regions
from tests import craft
from tests.command import run
from tests.conftest import window_of

THREADS = 3


def segment(codec: str, batches: int = 300) -> bytes:
    return b"".join(
        craft.batch([craft.record(0, b"k", b"value" * 50)], codec, offset=offset) for offset in range(batches)
    )


def found_in(data: bytes, taken: list[Region]) -> Iterator[Region]:
    """Yield the regions of a segment, read through a small window, and keep those that were asked for in `taken`."""
    for region in regions(window_of(data, 1000), run_mode=CHECKED):
        taken.append(region)
        yield region


def number(run: BatchRun, is_over: Callable[[], bool]) -> list[int]:
    return [run.position]


def test_runs_are_read_ahead_and_stay_in_order() -> None:
    taken: list[Region] = []
    most = 0
    given = []
    for region, suspects in checked_ahead(found_in(segment("zstd"), taken), number, THREADS):
        assert isinstance(region, BatchRun)
        assert suspects == [region.position]
        given.append(region)
        most = max(most, len(taken) - len(given))
    assert given == taken
    assert most == RUNS_PER_THREAD * THREADS


def test_other_regions_are_not_read_ahead() -> None:
    data = segment("zstd", 20)
    middle = len(data) // 2
    damaged = data[:middle] + bytes(8) + data[middle + 8 :]
    taken: list[Region] = []
    others = 0
    for region, suspects in checked_ahead(found_in(damaged, taken), number, THREADS):
        if not isinstance(region, BatchRun):
            assert suspects is None
            assert taken[-1] is region
            others += 1
    assert others


@pytest.mark.parametrize(("codec", "threads"), [("none", THREADS), ("zstd", 1)])
def test_no_thread_where_none_helps(codec: str, threads: int) -> None:
    before = set(threading.enumerate())
    for _, suspects in checked_ahead(found_in(segment(codec), []), number, threads):
        assert suspects is None
        assert set(threading.enumerate()) <= before


def test_an_error_in_a_thread_is_raised() -> None:
    def fails(run: BatchRun, is_over: Callable[[], bool]) -> list[int]:
        raise MemoryError

    with pytest.raises(MemoryError):
        list(checked_ahead(found_in(segment("zstd"), []), fails, THREADS))


def test_the_threads_end_with_the_generator() -> None:
    ahead = checked_ahead(found_in(segment("zstd"), []), number, THREADS)
    next(ahead)
    assert any(thread.name.startswith("records") for thread in threading.enumerate())
    ahead.close()  # type: ignore[attr-defined]
    for thread in threading.enumerate():
        if thread.name.startswith("records"):
            thread.join(10)
            assert not thread.is_alive()


def test_a_single_partition_is_checked_by_all_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the other units are the log directory's own files."""
    asked: list[int] = []
    original = records_ahead.checked_ahead

    def watched(found: Iterator[Region], suspects: object, threads: int) -> Iterator[object]:
        asked.append(threads)
        return original(found, suspects, threads)  # type: ignore[arg-type]

    monkeypatch.setattr("kdump.check.engine.partition_check.checked_ahead", watched)
    partition = tmp_path / "disk" / "orders-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020}.log").write_bytes(segment("zstd"))
    (tmp_path / "disk" / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    for path in (partition, tmp_path / "disk"):
        for options, threads in ((["--jobs", "4"], 4), ([], 1), (["--jobs", "4", "--crc"], 1)):
            asked.clear()
            run("verify", path, *options)
            assert asked == [threads]
    asked.clear()
    postmortem(str(tmp_path / "disk"), jobs=4)
    assert asked == [4]


def test_what_was_read_before_an_error_is_checked_first() -> None:
    def fails(data: bytes) -> Iterator[Region]:
        yield from found_in(data, [])
        raise SourceError("the device is gone")

    data = segment("zstd")
    for threads in (1, THREADS):
        given: list[Region] = []
        with pytest.raises(SourceError):
            given.extend(region for region, _ in checked_ahead(fails(data), number, threads))
        assert sum(region.size for region in given) == len(data)


def test_a_thread_stops_once_its_result_is_no_longer_needed() -> None:
    begun, stopped = threading.Event(), threading.Event()

    def slow(run: BatchRun, is_over: Callable[[], bool]) -> list[int]:
        begun.set()
        while not is_over():
            stopped.wait(0.001)
        stopped.set()
        return []

    def endless() -> Iterator[Region]:
        yield from found_in(segment("zstd"), [])
        assert begun.wait(10)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(checked_ahead(endless(), slow, 100))
    assert stopped.wait(10)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_suspects_of_a_run(codec: str) -> None:
    """All of them, whatever the number of batches examined at a time; none after the result is no longer needed."""
    bad = {0, 15, 16, 17, 50, 99}
    data = b"".join(
        craft.batch([craft.record(0, b"k", b"v", attributes=number in bad)], codec, offset=number)
        for number in range(100)
    )
    (run,) = regions(window_of(data), run_mode=CHECKED)
    assert isinstance(run, BatchRun)
    part = SegmentContext(SegmentFiles("", 0), Target("", None, None, None), True, False, 0, len(data))
    checker = BatchRunChecker(part, PartitionContext(), [], 1 << 20, decode=True, deep=True)
    assert checker.record_suspects(run) == sorted(bad)
    assert checker.record_suspects(run, lambda: True) == []
