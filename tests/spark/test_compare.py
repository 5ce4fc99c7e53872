"""Replicas compared with each other: what differs, from which offset on, and which differences are not damage."""

from __future__ import annotations

from typing import Any

import pytest

from kdump.spark.compare_replicas import COMPACTED, DAMAGED, DIVERGED, MISSING, ComparedBatch, first_differences


def fact(replica: str, base: int, **said: Any) -> ComparedBatch:
    values = {"lastOffset": base + 4, "crc": base, "is_valid": True, "leaderEpoch": 0, "records": 5, "compacted": False}
    return ComparedBatch(replica, base, **(values | said))


def merged(*replicas: list[ComparedBatch]) -> list[ComparedBatch]:
    return sorted((row for rows in replicas for row in rows), key=lambda row: (row.baseOffset, row.replica))


def log(replica: str, first: int = 0, end: int = 50) -> list[ComparedBatch]:
    return [fact(replica, base) for base in range(first, end, 5)]


def found(*replicas: list[ComparedBatch]) -> list[tuple[str, int]]:
    return [(each.kind, each.offset) for each in first_differences(merged(*replicas))]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (log("a"), log("b")),
        (log("a"), log("b", first=20)),  # after retention
        (log("a"), log("b", end=30)),  # lagging
        (log("a", end=20), log("b", first=30)),
        (log("a"), []),
        (log("a"), [row._replace(leaderEpoch=3) for row in log("b")]),  # no checksum covers it
    ],
)
def test_replicas_that_are_right(one: list[ComparedBatch], other: list[ComparedBatch]) -> None:
    assert found(one, other) == []


def test_the_first_offset_that_differs() -> None:
    other = log("b", end=30) + [row._replace(crc=1, leaderEpoch=2) for row in log("b", first=30)]
    assert found(log("a"), other) == [(DIVERGED, 30)]
    (difference,) = first_differences(merged(log("a"), other))
    assert difference.epochs == {"a": 0, "b": 2}
    assert difference.ends == {"a": 49, "b": 49}
    assert "leader epoch 2 in broker 9, 0 in broker 1" in difference.explained({"a": "1", "b": "9"})
    assert "from offset 30 on, broker 1 has data" in difference.explained({"a": "1", "b": "9"})


def test_how_bad_it_is() -> None:
    """A difference that a follower truncates at startup is a warning; one that no follower repairs is an error."""
    other = [row._replace(crc=1) for row in log("b")]
    (difference,) = first_differences(merged(log("a"), other))
    assert (difference.kind, difference.severity) == (DIVERGED, "error")
    (difference,) = first_differences(merged(log("a"), [row._replace(leaderEpoch=2) for row in other]))
    assert difference.severity == "warning"
    (difference,) = first_differences(merged(log("a"), [row._replace(leaderEpoch=-1) for row in other]))
    assert difference.severity == "error"
    (difference,) = first_differences(merged(log("a"), [row for row in log("b") if row.baseOffset != 10]))
    assert (difference.kind, difference.severity) == (MISSING, "warning")
    (difference,) = first_differences(merged(log("a"), [row._replace(compacted=True) for row in other]))
    assert (difference.kind, difference.severity) == (COMPACTED, "info")


def test_three_replicas_of_which_two_agree() -> None:
    other = log("b", end=40) + [row._replace(crc=1) for row in log("b", first=40)]
    assert found(log("a"), log("c"), other) == [(DIVERGED, 40)]


def test_batches_with_other_ends() -> None:
    one = [*log("a", end=20), fact("a", 20, lastOffset=29, crc=7), *log("a", first=30)]
    assert found(one, log("b")) == [(DIVERGED, 20)]
    inside = [*log("a", end=20), fact("a", 18, lastOffset=22, crc=7)]
    assert found(inside, log("b", first=15))[0] == (DIVERGED, 18)


def test_damage_is_told_apart() -> None:
    other = [row._replace(crc=9, is_valid=False) if row.baseOffset == 25 else row for row in log("b")]
    assert found(log("a"), other) == [(DAMAGED, 25)]
    worse = [row._replace(crc=9) if row.baseOffset == 35 else row for row in other]
    assert found(log("a"), worse) == [(DAMAGED, 25), (DIVERGED, 35)]


def test_what_the_cleaner_does_is_no_damage() -> None:
    rewritten = [row._replace(crc=9, records=2, compacted=True) if row.baseOffset == 25 else row for row in log("b")]
    assert found(log("a"), rewritten) == [(COMPACTED, 25)]
    gone = [row for row in rewritten if row.baseOffset != 10]
    assert found(log("a"), gone) == [(COMPACTED, 25)]


def test_what_one_lacks_between_others() -> None:
    gap = [row for row in log("b") if row.baseOffset not in (10, 15)]
    assert found(log("a"), gap) == [(MISSING, 10)]
    assert "lacks" in first_differences(merged(log("a"), gap))[0].explained()


def test_one_leader_epoch_is_said() -> None:
    other = [row._replace(crc=1) for row in log("b")]
    assert "the same leader epoch" in first_differences(merged(log("a"), other))[0].explained()
