"""`kdump restore` against a cluster in memory: exactly once over kills, refusals, comparison, groups."""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from kdump.check.options import Options
from kdump.cli import cli
from kdump.decode.record_cut import CutRequest
from kdump.io.run import Limits
from kdump.io.window import Window
from kdump.log.region import Region
from kdump.log.region_reader import regions
from kdump.questions.restore import run as restore_run
from kdump.questions.restore.cluster import TargetCluster
from kdump.questions.restore.source import LEDGER, RestoreQuery, SourceRecord, find_sources
from tests import craft
from tests.cluster.test_remote_mount import object_at, one_remote, segment
from tests.each_case import each_case
from tests.questions.restore.fake_cluster import FakeCluster, Killed, World, random_kill
from tests.questions.salvage.cutting import Log, Row

DAY = 86_400_000
Kdump = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def kdump(world: World, monkeypatch: pytest.MonkeyPatch) -> Kdump:
    """Return a function that runs the command, and returns its JSON objects, the exit status first."""
    monkeypatch.setattr("kdump.questions.restore.command.TargetCluster", lambda to, config: FakeCluster(world, config))
    monkeypatch.setattr(restore_run, "MAX_RECORDS", 7)

    def run(*words: object) -> list[dict[str, Any]]:
        result = CliRunner().invoke(cli, ["restore", *map(str, words), "--to", "kafka:9092", "--json"])
        if isinstance(result.exception, Killed):
            raise result.exception
        assert not result.exception or isinstance(result.exception, SystemExit), result.exception
        return [{"exit": result.exit_code, "stderr": result.stderr}, *map(json.loads, result.stdout.splitlines())]

    return run


def committed(log: Log) -> list[Row]:
    """Return the records that a read_committed consumer receives."""
    rows: dict[int, tuple[int, Row]] = {}
    running: dict[int, list[int]] = {}
    for made in log.batches:
        header = craft.BATCH_HEADER.read(made.data) if made.data[16] > 1 else None
        producer = -1 if header is None else header.producerId
        if header is not None and header.isControlBatch:
            ended = running.pop(producer, [])
            if not made.rows[0].key[3]:  # type: ignore[index]
                for offset in ended:
                    del rows[offset]
            continue
        for row in made.rows:
            rows[row.offset] = (producer, row)
            if header is not None and header.isTransactional:
                running.setdefault(producer, []).append(row.offset)
    stable = min((offsets[0] for offsets in running.values()), default=1 << 62)
    return [row for offset, (_, row) in sorted(rows.items()) if offset < stable]


def as_produced(row: Row) -> SourceRecord:
    headers = [(name.decode(), value) for name, value in row.headers]
    return SourceRecord(0, row.timestamp or None, row.key, row.value, headers)


def in_target(world: World, topic: str, partition: int) -> list[SourceRecord]:
    return [record for record in world.topics[topic].logs[partition] if record is not None]


def test_each_record_is_there_once_after_kills(tmp_path: Path, kdump: Kdump, world: World) -> None:
    random = Random("kills")
    Log(random).fill().write(tmp_path / f"{LEDGER}-0")  # of another cluster
    logs = [Log(Random(f"kills {number}")).fill() for number in range(16)]
    for number, log in enumerate(logs):
        log.write(tmp_path / f"orders-{number}")
    kills = 0
    while True:
        random_kill(world, random)
        try:
            status, *answers = kdump(tmp_path, "--create", "--yes")
            break
        except Killed:
            kills += 1
    assert kills > 5
    assert status["exit"] == 0, status
    for number, log in enumerate(logs):
        assert in_target(world, "orders", number) == list(map(as_produced, committed(log)))
    produced = sum(map(len, world.topics["orders"].logs))
    world.kill_after = 1 << 60
    assert kdump(tmp_path, "--yes")[0]["exit"] == 0
    assert sum(map(len, world.topics["orders"].logs)) == produced
    assert kdump(tmp_path, "--check")[0]["exit"] == 0
    assert answers[-1]["done"]
    assert len(in_target(world, LEDGER, 0)) > 1
    del world.topics["orders"]  # and its positions do not hold for another topic with its name
    assert kdump(tmp_path, "--create", "--yes")[-1]["produced"] == sum(len(committed(log)) for log in logs)


