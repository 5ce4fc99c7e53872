"""What a record of the metadata changes of a partition."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kdump.cluster.metadata_files import metadata_files
from kdump.cluster.metadata_log import replay_metadata
from kdump.core.partition_records import FIELDS
from kdump.format.batch_writer import new_batch
from kdump.format.kafka_uuid import uuid_text
from kdump.format.metadata_names import RECOVERY_STATE, enum_name
from kdump.format.metadata_record import metadata_record_value
from kdump.format.numbers import int32
from kdump.io.run import ignore
from kdump.state.as_of import AsOf
from kdump.state.left_out_records import RecordChoice
from kdump.state.metadata_image import MetadataImage, PartitionRegistration
from kdump.state.metadata_replay_state import ReplayState
from kdump.state.metadata_topic_handlers import _merge
from tests.conftest import sample
from tests.each_case import each_case

IDS = [uuid_text(bytes((each,)) * 16) for each in (65, 66)]
DIRECTORIES = [uuid_text(bytes((each,)) * 16) for each in (97, 98, 99)]


def named(kind: str, **values: Any) -> bytes:
    return metadata_record_value(kind, 0, values)


def some(dice: random.Random) -> PartitionRegistration:
    def brokers(most: int) -> tuple[int, ...]:
        return tuple(dice.choice((0, 1, -1, (1 << 31) - 1, -(1 << 31))) for _ in range(dice.randrange(most + 1)))

    replicas = brokers(4)
    return PartitionRegistration(
        replicas,
        tuple(dice.choice(DIRECTORIES) for _ in range(dice.choice((0, len(replicas), 5)))),
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


@pytest.mark.sampled
@each_case("room", [1 << 20, 9000])
@each_case("seed", sample(range(10), 7, "rows"))
def test_records_are_applied_from_their_bytes(tmp_path: Path, seed: int, room: int) -> None:
    """Most records are applied straight from their bytes. With a listener, none is."""
    dice = random.Random(seed)
    data, offset = b"", 0
    for _ in range(120):
        values = [_value(dice) for _ in range(dice.choice((1, 1, 2, 20)))]
        offset += dice.random() < 0.02
        keyed = [(b"key" if dice.random() < 0.01 else None, value) for value in values]
        data += new_batch(offset, 1 + offset // 300, 1000 + offset, keyed)
        offset += len(values)
    (tmp_path / f"{0:020}.log").write_bytes(data)
    files = metadata_files(str(tmp_path))
    # Time ends it in the middle of a batch only if the times of its records differ.
    for moment in (AsOf(), AsOf(offset=offset // 2), AsOf(time=1000 + offset // 3)):
        fast, slow = (replay_metadata(files, moment, room=room, on_change=each) for each in (None, ignore))
        assert fast == slow


@each_case("asked", [(), (30,), (5, 6, 41)])
def test_records_without_what_is_left_out(tmp_path: Path, asked: tuple[int, ...]) -> None:
    """A record that is left out on request is not applied, and the later ones of a partition are counted, from the
    bytes as from the values."""
    dice = random.Random(1)
    values = [named("TopicRecord", name="orders", topicId=IDS[0]), *(_value(dice) for _ in range(400))]
    (tmp_path / f"{0:020}.log").write_bytes(new_batch(0, 1, 1000, [(None, each) for each in values]))
    found = []
    for on_change in (None, ignore):
        choice = RecordChoice(lambda name, value: None, asked=frozenset(asked))
        image = replay_metadata(metadata_files(str(tmp_path)), on_change=on_change, choice=choice)
        found.append(([dict(each.partitions) for each in image.topics.values()], choice.left_out))
    assert found[0] == found[1]
    assert {*asked} <= {each.refusal.offset for each in found[0][1]}


def _value(dice: random.Random) -> bytes:
    """Return a record of a partition, mostly."""
    kind = dice.random()
    if kind < 0.1:
        name, topic_id = dice.choice(("orders", "payments")), dice.choice(IDS)
        return named("TopicRecord", name=name, topicId=topic_id)
    if kind < 0.13:
        return named("RemoveTopicRecord", topicId=dice.choice(IDS))
    if kind < 0.2:
        return named("NoOpRecord")
    values = _record(dice)
    name = "PartitionRecord" if "leaderEpoch" in values else "PartitionChangeRecord"
    made = metadata_record_value(name, dice.choice((2, 1, 1)), values)
    if kind > 0.97:
        at = dice.randrange(len(made))
        return made[:at] + bytes((dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF)),)) + made[at + 1 :]
    return made[: dice.randrange(len(made))] if kind > 0.96 else made


def _record(dice: random.Random) -> dict[str, Any]:
    """Return the values of a PartitionRecord, or of a PartitionChangeRecord."""
    other, is_change = some(dice), dice.random() < 0.6
    values: dict[str, Any] = {"partitionId": dice.choice((0, 1, 2, 7, -1)), "topicId": dice.choice(IDS)}
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


def test_the_core_has_the_fields() -> None:
    assert [*FIELDS] == [*PartitionRegistration._fields]
    assert [*FIELDS.values()] == [*range(len(FIELDS))]
