"""Reports how loading a log changed its leader epochs and producer snapshots, by comparing before and after."""

from __future__ import annotations

import os

from kdump.forensics.restart.log_files import LogFiles
from kdump.kafka.producer_state_manager import SnapshotFiles


def report_epoch_changes(files: LogFiles) -> None:
    """Add the step that rewrites leader-epoch-checkpoint, with the lines that are removed and added."""
    path = os.path.join(files.plan.path, "leader-epoch-checkpoint")
    before, after = files.plan.epochsBefore or (), files.plan.epochsAfter or ()
    gone = ", ".join(f"{each.epoch}@{each.startOffset}" for each in before if each not in after)
    new = ", ".join(f"{each.epoch}@{each.startOffset}" for each in after if each not in before)
    files.step(
        "write", path, "; ".join(filter(None, [f"removes {gone}" if gone else "", f"adds {new}" if new else ""]))
    )


def report_snapshot_changes(files: LogFiles, snapshots: SnapshotFiles, before: dict[int, str]) -> None:
    """Add a step for each producer snapshot that is deleted, overwritten or new."""
    now = snapshots.files
    for offset, path in sorted(before.items()):
        reason = snapshots.removed.get(offset)
        if reason is not None and offset in now:
            kind = "rebuild" if offset in snapshots.corrupt else "write"
            files.step(kind, path, f"rewritten: {reason}", offset=offset)
        elif reason is not None:
            files.step("delete" if offset in snapshots.corrupt else "sweep", path, reason, offset=offset)
    for offset in sorted(set(now) - set(before)):
        files.step("write", os.path.join(files.plan.path, f"{offset:020}.snapshot"), "producer snapshot", offset=offset)
