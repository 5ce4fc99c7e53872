"""What a replay of the metadata log could not read or apply, so that its state may lack it."""

from __future__ import annotations

from typing import NamedTuple

from kdump.state.metadata_refusal import Refusal

DAMAGED, MISSING, UNREAD, SKIPPED = "damaged", "missing", "unread", "skipped"
"""Bytes that are not valid, offsets without a record, a file or part that could not be read, a snapshot that is not
valid."""
REFUSED, NEWER, TOO_LARGE, NOT_CHECKED = "refused", "newer", "too large", "not checked"
"""A record that nodes of some release cannot apply, or that only a newer release than the newest known one writes; what
does not fit into kdump's limits; a record without effect of which it is unknown whether a node can apply it."""
EMPTIED = "emptied"
"""The log has no records, and lost those after its snapshot."""


class MetadataProblem(NamedTuple):
    """A problem. `text`: an Unread or Gone where outputs must say so. `offset`: that of the record in the log; of
    damage, that of the first record that is missing because of it; None in a snapshot, or if no record is missing.
    `refusal`: of the record."""

    kind: str
    text: str
    offset: int | None = None
    refusal: Refusal | None = None

    @property
    def is_of_record(self) -> bool:
        """Whether it is about one record; the text then begins with its offset."""
        return self.kind in (REFUSED, NEWER, TOO_LARGE, NOT_CHECKED)

    def is_of(self, refusal: Refusal) -> bool:
        """Return whether it is about the record of the log that is refused."""
        return self.is_of_record and self.offset is not None and self.offset == refusal.offset
