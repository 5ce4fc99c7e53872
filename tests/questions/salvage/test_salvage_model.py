"""Salvages random histories: every valid batch is in the output, or the ledger names it."""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.conftest import SEED
from tests.questions.salvage.salvage_model import History, check, histories

DAY = SEED or time.strftime("%Y-%m-%d")
"""Seed of the histories in the long run: the date, which is printed."""
LONG = int(os.environ.get("KDUMP_EXAMPLES") or 500)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def salvaged(history: History) -> None:
    with tempfile.TemporaryDirectory() as name:
        check(history, Path(name))


@settings(max_examples=20, phases=[Phase.generate], derandomize=True, suppress_health_check=SLOW)
@given(histories())
def test_nothing_valid_is_lost_in_silence(history: History) -> None:
    salvaged(history)


@pytest.mark.every_disk
def test_nothing_valid_is_lost_in_silence_today() -> None:
    print(f"KDUMP_SEED={DAY}")

    @seed(random.Random(f"{DAY} salvage").getrandbits(64))
    @settings(max_examples=LONG, phases=[Phase.generate], derandomize=False, suppress_health_check=SLOW)
    @given(histories())
    def today(history: History) -> None:
        salvaged(history)

    today()
