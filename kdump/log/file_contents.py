"""Recognizes the kind of a file in a log directory by its content, if the name is lost."""

from __future__ import annotations

import json
import re
from itertools import pairwise

from kdump.core.record_columns import RecordColumns, decode
from kdump.format.batch_header import BatchHeader
from kdump.format.checksum import checksum
from kdump.format.control_record import KEY, SNAPSHOT_HEADER_TYPE
from kdump.format.errors import DecodeError
from kdump.format.producer_snapshot import CRC_START, PRODUCER_ENTRY, SNAPSHOT_HEADER, VERSIONS
from kdump.io.run import Limits
from kdump.io.window import Window
from kdump.log.file_kinds import (
    CLEAN_SHUTDOWN,
    EPOCH_CHECKPOINT,
    INDEXES,
    KRAFT_SNAPSHOT,
    META_PROPERTIES,
    OFFSET_CHECKPOINT,
    PARTITION_METADATA,
    PRODUCER_SNAPSHOT,
    QUORUM_STATE,
    SEGMENT,
    TIME_INDEX,
    TXN_INDEX,
    FileKind,
)
from kdump.log.header_candidate import candidate_at

LIKELY_TIME = (10**11, 10**13)
"""Epoch ms in 1973 and 2286: plausible timestamps for a time index, unlike the first bytes of a segment."""
SAMPLE = 4096


def by_content(window: Window) -> FileKind:
    """Return the kind that a file's content looks like, by the strictest test first; a segment if no test matches."""
    data = bytes(window.view(0, SAMPLE))
    whole = len(data) < SAMPLE
    text = _text_kind(data, whole)
    if text is not None:
        return text
    if _is_snapshot(window, data):
        return PRODUCER_SNAPSHOT
    claim = candidate_at(window, 0, Limits())
    # A preallocated index can look like a header of magic 0: only a v2 header is accepted before testing for indexes.
    header = claim.header if claim.error is None else None
    # A batch larger than the window is not read to its end for this: a pipe would have to be buffered that far.
    if isinstance(header, BatchHeader) and (claim.size > window.size or window.reaches(claim.end)):
        return KRAFT_SNAPSHOT if _begins_snapshot(header, data[: claim.end]) else SEGMENT
    size = len(data) if whole else window.source.size
    for kind, entry in INDEXES.items():
        if (size is None or size % entry.size == 0) and _rises(kind, data):
            return kind
    return SEGMENT


def _text_kind(data: bytes, whole: bool) -> FileKind | None:
    lines = data.split(b"\n")
    if not whole:
        lines.pop()
    if not lines:
        return None
    if re.fullmatch(rb"\d+", lines[0]) and len(lines) > 1 and re.fullmatch(rb"\d+", lines[1]):
        third = lines[2] if len(lines) > 2 else b""
        return EPOCH_CHECKPOINT if re.fullmatch(rb"-?\d+ -?\d+", third) else OFFSET_CHECKPOINT
    if re.match(rb"version: \d+\ntopic_id: ", data):
        return PARTITION_METADATA
    if b"\0" not in data and re.search(rb"^(?:cluster\.id|node\.id|broker\.id)=", data, re.MULTILINE):
        return META_PROPERTIES
    if data.lstrip().startswith(b"{") and whole:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return None
        return QUORUM_STATE if "leaderEpoch" in value else CLEAN_SHUTDOWN if "brokerEpoch" in value else None
    return None


def _is_snapshot(window: Window, data: bytes) -> bool:
    if len(data) < SNAPSHOT_HEADER.size:
        return False
    header = SNAPSHOT_HEADER.read(data)
    size = SNAPSHOT_HEADER.size + header.producerEntries * PRODUCER_ENTRY.size
    if header.version not in VERSIONS or header.producerEntries < 0 or not window.reaches(size):
        return False
    if header.producerEntries and not window.reaches(size + 1):
        return True  # as long as its header states, damaged or not
    return checksum(2, window.chunks(CRC_START, size - CRC_START)) == header.crc


def _begins_snapshot(header: BatchHeader, data: bytes) -> bool:
    """Return True if the first batch has the control record that begins a KRaft snapshot."""
    if not header.isControlBatch:
        return False
    columns = RecordColumns(data)
    try:
        decode(columns, header.headerSize, len(data), 1, True)
    except DecodeError:
        return False
    start, size = columns.key_start[0], columns.key_size[0]
    return size >= KEY.size and KEY.read(data, start).type == SNAPSHOT_HEADER_TYPE


def _rises(kind: FileKind, data: bytes) -> bool:
    """Return True if the first entries look like an index: ascending numbers, then perhaps preallocated zeros."""
    entry = INDEXES[kind]
    rows = list(entry.struct.iter_unpack(data[: len(data) // entry.size * entry.size]))
    while rows and not any(rows[-1]):
        rows.pop()
    if not rows:
        return False
    if kind is TXN_INDEX:
        return all(row[0] == 0 and 0 <= row[2] <= row[3] for row in rows)
    pairs = list(pairwise(rows))
    if kind is TIME_INDEX:
        risen = all(a[0] < b[0] and a[1] <= b[1] for a, b in pairs)
        return risen and rows[0][1] >= 0 and LIKELY_TIME[0] <= rows[0][0] <= rows[-1][0] <= LIKELY_TIME[1]
    # Only the first batch is at byte 0, and it has no entry.
    return min(rows[0]) > 0 and all(a[0] < b[0] and a[1] < b[1] for a, b in pairs)
