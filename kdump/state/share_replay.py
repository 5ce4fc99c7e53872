"""Records of __share_group_state -> how far share groups have come in each partition.

Source: org.apache.kafka.coordinator.share.ShareCoordinatorShard (handleShareSnapshot, handleShareUpdate, merge),
KIP-932; KIP-1226 for the count that the lag leaves out.
"""

from __future__ import annotations

from kdump.format.coordinator_record import decode_coordinator_record
from kdump.log.record import Record
from kdump.state.group_replay import GroupReplay
from kdump.state.groups import ShareState
from kdump.state.records import ENTRY, memory, too_large

NONE = -1


def apply_share(replay: GroupReplay, record: Record) -> None:
    """What a record of __share_group_state changes; one that does not decode changes nothing."""
    assert record.offset is not None
    replay.offset, replay.timestamp = record.offset, record.timestamp
    if record.is_control:
        return
    if too_large(record):
        replay.at(f"a record of {record.keySize} + {record.valueSize} bytes")
        return
    said = decode_coordinator_record("share-coordinator", record.key, record.value)
    problem = said.key.problem or (said.value.problem if said.value else None)
    if problem is not None:
        replay.at(str(problem))
        return
    assert said.key.schema is not None
    assert said.key.decoded is not None
    replay.record = said.key.schema.name.removesuffix("Key")
    key = said.key.decoded.value
    group, at = key["groupId"], (key["topicId"], key["partition"])
    states = replay.groups.share.get(group, {})
    before = states.get(at)
    size = ENTRY + 100 + memory(group) + memory(at)
    after = None
    if said.value is not None and said.value.decoded is not None:
        after = _after(before, said.value.decoded.value, replay.record == "ShareUpdate", record.offset)
    if after is not None and (before is not None or replay.charge(size)):
        replay.groups.share.setdefault(group, states)[at] = after
    elif after is None and before is not None:
        del states[at]
        replay.room += size
        if not states:
            del replay.groups.share[group]
    old, new = ({} if each is None else each._asdict() for each in (before, after))
    replay.tell("shareState", f"{at[0]}-{at[1]}", group, old, new, quiet=("recordOffset", "writeTimestamp"))


def _after(before: ShareState | None, value: dict[str, int], is_update: bool, offset: int) -> ShareState:
    """An update leaves out what has not changed; a snapshot says all."""
    after = ShareState(
        value["startOffset"],
        value.get("stateEpoch", NONE),
        value["leaderEpoch"],
        value["snapshotEpoch"],
        value["deliveryCompleteCount"],
        value.get("writeTimestamp"),
        offset,
    )
    if not is_update or before is None:
        return after
    return after._replace(
        startOffset=before.startOffset if after.startOffset == NONE else after.startOffset,
        leaderEpoch=before.leaderEpoch if after.leaderEpoch == NONE else after.leaderEpoch,
        stateEpoch=before.stateEpoch,
        snapshotEpoch=before.snapshotEpoch,
        writeTimestamp=before.writeTimestamp,
    )
