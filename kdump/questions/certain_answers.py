"""The answers of an observer of one partition, with the findings that hold while a broker is running."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kdump.answer import Note
from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.second_look import Looking
from kdump.check.finding import INFO, Finding
from kdump.check.rules import bytes
from kdump.format.errors import RECORD_COUNT_MISMATCH
from kdump.io.errors import SourceError
from kdump.log import file_kinds
from kdump.log.file_kinds import by_name

DAMAGES = frozenset(bytes.CODES)
"""Codes of findings about damaged bytes."""
REPORTED = DAMAGES | {RECORD_COUNT_MISMATCH}
"""Codes of findings that are yielded together with the answers: the bytes could not be considered, or the number of
records is not counted, because it cannot be true."""


def certain_answers(
    scan: PartitionScan, row: type[NamedTuple], looking: Looking | None, is_shown: Callable[[Finding], bool]
) -> Iterator[Any]:
    """Yield what the observers of a scan answer, and the findings for which `is_shown` is true and that hold
    even if a broker is changing the files (check/engine/second_look.py). Findings of damaged bytes precede the
    partition's `row`, the last answer, which counts them. Notes come last; what could not be read is passed
    to the `unreadable` of the scan's options."""
    damages = 0

    def confirmed() -> Iterator[Finding]:
        # A further look applies every rule of verify, not only those of this scan.
        if looking is not None:
            yield from (each for each in looking.rest(scan.totals) if each.code in looking.doubted and is_shown(each))

    for answer in scan.findings():
        if isinstance(answer, row):
            for finding in confirmed():
                damages += is_damage(finding)
                yield finding
            yield answer._replace(damages=damages)
        elif not isinstance(answer, Finding):
            yield answer
        elif is_shown(answer) and (looking is None or looking.holds(answer)):
            damages += is_damage(answer)
            yield answer
    yield from confirmed()
    for unread in scan.totals.unread:
        scan.options.unreadable(SourceError(unread))
    for note in scan.totals.notes:
        yield Note("", note)


def is_damage(finding: Finding) -> bool:
    """Return True if the finding is about damaged bytes of the log, of which a metadata snapshot is no part."""
    return (
        finding.code in DAMAGES
        and finding.severity != INFO
        and by_name(finding.file)[0] is not file_kinds.KRAFT_SNAPSHOT
    )
