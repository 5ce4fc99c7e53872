"""Writes the records of a segment's slice to a Parquet file of its own, through column buffers only."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from kdump.check.options import Options
from kdump.log.errors import SourceError
from kdump.render.escape import path_text
from kdump.spark.data_source_options import ReadOptions
from kdump.spark.read_task import TaskItem
from kdump.spark.record_rows import RecordRows
from kdump.spark.scan_plan import RecordJob
from kdump.spark.scan_sink import TableWriter
from kdump.spark.segment_split import opened
from kdump.spark.store import Store, folder
from kdump.spark.table_read import TableRead
from kdump.spark.tables import RECORDS
from kdump.version import __version__


def write_records(job: RecordJob, store: Store, options: ReadOptions, check: Options) -> dict[str, Any]:
    """Read a slice, write its records, and return its entry. Skips unreadable bytes (see findings). Raises
    StoreError."""
    target = job.slice.target
    values = {"broker": job.identity.broker, "topic": target.topic}
    number = "none" if target.partition is None else target.partition
    name = f"{folder('records', values)}/{number}-{job.key}.parquet"
    count = 0
    begun = {"kdump": __version__, "fingerprint": "", "unit": path_text(target.path), "files": [name]}
    store.put_unit(job.key, begun)  # the entry names the file before it exists
    with ExitStack() as stack:
        writer = TableWriter(RECORDS, stack.enter_context(store.writing(name)))
        stack.callback(writer.close)
        reading = TableRead(options)
        reader = RecordRows(options, reading.selection, writer.schema)
        common = reading.common(TaskItem(job.slice, job.identity, job.size, job.state), target)
        try:
            window = opened(target, options.window)
        except SourceError:
            window = None
        if window is not None:
            try:
                for batch in reader.read(job.slice, window, common):
                    count += batch.num_rows
                    writer.put([batch])
            except SourceError:
                pass
            finally:
                window.source.close()
            for batch in reader.rest():
                count += batch.num_rows
                writer.put([batch])
    entry = {**begun, "fingerprint": job.fingerprint, "records": count}
    store.put_unit(job.key, entry)
    return entry
