"""Sound batches that follow each other, checked together as far as no rule has anything to say of them.

What comes of it is what comes of the batches one by one; tests/check/test_together.py holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kdump.check.rule import Known, Part, Rule
from kdump.format.batch import BATCH_HEADER, COMPRESSION, TIMESTAMP_TYPE, TRANSACTIONAL, codec_name
from kdump.format.codec.whole import whole
from kdump.format.columns import Columns
from kdump.format.heads import ATTRIBUTES, END, START, Heads, ordinary, read_heads
from kdump.format.runs import FURTHEST
from kdump.format.sound import sound_batches, sound_records
from kdump.log.region import BatchV2, Stretch

FLAGS = COMPRESSION.mask | TIMESTAMP_TYPE.mask | TRANSACTIONAL.mask
"""Attributes that nothing has to be said of: no control batch, no delete horizon, none that is reserved."""
AHEAD = 16
"""Batches that are tried together behind one that could not be; more each time that succeeds."""


class Together:
    """The batches of stretches. `deep`: their records are looked at, too."""

    def __init__(self, part: Part, known: Known, rules: Sequence[Rule], limit: int, *, deep: bool) -> None:
        self.part = part
        self.known = known
        self.rules = rules
        self.deep = deep
        self.limit = limit
        largest = known.max_message_bytes
        self.most = largest if deep and largest is not None else FURTHEST
        self.ahead = AHEAD

    def split(self, stretch: Stretch, damaged: bool, took: Callable[[Heads, int, int], None]) -> Iterator[BatchV2]:
        """The batches that must be looked at one by one, each when it is its turn. The rules have then taken what lies
        before it, and `took` is told. `damaged`: there is damage before the first."""
        heads = read_heads(stretch.buffer, stretch.start, stretch.stop, stretch.position - stretch.start)
        own, unpacked = Columns(stretch.buffer), Columns(b"")
        row = 0
        while row < len(heads):
            stop = min(row + self.ahead, len(heads))
            free = row if damaged and not row else self._free(heads, row, stop, own, unpacked)
            if free > row:
                for rule in self.rules:
                    rule.take(self.part, heads, row, free)
                took(heads, row, free)
            self.ahead = 2 * self.ahead if free == stop else AHEAD
            row = free
            if free < stop:
                yield stretch.batch(heads.of(free, START))
                row += 1

    def _free(self, heads: Heads, first: int, stop: int, own: Columns, unpacked: Columns) -> int:
        stop = ordinary(heads, first, stop, FLAGS, self.most)
        for rule in self.rules:
            if stop == first:
                return first
            stop = rule.free(self.part, heads, first, stop)
        return self._records(heads, first, stop, own, unpacked) if self.deep else stop

    def _records(self, heads: Heads, row: int, stop: int, own: Columns, unpacked: Columns) -> int:
        """The first batch of row..stop whose records may be worth a finding."""
        keyed = bool(self.known.compacted)
        while True:
            row = sound_batches(heads, own, row, stop, keyed)
            if row == stop or not heads.of(row, ATTRIBUTES) & COMPRESSION.mask:
                return row
            payload = self._payload(heads, row)
            if payload is None:
                return row
            unpacked.data = payload
            if not sound_records(heads, row, unpacked, 0, len(payload), keyed):
                return row
            row += 1

    def _payload(self, heads: Heads, row: int) -> bytes | None:
        """The decompressed payload of a batch, if that is ordinary."""
        codec = codec_name(COMPRESSION.of(heads.of(row, ATTRIBUTES)))
        start = heads.of(row, START) + BATCH_HEADER.size
        return whole(codec, memoryview(heads.data)[start : heads.of(row, END)], self.limit)
