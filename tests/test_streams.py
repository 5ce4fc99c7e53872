"""The exit status depends on the disk, and neither on standard output or standard error, nor on signals."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bench.segments import repeat
from kdump.cli import COMMANDS, command_of
from kdump.io.bundle.names import MANIFEST
from kdump.log.output_directory import PASSING
from tests import craft
from tests.conftest import FIXTURES, ROOT, few, sample, segment
from tests.streams import CLOSED, FULL, GONE, OPEN, Ended, Run, ended
from tests.test_typos import of_paths

SPARK = ("scan", "query")
"""Commands that take seconds: only their help and wrong use are tried."""
PAYMENTS = FIXTURES / "clean-1/payments-0"
LOG = str(segment("clean-1/payments-0"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, ...]]]:
    """For each command, a run without findings, and one with another exit status if there is one; then further runs,
    and slow ones. OUT is a new path."""
    place = tmp_path_factory.mktemp("damaged")
    shutil.copytree(FIXTURES / "clean-2", place / "disk")
    log = place / "disk/ledger-0" / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    bad, missing, good = str(place / "disk"), str(place / "missing"), str(PAYMENTS)
    both = [(good,), (missing, good)]
    return dict.fromkeys(of_paths(), both) | {
        "doctor": [(str(FIXTURES / "clean-2"),), (bad,), (missing,)],
        "inspect": [*both, ("--records", "--json", good), ("--records", missing, good), ("--hex", good)],
        "browse": [(missing,)],
        "schema": [("BatchHeader",), ("nothing",), ()],
        "verify": [(good,), (bad,), (bad, "--json"), (missing,), (bad, "--quiet"), ("--list",)],
        "find": [("key ~ 'k'", good), ("'x' in any", bad, "--json"), ("key ==", good), ("isControl", missing)],
        "explain": [("crc-mismatch", "--disk", good), ("record-corrupt", "--disk", bad), (missing,), ("--list",)],
        "diff": [(good, good), (bad, str(FIXTURES / "clean-2")), (good, missing)],
        "connect": [(str(FIXTURES / "connect-1"),), (missing,)],
        "registry": [(str(FIXTURES / "registry-1"),), (missing,)],
        "groups": [(str(FIXTURES / "disk-1"),), (missing,)],
        "cluster": [(str(FIXTURES / "disk-1"),), (missing,)],
        "retention": [(good,), (missing,), (bad,)],
        "space": [("--help",), (missing,), (str(FIXTURES / "clean-2"), str(FIXTURES / "disk-1"), missing)],
        "restart-plan": [(str(FIXTURES / "clean-2"),), (bad,), (missing,)],
        "rescue": [(str(FIXTURES / "disk-1"), "--out", "OUT"), (missing, "--dry-run"), (good,)],
        "salvage": [(good, "--out", "OUT"), (bad, "--out", "OUT"), (missing, "--out", "OUT")],
        "reindex": [(good, "--out", "OUT"), (bad, "--out", "OUT"), (missing,)],
        "carve": [(LOG, "--out", "OUT"), ("/dev/null",), (missing,)],
        "report": [(missing, "--out", "OUT/page.html"), (), (good, "--out", "OUT/page.html")],
        "bundle": [(str(FIXTURES / "clean-2"), "--out", "OUT"), (missing, "--out", "OUT")],
        "dump-log": [("--files", LOG), ("--files", missing)],
        "export": [(good, "--out", "OUT"), (missing, "--out", "OUT"), ()],
        "restore": [("--help",), (good,)],
        "completion": [("bash",), ("nonsense",)],
        **{name: [("--help",), ()] for name in SPARK},
    }


def test_of_each_command(runs: dict[str, list[tuple[str, ...]]]) -> None:
    assert set(runs) == set(COMMANDS)


def files_below(directory: Path) -> dict[str, bytes]:
    """Return the contents of files by path; of a page, and of the manifest of a bundle, which contain the current time,
    only that they exist."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.suffix != ".html" and path.name != MANIFEST else b""
        for path in directory.rglob("*")
        if path.is_file()
    }


PLAIN = (OPEN, OPEN)
STATES = [(CLOSED, OPEN), (FULL, OPEN), (GONE, OPEN), (OPEN, CLOSED)]
MORE_STATES = [(CLOSED, CLOSED), (OPEN, FULL), (OPEN, GONE), (FULL, FULL), (GONE, GONE)]
SECONDS = re.compile(rb'"seconds":[0-9.]+')


