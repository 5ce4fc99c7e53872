"""How much must be free for a stopped broker to start on a full disk.

A broker of 4.3.1 writes from the first second on: it appends to __cluster_metadata-0, writes into the pages of indexes
that are sparse (a full disk is then a SIGBUS, which the JVM reports as an InternalError), replaces each checkpoint by a
new file next to it, and after an unclean shutdown writes a producer snapshot, two indexes and a leader-epoch-checkpoint
for each log that it recovers. Each of these failures ends the startup, or takes the log directory offline. Retention
runs 30 s later (log.initial.task.delay.ms), and its files go 1 min after that (file.delete.delay.ms).

The figures are twice to ten times what brokers needed in trials (docs/space.md), because clients write, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdump.forensics.space.usage import PartitionUsage

BASE = 1 << 20
"""For the metadata log, the checkpoints, and what is written until retention runs, in bytes."""
PER_LOG, PER_RECOVERED_LOG = 4096, 16384
"""For each log after a clean shutdown, and after an unclean one, in bytes: one block, and four."""


LEAST = 1 << 20
"""Free bytes below which a running broker is about to fail."""


def needed_inodes(logs: int) -> int:
    """Return the number of inodes that must be free, for new checkpoints and a producer snapshot for each log."""
    return 64 + logs


def needed_to_start(logs: Sequence[PartitionUsage], *, is_clean: bool, cleaned: int = 0) -> int:
    """Return the number of bytes that must be free. `logs`: live partitions; `cleaned`: what the log cleaner writes
    before it deletes anything, in bytes."""
    return BASE + len(logs) * (PER_LOG if is_clean else PER_RECOVERED_LOG) + cleaned
