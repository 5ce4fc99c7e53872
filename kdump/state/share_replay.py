"""Replays __share_group_state: the progress of share groups in each partition.

Source: org.apache.kafka.coordinator.share.ShareCoordinatorShard (handleShareSnapshot, handleShareUpdate, merge),
KIP-932; KIP-1226 for deliveryCompleteCount, which is subtracted from the lag.
"""

from __future__ import annotations

from kdump.log.record import Record
from kdump.state.group_replay import GroupReplay
from kdump.state.groups import ShareState
from kdump.state.internal_records import ENTRY, memory

NONE = -1


def apply_share(replay: GroupReplay, record: Record) -> None:
    """Apply a record of __share_group_state; one that does not decode changes nothing."""
    replay.go_to(record)
    if record.is_control or not replay.fits(record):
        return
    decoded = replay.read("share-coordinator", record.key, record.value)
    if decoded is None:
        return
    key, value = decoded
    group, at = key["groupId"], (key["topicId"], key["partition"])
    states = replay.groups.share.get(group, {})
    before = states.get(at)
    size = ENTRY + 100 + memory(group) + memory(at)
    after = None
    if value is not None:
        after = _after(before, value, replay.record == "ShareUpdate", replay.offset)
    if after is not None and (before is not None or replay.charge(size)):
        replay.groups.share.setdefault(group, states)[at] = after
    elif after is None and before is not None:
        del states[at]
        replay.room += size
        if not states:
            del replay.groups.share[group]
    old, new = ({} if each is None else each._asdict() for each in (before, after))
    replay.report_change(
        "shareState", f"{at[0]}-{at[1]}", group, old, new, quiet=("recordOffset", "writeTimestamp", "snapshotOffset")
    )


def _after(before: ShareState | None, value: dict[str, int], is_update: bool, offset: int) -> ShareState:
    """Return the state after a record. A ShareUpdate omits what has not changed; a ShareSnapshot contains
    everything."""
    after = ShareState(
        value["startOffset"],
        value.get("stateEpoch", NONE),
        value["leaderEpoch"],
        value["snapshotEpoch"],
        value["deliveryCompleteCount"],
        value.get("writeTimestamp"),
        offset,
        -1 if is_update else offset,
    )
    if not is_update or before is None:
        return after
    return after._replace(
        startOffset=before.startOffset if after.startOffset == NONE else after.startOffset,
        leaderEpoch=before.leaderEpoch if after.leaderEpoch == NONE else after.leaderEpoch,
        stateEpoch=before.stateEpoch,
        snapshotEpoch=before.snapshotEpoch,
        writeTimestamp=before.writeTimestamp,
        snapshotOffset=before.snapshotOffset,
    )
