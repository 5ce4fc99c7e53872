"""Checks the course of a startup: its events in time, and what they lose."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.check.options import Options
from kdump.kafka.server_properties import ServerProperties
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.course import (
    BEFORE,
    FIRST_CHECKS,
    HORIZON,
    LOADING,
    MAY,
    OFFSETS,
    RECORDS,
    TRANSACTIONS,
    Loss,
    Part,
    StartupEvent,
    UnansweredStep,
    course_of,
)
from kdump.questions.retention.answer import SegmentRetention
from kdump.questions.retention.deletion import LOG_START
from kdump.questions.salvage.answer import Salvaged
from tests.clock.sitecustomize import EVENING
from tests.conftest import DISKS, FIXTURES, RELEASES, ROOT, sample
from tests.craft import split
from tests.damages import copy_disk
from tools.start_trials import COURSES, predicted_again
from tools.trials.recorded_results import RecordedResults

STRAY = Problem("startup-stray")


def test_the_worst_within_the_hour_comes_first_and_nothing_is_lost_only_if_all_is_answered() -> None:
    later = StartupEvent(FIRST_CHECKS, STRAY, HORIZON + 1, loss=Loss(RECORDS, records=9))
    few, many = (StartupEvent(LOADING, STRAY, None, loss=Loss(RECORDS, records=number)) for number in (1, 2))
    maybe = StartupEvent(BEFORE, STRAY, 0, loss=Loss(RECORDS, MAY, records=3))
    offsets = StartupEvent(FIRST_CHECKS, STRAY, 600_000, loss=Loss(OFFSETS, offsets=100))
    harmless = StartupEvent(BEFORE, STRAY, 0)
    unanswered = UnansweredStep("retention", "no configs")
    course = course_of(
        [Part((later, few, maybe)), Part((many, offsets, harmless), (unanswered,)), Part((), (unanswered,))]
    )
    assert course.losses == [many, few, offsets, maybe]
    assert course.losesWithinHour == "certain"
    assert course.in_order == [maybe, harmless, few, many, offsets, later]
    assert course.unanswered == [unanswered]
    assert course_of([Part((maybe, later))]).losesWithinHour == "may"
    assert course_of([Part((harmless, later), (unanswered,))]).losesWithinHour == "unknown"
    assert course_of([Part((harmless, later))]).losesWithinHour == "no"


def events(disk: Path, **more: Any) -> list[StartupEvent]:
    return kdump.restart_plan([str(disk)], **more).course.events


@pytest.mark.parametrize("days", [0, 6, 8, 400])
def test_retention_deletes_what_kdump_retention_says_is_due(days: int) -> None:
    """Within the hour, and all of it is lost that the running broker would not have deleted."""
    disk, now = DISKS / "kafka-4.3" / "clean-1", EVENING * 1000 + days * 86_400_000
    due: dict[tuple[str, int], int] = {}
    for segment in kdump.retention(str(disk), now=now + HORIZON, deep=False):
        if isinstance(segment, SegmentRetention) and segment.deletion == "now" and segment.deletionRule != LOG_START:
            assert segment.topic is not None
            assert segment.partition is not None
            due[segment.topic, segment.partition] = segment.lastOffset or 0
    checks = [event for event in events(disk, now=now) if event.phase == FIRST_CHECKS]
    lost = {(event.topic, event.partition): event.loss for event in checks}
    assert {key for key, last in due.items() if last} == lost.keys()
    assert all(loss is not None and loss.lastOffset == due[key] for key, loss in lost.items())  # type: ignore[index]
    assert all(event.dueMs == 30_000 for event in checks)


def test_a_known_default_and_a_topic_without_retention_are_certain(tmp_path: Path) -> None:
    disk = copy_disk(DISKS / "kafka-4.3" / "clean-1", tmp_path / "disk")
    late = EVENING * 1000 + 30 * 86_400_000
    for values, certainty in (({}, "certain"), ({"log.retention.ms": "-1"}, "no")):
        server = ServerProperties("server.properties", {"node.id": "1", "process.roles": "broker", **values})
        plan = kdump.restart_plan([str(disk)], Options(server=server, now=late))
        kept = [event for event in plan.course.losses if event.phase == FIRST_CHECKS]
        assert [event.loss.certainty for event in kept if event.loss][:1] == ([] if certainty == "no" else [certainty])


@pytest.mark.parametrize("cut", [1, 10, 500, 5000])
def test_salvage_and_the_plan_agree_on_an_incomplete_batch(cut: int, tmp_path: Path) -> None:
    disk = copy_disk(FIXTURES / "disk-1", tmp_path / "disk")
    log = disk / "orders-none-0" / f"{0:020}.log"
    os.truncate(log, log.stat().st_size - cut)
    (disk / ".kafka_cleanshutdown").unlink(missing_ok=True)
    (disk / "replication-offset-checkpoint").write_text("0\n0\n")
    (event,) = [each for each in events(disk) if each.topic == "orders-none" and each.phase == LOADING]
    (salvaged,) = [
        each for each in kdump.salvage([str(log.parent)], out=str(tmp_path / "out")) if isinstance(each, Salvaged)
    ]
    assert event.loss is not None
    assert event.loss.certainty == MAY
    assert (event.loss.offsets, event.loss.bytes) == (salvaged.lostOffsets, salvaged.bytes["torn"])
    assert event.loss.records == salvaged.records.get("torn")


def test_a_directory_with_the_topic_id_of_another_topic_is_not_served(tmp_path: Path) -> None:
    """As recorded in docs/start-trials.json (topic-id-of-another): InconsistentTopicIdException, and others follow."""
    disk = copy_disk(RELEASES / "4.4.0-kraft" / "clean", tmp_path / "disk")
    shutil.copy(disk / "codecs-0" / "partition.metadata", disk / "plain-0")
    (event,) = [each for each in events(disk) if each.code == "startup-topic-id-of-another"]
    assert (event.topic, "which is the ID of the topic codecs" in event.message) == ("plain", True)
    assert event.loss is not None
    assert (event.loss.certainty, event.loss.firstOffset, event.loss.lastOffset) == ("certain", 0, 199)


def test_a_truncated_metadata_log_is_what_the_only_voter_knows(tmp_path: Path) -> None:
    """As recorded in docs/start-trials.json (metadata-bit): a topic that was deleted later is created again."""
    disk = copy_disk(RELEASES / "4.4.0-kraft" / "clean", tmp_path / "disk")
    log = disk / "__cluster_metadata-0" / f"{0:020}.log"
    state = log.with_name("quorum-state")
    state.write_text(state.read_text().replace('"leaderId":0', '"leaderId":1').replace('"voterId":0', '"voterId":1'))
    data = bytearray(log.read_bytes())
    batches = split(bytes(data))
    data[sum(map(len, batches[: len(batches) * 2 // 3])) + 70] ^= 1
    log.write_bytes(data)
    plan = kdump.restart_plan([str(disk)])
    assert plan.loses_metadata
    assert [directory.newPartitions for directory in plan.directories] == [1]


def test_what_is_below_the_high_watermark_is_lost_with_the_headers_that_stated_it(tmp_path: Path) -> None:
    """As recorded in docs/start-trials.json (zeros-at-the-end): one damaged batch is left of two."""
    disk = copy_disk(RELEASES / "4.4.0-kraft" / "crash", tmp_path / "disk")
    log = max((disk / "plain-0").glob("*.log"))
    log.write_bytes(log.read_bytes()[:-600] + bytes(600))
    (event,) = [each for each in events(disk) if each.topic == "plain" and each.phase == LOADING]
    assert event.loss is not None
    loss = event.loss
    assert (loss.firstOffset, loss.lastOffset, loss.offsets, loss.records) == (330, 349, 20, None)


def test_without_a_producer_snapshot_open_transactions_are_forgotten_after_a_clean_shutdown(tmp_path: Path) -> None:
    disk = copy_disk(FIXTURES / "disk-1", tmp_path / "disk")
    for snapshot in (disk / "payments-0").glob("*.snapshot"):
        snapshot.unlink()
    (event,) = [each for each in events(disk) if each.code == "startup-producers-forgotten"]
    assert (event.topic, event.loss) == ("payments", Loss(TRANSACTIONS))
    (disk / ".kafka_cleanshutdown").unlink()
    assert "startup-producers-forgotten" not in [each.code for each in events(disk)]


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_what_is_lost_with_a_directory_is_what_its_records_are(topic: str, tmp_path: Path) -> None:
    """Committed offsets, or the outcome of transactions: what is open then stays open for ever."""
    disk = copy_disk(RELEASES / "4.4.0-kraft" / "clean", tmp_path / "disk")
    before = {each.code for each in events(disk)}
    assert "startup-transactions-aborted" in before
    assert "transaction-hanging" not in before
    shutil.rmtree(disk / f"{topic}-0")
    (missing,) = (each for each in events(disk) if each.code == "startup-missing")
    assert missing.loss is not None
    assert missing.loss.certainty == "certain"
    assert missing.loss.what == {"__consumer_offsets": OFFSETS, "__transaction_state": TRANSACTIONS}[topic]
    hanging = [(each.topic, each.message, each.loss) for each in events(disk) if each.code == "transaction-hanging"]
    said = ("payments", "a hanging transaction of producer 13: no coordinator will end it", None)
    assert hanging == ([said] if topic == "__transaction_state" else [])
    assert bool(hanging) != ("startup-transactions-aborted" in {each.code for each in events(disk)})


def test_offsets_that_were_due_before_the_broker_was_stopped_are_not_lost_by_the_start() -> None:
    """What retention deletes is said in the same way."""
    disk, three_days_later = RELEASES / "4.4.0-kraft" / "clean", 1_795_953_600_000
    for minutes, offsets in (("1440", 3), ("1", None)):
        server = ServerProperties("server.properties", {"node.id": "1", "offsets.retention.minutes": minutes})
        plan = kdump.restart_plan([str(disk)], Options(server=server, now=three_days_later))
        (event,) = (each for each in plan.course.events if each.code == "startup-offsets-expire")
        assert event.message.startswith("3 committed offsets of group readers expire")
        assert (event.loss and event.loss.offsets) == offsets


@pytest.mark.sampled
def test_every_course_that_was_tried() -> None:
    """What is predicted now differs from what brokers and their clients did only where docs/start-trials.json says."""
    results = RecordedResults(ROOT / "docs" / "start-trials.json", COURSES)
    wrong = {}
    for course in sample([each for each in COURSES if each.name in results.by_name], 60, "start"):
        (record,) = results.by_name[course.name]
        found = predicted_again(course, results)["differences"]
        if found != record["differences"]:
            wrong[course.name] = found
    assert not wrong


def test_the_properties_decide_who_votes(tmp_path: Path) -> None:
    """A static quorum has the voters of the configuration alone; a sole voter without a log starts a new cluster."""
    disk = copy_disk(FIXTURES / "clean-2", tmp_path / "disk")
    own = {"node.id": "2", "process.roles": "broker,controller", "log.dirs": str(disk)}
    state = disk / "__cluster_metadata-0" / "quorum-state"
    state.write_text(state.read_text().replace('"leaderId":0', '"leaderId":2').replace('"voterId":0', '"voterId":2'))
    without = kdump.restart_plan([str(disk)], Options(server=ServerProperties("server.properties", own)))
    assert [stop.code for stop in without.allStops] == ["startup-no-voters"]
    shutil.rmtree(disk / "__cluster_metadata-0")
    for servers, stops in (("localhost:9093", ["startup-no-voters"]), ("localhost:9093,other:9093", [])):
        values = {**own, "listeners": "C://localhost:9093", "controller.quorum.bootstrap.servers": servers}
        lost = kdump.restart_plan([str(disk)], Options(server=ServerProperties("server.properties", values)))
        assert [stop.code for stop in lost.allStops] == stops
    with_voters = {**own, "controller.quorum.voters": "2@localhost:9093"}
    alone = kdump.restart_plan([str(disk)], Options(server=ServerProperties("server.properties", with_voters)))
    assert [(log.name, bool(log.stray)) for log in alone.partitions] == [("ledger-0", True)]
    assert alone.copyFirst == [str(disk)]
    assert not alone.withoutMetadata
    assert alone.losesWithinHour == "may"
