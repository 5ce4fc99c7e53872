"""Family files, indexes: findings about .timeindex files. Whether one is right is decided in kafka/index_judge.py."""

from __future__ import annotations

from kdump.check.finding import ERROR, WARNING, Code
from kdump.check.rules.offset_index import IGNORED, LEFT_OVER_INFO, REBUILD, UNWRITTEN_WARNING, IndexRule
from kdump.kafka.index_judge import MISMATCH, ORDER, SIZE
from kdump.kafka.time_index_judge import TimeIndexJudge
from kdump.log.file_kinds import TIME_INDEX

TIME_INDEX_SIZE_INVALID = Code(
    code="time-index-size-invalid",
    family="indexes",
    severity=WARNING,
    meaning="The size of a .timeindex is not a multiple of 12.",
    consequence=IGNORED,
    fix=REBUILD,
    source="AbstractIndex.createMappedBuffer, TimeIndex.sanityCheck",
)

TIME_INDEX_NOT_SORTED = Code(
    code="time-index-not-sorted",
    family="indexes",
    severity=ERROR,
    meaning="The entries of a .timeindex are not in ascending order.",
    consequence=(
        "lookups by timestamp return wrong offsets, and time-based retention may use the wrong timestamp; a clean "
        "startup does not check it"
    ),
    fix=REBUILD,
    source="TimeIndex.sanityCheck, TimeIndex.maybeAppend",
    unless=f"{UNWRITTEN_WARNING}: a timestamp twice; {LEFT_OVER_INFO}",
)

TIME_INDEX_MISMATCH = Code(
    code="time-index-mismatch",
    family="indexes",
    severity=ERROR,
    meaning=(
        "A .timeindex entry names an offset whose batch has a different maxTimestamp, or an earlier batch has the same "
        "or a larger one; or the last entry of a closed segment is missing."
    ),
    consequence=(
        "lookups by timestamp may return wrong offsets; time-based retention uses the last entry, and deletes the "
        "segment early if that timestamp is too old"
    ),
    fix=REBUILD,
    source="TimeIndex.lookup, LogSegment.findOffsetByTimestamp, LogSegment.largestTimestamp",
    unless=f"warning if the .timeindex has no entry; {LEFT_OVER_INFO}",
)


class TimeIndexRule(IndexRule):
    """Checks .timeindex files."""

    kind, judge_type = TIME_INDEX, TimeIndexJudge
    codes = {
        SIZE: TIME_INDEX_SIZE_INVALID,
        ORDER: TIME_INDEX_NOT_SORTED,
        MISMATCH: TIME_INDEX_MISMATCH,
    }
