"""A level of the browser: a listing, its loaded rows, and the cursor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from kdump.browse.open_file import OpenFile
from kdump.browse.row_listings import BrowseRow, Listing, ListingSlice
from kdump.browse.sorting import SortOrder, sorted_listing
from kdump.log.run import Run

MAX_KEPT_ROWS = 192
"""Maximum rows of a listing to keep; those farthest from the cursor are dropped."""


@dataclass
class Level:
    """A listing, its loaded rows, and the cursor. `file`: the file that is listed, or that contains what is listed;
    `owner`: the row that was entered, None at the top."""

    listing: Listing
    owner: BrowseRow | None
    file: OpenFile | None = None
    rows: list[BrowseRow] = field(default_factory=list)
    first: bool = True
    last: bool = True
    cursor: int = 0
    order: SortOrder | None = None
    unsorted: Listing | None = None
    """The listing in the order of the file, if it is sorted."""
    path: str = ""
    about: str = ""
    """Summary of a log directory, for the status line."""
    is_partition: bool = False
    """Whether this is the level of a partition directory."""

    def put(self, part: ListingSlice, cursor: int = 0) -> Level:
        self.rows, self.first, self.last = part.rows, part.first, part.last
        self.cursor = max(0, min(cursor, len(self.rows) - 1))
        return self

    def grow(self, part: ListingSlice, *, down: bool) -> None:
        """Add rows after the loaded ones, or before them, and drop those farthest from them."""
        if down:
            self.rows, self.last = [*self.rows, *part.rows], part.last
            over = max(0, len(self.rows) - MAX_KEPT_ROWS)
            self.rows, self.cursor = self.rows[over:], max(0, self.cursor - over)
            self.first = self.first and not over
        else:
            self.rows, self.first = [*part.rows, *self.rows], part.first
            self.cursor += len(part.rows)
            self.last = self.last and len(self.rows) <= MAX_KEPT_ROWS
            self.rows = self.rows[:MAX_KEPT_ROWS]
            self.cursor = min(self.cursor, len(self.rows) - 1)

    def sorted(self, order: SortOrder, run: Run) -> Level:
        """Return the same level in that order, still without its rows. Reads all of them. Raises SourceError."""
        return replace(self, listing=sorted_listing(self.source, order, run), order=order, unsorted=self.source)

    @property
    def source(self) -> Listing:
        """The listing in the order of the file."""
        return self.listing if self.unsorted is None else self.unsorted

    @property
    def row(self) -> BrowseRow | None:
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    def select(self, key: Any) -> bool:
        """Select the row with that key. Returns False if it is not loaded."""
        for number, row in enumerate(self.rows):
            if row.key == key and row.type not in ("note",):
                self.cursor = number
                return True
        return False
