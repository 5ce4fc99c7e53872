"""Reads the files next to the segments: yields their entries in order, and regions (padding, torn, junk) for other
bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from kdump.format import java_properties, text_files
from kdump.format.checksum import checksum
from kdump.format.count_text import count_text, plain_count
from kdump.format.errors import CHECKPOINT_INVALID, NEWER_RELEASE, SNAPSHOT_INVALID
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY, TxnIndexEntry
from kdump.format.layout import Layout
from kdump.format.numbers import INT_MAX
from kdump.format.producer_snapshot import (
    CRC_START,
    PRODUCER_ENTRY,
    SNAPSHOT_HEADER,
    VERSIONS,
    ProducerEntry,
    newer_snapshot,
)
from kdump.format.text_files import LARGEST_TEXT
from kdump.io.errors import SourceError
from kdump.io.window import Window
from kdump.log import file_kinds
from kdump.log.file_kinds import FileKind
from kdump.log.region import JUNK, PADDING, TORN, Defect, Region, ZeroEntries

__all__ = ["Entry"]

BLOCK = 64 * 1024
"""Maximum size in bytes of a run of entries."""


class Entry(NamedTuple):
    """An entry: bytes position..position+size-1 of the file, and its values by their JSON names.

    `type` is that of the JSON object, empty if there is none (for a header, a comment). `layout` declares the bytes of
    a binary entry; for text, it is None and `what` describes the line."""

    type: str
    position: int
    size: int
    data: bytes
    values: dict[str, Any]
    layout: Layout[Any] | None = None
    what: str = ""


class FixedEntries(NamedTuple):
    """Entries of a fixed size: their layout, the type of their JSON objects, and the JSON names of their fields, all
    integers. `relative`: number of the field that is relative to the base offset in the file's name."""

    layout: Layout[Any]
    type: str
    names: tuple[str, ...]
    relative: int | None = None


class EntryRun(NamedTuple):
    """Adjacent entries of a fixed size: the bytes from `position` of the file on. In an index, none of them is zeros.
    `base`: base offset in the file's name."""

    fixed: FixedEntries
    position: int
    data: bytes
    base: int

    @property
    def size(self) -> int:
        """Size in bytes."""
        return len(self.data)

    @property
    def rows(self) -> int:
        """Number of entries."""
        return len(self.data) // self.fixed.layout.size

    def numbers(self) -> list[int]:
        """Return the values of all entries, one entry after the other."""
        fixed = self.fixed
        values = list(chain.from_iterable(fixed.layout.struct.iter_unpack(self.data)))
        if fixed.relative is not None and self.base:
            own = slice(fixed.relative, None, len(fixed.names))
            values[own] = map(self.base.__add__, values[own])
        return values

    def tuples(self) -> Iterator[tuple[int, ...]]:
        """Yield the values of the entries one by one."""
        return zip(*[iter(self.numbers())] * len(self.fixed.names))

    def entries(self) -> Iterator[Entry]:
        """Yield the entries one by one."""
        layout, type_name, names, _ = self.fixed
        data, position, size = self.data, self.position, layout.size
        for start, row in zip(range(0, len(data), size), self.tuples()):
            part = data[start : start + size]
            yield Entry(type_name, position + start, size, part, dict(zip(names, row)), layout)

    def entry(self, number: int, numbers: Sequence[int]) -> Entry:
        """Return an entry; `numbers` are those of the run."""
        layout, type_name, names, _ = self.fixed
        start, first = number * layout.size, number * len(names)
        part = self.data[start : start + layout.size]
        values = dict(zip(names, numbers[first : first + len(names)]))
        return Entry(type_name, self.position + start, layout.size, part, values, layout)


Item = Entry | Region | Defect


def entries(kind: FileKind, window: Window, base: int) -> Iterator[Item]:
    """Yield everything in a file of that kind. `base` is the base offset in its name. A producer snapshot is read
    twice, the second time for its checksum, so the source must keep it. Raises SourceError."""
    if kind is file_kinds.PRODUCER_SNAPSHOT:
        yield from _snapshot(window)
    elif kind in FIXED:
        yield from single_entries(entry_runs(kind, window, base))
    else:
        yield from _text(kind, window)


