"""What one file gives, piece by piece: batches that can be written, and bytes that are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kdump.log.paths import Target
from kdump.log.region import Batch

if TYPE_CHECKING:
    from kdump.forensics.salvage.strand import Strand


class Disordered(Exception):
    """Raised when a valid batch is found out of order: its partition is read once more, after a survey of its files
    (survey.py). `path` is the file."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: its batches are out of order")
        self.path = path


class Lost(NamedTuple):
    """Bytes of a file that are no sound batch. offset, lastOffset and records: what a header claims, None and 0 where
    it cannot be believed."""

    fate: str
    position: int
    size: int | None
    code: str
    reason: str
    offset: int | None = None
    lastOffset: int | None = None
    records: int = 0


@dataclass(slots=True)
class Head:
    """A batch that can be written. `batch` is as it is to be, with what was `mended`; it can be read until the strand
    goes on. `odd`: codes of errors that stay. `recovered`: of how many records, where only some came out of damage."""

    strand: Strand
    batch: Batch
    base: int
    last: int
    mended: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    recovered: int | None = None
    position: int = 0
    size: int = 0

    @property
    def epoch(self) -> int:
        epoch = self.batch.partitionLeaderEpoch
        return -1 if epoch is None else epoch

    @property
    def records(self) -> int:
        return self.batch.recordCount or 0


@dataclass
class Place:
    """Where a file stands among the others: `copy` by its number, 0 for the one that is followed; `spare`: it is no
    live segment. `names`: the base offsets in the names of that copy's live segments, in ascending order; `beyond`: the
    next of them after this file's."""

    at: Target
    copy: int = 0
    spare: bool = False
    beyond: int | None = None
    order: int = 0
    names: tuple[int, ...] = ()

    @property
    def name(self) -> int:
        """Where it may begin."""
        return -1 if self.at.name_offset is None else self.at.name_offset
