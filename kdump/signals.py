"""Signals that end a run: cleanup is completed first, and so are steps that must not be interrupted."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Signals sent by a supervisor, at shutdown or by a closing terminal. (SIGINT already raises KeyboardInterrupt.)"""

INTERRUPTED = 130
"""Exit status after an interrupt, as in a shell: 128 plus the number of SIGINT."""
CLEANUP = 2.0
"""Seconds for the cleanup, in which further signals are ignored."""
AGAIN = 0.01
"""Seconds after which an exception that was discarded is raised again."""


class Terminated(BaseException):
    """Raised in the main thread when one of ENDING arrives, so that cleanup code runs as for any other exception."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def _raise(number: int, frame: FrameType | None) -> None:
    began = time.monotonic()

    def again(number: int, frame: FrameType | None) -> None:
        if time.monotonic() - began > CLEANUP:
            _end_by(number)

    for signal_number in ENDING:  # a second one would interrupt the cleanup
        signal.signal(signal_number, again)
    raise Terminated(number)


def _end_by(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _raise_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise a signal's exception again if it was raised where Python discards exceptions: in a destructor or a callback
    of a weak reference, as the import system has them. The hook itself is such a place, so this is done by a timer."""
    error = unraisable.exc_value
    if isinstance(error, (Terminated, KeyboardInterrupt)):

        def deliver(number: int, frame: FrameType | None) -> None:
            raise error

        signal.signal(signal.SIGALRM, deliver)
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
    else:
        sys.__unraisablehook__(unraisable)


def run_until_terminated(run: Callable[[], None]) -> None:
    """Call `run`. If one of ENDING arrives, the process ends by that signal, after its cleanup; if another one arrives
    more than CLEANUP seconds later, it ends at once. A signal that was ignored before (nohup) stays ignored."""
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _raise)
    sys.unraisablehook = _raise_unraisable
    ended_by = 0
    try:
        run()
    except Terminated as error:
        ended_by = error.number
    if ended_by:
        gc.collect()  # runs the cleanup of abandoned generators
        _end_by(ended_by)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer signals that arrive within the block until its end. Use this only for short steps."""
    if threading.current_thread() is not threading.main_thread():  # signal handlers run only in the main thread
        yield
        return
    arrived: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        arrived.append(number)

    kept = {number: signal.getsignal(number) for number in (*ENDING, signal.SIGINT)}
    try:
        for number, handler in kept.items():
            if callable(handler):  # signals that are ignored, or end the process immediately, keep their behavior
                signal.signal(number, note)
        yield
    finally:
        for number, handler in kept.items():
            if callable(handler):
                signal.signal(number, handler)
        for first in arrived[:1]:
            signal.raise_signal(first)
