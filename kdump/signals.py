"""Signals that end a run: what is being written is cleaned up first, and no step that must not be half done is."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""What a supervisor, a shutdown or a closed terminal sends. (SIGINT is KeyboardInterrupt anyway.)"""


class Terminated(BaseException):
    """Raised where the run is when one of ENDING arrives, so that blocks are left as by any other exception."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def _raise(number: int, frame: FrameType | None) -> None:
    for each in ENDING:  # a second one would break off the cleaning up
        signal.signal(each, signal.SIG_IGN)
    raise Terminated(number)


def run_until_terminated(run: Callable[[], None]) -> None:
    """Do `run`. If it is terminated, the process ends as that signal ends it, once all blocks have been left. A signal
    that is ignored (nohup) stays ignored."""
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _raise)
    ended_by = 0
    try:
        run()
    except Terminated as error:
        ended_by = error.number
    if ended_by:
        gc.collect()  # generators that were left within a block leave it now
        signal.signal(ended_by, signal.SIG_DFL)
        os.kill(os.getpid(), ended_by)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A signal that arrives within the block takes effect after it. For steps that take no time."""
    if threading.current_thread() is not threading.main_thread():  # handlers run in that one
        yield
        return
    arrived: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        arrived.append(number)

    kept = {number: signal.getsignal(number) for number in (*ENDING, signal.SIGINT)}
    try:
        for number, handler in kept.items():
            if callable(handler):  # what is ignored or ends the process at once stays so
                signal.signal(number, note)
        yield
    finally:
        for number, handler in kept.items():
            if callable(handler):
                signal.signal(number, handler)
        for first in arrived[:1]:
            signal.raise_signal(first)
