"""Copies to remote storage that have begun, and what retention states of them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kdump.cluster.remote_log import read_remote_log
from kdump.format.iso_time import iso
from kdump.format.kafka_uuid import uuid_text
from kdump.format.message_writer import encode
from kdump.format.schema import load_folder
from tests import command
from tests.conftest import DISKS, seeded
from tests.craft import batch, record, write_file
from tests.each_case import each_case
from tests.state.test_groups import LOG
from tests.state.test_metadata import config, partition, topic
from tests.state.test_metadata import log as metadata_log

STARTED, FINISHED, DELETING, DELETED = range(4)
NAMES = {0: "RemoteLogSegmentMetadataRecord", 1: "RemoteLogSegmentMetadataUpdateRecord"}
FOLLOWING: dict[int | None, list[int]] = {
    None: [STARTED],
    STARTED: [FINISHED, DELETING],
    FINISHED: [DELETING],
    DELETING: [DELETED],
    DELETED: [],
}
TIME = 1_795_000_000_000
TOPIC = uuid_text(b"A" * 16)


def change(
    number: int,
    state: int,
    first: int = 0,
    last: int = 0,
    time: int = TIME,
    size: int = 1,
    epochs: Sequence[tuple[int, int]] = (),
) -> bytes:
    """Return a record of the segment with this number of the partition t-0."""
    place = {"name": "t", "id": TOPIC, "partition": 0}
    value: dict[str, Any] = {
        "remoteLogSegmentId": {"topicIdPartition": place, "id": uuid_text(number.to_bytes(16, "big"))},
        "startOffset": first,
        "endOffset": last,
        "brokerId": 1,
        "maxTimestampMs": 0,
        "eventTimestampMs": time,
        "segmentLeaderEpochs": [{"leaderEpoch": epoch, "offset": offset} for epoch, offset in epochs],
        "segmentSizeInBytes": size,
        "customMetadata": None,
        "txnIndexEmpty": False,
        "remoteLogSegmentState": state,
    }
    kind = 0 if state == STARTED else 1
    return bytes([1, kind, 0]) + encode(load_folder("storage")[NAMES[kind]], 0, value)


def write_remote_log(root: Path, *changes: bytes) -> Path:
    folder = root / "__remote_log_metadata-0"
    log = batch([record(number, value=value) for number, value in enumerate(changes)]) if changes else b""
    write_file(folder / LOG, log)
    return folder


@each_case("seed", range(12))
def test_a_copy_that_has_begun(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compared with a model: the last one of offsets that no finished copy has reached."""
    random = seeded(f"begun copies {seed}")
    states: dict[int, int] = {}
    changes, end, expected = [], -1, []
    for _ in range(random.randrange(1, 20)):
        number = random.randrange(12)
        options = FOLLOWING[states.get(number)]
        if not options:
            continue
        states[number] = state = random.choice(options)
        first = number // 2 * 10  # two copies of the same segment: the first one failed, or its broker was killed
        changes.append(change(number, state, first, first + 9))
        end = max(end, first + 9) if state == FINISHED else end
        expected = [each for each in expected if each[0] != number]
        expected += [(number, first, len(changes) - 1)] if state == STARTED else []
    log = read_remote_log([str(write_remote_log(tmp_path_factory.mktemp("disk"), *changes))], 1)
    begun = next((each for each in reversed(expected) if each[1] + 9 > end), None)
    copy = log.copy_of(TOPIC, 0)
    assert (copy and (copy.first, copy.last, copy.record)) == (begun and (begun[1], begun[1] + 9, begun[2]))
    assert log.end_of(TOPIC, 0) == end


