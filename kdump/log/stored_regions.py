"""Regions of a segment as JSON, without their payloads: what is kept of those that are not ordinary valid batches if
the bytes are withheld (docs/bundle.md)."""

from __future__ import annotations

from dataclasses import asdict
from struct import error as StructError
from typing import Any

from kdump.format.batch_header import BatchHeader
from kdump.format.errors import BATCH_LENGTH_INVALID, MAGIC_UNKNOWN, DecodeError
from kdump.format.legacy_message import MessageHeader
from kdump.io.run import Limits
from kdump.io.untrusted_json import LONG_MAX, integer, natural, optional_long, text
from kdump.log.legacy_records import contents_of
from kdump.log.region import (
    JUNK,
    MAX_LENGTH,
    PADDING,
    TORN,
    Batch,
    BrokerView,
    DefaultRecordBatch,
    Defect,
    KnownBatch,
    LegacyRecordBatch,
    Region,
    WrapperContents,
    make_batch,
)

STRUCT = "StoredRegion"
BATCH = "batch"
KEPT, WITHHELD = "kept", "withheld"
"""Kinds of lines about valid v2 batches in a row: all bytes of them are there, or their headers alone."""
BROKEN_BATCHES = (BATCH_LENGTH_INVALID, MAGIC_UNKNOWN)
"""Codes of junk that is a batch but for one wrong field. The first bytes of other junk may be part of a record."""


def row_of(region: Region, *, checksums: bool = True) -> dict[str, Any]:
    """Return a region as an object of JSON's types. Reads a wrapper to find its offsets and, with `checksums`, a batch
    to verify its checksum."""
    row: dict[str, Any] = {"kind": region.kind, "size": region.size}
    if region.broker_view is not None:
        *view, contents = region.broker_view
        row["brokerView"] = view
        if contents is not None:
            row["brokerContents"] = _contents_row(contents)
    if isinstance(region, (DefaultRecordBatch, LegacyRecordBatch)):
        header = region.header
        if isinstance(header, MessageHeader):
            header = header._replace(messageSize=region.batchLength)
        row["header"] = header
        if region.header_problems:
            row["problems"] = [problem_row(problem) for problem in region.header_problems]
        if checksums and not region.crcValid:
            row["computedCrc"] = region.computedCrc
        if isinstance(region, LegacyRecordBatch) and region.is_compressed:
            row["contents"] = _contents_row(contents_of(region))
        return row
    row |= {"reason": region.reason, "code": region.code}
    if region.known_crc is not None:
        row["crc"] = region.known_crc
    if region.claimed is not None and (region.kind == TORN or region.code in BROKEN_BATCHES):
        row["header"] = region.claimed
    return row


def problem_row(problem: Defect) -> list[Any]:
    """Return a problem as an object of JSON's types."""
    return list(asdict(problem).values())


def size_of(row: Any) -> int:
    """Return the number of bytes that a line is about. Raises DecodeError."""
    try:
        if not isinstance(row["kind"], str):
            raise ValueError("a kind that is not a text")
        return integer(row["size"], 1, LONG_MAX)
    except (KeyError, TypeError, ValueError) as error:
        raise DecodeError(STRUCT, "size", 0, f"{type(error).__name__}: {error}") from error


def region_of(position: int, row: Any, window: Any, limits: Limits) -> Region:
    """Return the region at a position that a row describes; `window` is that of a batch. Raises DecodeError for
    anything that row_of does not return."""
    try:
        kind, size = row["kind"], natural(row["size"])
        header = _header(row["header"]) if "header" in row else None
        if kind == BATCH:
            return _batch(row, window, position, size, header, limits)
        if kind not in (TORN, JUNK, PADDING):
            raise ValueError(f"the kind {kind!r} is unknown")
        region = Region(kind, position, size, text(row["reason"]), header, text(row["code"]))
        region.known_crc = natural(row["crc"]) if "crc" in row else None
        region.broker_view = _broker_view(row)
        return region
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, StructError) as error:
        raise DecodeError(STRUCT, "", 0, f"{type(error).__name__}: {error}") from error


def _batch(
    row: Any, window: Any, position: int, size: int, header: BatchHeader | MessageHeader | None, limits: Limits
) -> Batch:
    if header is None:
        raise ValueError("a batch without a header")
    batch = make_batch(window, position, size, limits, header, crc=natural(row.get("computedCrc", header.crc)))
    batch.header_problems = tuple(map(problem_of, row.get("problems", ())))
    batch.broker_view = _broker_view(row)
    if "diagnosis" in row:
        kind, description, damaged, count = row["diagnosis"]
        batch.known = KnownBatch(diagnosis=(text(kind), text(description), optional_long(damaged), natural(count)))
    if isinstance(batch, LegacyRecordBatch) and batch.is_compressed:
        batch.known = batch.known._replace(contents=_contents_of_row(row["contents"]))
    return batch


def _contents_row(contents: WrapperContents) -> list[Any]:
    return [*contents[:-1], [problem_row(problem) for problem in contents.problems]]


def _contents_of_row(row: Any) -> WrapperContents:
    base, count, inner_base, inner_last, problems = row
    numbers = (optional_long(base), optional_long(count), optional_long(inner_base), optional_long(inner_last))
    return WrapperContents(*numbers, tuple(map(problem_of, problems)))


def _broker_view(row: Any) -> BrokerView | None:
    if "brokerView" not in row:
        return None
    length, seen, crc = row["brokerView"]
    header = None if seen is None else BatchHeader(*seen)
    if header is not None:
        header.packed()
    contents = _contents_of_row(row["brokerContents"]) if "brokerContents" in row else None
    return BrokerView(integer(length, -MAX_LENGTH - 1, MAX_LENGTH), header, optional_long(crc), contents)


def _header(values: Any) -> BatchHeader | MessageHeader:
    """Return a header, with each number in the range of its field."""
    header = MessageHeader(*values) if len(values) == len(MessageHeader._fields) else BatchHeader(*values)
    header.packed()
    return header


def problem_of(values: Any) -> Defect:
    """Return the problem that `values` describe. Raises TypeError or ValueError."""
    problem = Defect(*values)
    texts = (problem.code, problem.struct, problem.field, problem.reason, problem.space)
    plain = all(isinstance(value, (int, str, type(None))) for value in (problem.expected, problem.actual, problem.size))
    if not all(isinstance(value, str) for value in texts) or not plain or not isinstance(problem.is_ours, bool):
        raise ValueError("not a problem")
    for value in (*texts, str(problem.expected), str(problem.actual)):
        text(value)
    optional_long(problem.position)
    return problem
