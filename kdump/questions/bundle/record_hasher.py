"""Hashes the records of batches that a bundle has without their records, so that copies of a compacted topic can be
compared record by record."""

from __future__ import annotations

from collections.abc import Callable

from kdump.io.hash_key import HashKey, RecordHash
from kdump.log.region import Batch, copy_of
from kdump.log.stored_verdicts import hash_rows
from kdump.questions.bundle.part_writer import Spool
from kdump.questions.diff.comparable_records import hash_record, rows


class RecordHasher:
    """Hashes records of one segment."""

    def __init__(self, key: HashKey) -> None:
        self.key = key
        self.lines = Spool()

    def instead(self, keep: Callable[[Batch], bytes | None]) -> Callable[[Batch], bytes | None]:
        """Return a function that does as `keep` does, and hashes the records of a batch that is not kept."""

        def kept(batch: Batch) -> bytes | None:
            data = keep(batch)
            if data is None:
                self._hash(batch)
            return data

        return kept

    def _hash(self, batch: Batch) -> None:
        again = copy_of(batch)  # what decoding notes would be taken for damage of the batch
        deltas: list[int] = []
        hashes: list[bytes] = []
        base = again.baseOffset or 0
        for row in rows(again):
            hashed = hash_record(self.key, row).value
            assert isinstance(hashed, RecordHash)
            deltas.append(row.offset - base)
            hashes.append(hashed.digest)
        if not again.problems:
            for position, row in hash_rows(again.position, deltas, hashes):
                self.lines.row(position, row)
