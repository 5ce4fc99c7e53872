"""Summary of a `kdump verify` run."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, Doc, PathText, answer


@answer("summary")
class CheckSummary(NamedTuple):
    """Counts of everything that was checked."""

    partitions: Annotated[int, Doc("partition directories")]
    files: Annotated[int, Doc("files that were read")]
    bytes: Annotated[int, Doc("their length", BYTES)]
    batches: Annotated[int, Doc("batches, and messages of magic 0 and 1")]
    records: Annotated[int, Doc("records in sound batches")]
    findings: Annotated[dict[str, int], Doc("how many of each severity: error, warning, info")]
    known: Annotated[int, Doc("findings that the baseline has, and that are not told")]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    notes: Annotated[list[PathText], Doc("what else is to be said: files that grew, went away, or kept changing")]
    seconds: Annotated[float, Doc("how long it took", "s")]
