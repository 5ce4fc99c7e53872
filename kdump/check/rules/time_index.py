"""Family files, indexes: findings about .timeindex files. Whether one is right is decided in kafka/index_judge.py."""

from __future__ import annotations

from kdump.check.finding import Code
from kdump.check.rules.offset_index import IndexRule
from kdump.kafka.index_judge import MISMATCH, ORDER, SIZE
from kdump.kafka.time_index_judge import TimeIndexJudge
from kdump.log.file_kinds import TIME_INDEX

TIME_INDEX_SIZE_INVALID = Code("time-index-size-invalid")
TIME_INDEX_NOT_SORTED = Code("time-index-not-sorted")
TIME_INDEX_MISMATCH = Code("time-index-mismatch")


class TimeIndexRule(IndexRule):
    """Checks .timeindex files."""

    kind, judge_type = TIME_INDEX, TimeIndexJudge
    codes = {SIZE: TIME_INDEX_SIZE_INVALID, ORDER: TIME_INDEX_NOT_SORTED, MISMATCH: TIME_INDEX_MISMATCH}
