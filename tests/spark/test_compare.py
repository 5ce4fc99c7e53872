"""Replicas compared with each other: where they differ, and which differences are not damage."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import pytest

from kdump.format.batch_header import LOG_OVERHEAD, BatchHeader
from kdump.spark.replica_differences import (
    COMPACTED,
    DAMAGED,
    DIVERGED,
    MAX_COPIES,
    MISSING,
    POSSIBLE_RECORDS,
    not_compared,
    replica_differences,
)
from kdump.spark.scan_answer import ReplicaDifference
from tests.conftest import seeded

BATCHES = """
  cluster string, topic string, partition int, source string, broker string, state string, baseOffset bigint,
  lastOffset bigint, lastOffsetDelta int, crc bigint, crcValid boolean, partitionLeaderEpoch int, recordCount int,
  hasDeleteHorizonMs boolean, magic int, size bigint, attributes int
"""
SEGMENTS = """
  cluster string, topic string, partition int, source string, broker string, state string, firstOffset bigint,
  lastOffset bigint
"""


UNITS = "cluster string, topic string, partition int, source string, topicId string"
TOPIC_IDS = {"of a deleted topic": {"a": "X", "b": "X", "d": "W"}}
"""The topic IDs of directories, by topic and source."""


class Fact(NamedTuple):
    """A batch. `compacted`: it has fewer records than offsets."""

    base: int
    last: int
    crc: int
    valid: bool = True
    epoch: int = 0
    compacted: bool = False
    is_counted: bool = True
    """False for a message of magic 1 whose contents cannot be decompressed."""


Log = list[Fact]
Case = dict[str, Log]
"""The replicas of a partition, by source."""


def log(first: int = 0, end: int = 50, **said: Any) -> Log:
    return [Fact(base, base + 4, base)._replace(**said) for base in range(first, end, 5)]


def changed(rows: Log, *bases: int, **said: Any) -> Log:
    return [row._replace(**said) if row.base in bases else row for row in rows]


def without(rows: Log, *bases: int) -> Log:
    return [row for row in rows if row.base not in bases]


def compared(spark: Any, cases: dict[str, Case], **options: Any) -> dict[str, list[ReplicaDifference]]:
    """Compare the replicas of many partitions at once, each the only one of a topic."""
    views(spark, cases)
    found: dict[str, list[ReplicaDifference]] = {topic: [] for topic in cases}
    for each in replica_differences(spark, **options):
        found[each.topic].append(each)
    return found


def views(spark: Any, cases: dict[str, Case]) -> None:
    """Create the views of batches and segments."""
    batches, segments = [], []
    for topic, replicas in cases.items():
        for source, rows in replicas.items():
            place = ("c", topic, 0, source, source, "live")
            for row in rows:
                delta = row.last - row.base
                count = None if not row.is_counted else delta if row.compacted else delta + 1
                magic = 2 if row.is_counted else 1
                facts = (row.base, row.last, delta, row.crc, row.valid, row.epoch, count, False, magic, 5000, 0)
                batches.append((*place, *facts))
            if rows:
                segments.append((*place, min(row.base for row in rows), max(row.last for row in rows)))
    spark.createDataFrame(batches, BATCHES).coalesce(1).createOrReplaceTempView("batches")
    spark.createDataFrame(segments, SEGMENTS).coalesce(1).createOrReplaceTempView("segments")
    units = [("c", topic, 0, source, of) for topic, known in TOPIC_IDS.items() for source, of in known.items()]
    spark.createDataFrame(units, UNITS).coalesce(1).createOrReplaceTempView("units")


TOP = (1 << 63) - 1
LATER = log(30, crc=1, epoch=2)
REWRITTEN = changed(log(), 25, crc=9, compacted=True)
CASES: dict[str, tuple[Case, list[tuple[str, int, int]]]] = {
    "the same": ({"a": log(), "b": log()}, []),
    "after retention": ({"a": log(), "b": log(20)}, []),
    "lagging": ({"a": log(), "b": log(end=30)}, []),
    "apart": ({"a": log(end=20), "b": log(30)}, []),
    "alone": ({"a": log(), "b": []}, []),
    "another epoch, which no checksum covers": ({"a": log(), "b": log(epoch=3)}, []),
    "after an unclean election": ({"a": log(), "b": log(end=30) + LATER}, [(DIVERGED, 30, 49)]),
    "one leader epoch": ({"a": log(), "b": log(crc=1)}, [(DIVERGED, 0, 49)]),
    "unknown epoch": ({"a": log(), "b": log(crc=1, epoch=-1)}, [(DIVERGED, 0, 49)]),
    "two agree": ({"a": log(), "b": log(end=40) + log(40, crc=1), "c": log()}, [(DIVERGED, 40, 49)]),
    "another end": ({"a": changed(without(log(), 25), 20, last=29, crc=7), "b": log()}, [(DIVERGED, 20, 29)]),
    "inside": ({"a": [*log(end=20), Fact(18, 22, 7)], "b": log(15)}, [(DIVERGED, 18, 24)]),
    "of a deleted topic": ({"a": log(), "b": log(), "c": log(), "d": log(crc=2)}, []),
    "damaged": ({"a": log(), "b": changed(log(), 25, crc=9, valid=False)}, [(DAMAGED, 25, 29)]),
    "damaged in its records": ({"a": log(), "b": changed(log(), 25, valid=False)}, [(DAMAGED, 25, 29)]),
    "the same base twice": ({"a": [*log(), Fact(45, 49, 3)], "b": [*log(), Fact(45, 49, 3)]}, []),
    "the earlier epoch is longer": ({"a": log(), "b": log(end=30) + log(30, 40, crc=1, epoch=2)}, [(DIVERGED, 30, 39)]),
    "damaged in both": ({"a": log(valid=False), "b": log(valid=False)}, []),
    "damaged and diverged": (
        {"a": log(), "b": changed(changed(log(), 25, crc=9, valid=False), 30, 40, crc=9)},
        [(DAMAGED, 25, 29), (DIVERGED, 30, 34), (DIVERGED, 40, 44)],
    ),
    "cleaned": ({"a": log(), "b": REWRITTEN}, [(COMPACTED, 25, 29)]),
    "cleaned away": ({"a": log(), "b": without(REWRITTEN, 10)}, [(COMPACTED, 10, 29)]),
    "damaged in its counts": (
        {"a": log(), "b": [*log(end=45), Fact(45, 45 + (1 << 31) - 1, 9, valid=False, compacted=True)]},
        [(DAMAGED, 45, 45 + (1 << 31) - 1)],
    ),
    "up to the last offset of all": (
        {"a": [*log(), Fact(TOP - 4, TOP, 1)], "b": [*log(), Fact(TOP - 4, TOP, 2), Fact(TOP, TOP, 3)]},
        [(DIVERGED, TOP - 4, TOP)],
    ),
    "missing": ({"a": log(), "b": without(log(), 10, 15)}, [(MISSING, 10, 19)]),
    "missing, and nobody knows how many": (
        {"a": changed(log(), 10, is_counted=False), "b": without(log(), 10)},
        [(MISSING, 10, 14)],
    ),
    "missing twice": ({"a": log(), "b": without(log(), 10, 20)}, [(MISSING, 10, 14), (MISSING, 20, 24)]),
}


@pytest.fixture(scope="module")
def random_cases() -> dict[str, Case]:
    dice = seeded("replicas")
    return {str(number): a_case(dice) for number in range(300)}


@pytest.fixture(scope="module")
def found(spark: Any, random_cases: dict[str, Case]) -> dict[str, list[ReplicaDifference]]:
    return compared(spark, {name: case for name, (case, _) in CASES.items()} | random_cases, one_task=True)


@pytest.mark.every_disk
@pytest.mark.parametrize("name", CASES)
def test_what_differs(name: str, found: dict[str, list[ReplicaDifference]]) -> None:
    assert [(each.kind, each.firstOffset, each.lastOffset) for each in found[name]] == CASES[name][1]


@pytest.mark.every_disk
def test_large_tables_are_compared_in_one_query(
    spark: Any, random_cases: dict[str, Case], found: dict[str, list[ReplicaDifference]]
) -> None:
    assert compared(spark, {name: case for name, (case, _) in CASES.items()} | random_cases) == found


def test_what_a_follower_truncates(spark: Any) -> None:
    name = "after an unclean election"
    (difference,) = compared(spark, {name: CASES[name][0]}, one_task=True)[name]
    assert (difference.severity, difference.leaderEpochs, difference.lastOffsets) == ("error", [0, 2], [49, 49])
    assert (difference.records, difference.lost) == ([20, 20], 20)
    assert "leader epoch 2 in broker b, 0 in broker a" in difference.explanation
    assert "from offset 30 on, broker a has data" in difference.explanation


def test_a_follower_truncates_to_its_end(found: dict[str, list[ReplicaDifference]]) -> None:
    """Also what it has beyond the end of the later leader."""
    (difference,) = found["the earlier epoch is longer"]
    assert (difference.records, difference.lost, difference.lastOffsets) == ([10, 10], 20, [49, 39])


def test_how_bad_it_is(found: dict[str, list[ReplicaDifference]]) -> None:
    """A difference that a follower truncates at startup is a warning; one that no follower repairs is an error."""
    severities = {name: found[name][0].severity for name in CASES if found[name]}
    assert severities["one leader epoch"] == severities["unknown epoch"] == severities["damaged"] == "error"
    assert severities["missing"] == "warning"
    assert severities["cleaned"] == "info"
    assert "the same leader epoch" in found["one leader epoch"][0].explanation


def test_what_one_lacks(found: dict[str, list[ReplicaDifference]]) -> None:
    (difference,) = found["missing"]
    assert (difference.records, difference.lost, difference.leaderEpochs) == ([10, 0], 10, [0, None])
    assert difference.explanation == "broker b lacks offsets between others that it has"


def test_a_count_that_nobody_knows_is_0(found: dict[str, list[ReplicaDifference]]) -> None:
    (difference,) = found["missing, and nobody knows how many"]
    assert (difference.records, difference.lost) == ([0, 0], 0)


def test_the_records_that_a_batch_may_have(spark: Any) -> None:
    """SQL and Python have the same rule, also for damaged numbers."""
    counts = (-(1 << 31), -7, 0, 1, 14, 15, 400, (1 << 31) - 1)
    heads = [
        BatchHeader(0, size - LOG_OVERHEAD, 0, 2, 0, attributes, 0, 0, 0, -1, -1, -1, count)
        for size in (61, 166, 1_000_000)
        for attributes in range(8)
        for count in counts
    ]
    rows = [(number, 2, each.size, each.attributes, each.recordCount) for number, each in enumerate(heads)]
    frame = spark.createDataFrame(rows, "number int, magic int, size bigint, attributes int, recordCount int")
    found = frame.selectExpr("number", f"{POSSIBLE_RECORDS} as records").collect()
    assert {row.number: row.records for row in found} == {n: each.possible_records for n, each in enumerate(heads)}


def test_no_replica_takes_quadratic_time(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark sums a frame up to `unbounded following` again for each row. Long replicas ran out of time and memory."""
    views(spark, {})
    queries: list[str] = []
    monkeypatch.setattr(type(spark), "sql", lambda self, text: queries.append(text) or spark.range(0))
    assert not list(replica_differences(spark))
    monkeypatch.undo()
    (query,) = queries
    plan = spark.sql(query)._jdf.queryExecution().analyzed().toString().lower()
    assert "frame(rowframe, unboundedpreceding$(), currentrow$())" in plan
    assert "currentrow$(), unboundedfollowing" not in plan


