"""Incidents of consumer groups, and of the coordinator's own topic."""

from __future__ import annotations

from kdump.format.batch_header import BATCH_HEADER
from kdump.format.index import TIME_INDEX_ENTRY
from tools.incident.disk import FIXTURES, OFFSETS, Disk
from tools.incident.registry import incident

SEGMENT_OFFSETS = 80
"""Number of offsets after which a segment of __consumer_offsets-0 is rolled."""


@incident("offsets-reset")
def offsets_reset(disk: Disk) -> None:
    """Group group-classic was at offset 300 of orders-zstd-0, and its offset of payments-0 is gone. In addition, the
    records of orders-none-0 below offset 120 were deleted, while tx-group was at 70."""
    disk.starts_at("orders-none", 0, 120)


@incident("consumer-offsets-grows")
def consumer_offsets_grows(disk: Disk) -> None:
    """__consumer_offsets-0 has three segments. A transaction that committed offsets has been open since offset 146, in
    the second one, and its coordinator does not know it any more. The broker was killed."""
    place = disk.file(OFFSETS)
    for path in [*place.glob("*.log"), *place.glob("*index"), *place.glob("*.snapshot")]:
        path.unlink()
    data, position = (FIXTURES / "state-1" / OFFSETS / f"{0:020}.log").read_bytes(), 0
    names, epochs = [0], dict[int, int]()
    newest = (0, 0)  # timestamp, and offset relative to the segment
    while position < len(data):
        header = BATCH_HEADER.read(data, position)
        if header.baseOffset >= len(names) * SEGMENT_OFFSETS:
            names.append(header.baseOffset)
            newest = (0, 0)
        segment = place / f"{names[-1]:020}.log"
        with segment.open("ab") as file:
            file.write(data[position : position + header.size])
        newest = max(newest, (header.maxTimestamp, header.baseOffset + header.lastOffsetDelta - names[-1]))
        segment.with_suffix(".index").touch()
        segment.with_suffix(".timeindex").write_bytes(TIME_INDEX_ENTRY.struct.pack(*newest))
        epochs.setdefault(header.partitionLeaderEpoch, header.baseOffset)
        position += header.size
    lines = [f"{epoch} {offset}\n" for epoch, offset in epochs.items()]
    (place / "leader-epoch-checkpoint").write_text(f"0\n{len(lines)}\n{''.join(lines)}")
    disk.file(".kafka_cleanshutdown").unlink()
    disk.checkpoint("recovery-point-offset-checkpoint", OFFSETS, names[-1])
    disk.checkpoint("replication-offset-checkpoint", OFFSETS, disk.end(OFFSETS))