def tiered(root: Path, *changes: bytes, without: int | None = None) -> Path:
    """Write t-0 with four segments of ten old records, without a producer snapshot."""
    records = [topic("t", "A"), partition("A", 0, [1]), topic("__remote_log_metadata", "R"), partition("R", 0, [1])]
    records += [config(2, "t", "remote.storage.enable", "true"), config(2, "t", "local.retention.ms", "1")]
    write_file(root / "__cluster_metadata-0" / LOG, metadata_log(records))
    (root / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    for base in range(0, 40, 10):
        data = batch([record(n, value=b"v") for n in range(10)], offset=base, baseTimestamp=TIME, maxTimestamp=TIME)
        write_file(root / "t-0" / f"{base:020}.log", data)
        if base != without:
            write_file(root / "t-0" / f"{base:020}.snapshot", bytes.fromhex("0001") + bytes(8))
    write_remote_log(root, *changes)
    return root


def held(root: Path, *arguments: str) -> dict[str, Any]:
    """Return the only blocker of retention."""
    lines = command.run("retention", root, "--json", *arguments).stdout.splitlines()
    (hold,) = (each for each in map(json.loads, lines) if each["type"] == "retentionHold")
    return hold


FIRST = (change(0, STARTED, 0, 9), change(0, FINISHED))
HANGS = "the copy of offsets 10..19 by broker 1 has neither finished nor failed since"


@pytest.mark.parametrize(
    ("changes", "without", "stated", "fix"),
    [
        (FIRST, None, "", "Look for RemoteLogManager errors"),
        ((*FIRST, change(1, STARTED, 10, 19)), None, HANGS, "Restart the broker"),
        ((*FIRST, change(1, STARTED, 10, 19), change(1, DELETING)), None, "", "Look for RemoteLogManager errors"),
        ((*FIRST, change(1, STARTED, 10, 19)), 20, f"{20:020}.snapshot is missing", "Stop the broker, back "),
        ((*FIRST, change(1, STARTED, 10, 19)), 10, HANGS, "Restart the broker"),  # its segment is copied
        ((*FIRST, change(1, STARTED, 10, 19)), 30, HANGS, "Restart the broker"),  # a later one: not yet
        ((), 10, f"{10:020}.snapshot is missing", "Stop the broker, back "),
    ],
)
def test_why_a_segment_is_not_copied(
    changes: tuple[bytes, ...], without: int | None, stated: str, fix: str, tmp_path: Path
) -> None:
    root = tiered(tmp_path, *changes, without=without)
    late = ("--now", iso(TIME + 3_600_000))
    hold = held(root, *late)
    assert stated in hold["message"]
    assert ("COPY_SEGMENT_STARTED" in hold["message"]) == (stated == HANGS)
    assert hold["fix"].startswith(fix)
    item = next(line for line in command.run("doctor", root, *late).stdout.splitlines() if "[retention-tier]" in line)
    assert stated in item


def test_a_copy_under_way_is_waited_for(tmp_path: Path) -> None:
    root = tiered(tmp_path, *FIRST, change(1, STARTED, 10, 19, TIME + 60_000))
    hold = held(root, "--now", iso(TIME + 120_000))
    assert HANGS in hold["message"]
    assert hold["fix"].startswith("Wait for the copy")


def test_a_broker_at_work_has_not_copied_yet_what_it_has_just_rolled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tiered(tmp_path, *FIRST)
    for is_at_work in (None, True):
        monkeypatch.setattr("kdump.check.log_dir_context.is_running", lambda path, it=is_at_work: it)
        for late in (0, 3_600_000):
            now = ("--now", iso(int(time.time() * 1000) + late))
            is_due = late > 0 or not is_at_work
            assert held(root, *now)["isAgainstPolicy"] == is_due
            assert ("[retention-tier]" in command.run("doctor", root, *now).stdout) == is_due


def test_space_names_the_config_in_force(tmp_path: Path) -> None:
    root = tiered(tmp_path, *FIRST)
    topics = {each["topic"]: each for each in command.objects("space", root) if each["type"] == "spaceTopic"}
    assert {name: each["retentionMsConfig"] for name, each in topics.items()} == {
        "t": "local.retention.ms",
        "__remote_log_metadata": "retention.ms",
    }
    assert "(local)" in command.run("space", root).stdout


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            "--now 2026-11-22",
            "the first is due from 2026-11-28T08:22:05.546Z on (retention.ms) or after 1,056,217 more",
        ),
        ("--now 2027-11-22", "its leader deletes 2 by retention.ms at the next check, 2.0 MiB, up to offset 215208"),
        (
            "--now 2026-11-28T08:22:05.600",
            "deletes 1 by retention.ms at the next check, 1023.6 KiB, up to offset 162792",
        ),
        ("--now 2026-11-22 --config retention.bytes=1943784", "the first is due from 2026-11-28T08:22:05.546Z"),
        ("--now 2026-11-22 --config retention.bytes=1943783", "deletes 1 by retention.bytes at the next check"),
        ("--now 2026-11-22 --config retention.bytes=1 --config retention.ms=-1", "deletes 2 by retention.bytes"),
    ],
)
def test_what_retention_deletes_in_remote_storage(options: str, expected: str) -> None:
    """It counts what is there, 2,096,256 bytes, and the local segment that is not, 895,655 bytes."""
    rows = command.objects("retention", DISKS / "kafka-4.3-tiered" / "disk" / "tiered-0", *options.split())
    (note,) = rows[-1]["notes"]
    assert note.startswith("remote storage has 2 segments, 2.0 MiB, offsets 110377..215208; ")
    assert expected in note
