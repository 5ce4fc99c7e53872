"""What a search for a record, or for a time, has not read: "not found" is only as good as that."""

from __future__ import annotations

from dataclasses import dataclass, field

from kdump.format.count_text import count_text
from kdump.log.region import Batch, Region
from kdump.log.region_scan import RegionScan
from kdump.log.search_coverage import SearchCoverage
from kdump.log.selection import Selection


def short_name(path: str) -> str:
    """Return the last directory and the name of a file."""
    return "/".join(path.rstrip("/").split("/")[-2:])


@dataclass
class SearchGaps:
    """Counts of one search."""

    coverage: SearchCoverage = field(default_factory=lambda: SearchCoverage(Selection(), matched=True))
    absent: int = 0
    """Batches whose records are not in the bundle."""
    unread: list[str] = field(default_factory=list)
    """Why files could not be read."""

    def region(self, path: str, region: Region) -> None:
        """Count a region that was searched: a batch after its records were decoded."""
        if isinstance(region, Batch):
            self.coverage.batch(short_name(path), region, 1)
        else:
            self.coverage.region(region)

    def omitted(self, scan: RegionScan) -> None:
        """Count the regions that a filter has left out of a scan."""
        self.coverage.regions += scan.unshown - scan.zeros
        self.coverage.region_bytes += scan.unshown_bytes - scan.zero_bytes

    def result(self, text: str) -> str:
        """Return the sentence for a search without a match, after what it did not cover."""
        gaps = self.coverage.gaps()
        if self.absent:
            gaps.append(f"{count_text(self.absent, 'batch', 'batches')} whose records are not in the bundle")
        gaps += self.unread[:1]
        if len(self.unread) > 1:
            gaps.append(f"{len(self.unread) - 1} more that cannot be read")
        return f"NOT SEARCHED: {'; '.join(gaps)}; {text} in the rest" if gaps else text