@pytest.mark.every_disk
@pytest.mark.parametrize("most", [1, *(pytest.param(most, marks=pytest.mark.every_disk) for most in (2, 99))])
def test_streams_decide_nothing(runs: dict[str, list[tuple[str, ...]]], most: int, tmp_path: Path) -> None:
    """Every command that ends with both streams open also ends with them in any other state: with the same exit status,
    the same files, and the same bytes in the stream that is open. In make test, each command has one such state."""
    others = [[state] for state in STATES] if most == 1 else [[*STATES, *(MORE_STATES if most > 2 else ())]]
    asked = [
        Run((command, *arguments), stdout, stderr)
        for turn, (command, many) in enumerate(runs.items())
        for arguments in (many if most > 2 else many[most - 1 : most])
        for stdout, stderr in [PLAIN, *others[turn % len(others)]]
    ]
    each = 1 + len(others[0])
    outs = [tmp_path / f"{number:05}" for number in range(len(asked))]
    found = ended([run.writing_to(str(out)) for run, out in zip(asked, outs)], tmp_path)
    for number, (run, end) in enumerate(zip(asked, found)):
        first = number - number % each
        plain = found[first]
        printed, said = ended_alike(end, outs[number], outs[first])
        leaves = run.stdout == GONE and not command_of(run.arguments[0]).to_the_end
        assert b"Traceback" not in end.stderr, run
        assert end.status == plain.status or (leaves and end.status == 0), run
        assert files_below(outs[number]) == files_below(outs[first]), run
        reports = run.stderr == OPEN and run.stdout in (CLOSED, FULL) and plain.stdout != b""
        assert said.count(b"kdump: standard output: ") == reports, run
        if run.stdout == OPEN:
            assert printed == ended_alike(plain, outs[first], outs[first])[0], run
        if run.stderr == OPEN and not leaves:
            said = b"".join(line for line in said.splitlines(True) if b"standard output: " not in line)
            assert said == plain.stderr, run


def ended_alike(end: Ended, out: Path, first: Path) -> tuple[bytes, bytes]:
    """Return the output of a run as if it had the output path of the first run, and without durations."""
    printed, said = (text.replace(bytes(out), bytes(first)) for text in (end.stdout, end.stderr))
    return SECONDS.sub(b"", printed), said


@pytest.mark.every_disk
def test_a_pipe_gets_the_same_bytes(runs: dict[str, list[tuple[str, ...]]], tmp_path: Path) -> None:
    """The duration does not matter: one run is normal, the other has an hour between any two readings of the clock."""
    asked = [
        Run((command, *arguments), jumps=jumps)
        for command, many in runs.items()
        for arguments in many[:2]
        if "--json" not in arguments
        for jumps in (False, True)
    ]
    outs = [tmp_path / f"{number:05}" for number in range(len(asked))]
    found = ended([run.writing_to(str(out)) for run, out in zip(asked, outs)], tmp_path)
    for number in range(0, len(asked), 2):
        one, other = found[number], found[number + 1]
        printed, said = ended_alike(other, outs[number + 1], outs[number])
        assert (one.status, one.stdout, one.stderr) == (other.status, printed, said), asked[number]


@pytest.mark.every_disk
def test_a_table_of_many_rows_is_laid_out_once(tmp_path: Path) -> None:
    """A wide row that comes late is taken into account for the widths, if it is among the first hundred."""
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(b"".join(craft.one(b"x" * (200 if number == 60 else 1), number) for number in range(90)))
    slow, quick = ended([Run(("inspect", str(log), "--records"), jumps=jumps) for jumps in (True, False)], tmp_path)
    assert slow.stdout == quick.stdout
    assert len(slow.stdout.splitlines()) == 91


@pytest.mark.parametrize("states", [(">&-", ""), (">/dev/full", ""), ("", "2>&-"), (">&-", "2>&-")], ids="".join)
def test_as_a_shell_does_it(states: tuple[str, str], tmp_path: Path) -> None:
    """Streams are closed or full before the process starts; no file that it opens gets the number of a closed
    stream."""
    command = f"{sys.executable} -m kdump salvage {PAYMENTS} --out {tmp_path}/out {' '.join(states)}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    kept = [path.read_bytes() for path in sorted((tmp_path / "out/payments-0").glob("*.log"))]
    assert b"".join(kept) == Path(LOG).read_bytes()


