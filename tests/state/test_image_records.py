"""The records of a metadata snapshot that are written from an image: those of Kafka's own snapshots, byte for byte, and
for every type of record the same image again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdump.cluster.internal_log import read_records
from kdump.cluster.metadata_files import MetadataFiles, metadata_files
from kdump.cluster.metadata_log import replay_metadata
from kdump.format.batch_writer import new_batch
from kdump.format.kafka_release import LINES
from kdump.format.known_releases import Line, known
from kdump.state.image_records import image_records
from kdump.state.left_out_records import RecordChoice
from kdump.state.metadata_image import MetadataImage
from tests.conftest import DISKS, FIXTURES, ROOT
from tests.each_case import each_case
from tools import metadata_trials
from tools.metadata_trials import Case, Entry

RELEASES = ROOT / "build" / "corpus" / "releases"
SNAPSHOTS: dict[str, tuple[Path, Line]] = {
    "4.3": (FIXTURES / "clean-1" / "__cluster_metadata-0" / f"{327:020}-0000000001.checkpoint", (4, 3)),
    "3.3-first": (RELEASES / "3.3.2-kraft/crash/__cluster_metadata-0" / f"{6:020}-0000000001.checkpoint", (3, 3)),
    "3.3": (RELEASES / "3.3.2-kraft/crash/__cluster_metadata-0" / f"{133:020}-0000000002.checkpoint", (3, 3)),
}
STATE = ("topics", "configs", "brokers", "controllers", "features", "quotas", "acls", "scram", "scram_keys", "tokens")
"""What of an image is in the records of a snapshot, but for the block of producer IDs."""
WITH_SNAPSHOT_RECORDS = [line for line in LINES if line >= (3, 9)]


def image_of(files: MetadataFiles) -> MetadataImage:
    return replay_metadata(files, choice=RecordChoice(lambda name, value: None))


def state(image: MetadataImage) -> dict[str, Any]:
    """Return what is compared. An image has partitions in a table, which compares by identity."""
    found: dict[str, Any] = {name: dict(getattr(image, name)) for name in STATE}
    found["topics"] = {
        name: (topic.id, dict(topic.configs), dict(topic.partitions)) for name, topic in image.topics.items()
    }
    found["configs"] = {name: configs for name, configs in image.configs.items() if configs}
    found["next"] = [each.nextProducerId for each in image.producer_ids.values()]
    return found


def written(folder: Path, records: list[bytes], end: int) -> MetadataFiles:
    """Return the files of a log that is one snapshot of these records."""
    folder.mkdir(parents=True)
    path = folder / f"{end:020}-0000000001.checkpoint"
    header, footer = bytes.fromhex("0000000001a1fd1de11f00"), bytes.fromhex("000000")
    data = new_batch(0, 1, 1, [(bytes.fromhex("00000003"), header)], is_control=True)
    data += new_batch(1, 1, 1, [(None, each) for each in records])
    data += new_batch(1 + len(records), 1, 1, [(bytes.fromhex("00000004"), footer)], is_control=True)
    path.write_bytes(data)
    return MetadataFiles(str(folder), ((end, str(path)),))


@each_case("name", SNAPSHOTS)
def test_the_records_are_those_of_a_real_snapshot(name: str) -> None:
    path, line = SNAPSHOTS[name]
    assert DISKS.exists()
    own = [each.value for each in read_records(str(path), pytest.fail) if each and not each.is_control]
    image = image_of(MetadataFiles(str(path.parent), ((int(path.name[:20]), str(path)),)))
    assert list(image_records(image, line)) == own


@each_case("line", WITH_SNAPSHOT_RECORDS)
def test_the_records_replay_to_the_same_image(line: Line, tmp_path: Path) -> None:
    release = known(line)
    metadata_trials.write(Case("all", metadata_trials.base(release)), tmp_path / "log", release)
    image = image_of(metadata_files(str(tmp_path / "log")))
    assert image.scram_keys
    assert not image.problems
    records = list(image_records(image, line))
    again = image_of(written(tmp_path / "again", records, image.end_offset))
    assert state(again) == state(image)
    assert not again.problems


def test_a_level_decides_the_versions(tmp_path: Path) -> None:
    """A snapshot of metadata.version 3.3-IV0 has no directories, no controllers and no SCRAM credentials."""
    release = known((4, 3))
    entries = metadata_trials.base(release)
    first = Entry("FeatureLevelRecord", {"name": "metadata.version", "featureLevel": 4})
    metadata_trials.write(Case("old", [first, *entries[1:]]), tmp_path / "log", release)
    image = image_of(metadata_files(str(tmp_path / "log")))
    frames = {value[1:3] for value in image_records(image, (4, 3))}
    assert {bytes((0, 0)), bytes((3, 0))} <= frames, "versions of RegisterBrokerRecord and PartitionRecord"
    assert not {11, 27, 10} & {frame[0] for frame in frames}
