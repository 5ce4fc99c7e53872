"""What the core needs to write lines of a file or batch: the beginning of JSON objects, and the columns of a header."""

from __future__ import annotations

from kdump import jsonl
from kdump.core.batch_scan import read_one_header
from kdump.core.header_columns import HeaderColumns, wrapper_header
from kdump.format.batch_header import BATCH_HEADER
from kdump.log.paths import Target
from kdump.log.region import Batch, DefaultRecordBatch, LegacyRecordBatch
from kdump.render.escape import path_text


def object_start(kind: str, target: Target) -> bytes:
    """Return the beginning of the JSON objects of a kind for that file."""
    return jsonl.line({"type": kind, "file": path_text(target.path)})[:-1].encode("utf-8", "backslashreplace")


def own_header(batch: Batch) -> HeaderColumns:
    """Return the columns of that batch's header: of a v2 batch, or of a wrapper that read_wrapper has read."""
    if isinstance(batch, LegacyRecordBatch):
        appended = batch.maxTimestamp if batch.timestampType == "LogAppendTime" else None
        return wrapper_header(batch.position, batch.inner_base or 0, appended)
    assert isinstance(batch, DefaultRecordBatch)
    # Not from the file, which may have been truncated, and would be read again from there.
    return read_one_header(BATCH_HEADER.struct.pack(*batch.header), batch.position)
