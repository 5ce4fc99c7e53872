"""Which .swap files a startup installs: those of a compaction or split that had written everything.

Source: LogLoader.removeTempFilesAndCollectSwapFiles and load (4.3.1); Log.removeTempFilesAndCollectSwapFiles (2.8).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kdump.format.numbers import LONG_MAX
from kdump.kafka.errors import KafkaError
from kdump.kafka.log_segment import segment_at
from kdump.kafka.producer_state_manager import Open
from kdump.log.errors import SourceError
from kdump.log.paths import Target


def is_complete(offset: int, cleaned: Iterable[int]) -> bool:
    """Return True if a startup installs the .swap files named `offset`; it deletes them if there are .cleaned files
    named `cleaned` at or below that."""
    return offset < min(cleaned, default=LONG_MAX)


def replaced_by(swaps: Sequence[Target], live: Iterable[Target], open_: Open) -> list[Target]:
    """Return the `live` segments that a startup deletes because it installs the segments `swaps`: those named from the
    lowest base offset to the end of the last one. If Kafka cannot compute that end, the broker does not start; only
    segments with the name of a .swap file count then."""
    names = [swap.name_offset for swap in swaps if swap.name_offset is not None]
    low, high = min(names, default=0), -1
    for swap in swaps:
        try:
            high = max(high, segment_at(swap.path, swap.name_offset or 0, open_, ".swap").next_offset().offset)
        except (KafkaError, SourceError):
            continue
    return [each for each in live if each.name_offset in names or low <= (each.name_offset or 0) < high]
