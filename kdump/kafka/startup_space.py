"""How much free space a startup takes: less than SMALLEST_FILE is not enough, `needed_to_start` always was.

A broker of 4.3.1 writes from the first second on: it appends to __cluster_metadata-0, writes into the pages of indexes
that are sparse (a full disk is then a SIGBUS, which the JVM reports as an InternalError), replaces each checkpoint by a
new file next to it, and after an unclean shutdown writes a producer snapshot, two indexes and a leader-epoch-checkpoint
for each log that it recovers. Each of these failures ends the startup, or takes the log directory offline. Retention
runs 30 s later (log.initial.task.delay.ms), and its files go 1 min after that (file.delete.delay.ms). The figures are
twice to ten times what brokers needed in trials (docs/space.md), because clients write, too."""

from __future__ import annotations

SMALLEST_FILE = 4096
"""Free bytes below which no file can be written: the block size of the usual file systems."""
BASE = 1 << 20
"""For the metadata log, the checkpoints, and what is written until retention runs, in bytes."""
PER_LOG, PER_RECOVERED_LOG = 4096, 16384
"""For each log after a clean shutdown, and after an unclean one, in bytes: one block, and four."""


def needed_to_start(logs: int, *, is_clean: bool, cleaned: int = 0) -> int:
    """Return the number of free bytes with which a startup does not fail for want of space. `logs`: number of live
    partitions; `cleaned`: what the log cleaner writes before it deletes anything, in bytes."""
    return BASE + logs * (PER_LOG if is_clean else PER_RECOVERED_LOG) + cleaned
