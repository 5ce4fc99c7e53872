"""What a search for keys, values or headers has read, and what it could not: "not found" is only as good as that."""

from __future__ import annotations

from dataclasses import dataclass, field

from kdump.format.count_text import count_text, first_of, size_text
from kdump.io.remote_paths import MAX_IDS, with_only_ids
from kdump.log.reading import Reading
from kdump.log.region import PADDING, Batch, Region
from kdump.log.region_scan import RegionScan
from kdump.log.selection import Selection

MAX_LISTED = 3
"""Maximum number of files that are listed by name."""


@dataclass
class SearchCoverage:
    """Counts of one search."""

    selection: Selection
    matched: bool = False
    files: int = 0
    """Files with batches that were read."""
    damaged: int = 0
    damaged_bytes: int = 0
    """Batches that are damaged: not all of their records could be compared, or, if only the checksum does not match,
    not necessarily as they were written."""
    damaged_at: str = ""
    """The first of them, as "FILE at byte N"."""
    ignoring: int = 0
    ignored_bytes: int = 0
    """Batches with bytes that no reader looks into, and how many these are."""
    ignored_at: str = ""
    """The first of them, as `damaged_at`."""
    regions: int = 0
    region_bytes: int = 0
    """Regions without a readable batch, except for zeros."""
    left_over: int = 0
    """.deleted, .swap and .cleaned segments that were not selected."""
    nameless: int = 0
    """Segments in remote storage that were left out because --topic does not match the topic ID, and their path has no
    name."""
    topic_ids: dict[str, None] = field(default_factory=dict)
    """The first MAX_IDS + 1 of these topic IDs."""
    absent: int = 0
    """Batches whose records are not in the bundle."""
    unread: list[str] = field(default_factory=list)
    """Why files could not be read, if the search goes on without them."""
    others: int = 0
    """Files that are not Kafka's, in directories whose other files were all selected."""
    others_listed: list[str] = field(default_factory=list)
    """Paths of the first MAX_LISTED + 1 of them."""

    remote: list[str] = field(default_factory=list)
    """Which offsets of which partitions are in remote storage."""

    def other(self, path: str) -> None:
        """Count a file that is not Kafka's."""
        self.others += 1
        if len(self.others_listed) <= MAX_LISTED:
            self.others_listed.append(path)

    def without_topic_name(self, topic_id: str) -> None:
        """Count a segment of a topic that may be one of those selected."""
        self.nameless += 1
        if len(self.topic_ids) <= MAX_IDS:
            self.topic_ids[topic_id] = None

    def batch(self, path: str, reading: Reading[Batch], rows: int) -> None:
        """Count a batch that was compared; `rows`: how many rows were shown of it."""
        batch = reading.batch
        is_damaged = bool(reading.problems) or not batch.crcValid
        if not (is_damaged or reading.ignored):
            self.matched = self.matched or rows > 0
            return
        if not self.matched:
            self.matched = any(True for _ in self.selection.records(batch))
        if not is_damaged:
            self.ignoring += 1
            self.ignored_bytes += reading.ignored
            self.ignored_at = self.ignored_at or f"{path} at byte {batch.position}"
            return
        self.damaged += 1
        self.damaged_bytes += batch.size
        self.damaged_at = self.damaged_at or f"{path} at byte {batch.position}"

    def region(self, region: Region) -> None:
        """Count bytes that belong to no batch."""
        if region.kind != PADDING:
            self.regions += 1
            self.region_bytes += region.size

    def omitted(self, scan: RegionScan) -> None:
        """Count the regions that a filter has left out of a scan."""
        self.regions += scan.unshown - scan.zeros
        self.region_bytes += scan.unshown_bytes - scan.zero_bytes

    @property
    def is_complete(self) -> bool:
        """True if all that was selected was searched, apart from files that cannot be opened."""
        return not (self.damaged or self.ignoring or self.regions or self.nameless or self.others or self.remote)

    def result(self, batches: int | None, *, is_complete: bool) -> str:
        """Return the sentence for a search without a match in this number of batches, if it is known."""
        read = count_text(self.files, "file")
        if batches is not None:
            read += f", {count_text(batches, 'batch', 'batches')}"
        return f"nothing matches in {read}" if is_complete else f"nothing matches in what could be searched: {read}"

    def gaps(self) -> list[str]:
        """Return what could not be searched."""
        reasons = []
        if self.damaged:
            many = count_text(self.damaged, "damaged batch", "damaged batches")
            first = "the first in " if self.damaged > 1 else ""
            reasons.append(f"{many} of {size_text(self.damaged_bytes)} ({first}{self.damaged_at})")
        if self.ignoring:
            many = count_text(self.ignoring, "batch", "batches")
            first = "the first is in " if self.ignoring > 1 else ""
            reasons.append(
                f"{size_text(self.ignored_bytes)} that no consumer reads, after the compressed records or in the key of"
                f" the message around them, in {many} ({first}{self.ignored_at})"
            )
        if self.regions:
            many = count_text(self.regions, "region")
            reasons.append(f"{many} of {size_text(self.region_bytes)} without a readable batch")
        if self.nameless:
            reasons.append(with_only_ids(count_text(self.nameless, "segment"), list(self.topic_ids)))
        if self.others:
            more = f" and {self.others - MAX_LISTED:,} more" if self.others > MAX_LISTED else ""
            many = count_text(self.others, "file that is", "files that are")
            reasons.append(f"{many} not Kafka's ({', '.join(self.others_listed[:MAX_LISTED])}{more})")
        if self.remote:
            reasons.append(f"in remote storage: {first_of(self.remote)} (--remote URL reads them)")
        if self.absent:
            reasons.append(f"{count_text(self.absent, 'batch', 'batches')} whose records are not in the bundle")
        reasons += self.unread[:1]
        if len(self.unread) > 1:
            reasons.append(f"{len(self.unread) - 1} more that cannot be read")
        return reasons

    def left_out(self) -> str:
        """Return what was not to be searched; an empty string if there is nothing."""
        if not self.left_over:
            return ""
        return f"{count_text(self.left_over, '.deleted, .swap or .cleaned segment')} not searched; add --all-files"
