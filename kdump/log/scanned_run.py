"""A batch run that another process has validated: here are its headers, and its bytes are read only if needed."""

from __future__ import annotations

from kdump.core.batch_scan import ValidRun
from kdump.core.column_numbers import BASE_OFFSET, BATCH_END, BATCH_START, LAST_OFFSET, RECORD_COUNT
from kdump.core.header_columns import HeaderColumns, rows_of, total
from kdump.log.errors import SourceError
from kdump.log.region import BatchRun
from kdump.log.run import Limits
from kdump.log.source import Source


class _ReadLater(HeaderColumns):
    """The columns of batches at `shift` of a source, of which `size` bytes are read when they are first needed."""

    __slots__ = ("_data", "_size", "_source")

    def __init__(self, source: Source, shift: int, size: int) -> None:
        self._source = source
        self._size = size
        self._data: bytes | None = None
        self.shift = shift

    @property
    def data(self) -> bytes:  # type: ignore[override]
        """Raises SourceError if the file has become shorter."""
        if self._data is None:
            data = self._source.read_at(self.shift, self._size)
            if len(data) < self._size:
                raise SourceError(f"{self._source.name}: truncated at byte {self.shift + len(data)} while it was read")
            self._data = data
        return self._data


def scanned_run(
    source: Source, limits: Limits, headers: HeaderColumns, first: int, unchained: int, suspects: list[int] | None
) -> BatchRun:
    """Return the batch run of `headers` (without their bytes) from batch number `first` on. `unchained`: bytes of the
    batches that only their checksums confirm; `suspects`: numbers of the batches whose records may have a problem, None
    if they were not checked."""
    count = len(headers)
    start, size = headers.of(first, BATCH_START), headers.of(count - 1, BATCH_END) - headers.of(first, BATCH_START)
    columns = _ReadLater(source, headers.shift + start, size)
    columns.block, columns.count = rows_of(headers, first, count), count - first
    found = ValidRun(
        size,
        columns,
        total(columns, RECORD_COUNT, 0, len(columns)),
        columns.of(0, BASE_OFFSET),
        columns.of(len(columns) - 1, LAST_OFFSET),
        columns.of(len(columns) - 2, LAST_OFFSET) if len(columns) > 1 else -1,
        unchained,
    )
    run = BatchRun(limits, columns.shift, 0, found, True)
    run.suspects = None if suspects is None else [each - first for each in suspects if each >= first]
    return run
