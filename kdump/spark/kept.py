"""What a scan keeps of a partition, so that the next one need not begin with its first segment: behind which segments
the check can go on, with which state, and what of the world must be as it was for that.

Segments that were closed and have not changed say what they said. Not so where something that their findings depend on
has: then the partition is read from its first segment. A segment that has only grown is read from its own beginning,
since nothing but its bytes can tell that what it had before is as it was.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from typing import Any

from kdump import __version__
from kdump.check.carried import NotCarried
from kdump.check.options import Options
from kdump.check.partition import recovers
from kdump.check.rule import Known
from kdump.log.disk import Partition
from kdump.log.listing import is_url
from kdump.spark.fleet import Identity
from kdump.spark.stamps import Stamp, stamp
from kdump.spark.store import LAYOUT, Store, key_of

MOST = 512 * 1024 * 1024
"""Bytes of a state, unpacked."""
STATES = "_kdump/states"
AT_END = ("recovery-point-offset", "replication-offset", "cleaner-offset")
"""Checkpoints whose offsets no finding of a closed segment depends on: they are held against the log's end."""
Stamps = Mapping[str, Stamp]


@dataclass(frozen=True)
class Kept:
    """`segments`: how many of them the state is behind. `print_`: what their rows depend on, but for what is held
    against the world offset by offset: leader epochs up to the offset `reached`, snapshots that were `compared`, each
    as it was, and, where it counts (`doubts`), which segments a broker re-reads. `files`: those of their rows;
    `state`: the file with the state of the check, of which `digest` is the SHA-256."""

    segments: int
    print_: str
    reached: int
    doubts: int
    recovers: list[bool | None]
    epochs: list[list[int]]
    compared: list[list[Any]]
    files: list[str]
    state: str
    digest: str

    def said(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


KINDS = {field.name: {"int": int, "str": str}.get(str(field.type), list) for field in fields(Kept)}


def parsed(said: Any) -> Kept | None:
    """What an entry of an earlier scan has; None for what cannot be made out."""
    if not isinstance(said, dict) or said.keys() != KINDS.keys():
        return None
    return Kept(**said) if all(isinstance(said[name], kind) for name, kind in KINDS.items()) else None


def prefix_print(
    place: Partition,
    known: Known,
    check: Options,
    tables: tuple[str, ...],
    identity: Identity,
    count: int,
    stamps: Stamps,
) -> str:
    """What rows and findings of the first `count` segments depend on, as far as one number can tell."""
    late = replace(known, now=0, coordinator=None, transaction_timeout=0, topic_id=None, checkpoints={}, epochs=None)
    offsets = sorted((name, noted.offset) for name, noted in known.checkpoints.items() if name not in AT_END)
    cleaned = "cleaner-offset" in known.checkpoints
    with_snapshot = {at.name_offset for at in place.snapshots}
    seen = []
    for segment in place.segments[:count]:
        own = [at.path for at in (segment.log, *segment.beside.values()) if at is not None]
        seen.append((segment.name, segment.offset in with_snapshot, sorted((path, stamps.get(path)) for path in own)))
    options = (check.limits, check.max_message_bytes)
    about = (options, tables, identity, replace(late, epochs_at=None), offsets, cleaned, seen)
    return key_of(LAYOUT, __version__, repr(about))


def stamps_of(place: Partition) -> Stamps:
    """Of all files of a partition, as they are now."""
    return {at.path: stamp(at) for at in place.files()}


def epochs_until(known: Known, reached: int) -> list[list[int]]:
    """The lines of leader-epoch-checkpoint that speak of offsets up to `reached`; one of its own where the file's lines
    do not rise, for it then speaks of none."""
    entries = known.epochs or ()
    if any(a.epoch >= b.epoch or a.startOffset >= b.startOffset for a, b in pairwise(entries)):
        return [[-1, -1]]
    return [[each.epoch, each.startOffset] for each in entries if each.startOffset <= reached]


def recovered(place: Partition, known: Known, count: int) -> list[bool | None]:
    """Which of the first `count` segments a broker re-reads when it starts; others follow."""
    return [recovers(known, place.segments[number + 1 : number + 2]) for number in range(count)]


def compared_now(place: Partition, paths: list[str], stamps: Stamps) -> list[list[Any]]:
    """The snapshots that were held against the log so far, each as it was."""
    return sorted([path, *map(str, stamps.get(path, ()))] for path in paths)


def still_holds(
    kept: Kept, place: Partition, known: Known, check: Options, tables: tuple[str, ...], identity: Identity
) -> bool:
    """Whether a check can go on from there, as the world is now."""
    count = kept.segments
    if not 0 < count < len(place.segments) or place.refused:
        return False
    stamps = stamps_of(place)
    if prefix_print(place, known, check, tables, identity, count, stamps) != kept.print_:
        return False
    below = [at.path for at in place.snapshots if (at.name_offset or 0) <= kept.reached]
    if compared_now(place, below, stamps) != kept.compared or epochs_until(known, kept.reached) != kept.epochs:
        return False
    return not kept.doubts or recovered(place, known, count) == kept.recovers


def lasts(place: Partition, codes: Mapping[str, int]) -> bool:
    """Whether what was found depends on the segments alone: in a store the present stands for the time of their last
    change, and goes on."""
    return not (is_url(place.path) and codes.get("timestamp-in-future"))


def put_state(store: Store, key: str, count: int, said: dict[str, Any]) -> tuple[str, str]:
    """Write a state: its file's name and digest. Raises StoreError."""
    data = zlib.compress(json.dumps(said).encode(), 1)
    name = f"{STATES}/{key}-{count}.json.z"
    store.write(name, data)
    return name, hashlib.sha256(data).hexdigest()


def read_state(store: Store, kept: Kept) -> dict[str, Any]:
    """Raises NotCarried where it is not there, or not the one that was written."""
    data = store.read(kept.state)
    if data is None or hashlib.sha256(data).hexdigest() != kept.digest:
        raise NotCarried(f"{kept.state}: not what was written")
    inflated = zlib.decompressobj()
    try:
        text = inflated.decompress(data, MOST)
        said = json.loads(text) if inflated.eof else None
    except (zlib.error, ValueError, RecursionError) as error:
        raise NotCarried(f"{kept.state}: {error}") from None
    if not isinstance(said, dict):
        raise NotCarried(f"{kept.state}: no state")
    return said


def state_of(entry: dict[str, Any]) -> set[str]:
    """The file with the state that an entry keeps."""
    kept = entry.get("kept")
    return {kept["state"]} if isinstance(kept, dict) and isinstance(kept.get("state"), str) else set()
