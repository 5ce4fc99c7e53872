"""`kdump restart-plan --estimate` and `--follow` on the command line."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from array import array
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kdump.all_answers import TYPES
from kdump.questions.restart_plan import command as recovery
from kdump.questions.restart_plan.recovery import recovery_time
from kdump.questions.restart_plan.recovery.read_speed import MEASURED, ReadSpeed
from kdump.questions.restart_plan.recovery.recovery_progress import (
    COUNTERS,
    CPU_TIME,
    ENDED,
    FILES,
    FIRST_LOOK,
    LOADED,
    MOVING,
    STALLED,
    WAITING,
    CurrentLog,
    RecoveryProgress,
    follow_recovery,
)
from kdump.questions.restart_plan.recovery.recovery_time import RecoveryQuery, estimate
from kdump.questions.restart_plan.recovery.recovery_work import DirectoryWork, LogWork, recovery_works
from kdump.questions.restart_plan.recovery.report import (
    PAUSE,
    WORDS,
    RecoveryProgressReport,
    RecoveryTimeReport,
    estimate_text,
    head_lines,
    progress_text,
    rough_duration,
    short_line,
)
from kdump.render.stdout import Output
from tests import command
from tests.conftest import FIXTURES
from tests.damages import copy_disk

run = partial(command.run, "restart-plan")
refused = partial(command.refused, "restart-plan")
objects = partial(command.objects, "restart-plan", types=TYPES)
BEFORE = 1_700_000_000
SPEED = ReadSpeed(100_000_000, MEASURED)


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    disk = copy_disk(FIXTURES / "clean-2", tmp_path / "broker-2")
    (disk / ".kafka_cleanshutdown").unlink()
    for path in disk.rglob("*"):
        os.utime(path, (BEFORE, BEFORE))
    return disk


def large(logs: int, monkeypatch: pytest.MonkeyPatch, size: int = 40 << 20) -> DirectoryWork:
    """Return a directory whose logs need not be there; the disk delivers 100 MB/s."""
    monkeypatch.setattr(recovery_time, "measure", lambda paths, streams: SPEED)
    work = DirectoryWork("/kafka/logs", clean=False)
    for number in range(logs):
        of_log = size * (number % 5)
        sizes = array("q", [of_log] if of_log else [])
        path = f"/kafka/logs/orders-{number}"
        bases = array("q", [0] * len(sizes))
        work.logs.append(LogWork("orders", number, path, work.path, number + 1, 1, bases, sizes))
    return work


def report(work: DirectoryWork, width: int | None, query: RecoveryQuery, *, full: bool = False) -> str:
    out = io.BytesIO()

    class Captured(Output):
        def _out(self, data: bytes | memoryview) -> None:
            out.write(data)

        @property
        def width(self) -> int | None:
            return width

    output = Captured("never")
    sink = RecoveryTimeReport(output, full=full)
    whole = estimate([work], query)
    for log in work.logs:
        sink.add(log)
    sink.add(whole)
    sink.end()
    output.flush()
    return out.getvalue().decode()


def test_the_estimate_in_json(crashed: Path) -> None:
    log, whole = objects(crashed, "--estimate")
    assert (log["type"], log["number"], log["recovered"], log["bytes"]) == ("recoveryLog", 1, 1, 1118)
    assert (whole["type"], whole["unclean"], whole["segments"]) == ("recoveryTime", [str(crashed)], 1)
    assert whole["secondsLeast"] <= whole["seconds"] <= whole["secondsMost"] < 10
    assert (whole["readSpeed"], whole["readSpeedFrom"]) == (125_000_000, "assumed")
    assert [each["threads"] for each in whole["otherThreads"]] == [1, 4, 8, 16]


def test_what_is_given_counts(crashed: Path) -> None:
    whole = objects(crashed, "--estimate", "--read-speed", "1k/s", "--recovery-threads", "3")[-1]
    assert (whole["threads"], whole["threadsFrom"], whole["readSpeed"], whole["readSpeedFrom"]) == (
        3,
        "option",
        1024,
        "option",
    )
    slow = objects(crashed, "--estimate", "--read-speed", "10/s")[-1]
    assert slow["seconds"] == pytest.approx((1118 - slow["cachedBytes"]) / 10, abs=1.5)
    assert objects(crashed, "--estimate", "--kafka-version", "3.9")[-1]["threads"] == 1


def test_the_plan_has_a_line_about_time(crashed: Path) -> None:
    text = run(crashed).stdout
    assert "how long it takes\n  less than 10 s until 1 log is loaded\n" in text
    kinds = [each["type"] for each in objects(crashed)]
    assert kinds == ["restartPartition"] * 2 + ["restartDirectory", "recoveryTime", "restartPlan"]
    for arguments in ([FIXTURES / "clean-2"], [crashed, "--topic", "ledger"]):
        assert "how long" not in run(*arguments).stdout
        assert not any(each["type"] == "recoveryTime" for each in objects(*arguments))


def test_a_clean_shutdown() -> None:
    result = run(FIXTURES / "clean-2", "--estimate")
    assert result.exit_code == 0
    assert "nothing is recovered: 1 log after a clean shutdown" in result.stdout


def test_what_cannot_be_read(crashed: Path) -> None:
    (crashed / "recovery-point-offset-checkpoint").write_text("0\n1\nledger 0\n")
    result = run(crashed, "--estimate")
    assert result.exit_code == 2
    assert "not read: " in result.stdout
    assert result.stderr == ""
    assert "recovery-point-offset-checkpoint" in run(crashed, "--estimate", "--json").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--estimate", "--follow"], "choose one of --estimate and --follow"),
        (["--estimate", "--topic", "ledger"], "--estimate and --follow are about all topics"),
        (["--follow", "--interval", "0"], "--interval"),
        (["--estimate", "--recovery-threads", "0"], "--recovery-threads"),
        (["--estimate", "--read-speed", "fast"], "is not a rate"),
        (["--interval", "3"], "--interval needs --follow"),
    ],
)
def test_usage_errors(crashed: Path, arguments: list[str], message: str) -> None:
    assert message in refused(crashed, *arguments)


@pytest.mark.parametrize("width", [80, 200, None])
def test_three_thousand_logs(width: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,200 MB per 15 logs: the disk, which was measured, takes 2,500 s and more for them."""
    text = report(large(3000, monkeypatch), width, RecoveryQuery(threads=2))
    lines = text.splitlines()
    assert all(len(line) <= (width or 300) for line in lines)
    joined = " ".join(text.split())
    assert "about 42 min (" in joined
    assert "3,000 logs are loaded: 2,400 segments of 2,400 logs are read, 234.4 GiB" in joined
    assert "95.4 MiB/s (measured now)" in joined
    assert "with 2 threads per log directory (as given)" in joined
    assert "with another number of threads: 1: about " in joined
    assert re.search(r"\(50%\): 1,[45]\d\d of 3,000; loading orders-1[45]\d\d \(number 1,[45]\d\d, ", joined)
    assert "2,990 more logs (--full)" in text


