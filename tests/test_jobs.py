"""inspect --jobs: the same lines in the same order, with any number of threads."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kdump.engine import COMPILED, running
from kdump.questions.inspect.fast_rows import HELD, OrderedPool, OutputSlot
from tests import craft
from tests.conftest import ROOT, few, segment


class Parts:
    """An output that stores what is written to it."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.parts.append(data)

    def write_now(self, data: bytes | memoryview) -> None:
        self.parts.append(bytes(data))

    def flush(self) -> None:
        pass


@pytest.fixture
def output() -> Parts:
    return Parts()


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_order(jobs: int, output: Parts) -> None:
    """Tasks finish in any order; those with more output than may be buffered wait for their turn."""
    ordered = OrderedPool(output, jobs)  # type: ignore[arg-type]
    expected = []

    def work(number: int, turn: OutputSlot) -> None:
        time.sleep(0.001 * (number * 7 % 5))
        for part in range(3):
            turn.write(b"%d.%d " % (number, part) * (HELD // 8 if number % 9 == 4 else 1))

    for number in range(40):
        ordered.submit(lambda turn, number=number: work(number, turn))  # type: ignore[misc]
        expected += [b"%d.%d " % (number, part) * (HELD // 8 if number % 9 == 4 else 1) for part in range(3)]
    ordered.drain()
    assert b"".join(output.parts) == b"".join(expected)


def test_no_more_is_under_way_than_there_are_threads(output: Parts) -> None:
    """Memory is bounded: one task per thread, and as many waiting."""
    ordered = OrderedPool(output, 2)  # type: ignore[arg-type]
    gate = threading.Event()
    begun = []

    def submit() -> None:
        for number in range(9):
            ordered.submit(lambda turn: gate.wait() and None)
            begun.append(number)

    other = threading.Thread(target=submit, daemon=True)
    other.start()
    ends = time.monotonic() + 60
    while len(begun) < 4 and time.monotonic() < ends:
        time.sleep(0.01)
    time.sleep(0.2)
    assert len(begun) == 4
    gate.set()
    other.join()
    ordered.drain()


def test_an_error_is_raised_to_who_submits(output: Parts) -> None:
    ordered = OrderedPool(output, 3)  # type: ignore[arg-type]

    def fail(turn: OutputSlot) -> None:
        raise BrokenPipeError

    ordered.submit(lambda turn: turn.write(b"first"))
    ordered.submit(fail)

    def go_on() -> None:
        for _ in range(9):
            ordered.submit(lambda turn: turn.write(b"behind"))
        ordered.drain()

    with pytest.raises(BrokenPipeError):
        go_on()
    assert b"".join(output.parts) in (b"", b"first")
    with pytest.raises(BrokenPipeError):
        ordered.drain()


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three segments of several windows each, with every codec, control batches, and damage of all kinds."""
    directory = tmp_path_factory.mktemp("jobs") / "topic-0"
    directory.mkdir()
    names = (
        *("orders-none-0", "orders-zstd-0", "payments-0", "orders-lz4-0", "users-0", "orders-gzip-0"),
        "orders-snappy-0",
    )
    batches = [batch for name in names for batch in craft.split(segment(f"clean-1/{name}").read_bytes())]
    offset = 0
    for _ in range(3):
        data = b""
        first = offset
        for turn in range(4):
            for batch in batches:
                data += craft.rebase(batch, offset)
                offset += int.from_bytes(batch[23:27], "big") + 1
            data += (b"", b"junk" * 40, craft.flip(batch, 800), bytes(100))[turn % 4]
        (directory / f"{first:020}.log").write_bytes(data)
    return directory


@pytest.mark.parametrize(
    "options", few([[], ["--key", "user-3"], ["--value-regex", "a.*b"], ["--control"], ["--offset", "900..3000"]], 1)
)
def test_the_same_lines(partition: Path, options: list[str]) -> None:
    words = ["-m", "kdump", "inspect", "--records", "--json", "--window", "65536"]
    command = [sys.executable, *words, str(partition), *options]
    runs = [
        subprocess.run([*command, "--jobs", jobs], cwd=ROOT, capture_output=True, check=False)
        for jobs in (("1", "4") if options else ("1", "2", "4"))
    ]
    searches = options[:1] in (["--key"], ["--value-regex"])
    found = b'{"type":"record"' in runs[0].stdout
    assert {run.returncode for run in runs} == {2 if searches and not found else 0}, "2: damaged batches not searched"
    assert len({run.stdout for run in runs}) == 1
    assert len({run.stderr for run in runs}) == 1
    assert runs[0].stdout or options


def test_a_closed_pipe_is_a_good_end(partition: Path) -> None:
    command = [sys.executable, "-m", "kdump", "inspect", *[str(partition)] * 9, "--records", "--json", "--jobs", "2"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stdout.readline().startswith(b'{"type":"record"')
        run.stdout.close()
        assert (run.wait(60), run.stderr.read()) == (0, b"")


def test_an_interrupt_ends_it(partition: Path) -> None:
    """The threads are writing to a pipe that no one reads."""
    command = [sys.executable, "-m", "kdump", "inspect", *[str(partition)] * 20, "--records", "--json", "--jobs", "3"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stdout.read(1)
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        if running() == COMPILED:
            assert run.wait(20) == 130
        run.kill()
        assert b"Fatal" not in run.stderr.read()


def test_a_full_disk_is_told_once(partition: Path) -> None:
    """The first thread that cannot write reports it, and the run continues."""
    command = [sys.executable, "-m", "kdump", "inspect", str(partition), "--records", "--json", "--jobs", "2"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0
    assert done.stderr == b"kdump: standard output: No space left on device; the remaining output is discarded\n"