def single_entries(items: Iterable[EntryRun | Region]) -> Iterator[Entry | Region]:
    """Yield the entries of runs one by one, and the regions between them."""
    for item in items:
        if isinstance(item, EntryRun):
            yield from item.entries()
        else:
            yield item


def entry_runs(kind: FileKind, window: Window, base: int) -> Iterator[EntryRun | Region]:
    """Like `entries` for a kind in FIXED, but yields adjacent entries at once. Raises SourceError."""
    return _fixed(window, 0, FIXED[kind], base, padded=True)


FIXED: dict[FileKind, FixedEntries] = {
    file_kinds.INDEX: FixedEntries(INDEX_ENTRY, "indexEntry", ("offset", "position"), 0),
    file_kinds.TIME_INDEX: FixedEntries(TIME_INDEX_ENTRY, "timeIndexEntry", ("timestamp", "offset"), 1),
    file_kinds.TXN_INDEX: FixedEntries(TXN_INDEX_ENTRY, "txnIndexEntry", TxnIndexEntry._fields),
}


PRODUCER = FixedEntries(PRODUCER_ENTRY, "producerState", ProducerEntry._fields)


def _fixed(
    window: Window, position: int, fixed: FixedEntries, base: int, *, padded: bool
) -> Iterator[EntryRun | Region]:
    """Yield entries of a fixed size up to the end. Zeros that reach to the end are padding, if the file can have
    padding."""
    size = fixed.layout.size
    zeros = 0  # bytes of zeros directly before `position`, not yielded yet
    while True:
        window.release(position - zeros)
        data = bytes(window.view(position, max(size, min(BLOCK, window.size) // size * size)))
        whole = len(data) // size * size
        # Most of a preallocated index is zeros: those after the last entry of the block are counted at once.
        used = -(-len(data[:whole].rstrip(b"\0")) // size) * size if padded else whole
        start = 0
        while start < used:
            stop = _next_zeros(data, start, used, size) if padded else used
            if stop == start:
                zeros += size
                start += size
                continue
            if zeros:
                # A preallocated index in which something was written: a million rows of zeros would not be useful.
                count = count_text(zeros // size, "entry", "entries")
                reason = f"{count} of zeros before another entry: a broker reads them as entries"
                yield ZeroEntries(PADDING, position + start - zeros, zeros, reason)
                zeros = 0
            yield EntryRun(fixed, position + start, data[start:stop], base)
            start = stop
        zeros += whole - used
        position += whole
        if len(data) == whole and data:
            if padded and not used:  # a sparse file may have a TiB of them
                hole = max(0, window.source.next_data(position) - position) // size * size
                zeros += hole
                position += hole
            continue
        left = data[whole:]
        if zeros:
            end = position + (len(left) if not any(left) else 0)
            yield Region(PADDING, position - zeros, end - position + zeros, "zeros, as left by preallocation")
            left = left if any(left) else b""
        if left:
            yield Region(
                TORN,
                position,
                len(left),
                f"{count_text(len(left), 'byte')} left at the end, less than one entry ({plain_count(size, 'byte')})",
            )
        return


def _next_zeros(data: bytes, start: int, stop: int, size: int) -> int:
    """Return where the first entry of zeros begins in data[start:stop]; `stop` if there is none."""
    zeros = bytes(size)
    while (zeros_at := data.find(zeros, start, stop)) >= 0:
        start = -(-zeros_at // size) * size
        if data.startswith(zeros, start, stop):
            return start
    return stop


def _snapshot(window: Window) -> Iterator[Item]:
    data = bytes(window.view(0, SNAPSHOT_HEADER.size))
    name = SNAPSHOT_HEADER.name
    if len(data) < SNAPSHOT_HEADER.size:
        if data:
            yield Region(
                TORN,
                0,
                len(data),
                f"{count_text(len(data), 'byte')}, less than a header ({plain_count(SNAPSHOT_HEADER.size, 'byte')})",
            )
        reason = f"{count_text(len(data), 'byte')}, less than a header ({plain_count(SNAPSHOT_HEADER.size, 'byte')})"
        yield Defect(SNAPSHOT_INVALID, name, "version", 0, reason)
        return
    header = SNAPSHOT_HEADER.read(data)
    yield Entry("", 0, len(data), data, header._asdict(), SNAPSHOT_HEADER, "header")
    if (window.source.size or 0) > INT_MAX:
        reason = f"{window.source.size} bytes; a broker reads the file into memory, which has room for {INT_MAX}"
        yield Region(JUNK, len(data), (window.source.size or 0) - len(data), reason)
        yield Defect(SNAPSHOT_INVALID, name, "producerEntries", SNAPSHOT_HEADER.positions["producerEntries"], reason)
        return
    newer = newer_snapshot(header.version)
    if header.version not in VERSIONS:
        reason = f"version {header.version} is unknown; decoded as version 1"
        code = NEWER_RELEASE if newer else SNAPSHOT_INVALID
        yield Defect(code, name, "version", 0, newer or reason, 1, header.version)
    entry_count = 0
    size = len(data)
    for item in _fixed(window, size, PRODUCER, 0, padded=False):
        size += item.size
        if isinstance(item, EntryRun):
            entry_count += item.rows
            yield from item.entries()
        else:
            yield item
    if newer:
        return  # with other fields, perhaps
    if entry_count != header.producerEntries:
        reason = f"producerEntries is {header.producerEntries}, but there are {entry_count}"
        field_at = SNAPSHOT_HEADER.positions["producerEntries"]
        yield Defect(SNAPSHOT_INVALID, name, "producerEntries", field_at, reason, entry_count, header.producerEntries)
    computed = checksum(2, window.chunks(CRC_START, size - CRC_START))
    if computed != header.crc:
        reason = f"stored CRC-32C 0x{header.crc:08x}, computed 0x{computed:08x}"
        field_at = SNAPSHOT_HEADER.positions["crc"]
        yield Defect(SNAPSHOT_INVALID, name, "crc", field_at, reason, computed, header.crc)


TEXTS: dict[FileKind, tuple[Callable[[bytes], Iterator[text_files.TextLine]], str, str]] = {
    file_kinds.OFFSET_CHECKPOINT: (text_files.offset_checkpoint, "checkpointEntry", CHECKPOINT_INVALID),
    file_kinds.EPOCH_CHECKPOINT: (text_files.epoch_checkpoint, "checkpointEntry", CHECKPOINT_INVALID),
    file_kinds.PARTITION_METADATA: (text_files.partition_metadata, "property", "partition-metadata-invalid"),
    file_kinds.META_PROPERTIES: (java_properties.properties, "property", "meta-properties-invalid"),
    file_kinds.QUORUM_STATE: (text_files.json_object, "property", "quorum-state-invalid"),
    file_kinds.CLEAN_SHUTDOWN: (text_files.json_object, "property", ""),
}


def _text(kind: FileKind, window: Window) -> Iterator[Item]:
    data = b"".join(bytes(chunk) for chunk in window.chunks(0, LARGEST_TEXT + 1))
    if len(data) > LARGEST_TEXT:
        raise SourceError.at(window.source.name, f"more than {LARGEST_TEXT} bytes, too large for {kind.title}")
    parse, type_name, code = TEXTS[kind]
    for line in parse(data):
        own = data[line.position : line.position + line.size]
        if line.problem and line.size and not line.newer:
            yield Region(JUNK, line.position, line.size, line.problem)
        else:
            named = type_name if line.values else ""
            yield Entry(named, line.position, line.size, own, line.values, None, line.what)
        if line.problem and code:
            code_of_line = NEWER_RELEASE if line.newer else code
            yield Defect(code_of_line, kind.name, line.what, line.position, line.problem, size=line.size)
