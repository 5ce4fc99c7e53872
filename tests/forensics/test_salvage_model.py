"""Salvage of random histories: every valid batch is in the output, or the ledger names it."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.forensics.salvage_model import History, check, histories

DAILY = int(os.environ.get("KDUMP_SEED") or time.strftime("%Y%m%d"))
"""The seed of the long run: another one every day, and printed."""
LONG = int(os.environ.get("KDUMP_EXAMPLES") or 500)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def salvaged(history: History) -> None:
    with tempfile.TemporaryDirectory() as name:
        check(history, Path(name))


@settings(max_examples=30, derandomize=True, database=None, deadline=None, suppress_health_check=SLOW)
@given(histories())
def test_nothing_valid_is_lost_in_silence(history: History) -> None:
    salvaged(history)


@pytest.mark.every_disk
def test_nothing_valid_is_lost_in_silence_today() -> None:
    print(f"KDUMP_SEED={DAILY}")

    @seed(DAILY)
    @settings(max_examples=LONG, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=SLOW)
    @given(histories())
    def today(history: History) -> None:
        salvaged(history)

    today()
