"""What a command that uses Spark leaves in its process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from kdump.spark import session


class Session:
    """The part of a session that is needed here: PySpark installs a handler, and leaves it when the session stops."""

    def __init__(self) -> None:
        self.stopped = False
        signal.signal(signal.SIGINT, lambda number, frame: None)

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def handler() -> Iterator[Any]:
    before = signal.getsignal(signal.SIGINT)
    yield before
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_is_what_it_was_before(handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_active", lambda: None)
    monkeypatch.setattr(session, "session", lambda master, conf: Session())
    with session.running() as spark:
        assert signal.getsignal(signal.SIGINT) is not handler
    assert spark.stopped
    assert signal.getsignal(signal.SIGINT) is handler


def test_of_a_session_that_was_there_it_stays(handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Session()
    theirs = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(session, "_active", lambda: before)
    monkeypatch.setattr(session, "session", lambda master, conf: before)
    with session.running():
        pass
    assert not before.stopped
    assert signal.getsignal(signal.SIGINT) is theirs