@pytest.mark.every_disk
def test_more_copies_than_are_compared(spark: Any) -> None:
    """Each has a bit: two would share one."""
    many = {f"{number:02}": log() for number in range(70)}
    found = compared(
        spark, {"t": {**many, "30": changed(log(), 25, crc=9), "68": changed(log(), 35, crc=9)}}, one_task=True
    )
    assert [(each.firstOffset, len(each.sources)) for each in found["t"]] == [(25, MAX_COPIES)]
    assert not_compared(spark) == ["t-0: 70 replicas and copies, of which the first 63 were compared"]
    views(spark, {"t": dict(list(many.items())[:MAX_COPIES])})
    assert not_compared(spark) == []


@pytest.mark.every_disk
def test_only_what_has_changed(spark: Any) -> None:
    cases = {name: CASES[name][0] for name in ("one leader epoch", "missing")}
    spark.sql("select 'c' as cluster, 'missing' as topic, 0 as partition").createOrReplaceTempView("changed")
    again = compared(spark, cases, only_changed=True, one_task=True)
    assert [len(each) for each in again.values()] == [0, 1]


def a_case(dice: random.Random) -> Case:
    """Return replicas of one log, of which some were truncated and written again, or lack or have changed batches."""
    ends = sorted(dice.sample(range(1, 60), dice.randrange(2, 12)))
    base = [Fact(start, end - 1, dice.randrange(1000)) for start, end in zip([0, *ends], ends)]
    replicas = {}
    for source in "abc"[: dice.randrange(2, 4)]:
        rows = list(base)
        if dice.random() < 0.5:  # an unclean election: other batches from here on
            cut = dice.randrange(len(rows))
            left = rows[cut].base
            rows = rows[:cut]
            while left < ends[-1] and dice.random() < 0.8:
                end = dice.randrange(left, ends[-1])
                rows.append(Fact(left, end, dice.randrange(1000), epoch=dice.randrange(3)))
                left = end + 1
        if len(rows) > 3 and dice.random() < 0.3:
            rows.pop(dice.randrange(1, len(rows) - 1))
        if len(rows) > 1 and dice.random() < 0.3:
            rows = rows[1:]  # retention
        if rows and dice.random() < 0.3:
            at = dice.randrange(len(rows))
            rows[at] = rows[at]._replace(valid=False)
        replicas[source] = rows
    return replicas