def test_rows_come_as_they_are_found(tmp_path: Path) -> None:
    """This also applies to a pipe, and without PYTHONUNBUFFERED."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "kdump", "inspect", LOG, "--records", "--json", "--last", "1", "--follow"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert select.select([run.stdout], [], [], 30)[0]
        assert run.stdout.readline().startswith(b"{")
        run.terminate()


WRITERS = {
    "rescue": (str(FIXTURES / "disk-1"), "--quiet", "--out", "OUT"),
    "salvage": (str(FIXTURES / "clean-2"), "--out", "OUT"),
    "reindex": (str(FIXTURES / "clean-2"), "--out", "OUT"),
    "carve": (LOG, "--out", "OUT"),
    "export": (str(FIXTURES / "clean-2"), "--out", "OUT"),
    "bundle": (str(FIXTURES / "clean-2"), "--quiet", "--out", "OUT"),
    "report": (str(PAYMENTS), "--out", "OUT/page.html", "--charts", "OUT/charts", "--chart-format", "svg"),
}


def points(count: int) -> list[object]:
    """Return parameters: for each command this number of moments of a run, and very many with the marker every_disk."""
    quick = [command for command in WRITERS if command != "report"]  # the report takes seconds
    return [
        *(pytest.param(command, count, id=command) for command in sample(quick, 7, "sigterm")),
        *(pytest.param(command, 90 * count, id=f"{command}-all", marks=pytest.mark.every_disk) for command in WRITERS),
    ]


@pytest.mark.sampled
@pytest.mark.parametrize(("command", "count"), points(2))
def test_whole_or_absent_at_sigterm(command: str, count: int, tmp_path: Path) -> None:
    """SIGTERM arrives at moments spread over all lines that write: each file is there as a complete run writes it, or
    not at all, and nothing else is there. (A ledger is that of the interrupted run.)"""
    asked = Run((command, *WRITERS[command]), terminated_at=0, now=time.time())  # an age does not change between runs
    whole = tmp_path / "whole"
    (plain,) = ended([asked.writing_to(str(whole))], tmp_path)
    assert plain.status in (0, 1)
    outs = [tmp_path / f"{number:05}" for number in range(count)]
    found = ended(
        [
            replace(asked, terminated_at=1 + number * (plain.lines - 1) // (count - 1)).writing_to(str(out))
            for number, out in enumerate(outs)
        ],
        tmp_path,
    )
    for out, run in zip(outs, found):
        assert (run.status, run.stderr) == (-signal.SIGTERM, b""), out
        assert not [*out.rglob(f"*{PASSING}")], out
        written = files_below(out)
        written.pop("ledger.jsonl", None)
        assert written.items() <= files_below(whole).items(), out


def test_every_command_that_writes_is_tried() -> None:
    from click import Context

    from kdump.cli import cli

    context = Context(cli)
    commands = {name: cli.get_command(context, name) for name in COMMANDS}
    writers = {
        name
        for name, command in commands.items()
        if command is not None and any("--out" in param.opts for param in command.params)
    }
    assert writers - {*SPARK} == {*WRITERS}


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """Start kdump with SIGHUP at its default, even if these tests run under nohup."""
    return subprocess.Popen(
        ["env", "--default-signal", sys.executable, "-m", "kdump", *arguments], cwd=ROOT, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_while_it_reads(number: signal.Signals, tmp_path: Path) -> None:
    """The process ends with that signal (130 after an interrupt), immediately."""
    with start("carve", slow(tmp_path), "--out", str(tmp_path / "out"), "--max-rate", "1M") as run:
        wait_for(lambda: any((tmp_path / "out").rglob(f"*{PASSING}")))
        run.send_signal(number)
        assert run.wait(20) == (130 if number == signal.SIGINT else -number)
        assert run.stderr is not None
        assert run.stderr.read() == b""
    assert not [*tmp_path.rglob(f"*{PASSING}")]


@pytest.mark.every_disk
def test_nohup(tmp_path: Path) -> None:
    """A signal that is ignored at the start stays ignored."""
    command = f"trap '' HUP; exec {sys.executable} -m kdump carve {slow(tmp_path)} --out {tmp_path}/out --max-rate 2M"
    with subprocess.Popen(["bash", "-c", command], cwd=ROOT, stdout=subprocess.DEVNULL) as run:
        wait_for(lambda: any((tmp_path / "out").rglob(f"*{PASSING}")))
        run.send_signal(signal.SIGHUP)
        assert run.wait(60) == 0


@pytest.mark.parametrize("words", [("verify",), ("find", "'never' in any")])
@pytest.mark.parametrize("ending", few([signal.SIGTERM, signal.SIGINT], 1))
def test_the_workers_of_a_run_end_with_it(tmp_path: Path, words: tuple[str, ...], ending: signal.Signals) -> None:
    """The run does not wait for the partitions that they are reading."""
    for number in range(4):
        (tmp_path / f"slow-{number}").mkdir()
        os.mkfifo(tmp_path / f"slow-{number}" / "unread")
        shutil.copy(LOG, tmp_path / f"slow-{number}")
    with start(*words, str(tmp_path), "--jobs", "2", "--max-rate", "100") as run:
        wait_for(lambda: len(children(run.pid)) == 2)
        workers = children(run.pid)
        run.send_signal(ending)
        assert run.wait(20) == (130 if ending == signal.SIGINT else -ending)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def slow(place: Path) -> str:
    """A log that takes seconds to read at 1 MiB per second; what is carved from it is written meanwhile."""
    path = place / f"{0:020}.log"
    repeat(Path(LOG), path, 2 << 20)
    return str(path)


def children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(is_so: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)
