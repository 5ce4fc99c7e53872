"""Disks of clusters whose controllers do not come up any more."""

from __future__ import annotations

import shutil

from kdump.format.batch_writer import new_batch
from kdump.format.metadata_record import metadata_record_value
from tools.corpus import unpack
from tools.incident.disk import METADATA, Disk
from tools.incident.registry import incident

RELEASE = "releases/4.3.1-kraft"
UNKNOWN_TOPIC = "Zm9yZW5zaWNzLWluY2lkZQ"


@incident("metadata-record", f"{RELEASE}/controller")
def metadata_record(disk: Disk) -> None:
    """The last record of the metadata log removes a topic that the cluster does not have. disk-1 is that of the only
    controller, disk-2 that of the only broker."""
    shutil.copytree(unpack() / RELEASE / "clean", disk.root.parent / "disk-2")
    _, last = disk.batches(METADATA)[-1]
    value = metadata_record_value("RemoveTopicRecord", 0, {"topicId": UNKNOWN_TOPIC})
    epoch, time = last.partitionLeaderEpoch, last.maxTimestamp + 500
    disk.append(disk.log(METADATA), new_batch(disk.end(METADATA), epoch, time, [(None, value)]))


@incident("controller-lost", f"{RELEASE}/crash")
def controller_lost(disk: Disk) -> None:
    """The volume of the only controller, node 0, is gone. disk-1 is that of the only broker, which was killed."""
    disk.file("bootstrap.checkpoint").unlink(missing_ok=True)


@incident("no-metadata", f"{RELEASE}/crash")
def no_metadata(disk: Disk) -> None:
    """The only controller's volume and the broker's own copy of the metadata are gone. disk-1 is that of the only
    broker, which was killed; one of its directories was set aside as stray, another has lost its partition.metadata."""
    disk.file("bootstrap.checkpoint").unlink(missing_ok=True)
    shutil.rmtree(disk.root / METADATA)
    (disk.root / "users-0").rename(disk.root / f"users-0.{7:032x}-stray")
    (disk.root / "payments-0" / "partition.metadata").unlink()
