"""State that a scan keeps of a partition, so that the next scan does not have to start with its first segment: the
number of segments that are done, the state of the check after them, and fingerprints of everything that must be
unchanged.

The rows of closed segments that have not changed are reused. If anything else that their findings depend on has
changed, the partition is read from its first segment. A segment that has only grown is read from its own beginning,
because only reading can show that its earlier bytes are unchanged."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from kdump.check.engine.partition_scan import recovers
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.resume_state import StateError
from kdump.check.unchanged import Stamps, file_stamps
from kdump.io.directory_listing import is_url
from kdump.kafka.leader_epoch_file_cache import first_falling
from kdump.log.partition_directory import PartitionDirectory
from kdump.spark.delta_tables import LAYOUT
from kdump.spark.store import key_of
from kdump.state.unknown_offsets import NO_FILES
from kdump.tables.disk_identity import DiskIdentity
from kdump.version import __version__

MAX_STATE_BYTES = 512 * 1024 * 1024
"""Maximum size of an uncompressed state in bytes."""
AT_END = ("recovery-point-offset", "replication-offset", "cleaner-offset")
"""Checkpoints whose offsets no finding of a closed segment depends on: they are compared with the end of the log."""


@dataclass(frozen=True)
class ResumePoint:
    """A point at which the next scan can resume. `segments`: number of segments before it. `print_`: fingerprint of
    what their rows depend on, except for what is compared item by item: leader epochs up to the offset `reached`, the
    producer snapshots in `compared` with their stamps, and, if findings depend on it (`doubts`), which segments a
    broker re-reads at startup (`recovers`)."""

    segments: int
    print_: str
    reached: int
    doubts: int
    recovers: list[bool | None]
    epochs: list[list[int]]
    compared: list[list[Any]]

    def as_json(self) -> str:
        """Return the fields as a JSON object."""
        return json.dumps(asdict(self))


KINDS = {field.name: {"int": int, "str": str}.get(str(field.type), list) for field in fields(ResumePoint)}


def parse_resume_point(data: str | None) -> ResumePoint | None:
    """Return the resume point in the entry of an earlier scan; None if it is missing or invalid."""
    try:
        value = json.loads(data) if data is not None else None
    except ValueError:
        return None
    if not isinstance(value, dict) or value.keys() != KINDS.keys():
        return None
    return ResumePoint(**value) if all(isinstance(value[name], kind) for name, kind in KINDS.items()) else None


def prefix_fingerprint(
    place: PartitionDirectory,
    context: PartitionContext,
    check: Options,
    tables: tuple[str, ...],
    identity: DiskIdentity,
    count: int,
    stamps: Stamps,
) -> str:
    """Return a fingerprint of everything that the rows and findings of the first `count` segments depend on, except for
    what ResumePoint compares item by item."""
    late = replace(context, now=0, coordinator=None, transaction_timeout=0, topic_id=None, checkpoints={}, epochs=None)
    late = replace(late, checkpoint_files=NO_FILES, epochs_at=None)  # findings do not state why an offset is unknown
    offsets = sorted(
        (name, checkpointed.offset) for name, checkpointed in context.checkpoints.items() if name not in AT_END
    )
    cleaned = "cleaner-offset" in context.checkpoints
    with_snapshot = {target.name_offset for target in place.snapshots}
    seen = []
    for segment in place.segments[:count]:
        own = [target.path for target in (segment.log, *segment.indexes.values()) if target is not None]
        seen.append((segment.name, segment.offset in with_snapshot, sorted((path, stamps.get(path)) for path in own)))
    options = (check.limits, check.max_message_bytes)
    about = (options, tables, identity, late, offsets, cleaned, seen)
    return key_of(LAYOUT, __version__, repr(about))


def epochs_until(context: PartitionContext, reached: int) -> list[list[int]]:
    """Return the entries of leader-epoch-checkpoint with start offsets up to `reached`. If the entries are not in
    ascending order, returns a placeholder, because the check then uses none of them."""
    entries = context.epochs or ()
    if first_falling(entries) is not None:
        return [[-1, -1]]
    return [[entry.epoch, entry.startOffset] for entry in entries if entry.startOffset <= reached]


def recovered(place: PartitionDirectory, context: PartitionContext, count: int) -> list[bool | None]:
    """Return which of the first `count` segments a broker re-reads at startup; at least one more must follow them."""
    return [recovers(context, following) for following in place.segments[1 : count + 1]]


def compared_now(paths: list[str], stamps: Stamps) -> list[list[Any]]:
    """Return the producer snapshots that have been compared with the log, with their current stamps."""
    return sorted([path, *map(str, stamps.get(path, ()))] for path in paths)


def is_unchanged(
    kept: ResumePoint,
    place: PartitionDirectory,
    context: PartitionContext,
    check: Options,
    tables: tuple[str, ...],
    identity: DiskIdentity,
) -> bool:
    """Return True if a check can resume at `kept`, because everything that it depends on is unchanged."""
    count = kept.segments
    if not 0 < count < len(place.segments) or place.listing_errors:
        return False
    stamps = file_stamps(place)
    if prefix_fingerprint(place, context, check, tables, identity, count, stamps) != kept.print_:
        return False
    below = [target.path for target in place.snapshots if (target.name_offset or 0) <= kept.reached]
    if compared_now(below, stamps) != kept.compared or epochs_until(context, kept.reached) != kept.epochs:
        return False
    return not kept.doubts or recovered(place, context, count) == kept.recovers


def is_time_independent(place: PartitionDirectory, codes: set[str]) -> bool:
    """Return True if the findings depend on the segments alone. In an object store, timestamp-in-future does not: there
    it compares with the current time, instead of the modification time."""
    return not (is_url(place.path) and "timestamp-in-future" in codes)


def pack_state(state: dict[str, Any]) -> bytes:
    """Return the state of a check and its counts as bytes for the entry of a unit."""
    return zlib.compress(json.dumps(state).encode(), 1)


def unpack_state(data: bytes | None) -> dict[str, Any]:
    """Return a state. Raises StateError if it is missing, or invalid."""
    inflated = zlib.decompressobj()
    try:
        inflated_data = inflated.decompress(data or b"", MAX_STATE_BYTES)
        state = json.loads(inflated_data) if inflated.eof else None
    except (zlib.error, ValueError, RecursionError) as error:
        raise StateError(str(error)) from None
    if not isinstance(state, dict):
        raise StateError("not a state")
    return state
