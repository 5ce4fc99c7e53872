"""How far a recovery is, and whether it moves: from files that are rewritten, and a /proc with the broker's threads.

docs/recovery-trials.json shows the same next to real recoveries (`shown`)."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from kdump.questions.restart_plan.recovery import recovery_progress as recovery
from kdump.questions.restart_plan.recovery.recovery_progress import (
    COUNTERS,
    CPU_TIME,
    ENDED,
    FILES,
    FIRST_LOOK,
    IDLE,
    LOADED,
    MOVING,
    STALLED,
    WAITING,
    RecoveryFollower,
    RecoveryProgress,
    broker_threads,
    follow_recovery,
    process_start,
)
from kdump.questions.restart_plan.recovery.recovery_work import directory_work
from tests.craft import write_file
from tests.questions.restart_plan.test_recovery_time import disk, segment

PROCESS = 4242
SIZE = 1 << 20
BEFORE, START, AFTER = 1_000, 2_000, 3_000
"""Times in seconds: of the files, of the broker's start, and of what it writes."""


class FakeProc:
    """A /proc with one process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.task = root / str(PROCESS) / "task"
        self.task.mkdir(parents=True)
        self.thread(1, "java")

    def thread(self, number: int, name: str, read: int | None = None, ticks: int = 0, state: str = "S") -> None:
        path = self.task / str(number)
        path.mkdir(exist_ok=True)
        fields = [state, *["0"] * 10, str(ticks), "0", *["0"] * 30]
        (path / "stat").write_text(f"{number} ({name[:15]}) {' '.join(fields)}\n")
        if read is not None:
            (path / "io").write_text(f"rchar: {read}\nwchar: 0\nread_bytes: 0\n")

    def end(self, *numbers: int) -> None:
        for number in numbers:
            shutil.rmtree(self.task / str(number))


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "proc")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Four logs of two segments each, all of which are recovered."""
    path = disk(tmp_path / "disk", {})
    for number in range(4):
        for base in (0, 100):
            segment(path / f"t-{number}", base, SIZE)
    for each in path.rglob("*"):
        os.utime(each, (BEFORE, BEFORE))
    return path


def follower(root: Path, proc: FakeProc | None) -> RecoveryFollower:
    work = directory_work(str(root))
    found = RecoveryFollower([work], START * 10**9, batch_size=10**12)
    if proc is not None:
        found.process, found.proc = PROCESS, str(proc.root)
    return found


def written(path: Path) -> None:
    path.touch()
    os.utime(path, (AFTER, AFTER))


def begin(log: Path, base: int) -> None:
    written(log / f"{base:020}.index")


def finish(log: Path) -> None:
    written(log / f"{200:020}.snapshot")


def path_of(root: Path, position: int) -> Path:
    return Path(directory_work(str(root)).logs[position].path)


