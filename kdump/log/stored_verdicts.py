"""What a bundle knows about records that are not in it: findings of single batches, and sums over a segment's records
(docs/bundle.md). Checked when it is read: it comes from another host."""

from __future__ import annotations

import io
import json
from bisect import bisect_left
from typing import Any

from kdump.format.container import ContainerReader
from kdump.format.errors import DecodeError
from kdump.io.bundle.index import KnownRecords
from kdump.io.bundle.rows import Located, RowsReader, located_of
from kdump.io.untrusted_json import integer, natural, optional_long, text
from kdump.log.region import RecordVerdict, StoredFinding
from kdump.log.stored_regions import problem_of, problem_row

STRUCT = "RecordVerdict"
NOTHING = RecordVerdict((), (), None)


def verdict_row(position: int, verdict: RecordVerdict) -> dict[str, Any]:
    """Return the verdict on the batch at `position` as an object of JSON's types."""
    row: dict[str, Any] = {"position": position, "findings": verdict.findings}
    if verdict.problems:
        row["problems"] = [problem_row(problem) for problem in verdict.problems]
    if verdict.records is not None:
        row["records"] = verdict.records
    return row


def verdict_of(row: Any) -> tuple[int, RecordVerdict]:
    """Return the position of a batch and the verdict that a row has on it. Raises DecodeError."""
    try:
        records = row.get("records")
        problems = tuple(map(problem_of, row.get("problems", ())))
        verdict = RecordVerdict(
            tuple(map(_finding, row["findings"])), problems, None if records is None else natural(records)
        )
        return natural(row["position"]), verdict
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DecodeError(STRUCT, "", 0, f"{type(error).__name__}: {error}") from error


def _finding(values: Any) -> StoredFinding:
    finding = StoredFinding(*values)
    for value in (finding.code, finding.severity, finding.message, finding.case):
        text(value)
    for value in (finding.expected, finding.actual):
        if value is not None:
            integer(value) if isinstance(value, int) else text(value)
    optional_long(finding.offset)
    return finding._replace(position=natural(finding.position), size=natural(finding.size))


class StoredVerdicts:
    """The verdicts on the batches of a segment. Holds those of one frame at a time."""

    def __init__(self, container: ContainerReader, known_records: KnownRecords) -> None:
        self._container = container
        self._frames: RowsReader[Located] = RowsReader(container, known_records.verdicts, located_of)
        self._held: Located | None = None
        self._positions: list[int] = []
        self._verdicts: dict[int, RecordVerdict] = {}

    def on(self, position: int) -> RecordVerdict:
        """Return the verdict on the batch at a position. Raises DecodeError."""
        self._hold(self._frames.find(position))
        return self._verdicts.get(position, NOTHING)

    def positions(self, start: int, stop: int) -> list[int]:
        """Return the positions from `start` to before `stop` of batches with a verdict. Raises DecodeError."""
        between: list[int] = []
        for located in self._frames.after(start):
            if located.position >= stop:
                break
            self._hold(located)
            between += self._positions[bisect_left(self._positions, start) : bisect_left(self._positions, stop)]
        return between

    def _hold(self, located: Located | None) -> None:
        if located is None or located == self._held:
            return
        data = self._container.read(located.frame)
        try:
            self._verdicts = dict(verdict_of(json.loads(line)) for line in io.BytesIO(data))
        except (ValueError, RecursionError) as error:
            raise DecodeError(STRUCT, "", 0, str(error)) from error
        self._positions = sorted(self._verdicts)
        self._held = located
