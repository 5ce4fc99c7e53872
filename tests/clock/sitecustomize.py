"""Sets Python's clock, if on PYTHONPATH, to the evening of the day on which the fixtures were made, because documents
show ages."""

import time

EVENING = 1_795_298_400
"""2026-11-21T22:00:00Z in epoch seconds."""
if __name__ == "sitecustomize":
    _begin = time.monotonic()
    time.time = lambda: EVENING + time.monotonic() - _begin
