"""Finds which records that one copy of a compacted log lacks were not removed by the log cleaner.

The cleaner removes a record if a later one has its key, if it has no key, or if its transaction was aborted; a
tombstone or a transaction marker if it is older than delete.retention.ms and what it ends has been removed. Any other
record that a copy lacks is lost: consumers that read this copy miss a value, or keep one that was deleted.

Source: org.apache.kafka.storage.internals.log.Cleaner.shouldRetainRecord, CleanedTransactionMetadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge, nsmallest

from kdump.check.options import Options
from kdump.core.record_columns import each_row
from kdump.log.batch_records import decode_columns, records
from kdump.log.reading import Reading
from kdump.log.region import Batch, DefaultRecordBatch, last_record_offset
from kdump.questions.diff.copy_reader import CopyReader
from kdump.questions.diff.differences import UNREAD, WITHHELD
from kdump.questions.find_copies import Copy
from kdump.state.read_committed_view import ReadCommittedView
from kdump.state.transaction_marker import ABORT, marker_of

MAX_KEYS = 300_000
"""Maximum number of keys that are held at a time, by their hashes, at 100 bytes each. If more are needed, the copies
are read again for each part of the keys."""
MAX_LOST = 200_000
"""Maximum number of lost records of a copy that are listed, the first ones."""
LEFT, RIGHT, BOTH = 1, 2, 3
NOT_SUPERSEDED = "no later record has its key"
OLDER_LEFT = "it is a tombstone, and an older record of its key is left"
TOO_YOUNG = "it is younger than delete.retention.ms"
DATA_LEFT = "it is a transaction marker, and records of the transaction are left"

LostRecords = tuple[dict[int, str], dict[int, str]]
"""The offsets of the records that each of two copies has lost, and why it was not the log cleaner that removed them."""


_KeyedRecord = tuple[int, int, "int | None", bool, int, int, bool]
"""What decides whether the cleaner removes a record: its offset; LEFT, RIGHT or BOTH, the copies that have it; the hash
of its key, None without a key; whether it is a tombstone; its timestamp; the producer ID of a transactional record, -1
of any other; and whether it is a control record. A plain tuple: there may be many millions."""


class _UnknownKeys(Exception):
    """Raised for a batch whose keys are withheld."""


class _Unreadable(Exception):
    """Raised for a copy that could not be read to its end, with its number and what could not be read."""


class _Transactional(Exception):
    """Raised for the first transactional batch, if the aborted transactions are not known yet."""


def lost_records(
    left: Copy, right: Copy, options: Options, first: int, unread: tuple[list[str], list[str]]
) -> LostRecords | str:
    """Return which records from offset `first` on one copy lacks that the log cleaner did not remove; if this is
    unknown, the kind of such a difference: WITHHELD if a bundle does not have the keys, UNREAD if a copy could not
    be read again, with the reasons added to `unread`. Reads both copies again: once, and once more each to find aborted
    transactions, for missing tombstones, and for further keys (MAX_KEYS)."""
    search = _Search((left, right), options, first)
    try:
        return search.run()
    except _UnknownKeys:
        return WITHHELD
    except _Unreadable as error:
        number, reasons = error.args
        unread[number].extend(reasons)
        return UNREAD


class _Search:
    def __init__(self, copies: tuple[Copy, Copy], options: Options, first: int) -> None:
        self.copies, self.options, self.first = copies, options, first
        self.lost: LostRecords = ({}, {})
        self.aborted: ReadCommittedView | None = None
        self.parts = [(0, 0)]
        """Parts of the keys that are still to be read: number of low bits of the hash, and their value."""

    def run(self) -> LostRecords:
        while self.parts:
            part = self.parts[-1]
            try:
                newest = self._newest(*part)
            except _Transactional:
                self._find_aborted()
                self.parts = [part]
                continue
            self.parts.remove(part)
            self._judge(newest)
        return self.lost

    def _find_aborted(self) -> None:
        """Find the aborted transactions, from the batches of both copies: either may lack some of them."""
        view, begun = ReadCommittedView(), dict[int, int]()
        streams = [_CopyKeys(self.copies, number, self.options).batches() for number in (0, 1)]
        for batch in merge(*streams, key=lambda batch: batch.baseOffset or 0):
            if not isinstance(batch, DefaultRecordBatch) or not batch.isTransactional:
                continue
            producer, base = batch.header.producerId, batch.header.baseOffset
            if not batch.isControlBatch:
                begun.setdefault(producer, base)
            elif (marker := marker_of(batch)) is not None:
                first = begun.pop(producer, None)
                if first is not None and marker.type == ABORT:
                    view.add(producer, first, base)
        if view.is_full:
            raise _UnknownKeys
        self.aborted = view

    def _newest(self, bits: int, value: int) -> dict[int, int]:
        """Return, for each key of a part that one copy lacks the newest record of: its offset << 5, whether it is
        transactional << 4, whether it is too young to be removed << 3, whether it is a tombstone << 2, and the copy
        that has it."""
        sides = [_CopyKeys(self.copies, number, self.options) for number in (0, 1)]
        start = max(side.reader.start or 0 for side in sides)
        newest: dict[int, int] = {}
        open_data: dict[int, int] = {}  # by producer ID, the copies that have records of its open transaction
        is_first, mask = not value, (1 << bits) - 1
        for record in _joined(side.records(self.first, self.aborted is not None) for side in sides):
            offset, who, key, is_tombstone, timestamp, producer, is_control = record
            lacking = sides[who & 1]  # of a record that only the left copy has, the right one
            is_lacking = who != BOTH and offset >= max(start, self.first) and not lacking.may_have(offset)
            if is_control:
                left = open_data.pop(producer, 0) & (BOTH - who)
                if is_lacking and is_first and left and not lacking.is_damaged:
                    self._add(lacking.number, offset, DATA_LEFT)
                elif is_lacking and is_first and self._is_young(timestamp, lacking):
                    self._add(lacking.number, offset, TOO_YOUNG)
                continue
            if producer >= 0:
                open_data[producer] = open_data.get(producer, 0) | who
                if self.aborted is not None and self.aborted.aborted(producer, offset) is not None:
                    continue
            if key is None or key & mask != value:
                continue
            if not is_lacking:
                newest.pop(key, None)
                continue
            is_young = is_tombstone and self._is_young(timestamp, lacking)
            newest[key] = offset << 5 | (producer >= 0) << 4 | is_young << 3 | is_tombstone << 2 | who
            if len(newest) > MAX_KEYS:
                self.parts.insert(0, (bits + 1, value | 1 << bits))
                bits, mask = bits + 1, mask << 1 | 1
                newest = {other: found for other, found in newest.items() if other & mask == value}
        if any(side.is_damaged for side in sides):  # how a transaction ended may be unknown
            return {key: found for key, found in newest.items() if not found & 16}
        return newest

    def _is_young(self, timestamp: int, lacking: _CopyKeys) -> bool:
        """Return True if no cleaner can have removed a tombstone or a marker yet, as far as its timestamp is right."""
        retention, now = lacking.reader.copy.known.delete_retention, self.options.now
        return retention is not None and 0 <= timestamp <= now < timestamp + retention

    def _judge(self, newest: dict[int, int]) -> None:
        tombstones: tuple[dict[int, int], dict[int, int]] = {}, {}
        for key, found in newest.items():
            number = found & 1
            if found & 4:
                tombstones[number][key] = found >> 5 << 1 | bool(found & 8)
            else:
                self._add(number, found >> 5, NOT_SUPERSEDED)
        for number, removed in enumerate(tombstones):
            if removed:
                self._judge_tombstones(number, removed)

    def _judge_tombstones(self, number: int, removed: dict[int, int]) -> None:
        """Judge tombstones that a copy lacks: the cleaner removes one only after all older records of its key."""
        side = _CopyKeys(self.copies, number, self.options)
        for offset, _, key, _, _, producer, _ in side.records(0, True):
            found = None if key is None else removed.get(key)
            if key is None or found is None or offset >= found >> 1:
                continue
            if self.aborted is None or self.aborted.aborted(producer, offset) is None:
                del removed[key]
                self._add(number, found >> 1, OLDER_LEFT)
        for found in removed.values():
            if found & 1:
                self._add(number, found >> 1, TOO_YOUNG)

    def _add(self, number: int, offset: int, reason: str) -> None:
        lost = self.lost[number]
        lost[offset] = reason
        if len(lost) >= 2 * MAX_LOST:
            kept = {first: lost[first] for first in nsmallest(MAX_LOST, lost)}
            lost.clear()
            lost.update(kept)


def _joined(streams: Iterable[Iterator[_KeyedRecord]]) -> Iterator[_KeyedRecord]:
    """Yield the records of both copies in order; what both have, once."""
    held: _KeyedRecord | None = None
    for record in merge(*streams):
        if held is not None and held[0] == record[0] and held[1] != record[1]:
            yield held[0], BOTH, *held[2:]
            held = None
        else:
            if held is not None:
                yield held
            held = record
    if held is not None:
        yield held


class _CopyKeys:
    """Reads the keys of one of two copies, by its number; `who` is LEFT or RIGHT."""

    def __init__(self, copies: tuple[Copy, Copy], number: int, options: Options) -> None:
        self.reader = CopyReader(copies[number], options)
        self.number = number
        self.who = (LEFT, RIGHT)[number]
        self.is_damaged = False
        """Whether anything before the current record cannot be read."""
        self._gaps: list[tuple[int, int | None]] = []
        """Offsets first..last (None: to the end) before the current record that cannot be read."""

    def batches(self) -> Iterator[Batch]:
        """Yield the valid batches."""
        reader = self.reader
        self._note_gap()
        while not reader.ended:
            batch = reader.batch
            assert batch is not None
            if batch.lacks or batch.replaced_under:
                raise _UnknownKeys
            yield batch
            reader.advance()
            self._note_gap()
        if reader.unread:
            raise _Unreadable(self.number, reader.unread)

    def _note_gap(self) -> None:
        if self.reader.hole is not None:
            self._gaps.append((self.reader.hole.first, self.reader.hole.last))
            self.is_damaged = True

    def may_have(self, offset: int) -> bool:
        """Return True if the copy, which has been read to a later record, does not show whether it has an offset: it
        ends before, or is damaged there."""
        while self._gaps and (last := self._gaps[0][1]) is not None and last < offset:
            del self._gaps[0]
        return bool(self._gaps and self._gaps[0][0] <= offset) or (self.reader.ended and offset >= self.reader.end)

    def records(self, first: int, is_aborted_known: bool) -> Iterator[_KeyedRecord]:
        """Yield the records from offset `first` on; of a batch before that, one without a key, if it is
        transactional."""
        who = self.who
        for batch in self.batches():
            last, reading = last_record_offset(batch), Reading(batch)
            if not isinstance(batch, DefaultRecordBatch):
                if last < first:
                    continue
                for record in records(reading, values=False):
                    if record.offset is not None:
                        hashed = None if record.key is None else hash(bytes(record.key))
                        stamp = -1 if record.timestamp is None else record.timestamp
                        yield record.offset, who, hashed, record.valueSize < 0, stamp, -1, False
            else:
                header = batch.header
                producer = header.producerId if header.isTransactional else -1
                if producer >= 0 and not is_aborted_known:
                    raise _Transactional
                if last < first:
                    if producer >= 0 and header.recordCount > 0:
                        yield last, who, None, False, -1, producer, header.isControlBatch
                    continue
                base, is_control = header.baseOffset, header.isControlBatch
                appended = header.timestampType == "LogAppendTime"
                stamp, scale = (header.maxTimestamp, 0) if appended else (header.baseTimestamp, 1)
                for columns, _ in decode_columns(reading, values=False):
                    data = columns.data
                    for _, _, _, time, delta, at, size, _, value_size, _, _ in each_row(columns):
                        hashed = None if size < 0 or is_control else hash(bytes(data[at : at + size]))
                        yield base + delta, who, hashed, value_size < 0, stamp + scale * time, producer, is_control
            if reading.problems:
                self._gaps.append((batch.baseOffset or 0, last_record_offset(batch)))
                self.is_damaged = True
