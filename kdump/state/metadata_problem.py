"""What a replay of the metadata log could not read or apply, so that its state may lack it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from kdump.state.metadata_refusal import Refusal


class Kind(Enum):
    """Kinds of problems; the values say what they are."""

    DAMAGED = "bytes that are not valid"
    MISSING = "offsets without a record"
    UNREAD = "what could not be read"
    SKIPPED = "a snapshot that is not valid"
    EMPTIED = "a log without records, which lost those after its snapshot"
    REFUSED = "a record that nodes of some release cannot apply"
    NEWER = "a record that only a newer release than the newest known one writes"
    TOO_LARGE = "what exceeds kdump's limits"
    NOT_CHECKED = "a record without effect of which it is unknown whether nodes can apply it"


class MetadataProblem(NamedTuple):
    """A problem. `text`: an Unread or Gone where outputs must say so. `offset`: that of the record in the log; of
    damage, that of the first record that is missing because of it; None in a snapshot, or if no record is missing.
    `refusal`: of the record."""

    kind: Kind
    text: str
    offset: int | None = None
    refusal: Refusal | None = None

    @property
    def is_of_record(self) -> bool:
        """Whether it is about one record; the text then begins with its offset."""
        return self.kind in (Kind.REFUSED, Kind.NEWER, Kind.TOO_LARGE, Kind.NOT_CHECKED)

    def is_of(self, refusal: Refusal) -> bool:
        """Return whether it is about the record of the log that is refused."""
        return self.is_of_record and self.offset is not None and self.offset == refusal.offset
