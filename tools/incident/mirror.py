"""A topic, and its mirror in another cluster."""

from __future__ import annotations

from tools.incident.batches import changed
from tools.incident.disk import CLUSTER, DIRECTORY, ORDERS, SECOND_DIRECTORY, ZERO, Disk
from tools.incident.registry import incident

MIRROR_PRODUCER = 4000
TIMES_WRITTEN = (0, 1, 2, 2, 4)
"""Batches of the source, in the order in which they are in the mirror."""


@incident("compare-with-mirror")
def compare_with_mirror(disk: Disk) -> None:
    """disk-1 has the topic orders-none, and disk-2, in another cluster, its mirror a.orders-none. MirrorMaker was
    restarted after the third of five batches, which it wrote again, and then skipped the fourth one, which retention
    had deleted before it got there. (It is still in disk-1.)"""
    other = Disk(disk.root.parent / "disk-2")
    other.root.mkdir()
    ids = disk.file("meta.properties").read_text()
    ids = ids.replace(CLUSTER, "q0eGNDWzT3mZ8kZ6sXn1Lw").replace(DIRECTORY, SECOND_DIRECTORY)
    other.file("meta.properties").write_text(ids)
    mirror = other.file(f"a.{ORDERS}")
    mirror.mkdir()
    data, offset = b"", 1  # a transaction marker, or a record that was compacted away, moves all offsets
    for number in TIMES_WRITTEN:
        batch = changed(
            disk.batch(ORDERS, number),
            baseOffset=offset,
            producerId=MIRROR_PRODUCER,
            producerEpoch=0,
            baseSequence=offset - 1,
            partitionLeaderEpoch=0,
        )
        data, offset = data + batch, offset + 60
    (mirror / f"{ZERO}.log").write_bytes(data)
