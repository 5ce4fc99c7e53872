"""What is known about records that are withheld: findings of single batches, sums over a segment's records, and hashes
(docs/bundle.md). Checked when it is read: it comes from another host."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

from kdump.format.errors import DecodeError
from kdump.format.numbers import INT_MAX
from kdump.io.hash_key import HASH_SIZE, RecordHash
from kdump.io.sorted_lines import SortedLines
from kdump.io.untrusted_json import LONG_MAX, integer, natural, optional_long, text
from kdump.log.region import Defect
from kdump.log.stored_regions import problem_of, problem_row


class StoredFinding(NamedTuple):
    """A finding about the records of a batch, without its file (kdump.check.finding.Finding)."""

    code: str
    severity: str
    position: int
    size: int
    offset: int | None
    expected: Any
    actual: Any
    message: str
    case: str


class RecordVerdict(NamedTuple):
    """What decoding the records of a batch shows. `findings`: without those for `problems`, which decoding notes;
    `records`: the number of records that decode, None if it is recordCount."""

    findings: tuple[StoredFinding, ...]
    problems: tuple[Defect, ...]
    records: int | None


STRUCT = "RecordVerdict"
NOTHING = RecordVerdict((), (), None)
SUMS = LONG_MAX
"""In place of a position, the key of the sums."""
HELD = 1000
"""Number of verdicts that are held."""
RECORDS_IN_ROW = 2000


def verdict_row(verdict: RecordVerdict) -> dict[str, Any]:
    """Return a verdict as an object of JSON's types."""
    row: dict[str, Any] = {"findings": verdict.findings}
    if verdict.problems:
        row["problems"] = [problem_row(problem) for problem in verdict.problems]
    if verdict.records is not None:
        row["records"] = verdict.records
    return row


def verdict_of(row: Any) -> RecordVerdict:
    """Return the verdict that a row has. Raises DecodeError."""
    try:
        records = row.get("records")
        problems = tuple(map(problem_of, row.get("problems", ())))
        return RecordVerdict(
            tuple(map(_finding, row["findings"])), problems, None if records is None else natural(records)
        )
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
    """The verdicts on the batches of a segment, by their positions. Holds some of them at a time."""

    def __init__(self, lines: SortedLines) -> None:
        self._lines = lines
        self._first = self._stop = 0
        """Positions between which all verdicts are held."""
        self._positions: list[int] = []
        self._verdicts: dict[int, RecordVerdict] = {}

    def sums(self) -> Any:
        """Return the sums over the records, an object of JSON's types. Raises DecodeError."""
        sums = self._lines.find(SUMS)
        if sums is None:
            raise DecodeError(STRUCT, "sums", 0, "there are none")
        return sums

    def on(self, position: int) -> RecordVerdict:
        """Return the verdict on the batch at a position. Raises DecodeError."""
        self._hold(position)
        return self._verdicts.get(position, NOTHING)

    def positions(self, start: int, stop: int) -> list[int]:
        """Return the positions from `start` to before `stop` of batches with a verdict. Raises DecodeError."""
        between: list[int] = []
        while start < stop:
            self._hold(start)
            between += self._positions[bisect_left(self._positions, start) : bisect_left(self._positions, stop)]
            start = self._stop
        return between

    def _hold(self, position: int) -> None:
        if self._first <= position < self._stop:
            return
        verdicts: dict[int, RecordVerdict] = {}
        self._first, self._stop = position, SUMS
        for key, row in self._lines.from_key(position):
            if len(verdicts) == HELD:
                self._stop = key
                break
            if position <= key < SUMS:
                verdicts[key] = verdict_of(row)
        self._positions, self._verdicts = list(verdicts), verdicts


class HashRows:
    """Hashes of records that are withheld: the row of a batch has the offset deltas and the hashes of its first
    RECORDS_IN_ROW records, and how many rows follow with the others. Read in order; raises DecodeError."""

    def __init__(self, lines: SortedLines, key: str) -> None:
        self._lines, self._key = lines, key
        self._rows: Iterator[tuple[Any, Any]] = iter(())
        self._row: tuple[Any, Any] | None = None
        self._passed = LONG_MAX

    def of_batch(self, position: int) -> list[tuple[int, RecordHash]] | None:
        """Return offset delta and hash of each record of the batch at a position; None if there are none."""
        row = self._find(position)
        if row is None:
            return None
        try:
            more, *first = row
            rows = [first, *(self._find(position + number) for number in range(1, natural(more) + 1))]
            found = []
            for deltas, digests in rows:
                data = bytes.fromhex(digests)
                if len(data) != HASH_SIZE * len(deltas):
                    raise ValueError(f"{len(data)} bytes of hashes for {len(deltas)} records")
                for number, delta in enumerate(deltas):
                    digest = data[number * HASH_SIZE : (number + 1) * HASH_SIZE]
                    found.append((integer(delta, 0, INT_MAX), RecordHash(self._key, digest)))
        except (TypeError, ValueError) as error:
            raise DecodeError("RecordHashes", "", position, str(error)) from error
        return found

    def _find(self, position: int) -> Any:
        if position < self._passed:
            self._rows = self._lines.from_key(position)
            self._row = next(self._rows, None)
        while self._row is not None and self._row[0] < position:
            self._row = next(self._rows, None)
        self._passed = position
        return self._row[1] if self._row is not None and self._row[0] == position else None


def hash_rows(position: int, deltas: list[int], digests: list[bytes]) -> Iterator[tuple[int, Any]]:
    """Yield the keys and rows of a batch, whose records have these hashes."""
    starts = range(0, max(1, len(deltas)), RECORDS_IN_ROW)
    for number, start in enumerate(starts):
        part = slice(start, start + RECORDS_IN_ROW)
        row = [deltas[part], b"".join(digests[part]).hex()]
        yield position + number, row if number else [len(starts) - 1, *row]
