"""A batch that the end of its file truncates. Without compression, the records before the end are complete."""

from __future__ import annotations

from kdump.format.batch_header import BatchHeader
from kdump.io.run import Limits
from kdump.io.window import Window
from kdump.log.batch_records import decode_columns
from kdump.log.region import TORN, DefaultRecordBatch, Region


class TornBatch(DefaultRecordBatch):
    """The beginning of an uncompressed v2 batch, to its last byte in the file. Its records decode up to the first that
    is incomplete, which is not a problem of its own; no checksum covers them."""

    def __init__(self, window: Window, position: int, size: int, limits: Limits, header: BatchHeader) -> None:
        super().__init__(window, position, size, limits, header)
        self.is_torn = True

    @property
    def crcValid(self) -> bool:
        """False: the checksum covers bytes that are missing."""
        return False

    @property
    def complete_records(self) -> int:
        """Number of records that are complete, decoded anew."""
        return sum(len(columns) for columns, _ in decode_columns(self, values=False))


def torn_batch(region: Region, window: Window, limits: Limits) -> TornBatch | None:
    """Return the batch of a torn region; None if its records cannot be decoded one by one."""
    if region.kind != TORN or not isinstance(region.claimed, BatchHeader):
        return None
    return beginning_of(region.claimed, window, region.position, region.size, limits)


def beginning_of(header: BatchHeader, window: Window, position: int, size: int, limits: Limits) -> TornBatch | None:
    """Return what the file has of a batch with this header, `size` bytes at `position`; None if it is compressed, has
    only control records, or has no bytes of a record."""
    if header.compression != "none" or header.isControlBatch or size <= header.headerSize or window.source.lacks:
        return None
    return TornBatch(window, position, size, limits, header)
