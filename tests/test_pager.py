"""The pager, on a terminal that is the controlling one of kdump, as a user's is."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdump import pager
from tests.conftest import FIXTURES, ROOT, few

CHILD = "from kdump.cli import main; main()"
MARK = "sed -u s/^/P:/"
"""A pager that marks each line."""
LONG = ("ls", "clean-1")
LIMIT = 30.0


class Run:
    """A run of kdump on a terminal of 24 lines and 100 columns."""

    def __init__(self, *words: str | Path, code: str = CHILD, **environment: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        known = {name: text for name, text in os.environ.items() if name not in ("PAGER", "KDUMP_PAGER", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, words)],
            cwd=FIXTURES,
            env=known | {"TERM": "xterm", "PYTHONPATH": str(ROOT)} | environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0),  # no other thread runs here
        )
        os.close(slave)
        self.seen = b""

    def until(self, *texts: bytes) -> bool:
        """Read until one of the texts has come. Return False if none comes."""
        end = time.monotonic() + LIMIT
        while not any(text in self.seen for text in texts) and time.monotonic() < end:
            if not self._read(0.1):
                break
        return any(text in self.seen for text in texts)

    def _read(self, seconds: float) -> bool:
        """Return False at the end of the output."""
        if select.select([self.master], [], [], seconds)[0]:
            try:
                part = os.read(self.master, 65536)
            except OSError:  # no process has the other end
                return False
            self.seen += part
            return bool(part)
        return True

    def end(self) -> tuple[int, str]:
        """Return the exit status and the output."""
        end = time.monotonic() + LIMIT
        while self._read(0.2):
            assert time.monotonic() < end, self.seen
        os.close(self.master)
        return self.process.wait(LIMIT), self.seen.decode().replace("\r", "")


def marked(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("P:")]


def test_a_long_table_is_in_the_pager_completely() -> None:
    status, without = Run(*LONG, "--no-pager", KDUMP_PAGER=MARK).end()
    assert (status, len(without.splitlines()) > 24, marked(without)) == (0, True, [])
    status, text = Run(*LONG, KDUMP_PAGER=MARK).end()
    assert status == 0
    assert text.splitlines() == [f"P:{line}" for line in without.splitlines()]
    assert "\x1b[" in text  # in color


@pytest.mark.parametrize(
    ("words", "environment"),
    few(
        [
            (("ls", "clean-2"), {}),
            ((*LONG, "--json"), {}),
            (("doctor", "clean-2", "--no-pager"), {}),
            ((*LONG, "--format", "csv"), {}),
            (LONG, {"TERM": "dumb"}),
            (LONG, {"KDUMP_PAGER": ""}),
            (LONG, {"KDUMP_PAGER": "cat"}),
            (LONG, {"KDUMP_PAGER": "no-such-program -x"}),
        ],
        4,
    ),
    ids=["short", "json", "doctor", "csv", "dumb", "none", "cat", "missing"],
)
def test_no_pager(words: tuple[str, ...], environment: dict[str, str]) -> None:
    status, text = Run(*words, **{"KDUMP_PAGER": MARK} | environment).end()
    assert (status, marked(text)) == (int(words[0] == "doctor"), [])
    assert len(text.splitlines()) > 5


def test_which_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KDUMP_PAGER", "PAGER"):
        monkeypatch.delenv(name, raising=False)
    assert pager.pager_command() == (["less", "-FRX"] if shutil.which("less") else [])
    monkeypatch.setenv("PAGER", "sort -r")
    assert pager.pager_command() == ["sort", "-r"]
    monkeypatch.setenv("KDUMP_PAGER", "head -3 | sort")
    assert pager.pager_command() == ["/bin/sh", "-c", "head -3 | sort"]
    monkeypatch.setenv("KDUMP_PAGER", "")
    assert pager.pager_command() == []


@pytest.mark.parametrize(
    ("words", "expected"), [(LONG, 0), (("verify", "--list"), 0), (("diff", "clean-1", "legacy"), 2)]
)
def test_a_pager_that_is_left_early(words: tuple[str, ...], expected: int) -> None:
    """The run ends as with a closed pipe: without a word, and with its own status if that is a result."""
    status, text = Run(*words, KDUMP_PAGER="head -1").end()
    assert status == expected
    assert "Traceback" not in text
    assert "discarded" not in text


def test_messages_come_when_the_pager_has_ended() -> None:
    words = ("inspect", "clean-1", "--topic", "payments", "--topic", "zz")
    status, text = Run(*words, KDUMP_PAGER=f"{MARK}; sleep 0.3; echo DONE").end()
    assert status == 2
    assert len(marked(text)) > 24
    assert text.splitlines()[-2] == "DONE"
    assert text.splitlines()[-1].startswith("kdump: --topic zz: no match")


SLOW = """
import sys
from kdump.streams import settle
settle()
from kdump.pager import end_pager
from kdump.render.stdout import Output
output = Output()
output.page()
for number in range(40):
    output.line(f"line {number}")
    if number in (9, 29):
        sys.stdin.readline()
end_pager()
"""


def test_nothing_waits_for_the_end_of_the_output() -> None:
    """Neither lines that may be all, nor the pager, which then begins with the first line."""
    run = Run(KDUMP_PAGER=MARK, code=SLOW)
    assert run.until(b"line 9\r\n")
    assert b"P:" not in run.seen
    os.write(run.master, b"\n")
    assert run.until(b"P:line 29\r\n")
    assert b"P:line 0\r\n" in run.seen
    os.write(run.master, b"\n")
    status, text = run.end()
    assert (status, marked(text)) == (0, [f"P:line {number}" for number in range(40)])


def test_follow_has_no_pager() -> None:
    run = Run("inspect", FIXTURES / "clean-1" / "payments-0", "--follow", KDUMP_PAGER=MARK)
    assert run.until(b"115..119")
    os.kill(run.process.pid, signal.SIGTERM)
    status, text = run.end()
    assert (status, marked(text)) == (-signal.SIGTERM, [])
    assert len(text.splitlines()) > 24


@pytest.fixture
def in_less() -> Iterator[Run]:
    if shutil.which("less") is None:
        pytest.skip("there is no less")
    run = Run(*LONG)
    assert run.until(b"\r:", b"\n:")
    yield run
    run.process.poll()


def test_less_shows_a_screen_and_ends_with_q(in_less: Run) -> None:
    assert b"users-0" not in in_less.seen
    os.write(in_less.master, b"q")
    status, text = in_less.end()
    assert status == 0
    assert "users-0" not in text


def test_a_signal_ends_the_pager_too(in_less: Run) -> None:
    os.kill(in_less.process.pid, signal.SIGTERM)
    status, _ = in_less.end()
    assert status == -signal.SIGTERM


def test_a_value_without_line_breaks_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept for the pager is bounded, however long a line is."""
    written: list[int] = []
    monkeypatch.setattr(pager, "_put", lambda data: written.append(len(data)))
    monkeypatch.setattr(pager.Pager, "_start", lambda self: True)
    one = pager.Pager(["true"])
    piece = b"x" * 65536
    for count in range(1, 100):
        one.write(piece)
        assert sum(map(len, one._all)) <= pager.MAX_HELD
        assert sum(written) >= count * len(piece) - pager.MAX_HELD - len(piece)
    one.release()
    assert sum(written) == 99 * len(piece)
