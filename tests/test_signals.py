"""The handlers of the signals that end a run (kdump.signals), with a clock that does not run."""

from __future__ import annotations

import signal

import pytest

from kdump import signals


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
