"""Family remote: segments that __remote_log_metadata states, and the objects that a bucket has of them.

Source: RemoteLogManager (copyLogSegment, read), RemoteIndexCache.createCacheEntry, TierStateMachine,
RemoteLogSegmentState.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdump.check.finding import WARNING, Code, Finding
from kdump.cluster.remote_log import COPY_FINISHED, COPY_STARTED, UNDER_WAY, RemoteSegment
from kdump.format.count_text import count_text, first_of, offsets_text, size_text
from kdump.format.iso_time import iso
from kdump.log import file_kinds
from kdump.log.paths import Target
from kdump.log.remote_objects import INDEXES, MANIFEST, RemoteObject
from kdump.problems.problem import title_of

REMOTE_SEGMENT_MISSING = Code("remote-segment-missing")
REMOTE_SEGMENT_SIZE = Code("remote-segment-size")
REMOTE_SEGMENT_MISMATCH = Code("remote-segment-mismatch")
REMOTE_SEGMENT_OVERLAP = Code("remote-segment-overlap")
REMOTE_INDEX_MISSING = Code("remote-index-missing")
REMOTE_COPY_HANGS = Code("remote-copy-hangs")
REMOTE_DELETE_HANGS = Code("remote-delete-hangs")
REMOTE_ORPHAN = Code("remote-orphan")
OFFSETS_UNREADABLE = Code("offsets-unreadable")
FOR_FETCHES = (file_kinds.INDEX.name, file_kinds.TIME_INDEX.name)
"""Kinds of objects without which a broker fetches nothing of a segment, unless it has them in its cache."""
FOR_FOLLOWERS = (file_kinds.PRODUCER_SNAPSHOT.name, file_kinds.EPOCH_CHECKPOINT.name)
"""Kinds that a replica needs that begins with the local log alone (TierStateMachine)."""


def copied(
    segment: RemoteSegment,
    objects: Sequence[RemoteObject],
    place: Target,
    local_start: int | None,
    begin: int | None,
    end: int | None,
    size: int | None,
) -> Iterator[Finding]:
    """Yield the findings about a segment whose copy has finished. `objects`: those with its ID; `place`: where they
    are; `local_start`: the first offset in the local log, None if it is not here; `begin`, `end`: the first offset, and
    the one after what can be read of the segment, None if it was not read; `size`: bytes of the segment that the object
    has, None if that is not known."""
    kinds = {each.kind: each for each in objects}
    here = kinds.get(file_kinds.SEGMENT.name)
    offsets = f"offsets {segment.first}..{segment.last}"
    facts = {"localCopy": None if local_start is None else local_start <= segment.first}
    if here is None:
        message = f"{offsets} were copied to remote storage at {iso(segment.time)} by broker {segment.broker}, "
        message += f"and the object of their segment, {segment.id}, is not there"
        yield REMOTE_SEGMENT_MISSING.finding(place, message=message, offset=segment.first, facts=facts)
        return
    target = place._replace(path=here.path)
    has_first = begin is not None and end is not None and begin <= segment.first <= end
    goes_on = has_first and end is not None and end > segment.last + 1
    # Another's begins elsewhere: a consumer that finds nothing at its first offset skips, or stops.
    first = end if has_first and end is not None and end <= segment.last else segment.first
    if size is not None and size != segment.size:
        message = f"the object of {offsets} has {size_text(size)}, and the segment had {size_text(segment.size)}"
        is_longer = size > segment.size and end == segment.last + 1
        case = "longer" if is_longer else "another" if goes_on else ""
        yield REMOTE_SEGMENT_SIZE.finding(
            target,
            message=message,
            offset=first,
            expected=segment.size,
            actual=size,
            severity=WARNING if is_longer else None,
            case=case,
            facts=facts,
        )
    elif end is not None and (
        not segment.first < end <= segment.last + 1 or (begin not in (None, segment.first) and end <= segment.last)
    ):
        is_unread = end == segment.first and (begin is None or begin >= segment.first)
        what = "no valid batch" if is_unread else f"another segment, which ends with offset {end - 1}"
        message = f"the object of {offsets} has {what}"
        case = "another" if goes_on else ""
        yield REMOTE_SEGMENT_MISMATCH.finding(target, message=message, offset=first, case=case, facts=facts)
    if MANIFEST in kinds or INDEXES in kinds:
        lacking = [kind for kind in (MANIFEST, INDEXES) if kind not in kinds]
        if lacking:
            message = f"the {' and the '.join(lacking)} of {offsets} are not there"
            yield REMOTE_INDEX_MISSING.finding(target, message=message, offset=segment.first, facts=facts)
    elif len(kinds) > 1:
        yield from _indexes(segment, set(kinds), target, facts)


def damaged(segment: RemoteSegment, place: Target, why: str, case: str = "") -> Finding:
    """Return the finding about a manifest or an index of Aiven's plugin without which no broker reads the segment, or,
    as a `case`, without which it does."""
    severity = WARNING if case else None
    return REMOTE_INDEX_MISSING.finding(place, message=why, offset=segment.first, case=case, severity=severity)


def _indexes(
    segment: RemoteSegment, kinds: set[str], target: Target, facts: dict[str, bool | None]
) -> Iterator[Finding]:
    missing = [kind for kind in FOR_FETCHES if kind not in kinds]
    rest = [kind for kind in FOR_FOLLOWERS if kind not in kinds]
    if segment.has_txn_index and file_kinds.TXN_INDEX.name not in kinds:
        rest.insert(0, file_kinds.TXN_INDEX.name)
    for lacking, case in ((missing, ""), (rest, "follower")):
        if lacking:
            names = " and ".join(file_kinds.named(kind).title.partition(" ")[2] for kind in lacking)
            message = f"the {names} of offsets {segment.first}..{segment.last} {'is' if len(lacking) == 1 else 'are'}"
            yield REMOTE_INDEX_MISSING.finding(
                target,
                message=f"{message} not there",
                offset=segment.first,
                actual=" ".join(lacking),
                severity=WARNING if case else None,
                case=case,
                facts=facts,
            )


def unfinished(segment: RemoteSegment, place: Target, now: int) -> Iterator[Finding]:
    """Yield a finding about a copy, or a deletion, that has begun long ago."""
    if segment.state == COPY_FINISHED or now - segment.time <= UNDER_WAY:
        return
    if segment.state == COPY_STARTED:
        yield REMOTE_COPY_HANGS.finding(place, message=segment.text, offset=segment.first, actual=segment.id)
        return
    message = f"the deletion of offsets {segment.first}..{segment.last} by broker {segment.broker} has not finished "
    message += f"since {iso(segment.time)}"
    yield REMOTE_DELETE_HANGS.finding(place, message=message, offset=segment.first, actual=segment.id)


def orphan(objects: Sequence[RemoteObject], place: Target, case: str) -> Finding:
    """Return the finding about the objects of one segment that no metadata names. `case`: deleted for those of a topic
    that the cluster does not have; copy for those whose names others have, too."""
    first = objects[0]
    size = sum(each.size for each in objects)
    names = first_of([each.path.rpartition("/")[2] for each in objects])
    message = f"{count_text(len(objects), 'object')} with {size_text(size)} of segment {first.segment_id}, "
    copies = "whose names others nearer to the URL have, too"
    message += f"{copies if case == 'copy' else 'which __remote_log_metadata does not name'}: {names}"
    if case == "deleted":
        message += f"; the cluster has no topic with the ID {first.place[0]}"
    target = place._replace(path=first.path)
    return REMOTE_ORPHAN.finding(target, message=message, offset=first.base_offset, actual=size, case=case)


def overlap(segment: RemoteSegment, offset: int, other: str, place: Target) -> Finding:
    """Return the finding about a segment that has other batches from `offset` on than `other`, in words."""
    message = f"from offset {offset} on, the object of offsets {segment.first}..{segment.last} has other batches than "
    return REMOTE_SEGMENT_OVERLAP.finding(place, message=message + other, offset=offset)


def unreadable(lacks: Sequence[tuple[int, int]], place: Target) -> Finding:
    """Return the finding about offsets below the local log that no segment in remote storage has."""
    message = title_of(OFFSETS_UNREADABLE.code, offsets=offsets_text(lacks))
    return OFFSETS_UNREADABLE.finding(place, message=message, offset=lacks[0][0])