def test_a_run_that_continues_reads_no_earlier_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[int] = []

    def counted(window: Window, **more: Any) -> Iterator[Region]:
        walked.append(more["name_offset"])
        return regions(window, **more)

    monkeypatch.setattr("kdump.questions.restore.source.regions", counted)
    for number in range(8):
        log = Log(Random(f"continued {number}")).fill()
        path = log.write(tmp_path / f"orders-{number}")
        (own,) = find_sources([str(path)], Options(limits=Limits()), RestoreQuery(), lambda topic: True)
        records = list(own.records())
        bases = walked.copy()
        for first in [row.offset for made in log.batches for row in made.rows] + [log.end]:
            walked.clear()
            assert list(own.records(first)) == [record for record in records if record.offset >= first]
            assert walked == bases[bisect(bases, first) - 1 :] or not first
        walked.clear()
    assert len(bases) > 1


def test_records_of_whole_batches_are_those_read_one_by_one(tmp_path: Path) -> None:
    """A key that no record has makes the cut look at each record."""
    cut = CutRequest(keys=frozenset({b"no record has it"}))
    for number in range(40):
        path = Log(Random(f"whole {number}")).fill().write(tmp_path / f"orders-{number}")
        first, *others = (
            find_sources([str(path)], Options(limits=Limits()), query, lambda topic: True)[0]
            for query in (RestoreQuery(all=True), RestoreQuery(cut, all=True))
        )
        for own in (first, *others):
            own.survey()
        assert [list(own.records()) for own in others] == [list(first.records())]
        assert [own.plan for own in others] == [replace(first.plan, excluded={})]
        assert first.plan.bytes == sum(record.size for record in first.records())


def test_records_in_remote_storage(tmp_path: Path, kdump: Kdump, world: World) -> None:
    """Each is produced once; without the bucket's object, nothing is."""
    root, bucket = one_remote(tmp_path)
    words = (root / "t-0", "--remote", bucket, "--create", "--yes")
    assert [kdump(*words)[0]["exit"], list(world.topics)] == [2, []]
    craft.write_file(object_at(bucket, 1, 0), segment(1, 0, 19))
    assert kdump(*words)[0]["exit"] == 0
    assert [record.value for record in in_target(world, "t", 0)] == [b"1"] * 20 + [b"v"] * 20
    assert kdump(root / "t-0", "--topic", "t=u")[-1]["records"] == 20


def test_a_header_that_no_client_can_produce(tmp_path: Path, kdump: Kdump) -> None:
    record = craft.record(0, b"k", b"v", [(b"\xff", b"")])
    craft.write_file(tmp_path / "orders-1/00000000000000000000.log", craft.batch([record]))
    status = kdump(tmp_path)[0]
    assert status["exit"] == 2
    assert "offsets 0..0: a header has a name that is not UTF-8" in status["stderr"]


def source(path: Path, *, key: bytes | None = b"k", age: int = DAY, count: int = 5) -> Path:
    """Write a partition with records that are `age` ms old."""
    import time

    now = round(time.time() * 1000) - age
    records = [craft.record(number, key, b"value %d" % number, [(b"h", None)], number) for number in range(count)]
    fields = {"baseTimestamp": now, "maxTimestamp": now + count - 1}
    craft.write_file(path / "orders-1/00000000000000000000.log", craft.batch(records, "zstd", **fields))
    return path


REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "message_timestamp_type": ({"value": "LogAppendTime"}, "message.timestamp.type=CreateTime"),
    "message_timestamp_before_max_ms": ({"value": "1000"}, "message.timestamp.before.max.ms="),
    "message_timestamp_difference_max_ms": ({"value": "1000"}, "message.timestamp.difference.max.ms="),
    "message_timestamp_after_max_ms": ({"value": "1000", "age": str(-DAY)}, "message.timestamp.after.max.ms="),
    "retention_ms": ({"value": "1000"}, "retention.ms=-1"),
    "retention_bytes": ({"value": "10"}, "retention.bytes=-1"),
    "max_message_bytes": ({"value": "100"}, "max.message.bytes="),
    "cleanup_policy": ({"value": "compact", "key": ""}, "cleanup.policy=delete"),
    "confluent_value_schema_validation": ({"value": "true"}, "confluent.value.schema.validation=false"),
    "confluent_key_schema_validation": ({"value": "true"}, "confluent.key.schema.validation=false"),
}


