"""What verify, retention, producers and transactions conclude from the same files depends on the release."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.format.kafka_release import LINES, KafkaRelease, parse_release
from kdump.log.paths import target
from kdump.questions.producers.answer import PartitionProducers, Producer
from kdump.questions.retention.compaction import compaction, settle_tombstones
from kdump.questions.retention.configs import ConfigOverrides, settings
from kdump.questions.retention.deletion import LogFacts, deletions
from kdump.questions.retention.observed_segments import ObservedSegment, Tombstones
from kdump.state.releases import DIFFERENCES, RUNNING, Difference
from tests import command
from tests.conftest import FIXTURES, RELEASES
from tests.each_case import each_case

DAY = 86_400_000
DOUBTFUL, STATED = RELEASES / "3.6.2-zk" / "clean", RELEASES / "3.3.2-kraft" / "clean"


def partition(disk: Path, **options: Any) -> Any:
    """Return the PartitionProducers of payments-0, two days after its last batch."""
    path = str(disk / "payments-0")
    last = max(row.lastBatchTimestamp or 0 for row in kdump.producers(path) if isinstance(row, Producer))
    found = list(kdump.producers(path, now=last + 2 * DAY, **options))
    return next(row for row in found if isinstance(row, PartitionProducers))


def test_producers_expire_later_before_3_4() -> None:
    """KIP-854: producer.id.expiration.ms is a day, transactional.id.expiration.ms is a week."""
    old, new = partition(STATED), partition(STATED, kafka_version="3.4")
    assert (old.kafkaVersion, old.producerIdExpirationMs) == ("3.3", 7 * DAY)
    assert (new.kafkaVersion, new.producerIdExpirationMs) == ("3.4", DAY)
    assert new.expired > old.expired
    assert partition(STATED, expiration=DAY).expired == new.expired


@pytest.mark.parametrize("name", ["producers", "retention"])
def test_a_doubt_that_matters_is_stated(name: str) -> None:
    """No file of a disk with ZooKeeper states the release; 2.8 to 3.6 differ."""
    assert "it may be any from 2.8 to 3.6 (--kafka-version)" in command.run(name, DOUBTFUL).stderr
    for options in (["--kafka-version", "2.8"], ["--kafka-version", "3.6.2"]):
        assert "--kafka-version" not in command.run(name, DOUBTFUL, *options).stderr
    assert "--kafka-version" not in command.run(name, STATED).stderr


def test_the_command_that_aborts() -> None:
    """KIP-664: brokers up to 2.8 need all fields of the marker. A partition without its log directory states no
    release, so that both are shown."""
    disk = RELEASES / "4.3.1-kraft" / "crash"
    alone = FIXTURES / "crash-1" / "payments-0"

    def shown(*arguments: Any) -> list[str]:
        result = command.run("transactions", *arguments, "--open", "--now", "2030-01-01T00:00")
        return [line.strip() for line in result.stdout.splitlines() if " abort --topic" in line]

    hanging = [alone, "--kafka-version", "2.8"]
    (old,) = shown(*hanging)
    assert "--coordinator-epoch" in old
    (new,) = shown(alone, "--kafka-version", "3.0")
    assert "--start-offset" in new
    assert shown(alone) in ([new, old], [new])  # with the metadata next to it, the release is known
    assert not shown(disk)  # its coordinator will end it


def test_an_unknown_release_is_a_usage_error() -> None:
    for name in ("verify", "retention", "producers", "transactions"):
        result = command.run(name, STATED, "--kafka-version", "1.1")
        assert result.exit_code == 2
        assert "kdump does not know Kafka 1.1" in result.stderr


# --- verify ---


def findings(disk: Path, *options: str) -> dict[str, list[tuple[str, str]]]:
    """Return severity and message of each finding, by code."""
    found: dict[str, list[tuple[str, str]]] = {}
    result = command.run("verify", disk, "--only", "checkpoints,files", "--json", *options)
    for row in map(json.loads, result.stdout.splitlines()):
        if row["type"] == "finding":
            found.setdefault(row["code"], []).append((row["severity"], row["message"]))
    return found


def edited(tmp_path: Path, name: str, file: str, change: Callable[[str], str]) -> Path:
    disk = shutil.copytree(RELEASES / name / "clean", tmp_path / "disk")
    path = disk / file
    path.write_text(change(path.read_text()))
    return disk


def without(text: str, name: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(name))


def test_a_broker_with_zookeeper_adds_its_id(tmp_path: Path) -> None:
    """The startups of 2.8.2 and 3.9.1 in docs/release-trials.json (meta-no-node) succeed; KRaft nodes exit."""
    disk = edited(tmp_path, "2.8.2-zk", "meta.properties", lambda text: without(text, "broker.id"))
    assert "meta-properties-invalid" not in findings(disk, "--kafka-version", "2.8-zookeeper")
    assert findings(disk, "--kafka-version", "4.0")["meta-properties-invalid"][0][0] == "error"


@pytest.mark.parametrize(
    ("name", "asked", "is_valid"),
    [("4.0.0-kraft", "3.6-zookeeper", False), ("4.0.0-kraft", "3.6-kraft", True), ("3.9.1-zk", "3.3-kraft", False)],
)
def test_the_version_of_meta_properties(name: str, asked: str, *, is_valid: bool) -> None:
    """Brokers with ZooKeeper read version 0 alone, and KRaft nodes up to 3.3 version 1."""
    found = findings(RELEASES / name / "clean", "--kafka-version", asked)
    assert ("meta-properties-invalid" not in found) == is_valid


def test_a_quorum_state_of_dynamic_quorums(tmp_path: Path) -> None:
    file = "__cluster_metadata-0/quorum-state"
    dynamic = '"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1'
    disk = edited(tmp_path, "3.9.1-kraft", file, lambda text: text.replace('"data_version":0', dynamic))
    assert "quorum-state-invalid" in findings(disk, "--kafka-version", "3.7-kraft")
    assert "quorum-state-invalid" not in findings(disk, "--kafka-version", "3.9-kraft")


def test_stray_directories_stop_old_brokers(tmp_path: Path) -> None:
    disk = shutil.copytree(STATED, tmp_path / "disk")
    (disk / "plain-0").rename(disk / "plain-0.0123456789abcdef0123456789abcdef-stray")

    def severity(version: str) -> set[str]:
        found = findings(disk, "--kafka-version", version)["directory-stray"]
        return {severity for severity, message in found if "-stray" in message}

    assert severity("3.6.0-kraft") == {"error"}
    assert severity("3.6.1-kraft") == {"warning"}


# --- retention ---


def segment(base: int, modified: int, **fields: Any) -> ObservedSegment:
    made = ObservedSegment(target(f"t-0/{base:020}.log"), base, 100, modified, end=100, batches=1, records=10)
    made.tombstones, made.markers = Tombstones(**fields), Tombstones()
    made.largest = made.first_timestamp = modified
    return made


def configs(**values: str) -> Any:
    return settings("t", None, None, ConfigOverrides({name.replace("_", "."): text for name, text in values.items()}))


@each_case("version, due, legacy", [("3.0", 4, 3), ("3.1", 0, 0)])
def test_tombstones_before_delete_horizons(version: str, due: int, legacy: int) -> None:
    """LogCleaner.clean of 2.8.2: deleteHorizonMs is the modification time of the last clean segment, less
    delete.retention.ms; tombstones go from segments that are not newer."""
    release = parse_release(version)
    found = [segment(0, 1000, unstamped=4), segment(10, 6000, unstamped=3), segment(20, 9000), segment(30, 9000)]
    config = configs(cleanup_policy="compact", delete_retention_ms="5000")
    log = LogFacts(0, 40, None, None, now=10_000)
    state = compaction(found, log, config, 20, release)
    settle_tombstones(found, state, config, release)
    stones = [each.tombstones for each in found if each.tombstones is not None]
    assert sum(each.due for each in stones) == due
    assert sum(each.legacy for each in stones) == legacy
    assert sum(each.total for each in stones) == 7


def test_tombstones_of_old_formats_have_no_horizon() -> None:
    """In Cleaner of all releases, magic 0 and 1 go by segment."""
    found = [segment(0, 1000, legacy=4), segment(10, 6000, legacy=3, pending=1), segment(20, 9000)]
    config = configs(cleanup_policy="compact", delete_retention_ms="5000")
    state = compaction(found, LogFacts(0, 30, None, None, now=10_000), config, 20)
    settle_tombstones(found, state, config, parse_release("4.3"))
    stones = [each.tombstones for each in found if each.tombstones is not None]
    assert [(each.due, each.legacy, each.pending) for each in stones] == [(4, 0, 0), (0, 3, 1), (0, 0, 0)]


@each_case("version, stop", [("3.0", 20), ("3.1", 10)])
def test_the_cleaner_and_the_high_watermark(version: str, stop: int) -> None:
    """KAFKA-13194: earlier releases clean above the high watermark."""
    found = [segment(0, 1000), segment(10, 1000), segment(20, 1000)]
    log = LogFacts(0, 30, high_watermark=15, last_stable=None, now=10_000)
    assert compaction(found, log, configs(cleanup_policy="compact"), None, parse_release(version)).stop == stop


@each_case("version, rules", [("2.8", ["retention.ms"] * 2), ("3.0", ["logStartOffset", "retention.ms"])])
def test_the_order_of_the_rules(version: str, rules: list[str]) -> None:
    """Both delete the same segments, but log another reason."""
    found = [segment(0, 1000), segment(10, 1000), segment(20, 9000)]
    log = LogFacts(10, 30, None, None, now=10_000)
    gone = deletions(found, log, configs(retention_ms="5000"), parse_release(version))
    assert [each.deletionRule for each in gone if each.deletion == "now"] == rules


@pytest.mark.parametrize(("version", "name"), [("3.5", "difference"), ("3.6", "after")])
def test_what_limits_timestamps(version: str, name: str) -> None:
    text = command.run("retention", FIXTURES / "clean-1" / "future-0", "--kafka-version", version).stdout
    assert f"Set message.timestamp.{name}.max.ms: the broker then rejects" in " ".join(text.split())


# --- the declarations ---


def test_every_difference_decides_something() -> None:
    """None applies to all releases, or to none."""
    every = [KafkaRelease(major, minor, None, mode) for major, minor in LINES for mode in ("kraft", "zookeeper")]
    for name, each in {**DIFFERENCES, **RUNNING}.items():
        assert isinstance(each, Difference)
        patches = [KafkaRelease(*each.since), KafkaRelease(3, 7, 0, "kraft")] if each.since else []
        assert {each.applies(release) for release in [*every, *patches]} == {True, False}, name
