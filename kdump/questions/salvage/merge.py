"""Merges the batches of several files into one log: each offset once, from the best copy, and from one history only.

Precedence of batches that share offsets: valid batches before recovered ones; live segments of the reference copy, then
those of other replicas, then batches that are out of order in either, in the same sequence, then .deleted, .swap and
.cleaned files; then the higher leader epoch; then the earlier copy; then the lower base offset; then more records. So
the other copies only fill gaps in the reference copy. The choice of that copy, and the offset up to which the others
share its history, are decided before (reference_copy.py)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from kdump.format.batch_header import BatchHeader
from kdump.format.errors import DecodeError
from kdump.io.errors import SourceError
from kdump.log.region import Batch, DefaultRecordBatch
from kdump.questions.salvage.byte_outcomes import (
    CONTRADICTS,
    DIVERGED,
    DUPLICATE,
    OVERLAPS,
    SUPERSEDED,
    UNDECIDED,
    UNUSED,
)
from kdump.questions.salvage.reference_copy import ReplicaHistories
from kdump.questions.salvage.source.file_parts import Disordered, LostOffsets
from kdump.questions.salvage.source.salvage_reader import SalvageCandidate, SalvageReader
from kdump.questions.salvage.source.source_file import SourceFile, is_one_bit

_FIELDS = BatchHeader._fields
_PRODUCER = slice(_FIELDS.index("producerId"), _FIELDS.index("baseSequence") + 1)

Disposed = Callable[[SalvageCandidate, str, str], None]
"""Called with each valid batch that is not written, its fate, and the reason."""
SPARE = 2
"""The tier of files that are not live segments."""
EQUAL, EQUAL_EXCEPT = "byte for byte equal", "equal except for {}"
COMPACTED = "the log is compacted, and the reference copy is undamaged there: the cleaner may have removed it"


@dataclass
class ChosenBatch:
    """The last batch that was chosen, with what is needed to recognize a duplicate. `head`: None when it can no longer
    be read."""

    head: SalvageCandidate | None
    reader: SalvageReader
    position: int
    size: int
    base: int
    last: int
    epoch: int
    crc: int
    header: BatchHeader | None
    digest: bytes | None = None


class Merge:
    """Merges the readers in order of offsets. `damaged`: something in the reference copy was lost since its last batch;
    set by the caller. `compacted`: the log is known to be compacted. `losses`: what surveyed files lost; if None, no
    file was surveyed, and Disordered is raised for one that has to be."""

    def __init__(
        self,
        readers: Sequence[SalvageReader],
        histories: ReplicaHistories,
        disposed: Disposed,
        *,
        compacted: bool,
        losses: LostOffsets | None = None,
    ) -> None:
        self.waiting = sorted(readers, key=lambda each: (each.start, each.tier, each.place.copy, each.place.order))
        self.losses = losses
        self.taken: ChosenBatch | None = None
        self.active: list[SalvageReader] = []
        self.histories, self.disposed = histories, disposed
        self.last: int | None = None
        self.epoch = -1
        self.damaged = False
        self._compacted = compacted
        self._followed = False
        """Whether a batch of the reference copy has been chosen."""

    def chosen(self) -> Iterator[SalvageCandidate]:
        """Yield the batches to write, in order of offsets; each can be read until the next one is requested."""
        while True:
            first = self._first()
            if first is None:
                return
            other = self._of_other(first)
            if self.taken is not None and _is_same(self.taken, first):
                self._drop(first, DUPLICATE, _equality(self.taken, first))
            elif self.taken is not None and self._is_taken_elsewhere(self.taken, first):
                self._drop(first, DUPLICATE, EQUAL_EXCEPT.format("baseOffset"))
            elif other is not None:
                self._drop(first, *other)
            elif self.last is not None and first.base <= self.last:
                self._drop_overlapping(first)
            elif self._is_excluded(first):
                self._drop(first, UNUSED, COMPACTED)
            else:
                rivals = [head for head in self._heads() if head is not first and head.base <= first.last]
                rivals = [head for head in rivals if self._of_other(head) is None and not self._is_excluded(head)]
                winner = min([first, *rivals], key=_preference)
                if winner is first:
                    yield from self._take(first, rivals)
                else:
                    self._drop(first, OVERLAPS, f"it overlaps {_where(winner)}, which is better")

    def _take(self, first: SalvageCandidate, rivals: list[SalvageCandidate]) -> Iterator[SalvageCandidate]:
        self.taken = _taken(first)
        for rival in rivals:
            if rival.last <= first.last:
                self._replaced(rival, f"{_where(first)} was written instead")
        yield first
        self.taken.head = None
        self.last, self.epoch = first.last, max(first.epoch, self.epoch)
        if first.reader.tier == 0:
            self.damaged, self._followed = False, True
        first.reader.advance()

    def _is_taken_elsewhere(self, taken: ChosenBatch, head: SalvageCandidate) -> bool:
        """Return True if a batch is the chosen one of another copy, but for one bit of its base offset."""
        if head.reader.place.copy == taken.reader.place.copy or not is_one_bit(head.base ^ taken.base):
            return False
        return _is_same(replace(taken, base=head.base, last=head.last), head)

    def _heads(self) -> list[SalvageCandidate]:
        return [reader.head for reader in self.active if reader.head is not None]

    def _first(self) -> SalvageCandidate | None:
        """Start every reader that may share offsets with the first head, and return the head that begins first."""
        while True:
            self.active = [reader for reader in self.active if reader.head is not None]
            first = self._least()
            if not self.waiting or (first is not None and self.waiting[0].start > first.last):
                return first
            reader = self.waiting.pop(0)
            reader.begin()
            self.active.append(reader)
            late = reader.head is not None and self.last is not None and reader.head.base <= self.last
            if late and self.losses is None and reader.file.is_seekable:
                raise Disordered(reader.place.target.path)

    def _least(self) -> SalvageCandidate | None:
        """Return the head with the lowest base offset; of several, the best one of this history."""
        heads = self._heads()
        base = min((head.base for head in heads), default=None)
        alike = [head for head in heads if head.base == base]
        if len(alike) < 2:
            return alike[0] if alike else None
        return min(alike, key=lambda head: (self._of_other(head) is not None, _preference(head)))

    def _of_other(self, head: SalvageCandidate) -> tuple[str, str] | None:
        """Return fate and reason of a batch that is, or may be, of another history; None if it is of this one."""
        stop = self.histories.stop
        if stop is not None and head.last >= stop:
            return UNDECIDED, f"histories diverge at offset {stop}, and nothing shows which is right"
        epoch = head.epoch if head.reader.tier else -1
        divergence = self.histories.divergence_of(head.reader.place.copy, head.base, head.last, epoch)
        if divergence:
            return DIVERGED, divergence
        if head.epoch < 0:
            return None
        if not head.reader.tier:
            reason = self._misplaced(head) if head.reader.misplaced else ""
            return (CONTRADICTS, reason) if reason else None
        if head.epoch < self.epoch and (self.last is None or head.base > self.last):
            return DIVERGED, f"its leader epoch {head.epoch} is below {self.epoch}, the one before it"
        for other in self._heads():
            if other.reader.tier == 0 and other.base > head.last and 0 <= other.epoch < head.epoch:
                return DIVERGED, f"its leader epoch {head.epoch} is above {other.epoch}, the one after it"
        return None

    def _misplaced(self, head: SalvageCandidate) -> str:
        """Return why a batch that is out of order in its file does not belong at its offsets, judging by the leader
        epochs around them; empty if it does. It may be the former content of a disk block."""
        if self.last is None or self.taken is None or head.base <= self.last:
            return ""
        before = self.taken.epoch
        after = min(
            (other for other in self._heads() if other.reader.tier == 0 and not other.reader.misplaced),
            key=lambda other: other.base,
            default=None,
        )
        next_epoch = -1 if after is None or after.base <= head.last else after.epoch
        if 0 <= next_epoch < before:
            return ""  # the epochs decrease even without it
        if head.epoch < before:
            return f"its leader epoch {head.epoch} is below {before}, the one before it"
        if 0 <= next_epoch < head.epoch:
            return f"its leader epoch {head.epoch} is above {next_epoch}, the one after it"
        return ""

    def _is_excluded(self, head: SalvageCandidate) -> bool:
        """Return True if the log cleaner may have removed the batch: in a compacted log, other copies only supply what
        the reference copy may have lost."""
        if head.reader.place.is_replaced:
            return not self._is_damaged(head)
        return bool(head.reader.tier) and self.is_compacted and not self._may_fill(head)

    @property
    def is_compacted(self) -> bool:
        """Whether the log is known to be compacted, or a batch so far shows it."""
        self._compacted = self._compacted or any(reader.compacted for reader in self.active)
        return self._compacted

    def _may_fill(self, head: SalvageCandidate) -> bool:
        """Return True if the reference copy may have lost records here: it is damaged, has not started, or has
        ended."""
        ended = not any(reader.tier == 0 for reader in (*self.active, *self.waiting))
        return not self._followed or ended or self._is_damaged(head)

    def _is_damaged(self, head: SalvageCandidate) -> bool:
        """Return True if the reference copy is damaged where the batch belongs."""
        made = any(head_there.recovered is not None for head_there in self._heads() if head_there.reader.tier == 0)
        return self.damaged or made or (self.losses is not None and self.losses.claims(head.base, head.last))

    def _drop_overlapping(self, head: SalvageCandidate) -> None:
        """Drop a batch that begins at or below the last chosen offset."""
        assert self.last is not None
        if head.last <= self.last:
            self._replaced(head, f"offsets up to {self.last} were already written")
        else:
            reason = f"offsets up to {self.last} were already written; its {self.last + 1}..{head.last} are not written"
            self._drop(head, OVERLAPS, reason)

    def _replaced(self, head: SalvageCandidate, reason: str) -> None:
        """Drop a batch whose offsets have all been written. `reason`: why, unless it is the chosen batch itself."""
        if self.taken is not None and _is_same(self.taken, head):
            self._drop(head, DUPLICATE, _equality(self.taken, head))
        else:
            self._drop(head, self._instead(head), reason)

    def _instead(self, head: SalvageCandidate) -> str:
        """Return the fate of a batch that differs from the chosen one, and whose offsets have all been written. The log
        cleaner leaves other versions of a batch in a compacted log, and in .deleted, .swap and .cleaned files. Any
        other batch that differs may contain records that are nowhere else."""
        if head.reader.tier == SPARE or head.recovered is not None:
            return SUPERSEDED
        return SUPERSEDED if self.is_compacted and self._is_version(head) else CONTRADICTS

    def _is_version(self, head: SalvageCandidate) -> bool:
        """Return True if this batch and the chosen one may be the same batch before and after cleaning: the log cleaner
        keeps first offset, last offset and producer of a batch (MemoryRecords.filterTo)."""
        taken, batch = self.taken, head.batch
        if taken is None or taken.header is None or not isinstance(batch, DefaultRecordBatch):
            return True
        mine, theirs = batch.header, taken.header
        return (head.base, head.last, mine[_PRODUCER]) == (taken.base, taken.last, theirs[_PRODUCER])

    def _drop(self, head: SalvageCandidate, fate: str, reason: str) -> None:
        self.disposed(head, fate, reason)
        head.reader.advance()


def _preference(head: SalvageCandidate) -> tuple[bool, int, int, int, int, int, int]:
    """Return the sort key of a batch; the lowest is best."""
    reader = head.reader
    return (
        head.recovered is not None,
        2 * SPARE if reader.tier == SPARE else reader.tier + SPARE * reader.misplaced,
        -head.epoch,
        reader.place.copy,
        head.base,
        -head.records,
        reader.place.order,
    )


def _where(head: SalvageCandidate) -> str:
    return f"the batch at byte {head.position} of {head.reader.place.target.path}"


def _taken(head: SalvageCandidate) -> ChosenBatch:
    batch = head.batch
    header = batch.header if isinstance(batch, DefaultRecordBatch) else None
    return ChosenBatch(head, head.reader, head.position, head.size, head.base, head.last, head.epoch, batch.crc, header)


def _is_same(taken: ChosenBatch, other: SalvageCandidate) -> bool:
    """Return True if a batch has the same bytes as the chosen one, except for the leader epoch, which no checksum
    covers."""
    if (taken.base, taken.last, taken.size, taken.crc) != (other.base, other.last, other.size, other.batch.crc):
        return False
    if taken.digest is None:
        taken.digest = _digest(taken.head.batch) if taken.head is not None else _digest_again(taken)
    return taken.digest == _digest(other.batch)


def _equality(taken: ChosenBatch, other: SalvageCandidate) -> str:
    """Return in words how far a batch equals the chosen one (see `_is_same`). In the source, fields of it that were
    corrected differ, too."""
    if other.recovered is not None:
        return "equal once recovered from a damaged batch"
    fields = dict.fromkeys(other.mended)
    if taken.epoch != other.epoch:
        fields["partitionLeaderEpoch"] = None
    return EQUAL_EXCEPT.format(" and ".join(fields)) if fields else EQUAL


def _digest(batch: Batch) -> bytes:
    """Return a digest of the bytes that the checksum covers."""
    digest = hashlib.blake2b(digest_size=16)
    for chunk in batch.chunks(batch.crc_start, batch.size - batch.crc_start):
        digest.update(chunk)
    return digest.digest()


def _digest_again(taken: ChosenBatch) -> bytes | None:
    """Read the chosen batch again, and return its digest; None if it cannot be read."""
    of = taken.reader
    file = SourceFile(of.place, of.known, of.options)
    try:
        file.open()
        return _digest(file.batch_at(taken.position, taken.size)) if file.is_seekable else None
    except (SourceError, DecodeError):
        return None
    finally:
        file.close()
