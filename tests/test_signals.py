"""The handlers of the signals that end a run (kdump.signals), with a clock that does not run."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kdump import signals
from tests.conftest import FIXTURES, few

WAIT = 60.0
"""Seconds until what must happen counts as missing."""


@pytest.mark.parametrize(("seconds", "ends"), [(0.0, False), (signals.CLEANUP, False), (signals.CLEANUP + 0.1, True)])
@pytest.mark.parametrize("second", signals.ENDING)
def test_a_second_signal_ends_the_process_once_the_cleanup_had_its_time(
    second: signal.Signals, seconds: float, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    now = 1000.0
    handlers = {}
    monkeypatch.setattr(signals.time, "monotonic", lambda: now)
    monkeypatch.setattr(signals, "_end_by", ended.append)
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    with pytest.raises(signals.Terminated):
        signals._raise(signal.SIGTERM, None)
    assert set(handlers) == {*signals.ENDING}
    now += seconds
    handlers[second](second, None)
    assert ended == [second] * ends


@pytest.mark.parametrize("number", few(signals.ENDING, 1))
def test_a_signal_ends_browse_without_a_traceback(number: signal.Signals, tmp_path: Path) -> None:
    """What closes a terminal also sends SIGCONT, which Textual handles. asyncio discards what a handler raises while a
    callback runs: here, that of a key."""
    own, its = pty.openpty()
    shown = tmp_path / "screen"
    before = signal.signal(number, signal.SIG_DFL)  # under nohup it is ignored, and so it would be there
    with shown.open("wb") as screen:
        browse = subprocess.Popen(
            [sys.executable, "-m", "kdump", "browse", str(FIXTURES / "clean-1")],
            stdin=its,
            stdout=its,
            stderr=screen,  # where Textual writes
            env={**os.environ, "TERM": "xterm-256color"},
        )
    signal.signal(number, before)
    os.close(its)
    try:
        until = time.monotonic() + WAIT
        while b"__cluster_metadata" not in shown.read_bytes() and time.monotonic() < until:
            time.sleep(0.1)
        assert b"__cluster_metadata" in shown.read_bytes()
        os.write(own, b"jk" * 100)
        browse.send_signal(signal.SIGSTOP)  # so that it finds both signals at once
        browse.send_signal(number)
        browse.send_signal(signal.SIGCONT)
        assert browse.wait(WAIT) == -number
    finally:
        browse.kill()  # if it is still there, it would take a processor
    os.close(own)
    text = re.sub(rb"\x1b\[[0-9;?<>]*[A-Za-z]", b"", shown.read_bytes())
    assert b"Traceback" not in text
