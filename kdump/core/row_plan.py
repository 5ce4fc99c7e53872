"""Layout of the lines that kdump.core.row_writer writes."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, zip_longest

from kdump.core.cells import (
    COMPRESSION_CELL,
    JSON_KEY_CELL,
    JSON_VALUE_CELL,
    PLAN_LINE_BYTES,
    PLAN_PER_BYTE,
    PLAN_PER_HEADER,
    TIMESTAMP_TYPE_CELL,
)
from kdump.core.output_buffer import SLACK
from kdump.core.record_columns import RecordColumns

FIXED = 100
"""Maximum bytes per cell, except for keys, values and headers."""
NAMES = (COMPRESSION_CELL, TIMESTAMP_TYPE_CELL)
"""Cells that are strings in JSON."""


class RowPlan:
    """Layout of a line: the kind of each cell (see kdump.core.cells), the text before each cell and after the last, the
    minimum widths, and which cells are right-aligned. `omitted`: kinds of the columns that are not displayed; a row
    that has a value for one of them is not written. `numbers` has all of this (see PLAN_CELLS) but the texts."""

    __slots__ = ("numbers", "texts")

    def __init__(
        self,
        kinds: Sequence[int],
        texts: Sequence[bytes],
        widths: Sequence[int] = (),
        rights: Sequence[bool] = (),
        omitted: Sequence[int] = (),
    ) -> None:
        self.texts = b"".join(texts) + bytes(SLACK)
        starts = accumulate(map(len, texts), initial=0)
        rows = zip_longest(kinds, starts, widths, rights, fillvalue=0)
        line_bytes = len(self.texts) + sum(widths) + FIXED * (len(kinds) + 1)
        is_json = JSON_KEY_CELL in kinds or JSON_VALUE_CELL in kinds
        # JSON writes a control character as \\u00XX, and the names of a header's members.
        # So does a table (\\x00), which has two digits for each byte that is not text; a null in a header needs up to
        # four bytes more than its encoded size.
        per_byte, per_header = (6, 80) if is_json else (4, 8)
        begin = (len(kinds), len(omitted), line_bytes, per_byte, per_header)
        self.numbers = array("q", chain(begin, chain.from_iterable(rows), omitted))

    def record_bytes(self, columns: RecordColumns, row: int) -> int:
        """Return a number of bytes that is certainly enough for the line of record number `row`."""
        numbers, size = self.numbers, columns.end[row] - columns.start[row]
        return (
            numbers[PLAN_LINE_BYTES]
            + numbers[PLAN_PER_BYTE] * size
            + numbers[PLAN_PER_HEADER] * columns.headers_count[row]
        )


def json_plan(begin: bytes, cells: Mapping[str, int | bytes], end: bytes) -> RowPlan:
    """Return the layout of a JSON object: `begin`, the members `cells` (a kind of cell, or JSON), `end`."""
    texts, kinds = [begin], []
    for name, cell in cells.items():
        texts[-1] += b',"%b":' % name.encode()
        if isinstance(cell, bytes):
            texts[-1] += cell
            continue
        quote = b'"' if cell in NAMES else b""
        texts[-1] += quote
        kinds.append(cell)
        texts.append(quote)
    texts[-1] += end
    return RowPlan(kinds, texts)
