"""restart-plan on the disk of a broker with tiered storage."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.answer import answer_object
from kdump.check.options import Options
from kdump.cluster.internal_log import read_records
from kdump.format.count_text import offsets_text
from kdump.format.metadata_record import decode_metadata_record
from kdump.kafka.remote_log_metadata_topic_partitioner import metadata_partition
from kdump.questions.restart_plan.answer import PartitionPlan, RestartPlan
from tests.command import run
from tests.conftest import DISKS, sample
from tests.craft import split


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DISKS / "kafka-4.3-tiered" / "disk", tmp_path / "disk"))


def of(disk: Path) -> tuple[RestartPlan, PartitionPlan]:
    plan = kdump.restart_plan([str(disk)])
    return plan, next(each for each in plan.partitions if each.topic == "tiered")


def test_the_log_starts_in_remote_storage(disk: Path) -> None:
    plan, tiered = of(disk)
    assert (tiered.logStartOffset, tiered.logEndOffset, tiered.loses) == (110377, 260000, False)
    assert any("remote.log.storage.system.enable" in text for text in plan.assumptions)
    assert not tiered.notes


def test_local_segments_that_are_gone_are_in_remote_storage(disk: Path) -> None:
    for path in (disk / "tiered-0").glob("0*"):
        path.unlink()
    _, tiered = of(disk)
    assert (tiered.logEndOffset, tiered.acknowledged) == (110377, 260000 - 110377)
    assert tiered.notes[0].startswith("tiered: remote storage has it up to offset 215208; while another replica leads")
    assert "continues at offset 110377" in tiered.notes[0]


def test_what_is_found_is_complete(disk: Path) -> None:
    for path in (disk / "tiered-0").glob("0*"):
        path.unlink()
    found: list[dict[str, Any]] = []
    plan = kdump.restart_plan([str(disk)], Options(now=0, found=lambda log: found.append(answer_object(log))))
    assert found == [answer_object(log) for log in plan.partitions]
    assert any("tiered" in note for log in found for note in log["notes"])


def test_a_missing_directory_makes_remote_storage_lose_its_segments(disk: Path) -> None:
    shutil.rmtree(disk / "tiered-0")
    _, tiered = of(disk)
    assert tiered.missing
    assert "it deletes the segments in remote storage" in tiered.notes[0]
    assert any("Copy the objects of the partition in remote storage" in action for action in tiered.actions)


def test_without_its_metadata_nothing_is_known_of_remote_storage(disk: Path) -> None:
    shutil.rmtree(disk / "tiered-0")
    shutil.rmtree(disk / "__remote_log_metadata-0")
    _, tiered = of(disk)
    assert "unknown" in tiered.notes[0]
    assert any(action.startswith("If remote storage has these offsets, copy") for action in tiered.actions)


def test_a_broker_that_lost_its_remote_metadata_loses_what_is_in_remote_storage(disk: Path) -> None:
    """As recorded in docs/start-trials.json, whether or not the checkpoints still list it."""
    shutil.rmtree(disk / "__remote_log_metadata-0")
    for name in ("with", "without"):
        if name == "without":
            for path in disk.glob("*-offset-checkpoint"):
                path.unlink()
        plan, _ = of(disk)
        (event,) = (event for event in plan.course.losses if event.code == "startup-remote-metadata-gone")
        assert event.loss is not None
        if name == "with":
            assert (event.loss.firstOffset, event.loss.lastOffset, event.loss.certainty) == (110377, 215208, "certain")
        assert plan.losesWithinHour == "certain"


def test_kafkas_choice_of_the_partition_of_the_remote_metadata() -> None:
    """As RemoteLogMetadataTopicPartitioner of 4.3.1 has it."""
    for topic_id, partition, count, expected in (
        ("xUHW6ZVWrY2o7rqBCtQQfA", 63, 7, 5),
        ("nE-6IpO815z0dlfrNHU28A", 84, 7, 4),
        ("n5TFYTCxF68vSPb8AFUalw", 98, 50, 47),
        ("rvuX2Ck6Iqh8e4IkLZUAkw", 28, 50, 21),
        ("YyLY6wnPypZFdEtul6Yqrg", 10, 50, 17),
    ):
        assert metadata_partition(topic_id, partition, count) == expected


def known_segments(path: Path) -> set[int]:
    """Return the offsets of the segments that a log of __remote_log_metadata has, read record by record."""
    begun: dict[str, range] = {}
    known: set[int] = set()
    for record in read_records(str(path), lambda problem: None):
        assert record is not None
        values = decode_metadata_record(record.value, "storage").values or {}
        name, state = values["remoteLogSegmentId"]["id"], values["remoteLogSegmentState"]
        if "endOffset" in values:
            begun[name] = range(values["startOffset"], values["endOffset"] + 1)
        if state:
            known = known | {*begun.get(name, ())} if state == 1 else known - {*begun.get(name, ())}
    return known


@pytest.mark.sampled
def test_offsets_that_no_remote_segment_has_are_named_by_every_command(disk: Path) -> None:
    """__remote_log_metadata without its first records (as by retention), or without its last ones."""
    log = disk / "__remote_log_metadata-0" / f"{0:020}.log"
    batches = split(log.read_bytes())
    kept = [batches[number:] for number in range(len(batches))] + [batches[:number] for number in range(len(batches))]
    for here in sample(kept, 11):
        for path in log.parent.glob("*.log"):
            path.unlink()
        log = log.with_name(f"{int.from_bytes(here[0][:8], 'big') if here else 0:020}.log")
        log.write_bytes(b"".join(here))
        known = known_segments(log)
        gaps = [offset for offset in range(110377, 215209) if offset not in known]
        text = offsets_text(runs_of(gaps))
        for name in ("ls", "doctor", "retention", "restart-plan"):
            shown = run(name, disk).stdout
            assert text in shown if gaps else "neither here nor in" not in shown, (name, text, shown)
            assert "only in remote storage" not in shown


def runs_of(offsets: list[int]) -> list[tuple[int, int]]:
    """Return consecutive offsets as their first and last."""
    runs: list[tuple[int, int]] = []
    for offset in offsets:
        if runs and runs[-1][1] + 1 == offset:
            runs[-1] = runs[-1][0], offset
        else:
            runs.append((offset, offset))
    return runs
