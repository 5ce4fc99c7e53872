"""What `kdump.find` answers: the records that match, and last what was searched and what was not."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, INLINE, OFFSET, Doc, PathText, Shown, answer, columns
from kdump.decode.decoder_interface import DecodedRecord
from kdump.log.inspect_answer import InspectedRecord
from kdump.log.paths import Target
from kdump.log.record import Record

LIVE, SUPERSEDED, ABORTED, OPEN, BELOW = "live", "superseded", "aborted", "openTransaction", "belowLogStart"
DELETED, SWAP, CLEANED, HALF_COPIED = "deletedSegment", "swapSegment", "cleanedSegment", "halfCopied"
IN_DELETION, FUTURE, STRAY = "deletedPartition", "futureReplica", "strayPartition"
DAMAGED, TORN, OUTSIDE, HIDDEN = "damagedBatch", "incompleteBatch", "outsideLog", "afterRecords"
STATES = {
    LIVE: "live",
    SUPERSEDED: "superseded by offset",
    ABORTED: "aborted",
    OPEN: "in an open transaction",
    BELOW: "below the log start",
    DELETED: "in a deleted segment",
    SWAP: "in a .swap segment",
    CLEANED: "in a .cleaned segment",
    HALF_COPIED: "in a half copied segment",
    IN_DELETION: "in a deleted partition",
    FUTURE: "in a future replica",
    STRAY: "in a stray partition",
    DAMAGED: "in a damaged batch",
    TORN: "in an incomplete batch",
    OUTSIDE: "outside the log",
    HIDDEN: "after the records that consumers read",
}
"""What a record is, with the words for it in tables. outsideLog: in bytes between or after the batches of a segment."""


@columns(partition=Shown(after=""))
@answer("match")
class Match(NamedTuple):
    """A record that matches, with the keys of a record of `inspect`."""

    states: Annotated[
        list[str], Doc(f"what it is: one or more of {', '.join(STATES)}"), Shown("what it is", after="timestamp")
    ]
    supersededBy: Annotated[
        int | None, Doc("of superseded: the newest record with its key in the log", OFFSET, optional=True)
    ]
    goes: Annotated[
        str | None,
        Doc("with --when: what removes it, such as retention.ms, or why nothing is known to", optional=True),
        Shown(least=16, after="states"),
    ]
    goesAt: Annotated[
        int | None,
        Doc("with --when: when, if that is a time; 0: at the next check or startup", EPOCH_MS, optional=True),
    ]
    size: Annotated[int, Doc("size of the record in its batch, decompressed", BYTES)]
    producerId: Annotated[int | None, Doc("of its batch; absent if it has none", optional=True)]
    isTransactional: Annotated[bool | None, Doc("true if its batch is of a transaction", optional=True)]
    record: Annotated[InspectedRecord, INLINE]


class Found(NamedTuple):
    """A record that matches, in `target`; the rest as in Match. `reading`: what is decoded of it."""

    target: Target
    record: Record
    reading: DecodedRecord | None
    states: tuple[str, ...]
    superseded_by: int | None = None
    goes: str | None = None
    goes_at: int | None = None

    def alone(self) -> Found:
        """Return the match without the bytes around its record, to be kept or sent."""
        return self._replace(record=self.record.alone())

    @property
    def size(self) -> int:
        """The size of the record in its batch, decompressed."""
        return self.record.end - self.record.start

    @property
    def producer(self) -> int | None:
        """The producer ID of its batch; None if it has none."""
        producer = self.record.batch.producerId
        return None if producer == -1 else producer

    @property
    def is_transactional(self) -> bool:
        """Whether its batch is of a transaction."""
        return bool(self.record.batch.isTransactional)

    @property
    def state(self) -> str:
        """What it is, in words."""
        words = [STATES[state] for state in self.states]
        if self.superseded_by is not None:
            words[self.states.index(SUPERSEDED)] += f" {self.superseded_by}"
        return ", ".join(words)


class NotSearched(NamedTuple):
    """Bytes that could not be searched, or records of which only the bytes could be compared."""

    file: Annotated[PathText, Doc("path of the file")]
    reason: Annotated[PathText, Doc("why")]
    position: Annotated[int | None, Doc("where the first of them begin; null for the whole file")]
    bytes: Annotated[int, Doc("how many; 0 if the bytes were searched, but are not all there is to know")]
    records: Annotated[int, Doc("records of which only bytes were compared, because nothing decodes them")]


@answer("searchCoverage")
class SearchCoverage(NamedTuple):
    """What a search read, and what it could not. bytes + ruledOutBytes + notSearchedBytes + otherBytes +
    directoryBytes = totalBytes, which is what `du -b` states of the paths (`du -bL`, if there are links), if no file
    changed meanwhile."""

    expression: Annotated[str, Doc("what was searched")]
    isComplete: Annotated[bool, Doc("whether nothing is in `notSearched`, and no limit ended the search")]
    matches: Annotated[int, Doc("number of records that match")]
    files: Annotated[int, Doc("number of files with records that were read")]
    bytes: Annotated[int, Doc("size of what was searched in them", BYTES)]
    batches: Annotated[int, Doc("number of batches in them, also those that their headers rule out")]
    records: Annotated[int, Doc("number of records in these batches, by their headers")]
    ruledOutFiles: Annotated[
        int, Doc("number of files that were not read, because their topic or partition does not match")
    ]
    ruledOutBytes: Annotated[int, Doc("their size", BYTES)]
    otherFiles: Annotated[
        int, Doc("number of files that hold no records: indexes, snapshots of producers, checkpoints")
    ]
    otherBytes: Annotated[int, Doc("their size", BYTES)]
    directories: Annotated[int, Doc("number of directories")]
    directoryBytes: Annotated[int, Doc("their own size", BYTES)]
    notSearchedBytes: Annotated[int, Doc("size of what was not searched", BYTES)]
    totalBytes: Annotated[int, Doc("size of all of it", BYTES)]
    notSearched: Annotated[list[NotSearched], Doc("what was not, or only in part: each {…}")]


Answer = Found | SearchCoverage
