"""The log start offset of a tiered topic without an entry in log-start-offset-checkpoint: that of remote storage. A
broker that is killed before it writes the checkpoint leaves such a disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdump.cluster.disks import Disks
from kdump.cluster.log_offsets import LogOffsetsByPartition
from tests.command import objects
from tests.conftest import DISKS
from tests.damages import copy_disk

CHECKPOINT = "log-start-offset-checkpoint"
REAL = 110377
"""The log start offset that the broker had, from its checkpoint: where remote storage begins."""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return copy_disk(DISKS / "kafka-4.3-tiered" / "disk", tmp_path / "disk")


def group_start(disk: Path) -> int:
    disks = Disks.at([str(disk)])
    metadata = disks.newest_metadata()[1]
    ends = LogOffsetsByPartition(
        disks.directories, metadata, disks.node_id, lambda directory: disks.remote_log(metadata, directory)
    )
    end = ends.end("tiered", 0)
    assert end is not None
    return end.logStartOffset


def starts(disk: Path) -> list[int | None]:
    """Return what each command states, and groups computes, of the tiered partition."""
    found = []
    for command in (("ls",), ("transactions", "--list"), ("producers", "--list"), ("retention", "--list")):
        rows = objects(command[0], disk, *command[1:])
        found += [row["logStartOffset"] for row in rows if row.get("topic") == "tiered" and "logStartOffset" in row]
    return [*found, group_start(disk)]


@pytest.mark.parametrize("content", [None, "0\n0\n"])
def test_it_is_that_of_remote_storage(disk: Path, content: str | None) -> None:
    assert (disk / CHECKPOINT).read_text() == f"0\n1\ntiered 0 {REAL}\n"
    before = starts(disk)
    (disk / CHECKPOINT).unlink()
    if content is not None:
        (disk / CHECKPOINT).write_text(content)
    assert starts(disk) == before == [REAL] * len(before)
    assert len(before) > 3


def test_nothing_is_known_of_remote_storage(disk: Path) -> None:
    """LogLoader.load sets it to 0: no committed offset is below it."""
    (disk / CHECKPOINT).unlink()
    for segment in (disk / "__remote_log_metadata-0").glob("*.log"):
        segment.write_bytes(b"")
    assert group_start(disk) == 0
