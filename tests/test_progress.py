"""The line that shows progress: what it says, and that nothing else is mixed with it."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from kdump import status_line, streams
from kdump.cluster.metadata_files import metadata_files
from kdump.cluster.metadata_log import replay_metadata
from kdump.command_line.expected_size import compared_bytes, segment_bytes
from kdump.io import low_impact_reads
from kdump.io.run import Run
from kdump.io.shared_counter import STEP, FromWorker, SharedCounter, result_of
from kdump.io.token_bucket import TokenBucket
from kdump.io.work_progress import WorkProgress
from kdump.questions.restart_plan.run import restart_plan
from kdump.questions.salvage.run import salvage
from kdump.render import progress
from kdump.render.progress import Progress
from kdump.spark.task_runner import TaskReading, task_reading
from kdump.status_line import CLEAR, StatusLine
from tests.conftest import FIXTURES, ROOT
from tests.craft import batch, record, write_file
from tests.io.test_token_bucket import Clock, stopped

MIB = 1 << 20


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(progress, "STATUS", StatusLine(-1, found))
    return found


def test_with_a_total(clock: Clock) -> None:
    with Progress("verify") as shown:
        shown.expect(200 * MIB)
        clock.now += 2
        assert shown.text(79) == "verify  ───────────────────  0%  0 bytes of 200.0 MiB  2 s"
        shown.more(50 * MIB)
        assert shown.text(79) == "verify  ━━━━───────────────  25%  50.0 MiB of 200.0 MiB  25.0 MiB/s  6 s left"
        assert shown.text(60) == "verify  25%  50.0 MiB of 200.0 MiB  25.0 MiB/s  6 s left"
        assert shown.text(40) == "…50.0 MiB of 200.0 MiB  25.0 MiB/s  6 s left"[-39:].rjust(40, "…")


def test_without_a_total(clock: Clock) -> None:
    with Progress("salvage") as shown:
        clock.now += 61
        assert shown.text(79) == "salvage  1 min 1 s"
        shown.more(61 * MIB)
        assert shown.text(79) == "salvage  61.0 MiB  1.0 MiB/s  1 min 1 s"
        shown.expect(60 * MIB)
        assert shown.text(79) == "salvage  61.0 MiB  1.0 MiB/s  1 min 1 s", "a file has grown"
        shown.show("drawing")
        assert shown.text(79) == "salvage: drawing …"


def test_a_long_name_keeps_its_end(clock: Clock) -> None:
    with Progress(f"/a\x1b/{'b' * 60}/payments-0/{0:020}.log") as shown:
        clock.now += 3
        shown.at(3 * MIB, 6 * MIB)
        assert shown.text(79) == f"…nts-0/{0:020}.log  50%  3.0 MiB of 6.0 MiB  1.0 MiB/s  3 s left"
        assert "\x1b" not in shown.text(300)


def test_only_for_a_person_who_waits(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The total is not even computed before."""
    asked: list[None] = []
    shown: list[str] = []

    def expected() -> int:
        asked.append(None)
        return 4 * MIB

    line = StatusLine(-1, clock)
    monkeypatch.setattr(line, "show", shown.append)
    monkeypatch.setattr(progress, "STATUS", line)
    monkeypatch.setattr(progress, "PERIOD", 3600.0)
    monkeypatch.setattr(progress, "is_enabled", lambda: True)
    with Progress("outer"), Progress("stats", expected=expected) as inner:
        clock.now += progress.PATIENCE / 2
        inner.more(MIB)
        progress.tick()
        assert (asked, shown) == ([], [])
        clock.now += progress.PATIENCE / 2
        inner.more(MIB)
        inner.more(MIB)
        progress.tick()
        assert (len(asked), len(shown)) == (1, 1)
        assert "3.0 MiB of 4.0 MiB" in shown[0]
        with Progress(""):  # following a file
            progress.tick()
        assert shown[1:] == [""]
        line.quiet_since = clock.now  # a row was written
        progress.tick()
        assert len(shown) == 2
    clock.now += 10
    progress.tick()
    assert len(shown) == 2


def test_not_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not progress.is_enabled()
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert progress.is_enabled()
    monkeypatch.setenv("TERM", "dumb")
    assert not progress.is_enabled()