@each_case("config", list(REFUSED))
def test_a_config_that_forbids_it(tmp_path: Path, kdump: Kdump, world: World, config: str) -> None:
    given, action = REFUSED[config]
    source(tmp_path, age=int(given.get("age", DAY)), key=None if "key" in given else b"k")
    topic = world.add("orders", **{config: given["value"]})
    status, *answers = kdump(tmp_path, "--yes")
    (refusal,) = [answer for answer in answers if answer["type"] == "restoreRefusal"]
    assert action in refusal["action"]
    assert status["exit"] == 1
    assert topic.logs == [[], []]


def test_a_target_that_forbids_it(tmp_path: Path, kdump: Kdump, world: World) -> None:
    def actions(*words: object) -> list[str]:
        answers = kdump(tmp_path, *words)
        assert answers[0]["exit"] == 1
        return [answer["action"] for answer in answers[1:] if answer["type"] == "restoreRefusal"]

    source(tmp_path)
    assert actions()[0].startswith("--create")
    world.forbidden = {"orders", LEDGER}
    assert [each.rpartition(" ")[2] for each in actions("--create", "--yes") if "Create" in each] == ["orders", LEDGER]
    world.forbidden.clear()
    world.add("orders", 1)
    assert "--partitions 2, or --repartition" in actions()[0]
    topic = world.add("orders")
    topic.denied = True
    assert "--operation Write" in actions()[0]
    topic.denied = False
    topic.logs[1].append(SourceRecord(0, 1, b"", b"", []))
    assert actions("--yes")[0].startswith("--append, or another topic: --topic orders=")
    assert kdump(tmp_path, "--append", "--yes")[0]["exit"] == 0
    assert len(in_target(world, "orders", 1)) == 6
    assert kdump(tmp_path, "--append", "--check")[0]["exit"] == 0
    segment = tmp_path / "orders-1/00000000000000000000.log"
    segment.write_bytes(segment.read_bytes() + b"#" * 100)
    assert any("kdump salvage" in action for action in actions())


def test_what_check_finds(tmp_path: Path, kdump: Kdump, world: World) -> None:
    source(tmp_path)
    topic = world.add("orders")
    assert kdump(tmp_path, "--yes")[0]["exit"] == 0
    whole = list(topic.logs[1])

    def found(log: list[SourceRecord | None]) -> list[tuple[str, int | None, int | None]]:
        topic.logs[1] = log
        status, *answers = kdump(tmp_path, "--check")
        made = [answer for answer in answers if answer["type"] == "restoreDifference"]
        assert status["exit"] == int(bool(made))
        return [(answer["kind"], answer["offset"], answer["targetOffset"]) for answer in made]

    changed = whole[2]
    assert changed is not None
    assert found(whole) == []
    assert found([*whole[:2], None, *whole[3:]]) == [("missing", 2, None)]
    assert found([*whole[:2], changed._replace(headers=[("h", b"")]), *whole[3:]]) == [("differs", 2, 2)]
    assert found([*whole[:2], changed._replace(timestamp=5), *whole[3:]]) == [("differs", 2, 2)]
    assert found([*whole[:3], changed, *whole[3:]]) == [("extra", None, 3)]
    assert found([*whole, changed]) == [("extra", None, len(whole))]
    assert found(whole[:4]) == [("missing", 4, None)]
    topic.configs["cleanup.policy"] = "compact"
    assert found([None] * 4 + whole[4:]) == []  # a later record has the same key
    assert found(whole[:4]) == [("missing", 4, None)]