def test_counters_move_inside_a_segment(root: Path, proc: FakeProc) -> None:
    looks = follower(root, proc)
    proc.thread(7, "log-recovery-/disk-0", read=SIZE // 2)
    begin(path_of(root, 0), 0)
    first = looks.look(100)
    assert (first.state, first.bytesDone, first.evidence) == (FIRST_LOOK, SIZE // 2, [FILES, COUNTERS])
    assert (first.bytesPerSecond, first.secondsLeft) == (None, None)
    proc.thread(7, "log-recovery-/disk-0", read=SIZE * 3 // 4)
    second = looks.look(110)
    assert (second.state, second.bytesDone, second.segmentsDone) == (MOVING, SIZE * 3 // 4, 0)
    assert second.bytesPerSecond == SIZE // 40
    assert second.secondsLeft is not None
    assert second.secondsLeft > 250
    assert [log.number for log in second.current] == [1]


def test_nothing_moves(root: Path, proc: FakeProc) -> None:
    looks = follower(root, proc)
    proc.thread(7, "log-recovery-/disk-0", read=SIZE, state="D")
    proc.thread(8, "log-recovery-/disk-1", read=5)
    begin(path_of(root, 0), 0)
    assert looks.look(100).state == FIRST_LOOK
    assert looks.look(101).state == FIRST_LOOK
    assert looks.look(100 + IDLE).state == STALLED
    proc.thread(8, "log-recovery-/disk-1", read=6, ticks=3)
    assert looks.look(200).state == MOVING
    quiet = looks.look(200 + IDLE - 1)
    assert (quiet.state, quiet.idleSeconds) == (MOVING, IDLE - 1)
    stalled = looks.look(200 + IDLE)
    assert (stalled.state, stalled.idleSeconds, stalled.threads, stalled.threadsWaiting) == (STALLED, IDLE, 2, 1)
    assert looks.look(300).secondsLeft is None


def test_after_a_pause_the_speed_is_that_since_then(root: Path, proc: FakeProc) -> None:
    looks = follower(root, proc)
    for now, read in ((100, 0), (101, SIZE // 2), (150, SIZE // 2 + 1), (160, SIZE * 3 // 2 + 1)):
        proc.thread(7, "log-recovery-/disk-0", read=read)
        found = looks.look(now)
    assert found.bytesPerSecond == SIZE // 10


def test_spinning_threads_do_not_move_if_their_counters_are_visible(root: Path, proc: FakeProc) -> None:
    looks = follower(root, proc)
    for now, ticks in ((100, 1), (120, 500), (100 + IDLE, 900)):
        proc.thread(7, "log-recovery-/disk-0", read=SIZE, ticks=ticks)
        begin(path_of(root, 0), 0)
        found = looks.look(now)
    assert found.state == STALLED


def test_without_permission_cpu_time_shows_that_it_moves(root: Path, proc: FakeProc) -> None:
    looks = follower(root, proc)
    begin(path_of(root, 0), 0)
    states = []
    for now, ticks in ((100, 1), (120, 500), (140, 900), (140 + IDLE, 900)):
        proc.thread(7, "log-recovery-/disk-0", ticks=ticks)
        found = looks.look(now)
        states.append(found.state)
        assert (found.evidence, found.bytesDone) == ([FILES, CPU_TIME], 0)
    assert states == [FIRST_LOOK, MOVING, MOVING, STALLED]


def test_files_alone(root: Path) -> None:
    looks = follower(root, None)
    logs = [path_of(root, number) for number in range(4)]
    assert looks.look(100).state == WAITING
    begin(logs[0], 0)
    found = looks.look(110)
    assert (found.state, found.segmentsDone, found.bytesDone, found.evidence) == (MOVING, 0, 0, [FILES])
    begin(logs[0], 100)
    found = looks.look(120)
    assert (found.segmentsDone, found.bytesDone, found.logsDone) == (1, SIZE, 0)
    finish(logs[0])
    found = looks.look(130)
    assert (found.segmentsDone, found.bytesDone, found.logsDone, found.current) == (2, 2 * SIZE, 1, [])
    for log in logs[1:]:
        begin(log, 0)
        begin(log, 100)
        finish(log)
    assert looks.look(140).state == LOADED


def test_files_from_before_the_start_do_not_count(root: Path, proc: FakeProc) -> None:
    """A recovery that was killed and began again: what the killed one had written is older than the broker."""
    looks = follower(root, proc)
    for path in root.rglob("*.index"):
        os.utime(path, (START - 1, START - 1))
    proc.thread(7, "log-recovery-/disk-0", read=0)
    found = looks.look(100)
    assert (found.segmentsDone, found.bytesDone, found.current) == (0, 0, [])


def test_waiting_then_loaded(root: Path, proc: FakeProc) -> None:
    looks = follower(root, proc)
    assert looks.look(100).state == WAITING
    assert looks.look(200).state == WAITING
    proc.thread(7, "log-recovery-/disk-0", read=8 * SIZE)
    looks.look(210)
    proc.end(7)
    found = looks.look(220)
    assert (found.state, found.logsDone, found.segmentsDone, found.bytesDone) == (LOADED, 4, 8, 8 * SIZE)
    assert found.secondsLeft == 0


def test_a_broker_that_had_loaded_before(root: Path, proc: FakeProc) -> None:
    proc.thread(9, "kafka-log-cleaner-thread-0", read=100)
    proc.thread(10, "pool-9-thread-1", read=100)
    assert follower(root, proc).look(100).state == LOADED


def test_threads_before_3_3_have_the_names_of_a_pool(root: Path, proc: FakeProc) -> None:
    proc.thread(10, "pool-3-thread-1", read=SIZE)
    found = follower(root, proc).look(100)
    assert (found.threads, found.bytesDone) == (1, SIZE)


def test_a_broker_that_exits(root: Path, proc: FakeProc) -> None:
    looks = follower(root, proc)
    proc.thread(7, "log-recovery-/disk-0", read=SIZE)
    looks.look(100)
    shutil.rmtree(proc.task)
    assert looks.look(110).state == ENDED


def test_what_is_read_of_headers_is_not_progress(root: Path, proc: FakeProc) -> None:
    """Of each batch, 17 bytes are read twice (FileLogInputStream)."""
    looks = follower(root, proc)
    looks.batch_size = 170
    proc.thread(7, "log-recovery-/disk-0", read=int(4 * SIZE * 1.1))
    assert looks.look(100).bytesDone == pytest.approx(4 * SIZE, rel=0.001)
    proc.thread(7, "log-recovery-/disk-0", read=100 * SIZE)
    assert looks.look(110).bytesDone == 8 * SIZE


def test_many_segments_need_few_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = disk(tmp_path / "disk", {})
    for base in range(0, 100_000, 100):
        segment(root / "t-0", base, 10, ("index",))
    for each in root.rglob("*"):
        os.utime(each, (BEFORE, BEFORE))
    for base in range(0, 70_000, 100):
        begin(root / "t-0", base)
    looks = follower(root, None)
    asked: list[str] = []
    real = os.stat

    def counted(path: str, **options: bool) -> os.stat_result:
        asked.append(str(path))
        return real(path, **options)

    monkeypatch.setattr(os, "stat", counted)
    assert looks.look(100).segmentsDone == 699
    assert len(asked) < 30


def test_many_logs_are_done_between_two_looks(tmp_path: Path) -> None:
    root = disk(tmp_path / "disk", {})
    for number in range(400):
        segment(root / f"t-{number}", 0, 10, ("index",))
    for each in root.rglob("*"):
        os.utime(each, (BEFORE, BEFORE))
    looks = follower(root, None)
    looks.look(100)
    logs = directory_work(str(root)).logs
    for log in logs[:300]:
        begin(Path(log.path), 0)
        finish(Path(log.path))
    found = looks.look(110)
    assert (found.logsDone, found.segmentsDone, found.current) == (300, 300, [])


def test_what_was_done_stays_done_when_the_broker_exits(root: Path, proc: FakeProc) -> None:
    looks = follower(root, proc)
    proc.thread(7, "log-recovery-/disk-0", read=5 * SIZE)
    assert looks.look(100).bytesDone == 5 * SIZE
    shutil.rmtree(proc.task)
    found = looks.look(110)
    assert (found.state, found.bytesDone) == (ENDED, 5 * SIZE)


def test_threads_with_any_name(proc: FakeProc) -> None:
    proc.thread(7, "log-recovery) R", read=5, ticks=2)
    proc.thread(8, "log-recovery-/d", read=6, ticks=3)
    (proc.task / "9").mkdir()
    write_file(proc.task / "10" / "stat", b"\xff\n")
    found = broker_threads(PROCESS, str(proc.root))
    assert (found.recovering, found.read, found.ticks) == (1, 6, 3)
    assert not broker_threads(1, str(proc.root)).alive


def test_when_a_process_started() -> None:
    """It is exact to a clock tick: a second too early, and files of before count."""
    began = process_start(os.getpid())
    assert began is not None
    assert 0 < time.time() - began / 1e9 < 36_000
    assert process_start(2**22 + 1) is None


def test_following_finds_a_broker_that_starts_later(
    root: Path, proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    holders = iter([None, None, PROCESS])
    monkeypatch.setattr(recovery, "lock_holder", lambda path: next(holders))
    monkeypatch.setattr(recovery, "process_start", lambda process: START * 10**9)
    slept: list[float] = []
    found: list[RecoveryProgress] = []
    for each in follow_recovery([directory_work(str(root))], 5, sleep=slept.append, proc=str(proc.root)):
        found.append(each)
        if len(found) == 3:
            proc.thread(7, "log-recovery-/disk-0", read=SIZE)
        if len(found) == 4:
            shutil.rmtree(proc.task)
    assert [each.state for each in found] == [WAITING, WAITING, WAITING, MOVING, ENDED]
    assert [each.process for each in found] == [None, None, PROCESS, PROCESS, PROCESS]
    assert slept == [1, 5, 5, 5]


def test_real_counters_of_threads(tmp_path: Path) -> None:
    """This process, with a thread that has such a name and reads a file."""
    path = write_file(tmp_path / "file", bytes(SIZE))
    begun, done = threading.Event(), threading.Event()

    def read() -> None:
        number = threading.get_native_id()
        Path(f"/proc/self/task/{number}/comm").write_text("log-recovery-/d")
        path.read_bytes()
        begun.set()
        done.wait(10)

    thread = threading.Thread(target=read)
    thread.start()
    begun.wait(10)
    found = broker_threads(os.getpid())
    done.set()
    thread.join()
    assert found.recovering == 1
    assert found.read is not None
    assert SIZE <= found.read < 2 * SIZE