class Terminal:
    """A terminal: everything that is written to it through `line` and `stream`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.master, self.slave = pty.openpty()
        self.clock = Clock()
        self.line = StatusLine(self.slave, self.clock)
        monkeypatch.setattr(streams, "STATUS", self.line)
        self.stream = streams.Lossy(self.slave)
        self.is_in_front = True
        monkeypatch.setattr(status_line, "_is_in_foreground", lambda fd: self.is_in_front)

    def seen(self) -> bytes:
        os.write(self.slave, b"\0")
        found = b""
        while not found.endswith(b"\0"):
            found += os.read(self.master, 4096)
        return found[:-1]


def test_other_output_takes_the_place_of_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    terminal.line.show("10%")
    terminal.line.show("10%")
    assert terminal.seen() == CLEAR + b"10%"
    terminal.clock.now += 5
    terminal.stream.write(b"a row\n")
    assert terminal.seen() == CLEAR + b"a row\r\n"
    assert terminal.line.quiet_since == terminal.clock.now
    terminal.line.show("20%")
    terminal.line.show("")
    terminal.line.clear()
    assert terminal.seen() == CLEAR + b"20%" + CLEAR
    terminal.stream.write(b"half a row")
    terminal.line.show("30%")
    assert terminal.seen() == b"half a row"
    terminal.stream.write(b", the rest\n")
    terminal.is_in_front = False
    terminal.line.show("40%")
    assert terminal.seen() == b", the rest\r\n"


def test_no_line_while_a_reader_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """`| less` shows a page on the terminal, and reads on when the user scrolls."""
    terminal = Terminal(monkeypatch)
    reader, writer = os.pipe()
    written: list[bytes] = []

    def full(self: Any, data: Any) -> None:
        other = threading.Thread(target=lambda: terminal.line.show("10%"))
        other.start()
        other.join()
        written.append(terminal.seen())

    monkeypatch.setattr(streams.Lossy, "_write_all", full)
    try:
        streams.Lossy(writer).write(b"a page\n")
    finally:
        monkeypatch.undo()
        os.close(reader)
        os.close(writer)
    assert written == [b""]


CHILD = """
import threading
from kdump.io import source
from kdump.io.source import FileSource
from kdump.render import progress
from kdump.status_line import StatusLine
shown = threading.Event()
show, pread = StatusLine.show, FileSource._pread
def shows(self, text):
    show(self, text)
    if "%" in text:
        shown.set()
def reads(self, count, position):
    if position:
        assert shown.wait(60)
    return pread(self, count, position)