def test_groups(tmp_path: Path, kdump: Kdump, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets are those of the same records in the target; a group with members is left as it is."""
    source(tmp_path)
    world.add("orders").logs[1] += [None, None]
    fields = {"billing": 0, "audit": 3, "running": 2, "new": 5}
    logs = []
    for number, (group, offset) in enumerate(fields.items()):
        key = b"\0\1" + b"".join(len(word).to_bytes(2, "big") + word for word in (group.encode(), b"orders"))
        value = b"\0\3" + offset.to_bytes(8, "big") + b"\xff" * 4 + bytes(2) + (DAY * 20_000).to_bytes(8, "big")
        logs.append(craft.record(number, key + (1).to_bytes(4, "big"), value))
    craft.write_file(tmp_path / "__consumer_offsets-0/00000000000000000000.log", craft.batch(logs))
    world.groups["running"] = ("STABLE", {("orders", 1): 1})
    status, *answers = kdump(tmp_path, "--groups", "--yes", "--until", 3)
    rows = {answer["group"]: answer for answer in answers if answer["type"] == "restoreGroup"}
    assert {name: row["after"] for name, row in rows.items()} == {"billing": 2, "audit": 5, "running": None, "new": 6}
    assert world.groups["running"] == ("STABLE", {("orders", 1): 1})
    assert world.groups["audit"][1] == {("orders", 1): 5}
    assert "stop its members" in rows["running"]["note"]
    early = kdump(tmp_path, "--groups", "--until", 3, "--as-of", "2020-01-01")
    assert "no group has committed offsets of these partitions" in early[0]["stderr"]
    assert not [answer for answer in early[1:] if answer["type"] == "restoreGroup"]
    assert status["exit"] == 1


def test_no_secret_is_printed() -> None:
    cluster = FakeCluster(World(), {"sasl.password": "geheim"})
    assert cluster.text(ValueError("invalid value geheim")) == "invalid value ***"


CODES = SimpleNamespace(_PARTITION_EOF=-191, GROUP_AUTHORIZATION_FAILED=30)


class Reader:
    """A consumer whose partition ends at `end`, and which has reached the end of what its leader knows after each of
    `parts` (KIP-207: a new leader learns only later what has been committed)."""

    def __init__(self, end: int, parts: list[int]) -> None:
        self.end, self.at, self.parts, self.is_allowed, self.asked = end, 0, parts, False, 0

    def get_watermark_offsets(self, place: Any, **more: Any) -> tuple[int, int]:
        self.asked += 1
        if self.asked == 1:  # its broker fails
            raise KeyError(SimpleNamespace(name=lambda: "_DESTROY"))
        return 0, self.end

    def assign(self, places: Any) -> None:
        pass

    unassign = close = lambda self, *more: None

    def poll(self, seconds: float) -> Any:
        if not self.parts:
            return None
        if not self.is_allowed:  # a group that is not joined, and need not be allowed
            self.is_allowed = True
            return message(0, SimpleNamespace(code=lambda: 30))
        offset, self.at = self.at, self.at + 1
        if offset < self.parts[0]:
            return message(offset)
        self.at = self.parts.pop(0)
        return message(self.at, SimpleNamespace(code=lambda: -191))

    def consume(self, count: int, timeout: float) -> list[Any]:
        return []


def message(offset: int, error: Any = None) -> Any:
    parts = {"key": None, "value": b"%d" % offset, "headers": None, "timestamp": (1, 1), "offset": offset}
    return SimpleNamespace(error=lambda: error, **{name: lambda value=value: value for name, value in parts.items()})


@pytest.mark.parametrize("parts", [[10], [3, 10], [0, 1, 9, 10]])
def test_a_new_leader_that_does_not_know_the_end_yet(parts: list[int]) -> None:
    """What was committed before it became the leader is read, too: else a position would be that of an earlier
    transaction, and its records would be produced again."""
    cluster = TargetCluster.__new__(TargetCluster)
    kafka = SimpleNamespace(KafkaException=KeyError, KafkaError=CODES)
    kafka.TopicPartition = lambda *place: place
    cluster.kafka, cluster._consumer = kafka, Reader(10, list(parts))
    assert [found.offset for found in cluster.records("t", 0, None)] == list(range(10))