def expected(case: Case) -> set[int]:
    """Return the offsets at which the replicas that reach over an offset do not all have the same batch."""
    ranges = {source: (rows[0].base, rows[-1].last) for source, rows in case.items() if rows}
    different: set[int] = set()
    for offset in range(60):
        here = set()
        for source, (first, end) in ranges.items():
            if first <= offset <= end:
                covering = (row for row in case[source] if row.base <= offset <= row.last)
                row = next(covering, None)
                here.add(row and (row.base, row.last, row.crc, row.valid))
        if len(here) > 1:
            different.add(offset)
    return different


def test_random_replicas(random_cases: dict[str, Case], found: dict[str, list[ReplicaDifference]]) -> None:
    """Every offset at which they differ is in a stretch. No other is, but for the rest of batches inside which one of
    the replicas begins or ends."""
    assert any(map(expected, random_cases.values()))
    for name, case in random_cases.items():
        inside = {offset for each in found[name] for offset in range(each.firstOffset, each.lastOffset + 1)}
        assert expected(case) <= inside, case
        edges = {edge for rows in case.values() if rows for edge in (rows[0].base, rows[-1].last)}
        for offset in inside - expected(case):
            covering = [row for rows in case.values() for row in rows if row.base <= offset <= row.last]
            assert any(row.base <= edge <= row.last for row in covering for edge in edges), (case, offset)
        sums = {source: sum(row.last - row.base + 1 for row in rows) for source, rows in case.items()}
        for each in found[name]:
            assert all(records <= sums[source] for source, records in zip(each.sources, each.records))