def test_full_shows_every_log_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    text = report(large(50, monkeypatch), None, RecoveryQuery(), full=True)
    assert re.findall(r"^orders-(\d+) +(\d+)", text, re.M) == [(str(number), str(number + 1)) for number in range(50)]


def test_an_assumed_speed_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    work = large(100, monkeypatch)
    monkeypatch.setattr(recovery_time, "measure", lambda paths, streams: ReadSpeed(125_000_000, "assumed"))
    whole = estimate([work], RecoveryQuery())
    assert "assumed: it could not be measured; --read-speed sets it" in report(work, None, RecoveryQuery())
    assert "if the disk delivers 119.2 MiB/s (assumed; see --read-speed)" in short_line(whole)
    assert "--follow whether a running recovery moves" in short_line(whole)
    assert whole.secondsMost > 5 * whole.secondsLeast
    assert re.fullmatch(r"about .+ \(.+ to .+\)", estimate_text(whole))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3, "less than 10 s"),
        (42, "about 40 s"),
        (58, "about 1 min"),
        (71, "about 1 min 10 s"),
        (1234, "about 21 min"),
        (9000, "about 2 h 30 min"),
    ],
)
def test_rough_durations(seconds: float, text: str) -> None:
    assert rough_duration(seconds) == text


# --- --follow ---


def progress(state: str, **fields: Any) -> RecoveryProgress:
    return RecoveryProgress(
        1_795_522_786_845,
        state,
        4242,
        3000,
        42,
        3210,
        51,
        42 << 30,
        13 << 30,
        120 << 20,
        250.0,
        0.0,
        [FILES, COUNTERS],
        2,
        0,
        [CurrentLog("/kafka/logs/orders-17", 43, 1 << 30)],
    )._replace(**fields)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            progress(MOVING),
            ": 42 of 3,000 logs, 51 of 3,210 segments, 30% of 42.0 GiB; 120.0 MiB/s; about 4 min 10 s left, until "
            "12:23Z; now orders-17 (number 43, 1.0 GiB)",
        ),
        (
            progress(MOVING, evidence=[FILES, CPU_TIME], bytesPerSecond=0, secondsLeft=None),
            ": 42 of 3,000 logs, 51 of 3,210 segments, at least 30% of 42.0 GiB; now orders-17 (number 43, 1.0 GiB)",
        ),
        (
            progress(MOVING, idleSeconds=12.3, secondsLeft=20.0, current=[]),
            " for 12 s: 42 of 3,000 logs, 51 of 3,210 segments, 30% of 42.0 GiB",
        ),
        (
            progress(STALLED, idleSeconds=95.0, secondsLeft=None, threadsWaiting=2),
            " for 1 min 35 s: 42 of 3,000 logs, 51 of 3,210 segments, 30% of 42.0 GiB; neither its files nor what its "
            "threads have read; 2 threads wait for the disk: see dmesg; jcmd 4242 Thread.print shows where its threads "
            "are; now orders-17 (number 43, 1.0 GiB)",
        ),
        (progress(LOADED, current=[]), ": 42 of 3,000 logs, 51 of 3,210 segments, 30% of 42.0 GiB"),
        (
            progress(ENDED, current=[]),
            ": 42 of 3,000 logs, 51 of 3,210 segments, 30% of 42.0 GiB; see the end of its log, and kdump restart-plan "
            "for the next startup",
        ),
        (
            progress(WAITING),
            ": no recovery has begun; the broker loads its logs once it has read the cluster's metadata",
        ),
        (progress(WAITING, process=None), ": no recovery has begun; no process holds the lock of these directories"),
    ],
)
def test_lines_of_progress(answer: RecoveryProgress, text: str) -> None:
    assert progress_text(answer) == text


