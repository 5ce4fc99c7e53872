"""Summary of a `kdump verify` run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from kdump.answer import BYTES, Doc, PathText, answer, of_fact
from kdump.check.finding import SEVERITIES
from kdump.check.totals import CheckTotals

NotInBundle = Annotated[
    dict[str, int] | None,
    Doc(
        "of a bundle: the number of partitions whose records, or whose checksums, it does not have, so that they "
        "were not checked",
        optional=True,
    ),
]


def _measures(summary: CheckSummary) -> Iterator[tuple[Any, ...]]:
    yield "kdump_unread_paths", len(summary.unread)
    yield "kdump_checked_bytes", summary.bytes
    yield "kdump_checked_records", summary.records
    if coverage := summary.coverage:
        yield "kdump_segment_bytes", coverage["bytes"]
        yield "kdump_never_checked_bytes", coverage["neverChecked"]
        yield "kdump_overdue_bytes", coverage["overdue"]
        yield "kdump_never_checked_since_timestamp_seconds", _seconds(coverage["neverCheckedSince"])
        yield "kdump_oldest_check_timestamp_seconds", _seconds(coverage["oldestCheck"])


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


@answer("summary", measures=_measures)
class CheckSummary(NamedTuple):
    """Counts of everything that was checked."""

    partitions: Annotated[int, Doc("partition directories")]
    files: Annotated[int, Doc("files read")]
    bytes: Annotated[int, Doc("size of these files", BYTES)]
    batches: Annotated[int, Doc("batches of logs, and messages of magic 0 and 1; not those of metadata snapshots")]
    records: Annotated[int, Doc("records in valid batches")]
    damagedBatches: Annotated[
        int, Doc("batches that are not valid, or whose records cannot be decoded: their records are not in records")
    ]
    damagedRecords: Annotated[
        int, Doc("records that the headers of damagedBatches state, as far as these have room for them")
    ]
    findings: Annotated[dict[str, int], Doc("number of findings by severity: error, warning, info")]
    known: Annotated[int, Doc("findings omitted because they are in the baseline")]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    notes: Annotated[list[PathText], Doc("remarks, such as files that grew, were deleted or kept changing")]
    notInBundle: NotInBundle
    coverage: Annotated[
        dict[str, int | None] | None,
        Doc(
            "with --state: bytes of segments, and how many of them were never checked or are overdue; in epoch ms, "
            "when the oldest check was, and since when bytes that were never checked are known",
            optional=True,
        ),
    ]
    seconds: Annotated[float, Doc("duration of the check", "s")]

    @classmethod
    def of(cls, totals: CheckTotals, seconds: float) -> CheckSummary:
        """Return the summary of a check that has taken so long."""
        return of_fact(
            cls,
            totals,
            damagedBatches=totals.damaged_batches,
            damagedRecords=totals.damaged_records,
            findings={severity: totals.findings[severity] for severity in SEVERITIES},
            notInBundle=dict(totals.withheld) or None,
            coverage=totals.coverage.as_dict() if totals.coverage is not None else None,
            seconds=round(seconds, 3),
        )
