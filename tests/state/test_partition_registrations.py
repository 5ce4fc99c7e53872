"""What a record of the metadata changes of a partition."""

from __future__ import annotations

import random
from typing import Any

from kdump.format.metadata_names import RECOVERY_STATE, enum_name
from kdump.format.numbers import int32
from kdump.state.metadata_image import MetadataImage
from kdump.state.metadata_replay_state import ReplayState
from kdump.state.metadata_topic_handlers import _merge
from kdump.state.partition_registrations import PartitionRegistration


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