def test_the_head_says_what_is_seen() -> None:
    (line,) = head_lines(progress(MOVING))
    assert line.startswith("process 4242: 3,000 logs, 3,210 segments to recover, 42.0 GiB; if it is killed")
    assert "run kdump as root or as the broker's user" in list(head_lines(progress(MOVING, evidence=[CPU_TIME])))[1]
    assert "no process is known" in next(head_lines(progress(MOVING, process=None)))


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[RecoveryProgress]:
    """What a recovery shows, in place of a real one."""
    answers: list[RecoveryProgress] = []
    monkeypatch.setattr(recovery, "follow_recovery", lambda works, interval: iter(answers))
    return answers


def test_following_prints_a_line_each_time(crashed: Path, followed: list[RecoveryProgress]) -> None:
    followed += [progress(FIRST_LOOK), progress(FIRST_LOOK, idleSeconds=1.0), progress(MOVING), progress(LOADED)]
    result = run(crashed, "--follow")
    assert result.exit_code == 0
    head, *lines = result.stdout.splitlines()
    assert head.startswith("process 4242: ")
    assert [re.match(r"12:19:46Z  ([A-Z ]+(?:for 1 s)?): ", line)[1] for line in lines] == [  # type: ignore[index]
        "FIRST LOOK",
        "NO MOVEMENT for 1 s",
        "MOVING",
        "LOADED",
    ]


def test_following_in_json(crashed: Path, followed: list[RecoveryProgress]) -> None:
    followed += [progress(MOVING), progress(ENDED)]
    first, last = objects(crashed, "--follow", status=1)
    assert (first["state"], last["state"]) == (MOVING, ENDED)
    assert first["current"] == [{"path": "/kafka/logs/orders-17", "number": 43, "bytes": 1 << 30}]


def test_following_needs_disks(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    assert command.run("bundle", FIXTURES / "clean-2", "--out", bundle).exit_code == 0
    assert "--follow needs the broker's own disks, not a bundle" in refused(bundle, "--follow")
    assert run(bundle, "--estimate").exit_code == 0


@pytest.mark.parametrize("state", WORDS)
@pytest.mark.parametrize("idle", [0.0, 8.0])
def test_every_state_on_a_terminal(state: str, idle: float, capfdbinary: Any) -> None:
    RecoveryProgressReport(Output("always")).add(progress(state, idleSeconds=idle))
    text = re.sub(r"\x1b\[[0-9;]*m", "", capfdbinary.readouterr().out.decode())
    assert f"12:19:46Z  {PAUSE if idle and state in (MOVING, FIRST_LOOK) else WORDS[state]}" in text


def test_a_terminal_gets_wrapped_lines(monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> None:
    monkeypatch.setattr(Output, "width", 80)
    sink = RecoveryProgressReport(Output("always"))
    sink.add(progress(STALLED, idleSeconds=40.0, current=[CurrentLog("/logs/a\x1b[2Jb-0", 1, 5)]))
    text = capfdbinary.readouterr().out.decode()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert all(len(line) <= 80 for line in plain.splitlines())
    assert "\x1b[2J" not in text
    assert text != plain


HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""


def test_a_process_that_holds_the_lock_and_exits(crashed: Path) -> None:
    """It is not waited for: a process that has ended stays in /proc until its parent has asked for its status."""
    arguments = [sys.executable, "-c", HOLDER, str(crashed / ".lock")]
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    found = []
    for each in follow_recovery(recovery_works([str(crashed)]), 0.05):
        found.append(each)
        if len(found) == 2:
            process.stdin.close()
        assert len(found) < 200
    process.wait(10)
    assert {each.state for each in found[:-1]} == {WAITING}
    assert found[-1].state == ENDED
    assert {each.process for each in found} == {process.pid}
