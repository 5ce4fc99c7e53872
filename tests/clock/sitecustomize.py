"""On PYTHONPATH, sets the clock of a Python to the day after the fixtures were made: documents show ages."""

import time

EVENING = 1_795_298_400
"""2026-11-21T22:00:00Z, in epoch seconds."""
_begin = time.monotonic()
time.time = lambda: EVENING + time.monotonic() - _begin
