"""The partitions of a topic in arrays, compared with a dictionary."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kdump.format.metadata_names import RECOVERY_STATE, enum_name
from kdump.format.numbers import int32
from kdump.io.run import ignore
from kdump.state.metadata_image import MetadataImage
from kdump.state.metadata_replay_state import ReplayState
from kdump.state.metadata_topic_handlers import _merge, partition, partition_change, topic
from kdump.state.name_numbers import Names
from kdump.state.partition_registrations import PartitionRegistration, PartitionTable
from tests.conftest import sample
from tests.each_case import each_case


def some(dice: random.Random) -> PartitionRegistration:
    def brokers(most: int) -> tuple[int, ...]:
        return tuple(dice.choice((0, 1, -1, (1 << 31) - 1, -(1 << 31))) for _ in range(dice.randrange(most + 1)))

    replicas = brokers(4)
    return PartitionRegistration(
        replicas,
        tuple(dice.choice(("a", "b", "c")) for _ in range(dice.choice((0, len(replicas), 5)))),
        dice.choice((-1, 3)),
        dice.choice((0, -1, (1 << 31) - 1)),
        dice.choice((replicas, (), brokers(3))),
        *(dice.choice(((), (), brokers(2))) for _ in range(4)),
        leaderRecoveryState=dice.choice(("RECOVERED", "RECOVERING")),
        partitionEpoch=dice.randrange(9),
    )


@each_case("seed", range(5))
def test_like_a_dictionary(seed: int) -> None:
    dice, names = random.Random(seed), Names()
    made, known = PartitionTable(names), dict[int, PartitionRegistration]()
    numbers = (0, 1, 2, 3, 4, 5, 1000, -1, -(1 << 31), (1 << 31) - 1)
    for _ in range(1000):
        number = dice.choice(numbers)
        if dice.random() < 0.3:
            assert made.pop(number, None) == known.pop(number, None)
        else:
            made[number] = known[number] = some(dice)
        assert (made.get(number), made.get(number, "none")) == (known.get(number), known.get(number, "none"))
        assert (number in made, len(made), "x" in made) == (number in known, len(known), False)
    assert made == known
    assert [*made] == sorted(known)
    assert len(made._values) < 3 * sum(made._size(at & 0xFFFFFFFF) for at in made._index)
    with pytest.raises(KeyError):
        del made[7]


LISTS = ("replicas", "isr", "addingReplicas", "removingReplicas", "eligibleLeaderReplicas", "lastKnownElr")


def test_changes_of_a_partition() -> None:
    """Each field of a change that is not null, and no other, replaces that of the partition."""
    dice, replay = random.Random(1), ReplayState(MetadataImage())
    for _ in range(2000):
        before, other = some(dice), some(dice)
        values: dict[str, Any] = {
            "leader": dice.choice((-2, other.leader)),
            "leaderRecoveryState": dice.choice((-1, 0, 9)),
        }
        values |= {name: list(getattr(other, name)) for name in (*LISTS, "directories") if dice.random() < 0.3}
        values |= {name: None for name in LISTS if name not in values and dice.random() < 0.5}
        expected = before._replace(
            **{name: tuple(item) for name, item in values.items() if isinstance(item, list)},
            partitionEpoch=int32(before.partitionEpoch + 1),
        )
        if values["leader"] != -2:
            expected = expected._replace(leader=other.leader, leaderEpoch=int32(before.leaderEpoch + 1))
        if values["leaderRecoveryState"] != -1:
            expected = expected._replace(leaderRecoveryState=enum_name(RECOVERY_STATE, values["leaderRecoveryState"]))
        assert _merge(replay, before, values) == expected


@pytest.mark.sampled
@each_case("room", [1 << 20, 6000])
@each_case("seed", sample(range(5), 2, "rows"))
def test_rows_change_as_partitions_do(seed: int, room: int) -> None:
    """Records that change only numbers are applied to the rows. With a listener, none is."""
    dice = random.Random(seed)
    fast = ReplayState(MetadataImage(), room)
    slow = ReplayState(MetadataImage(), room)
    slow.on_change = ignore
    both = (fast, slow)
    for replay in both:
        topic(replay, {"name": "orders", "topicId": "id"})
    for _ in range(500):
        values = _record(dice)
        for replay in both:
            replay.room += 200  # full, but not for ever
            (partition if "leaderEpoch" in values else partition_change)(replay, values)
        tables = [replay.metadata.topics["orders"].partitions for replay in both]
        assert dict(tables[0]) == dict(tables[1])
        assert list(tables[0].values()) == [tables[0][number] for number in tables[0]]
        assert (fast.room, fast.metadata.problems, fast.with_elr) == (slow.room, slow.metadata.problems, slow.with_elr)


def _record(dice: random.Random) -> dict[str, Any]:
    """Return the values of a PartitionRecord, or of a PartitionChangeRecord."""
    other, is_change = some(dice), dice.random() < 0.6
    values: dict[str, Any] = {"partitionId": dice.choice((0, 1, 2, 7, -1)), "topicId": "id"}
    values |= {name: list(getattr(other, name)) for name in ("replicas", "isr")}
    moved = dice.random() < 0.2
    for name in LISTS[2:]:
        values[name] = list(getattr(other, name)) if moved else None if is_change or "lr" in name.lower() else []
    values["leaderRecoveryState"] = dice.choice((-1, -1, 1) if is_change else (0, 1))
    values["leader"] = dice.choice((-2, other.leader))
    if dice.random() < 0.5:
        values["directories"] = list(other.directories)
    if is_change:
        for name in ("replicas", "isr", "directories"):
            if dice.random() < (0.5 if name == "isr" else 0.9):
                values[name] = None
    else:
        values |= {"leaderEpoch": other.leaderEpoch, "partitionEpoch": dice.choice((0, (1 << 31) - 1))}
    return values
