"""Judges the entries of an .index.

A broker finds what it should if the position is a batch boundary, and every earlier batch ends below the entry's
offset: OffsetIndex.lookup, LogSegment.translateOffset, FileRecords.searchForOffsetFromPosition. The offset of the last
entry must also be in the segment: LogSegment.readNextOffset looks it up. For batches that were appended together,
releases before 2.0 write the first offset, and 2.0 to 4.0 the last offset; the position is that of the first batch. 4.1
and later index each batch on its own, by its last offset (LogSegment.append)."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from kdump.core.column_numbers import BASE_OFFSET, BATCH_START, LAST_OFFSET
from kdump.core.header_columns import HeaderColumns
from kdump.core.index_entries import matching_positions
from kdump.format.count_text import plain_count
from kdump.format.index import INDEX_ENTRY
from kdump.kafka.index_judge import BEYOND, MISMATCH, Doubt, Fault, IndexJudge, base_offset
from kdump.log.entries import Entry
from kdump.log.region import Batch

FIRST_OFFSET, PER_APPEND = "firstOffset", "perAppend"
"""How releases before 2.0, and 2.0 to 4.0, write entries that 4.1 writes differently."""


class OffsetIndexJudge(IndexJudge):
    """Judges an .index."""

    entry_size = INDEX_ENTRY.size
    zeros_usable = True
    ended = -1
    """The highest offset of the batches so far."""
    damage_end = -1
    _appended: tuple[Entry, int] | None = None
    """An entry whose offset must be the last offset of a later batch, and its number."""
    _below: Fault | None = None
    """An entry that is wrong unless the base offset of the doubted batch, which is above it, is damaged."""
    _ended_before = -1
    """The highest offset of the batches before the doubted one."""

    def is_not_above(self, before: Entry, entry: Entry) -> bool:
        offset, position = entry.values["offset"], entry.values["position"]
        return bool(offset <= before.values["offset"] or 0 <= position <= before.values["position"])

    def is_before(self, entry: Entry, position: int, offset: int) -> bool:
        return bool(entry.values["position"] < position)

    def written(self, how: str) -> None:
        """Called for an entry that only some releases write, once that is known: FIRST_OFFSET or PER_APPEND."""

    def gap(self, end: int) -> None:
        if self._below is not None:
            self.unknown()
        self._below = None
        self.damage_end, self.next_offset, self.doubted = end, None, None

    def invalid_batch(self, batch: Batch) -> None:
        self.gap(self.damage_end)
        self._pass(batch.position)
        if self.entry is not None and self.entry.values["position"] == batch.position:
            self.advance()
        self.damage_end = batch.end

    def batch(self, batch: Batch) -> None:
        base, last = base_offset(batch), batch.lastOffset
        self._judge_doubted(self.follow(base, last))
        self._pass(batch.position)
        if self.entry is not None and self.entry.values["position"] == batch.position:
            self._reached(self.entry, base, last)
            self.advance()
        else:
            self._judge_appended(last)
        self._ended_before, self.ended = self.ended, max(self.ended, last)

    def _judge_doubted(self, damaged: Doubt | None) -> None:
        """Judge the entry of the batch before; `damaged`: its offsets, if its base offset is damaged."""
        below, self._below = self._below, None
        if damaged is not None:
            self.ended = max(self._ended_before, damaged.last)
            if self._appended is not None and damaged.first <= self._appended[0].values["offset"] <= damaged.last:
                self._appended = None
        elif below is not None:
            self.count(below)

    def accept_run(self, heads: HeaderColumns, first: int, stop: int) -> None:
        starts, lasts = heads.column(BATCH_START), heads.column(LAST_OFFSET)
        self._judge_doubted(self.follow(heads.of(first, BASE_OFFSET), lasts[stop - 1]))
        end = heads.of(stop - 1, BATCH_START) + heads.shift
        while self.entry is not None and self.entry.values["position"] <= end:
            position = self.entry.values["position"] - heads.shift
            row = bisect_left(starts, position, first, stop)
            if starts[row] != position:
                self._no_batch_there(self.entry)
            else:
                self._judge_appended_in(heads, first, row)
                self.ended = max(self.ended, lasts[row - 1]) if row > first else self.ended
                self._reached(self.entry, heads.of(row, BASE_OFFSET), lasts[row])
                if self._appended is None and isinstance(self.numbers, array):
                    self.skip(matching_positions(heads, row, stop, self.ended, self.numbers, self.next_row - 1))
            self.advance()
        self._judge_appended_in(heads, first, stop)
        self.ended = max(self.ended, lasts[stop - 1])

    def _pass(self, position: int) -> None:
        """Judge the entries that point below `position`, the start of the next batch."""
        while self.entry is not None and self.entry.values["position"] < position:
            self._no_batch_there(self.entry)
            self.advance()

    def _no_batch_there(self, entry: Entry) -> None:
        """Note an entry whose position is not a batch boundary, unless it is before the end of a damaged region."""
        offset, position = entry.values["offset"], entry.values["position"]
        if 0 <= position < self.damage_end:
            self.unknown()
        elif position < 0:  # LogSegment.translateOffset searches from max(position, 0)
            message = f"offset {offset} points to byte {position}, which counts as 0: no release writes such an entry"
            self.wrong(entry, message, is_usable=True, offset=offset)
        else:
            self.wrong(entry, f"offset {offset} points to byte {position}, where no batch starts", offset=offset)

    def _reached(self, entry: Entry, base: int | None, last: int) -> None:
        """Judge an entry whose position is the start of a batch with the offsets base..last."""
        offset = entry.values["offset"]
        message = f"offset {offset} points to byte {entry.values['position']}, "
        if self._appended is not None:
            self._unmatched(*self._appended)
        if self.ended >= offset != last:  # else reads find that batch, whatever offset damaged ones before it have
            message += f"but earlier batches reach offset {self.ended}"
            self.wrong(entry, message, offset=offset, expected=last)
        elif base is not None and base != offset < last:
            if base > offset:
                message += f"where the batch starts at offset {base}: no release writes such an entry"
            else:
                message += f"which is inside the batch of offsets {base} to {last}: no release writes such an entry"
            expected = base if base > offset else last
            fault = Fault(MISMATCH, entry, self.number, message, True, offset, expected, offset, self.before)
            if self.doubted is not None and self.doubted.first <= offset <= self.doubted.last:
                self._below = fault
            else:
                self.count(fault)
        else:
            self.confirm(entry, last)
            if offset < last:
                self.written(FIRST_OFFSET)
            elif offset > last:
                self._appended = entry, self.number

    def _judge_appended(self, last: int) -> None:
        """Judge the entry of batches that were appended together, if a batch with `last` is the last of them."""
        if self._appended is None:
            return
        offset = self._appended[0].values["offset"]
        if offset == last:
            self._appended = None
            self.written(PER_APPEND)
        elif offset < last:
            self._unmatched(*self._appended)

    def _judge_appended_in(self, heads: HeaderColumns, first: int, stop: int) -> None:
        if self._appended is not None:
            row = bisect_left(heads.column(LAST_OFFSET), self._appended[0].values["offset"], first, stop)
            if row < stop:
                self._judge_appended(heads.of(row, LAST_OFFSET))

    def _unmatched(self, entry: Entry, number: int) -> None:
        """Note an entry whose offset is not the last one of any batch, unless that batch may be damaged."""
        self._appended = None
        offset, position = entry.values["offset"], entry.values["position"]
        if position < self.damage_end:
            self.unknown()
        else:
            message = f"offset {offset} points to byte {position}, but no batch ends at that offset: no release writes "
            self.wrong(entry, f"{message}such an entry", is_usable=True, offset=offset, number=number)

    def finish(self, size: int | None) -> None:
        held = self._below.entry if self._below else self._appended and self._appended[0]
        is_shown = self.doubted is not None and isinstance(held, Entry) and self.doubted.is_shown_by(held)
        self._judge_doubted(self.doubted if is_shown else None)
        if self._appended is not None:
            entry, number = self._appended
            offset, position = entry.values["offset"], entry.values["position"]
            if position < self.damage_end:
                self.unknown()
            else:
                message = f"offset {offset} points to byte {position}, but the segment ends at offset {self.ended}"
                is_usable = not self.is_last or self.entry is not None
                self.wrong(entry, message, is_usable=is_usable, offset=offset, expected=self.ended, number=number)
        while self.entry is not None:
            offset, position = self.entry.values["offset"], self.entry.values["position"]
            if size is not None and position >= size:
                message = (
                    f"offset {offset} points to byte {position}, but the segment has only {plain_count(size, 'byte')}"
                )
                self.wrong(self.entry, message, what=BEYOND, offset=offset, expected=size)
            else:
                self._no_batch_there(self.entry)
            self.advance()