StatusLine.show, FileSource._pread = shows, reads
progress.PATIENCE, progress.PERIOD = 0.0, 0.001
source.SMALL = 0
from kdump.cli import main
main()
"""


def test_a_search_without_a_match_on_a_terminal() -> None:
    """The progress of `inspect --key` is seen, and cleared before the last message."""
    log = FIXTURES / "clean-1" / "orders-none-0" / f"{0:020}.log"
    master, slave = pty.openpty()
    command = [sys.executable, "-c", CHILD, "inspect", str(log), "--window", "8k", "--key", "no such key"]
    with subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"TERM": "xterm"}, stdout=slave, stderr=slave, stdin=slave
    ) as process:
        os.close(slave)
        seen = b""
        try:
            while part := os.read(master, 4096):
                seen += part
        except OSError:  # the other end is closed
            pass
    text = seen.decode()
    assert process.returncode == 1, text
    assert f"{0:020}.log  " in text
    assert "% " in text
    assert text.endswith("\r\x1b[Kkdump: nothing matches in 1 file, 5 batches\r\n")


class Context:
    """Stands for a multiprocessing context."""

    class Value:
        def __init__(self, code: str, value: float) -> None:
            self.value = value
            self.lock = threading.Lock()

        def get_lock(self) -> Any:
            return self.lock


def test_what_workers_read_counts_before_they_are_done() -> None:
    context: Any = Context()
    counter = SharedCounter(context)
    future: Future[FromWorker[str]] = Future()
    counter.add(STEP - 1)
    met: list[int] = []

    def read(count: int) -> None:
        met.append(count)
        if len(met) == 1:
            counter.add(1)
        elif len(met) == 2:
            counter.add(7)
            counter.flush()
            future.set_result(("done", {}))

    assert result_of(future, counter, Run(more=read)) == "done"
    assert met == [0, STEP, 7]


def test_workers_share_the_limit_of_their_process(monkeypatch: pytest.MonkeyPatch) -> None:
    context: Any = Context()
    monkeypatch.setattr(low_impact_reads, "_rate", None)
    assert low_impact_reads.rate_for_workers(context) is None
    waited: list[float] = []
    low_impact_reads.limit_rate(TokenBucket(1000, clock=stopped, sleep=waited.append))
    low_impact_reads.before_read(1250)
    shared = low_impact_reads.rate_for_workers(context)
    assert shared is not None
    assert shared is low_impact_reads.rate_for_workers(context), "it is already shared"
    shared.take(500)  # a worker
    low_impact_reads.before_read(500)
    assert waited == pytest.approx([1.0, 1.5, 2.0])


def test_tasks_divide_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_impact_reads, "_rate", None)
    assert task_reading(4)[:2] == (None, False)
    with low_impact_reads.limited_to(1000):
        each = task_reading(4)
        assert each[:2] == (250, False)
    assert low_impact_reads.max_rate() is None
    became: list[None] = []
    monkeypatch.setattr("kdump.spark.task_runner.be_idle", lambda: became.append(None))
    each._replace(idle=True).apply()
    assert (low_impact_reads.max_rate(), len(became)) == (250, 1)
    rate = low_impact_reads._rate
    each.apply()
    assert low_impact_reads._rate is rate, "a task of the same process goes on with the limit of the one before"
    TaskReading(None, False, ({}, ""), ()).apply()
    assert low_impact_reads.max_rate() is None


def test_expected_sizes(tmp_path: Path) -> None:
    for path, size in {"a/x-0": 10, "a/x-1": 20, "a/y-0": 40, "b/x-0": 100, "b/z-0": 200}.items():
        write_file(tmp_path / path / f"{0:020}.log", bytes(size))
        (tmp_path / path / f"{0:020}.index").write_bytes(bytes(1000))
    one, other = str(tmp_path / "a"), str(tmp_path / "b")

    def every(topic: str) -> bool:
        return True

    assert segment_bytes([one, other, "-", "memory://x", f"{other}/nothing"], every) == 370
    assert segment_bytes([one], lambda topic: topic == "x") == 30
    assert segment_bytes([f"{one}/x-0/{0:020}.log"], every) == 10
    assert compared_bytes([one, other], every) == 110
    assert compared_bytes([f"{one}/x-1", f"{other}/z-0", f"{other}/x-0"], every) == 2 * 320


def test_what_need_not_be_read_counts_at_the_end() -> None:
    counted: list[int] = []
    work = WorkProgress(100, Run(more=counted.append))
    for count in (30, 0, 50, 40, 7):
        work.more(count)
    assert counted == [30, 50, 20], "never more than the total"
    work = WorkProgress(100, Run(more=counted.append))
    work.end()
    assert counted[3:] == [100]


def test_the_total_of_a_salvage(tmp_path: Path) -> None:
    """Each copy is read once, and compared with each other copy before."""
    disk = FIXTURES / "clean-1"
    size = segment_bytes([str(disk / "payments-0")], lambda topic: True)
    for number, replicas in enumerate(((), (str(copytree(disk / "payments-0", tmp_path / "other" / "payments-0")),))):
        totals: list[int] = []
        counted: list[int] = []
        out = str(tmp_path / f"out{number}")
        source = str(disk / "payments-0")
        salvage(source, out, replicas=replicas, options=Run(more=counted.append, expect=totals.append))
        assert totals == [size if not replicas else 4 * size]
        assert sum(counted) == totals[0]


def test_the_passes_of_a_salvage_of_batches_out_of_order(tmp_path: Path) -> None:
    log = tmp_path / "orders-0" / f"{0:020}.log"
    log.parent.mkdir()
    value = record(value=b"v" * 20)
    parts = [batch(value, offset=offset, count=1) for offset in range(50)]
    parts[20], parts[30] = parts[30], parts[20]
    log.write_bytes(b"".join(parts))
    passes: list[tuple[str, int, list[int]]] = []

    @contextmanager
    def on_pass(what: str, size: int) -> Iterator[Callable[[int], None]]:
        passes.append((what, size, []))
        yield passes[-1][2].append

    counted: list[int] = []
    salvage(str(log.parent), str(tmp_path / "out"), options=Run(more=counted.append), on_pass=on_pass)
    size = log.stat().st_size
    assert sum(counted) == size
    assert [(what, of, sum(each)) for what, of, each in passes] == [
        ("orders-0: 2nd pass", size, size),
        ("orders-0: 3rd pass", size, size),
    ]


@pytest.mark.parametrize("is_clean", [True, False])
def test_the_total_of_a_restart_plan(is_clean: bool, tmp_path: Path) -> None:
    disk = copytree(FIXTURES / "state-1", tmp_path / "disk")
    if is_clean:
        (disk / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":19}')
    counted: list[int] = []
    metadata: list[tuple[int, int | None]] = []
    restart_plan([str(disk)], Run(more=counted.append, at=lambda *each: metadata.append(each)))
    assert sum(counted) == segment_bytes([str(disk)], lambda topic: True)
    assert metadata == sorted(metadata)
    assert metadata[-1][0] == metadata[-1][1] != 0


def test_the_total_of_a_metadata_replay() -> None:
    for path in sorted(FIXTURES.glob("*/__cluster_metadata-0")):
        seen: list[tuple[int, int | None]] = []
        replay_metadata(metadata_files(str(path)), run=Run(at=lambda *each: seen.append(each)))  # noqa: B023
        assert seen[-1][0] == seen[-1][1] != 0, path
        assert seen == sorted(seen), path
