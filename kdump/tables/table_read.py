"""One read of a table: plans its tasks, and yields the rows of each. Does not depend on a Spark session."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from kdump.check.engine.units import CheckUnit
from kdump.check.options import Options
from kdump.check.totals import CheckTotals
from kdump.cluster.partition_summary import SegmentSummary
from kdump.decode.record_decoder import DecodeOptions, RecordDecoder
from kdump.format.control_record import decode_control
from kdump.format.transaction_record import decode_transaction
from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import careful_source
from kdump.io.mounted_paths import unmount_paths
from kdump.io.window import Window
from kdump.log.batch_records import records
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Region, batches_of
from kdump.log.selection import Selection
from kdump.log.walk import RegionObserver, walk
from kdump.render.escape import path_text
from kdump.render.inspect_json import plain
from kdump.tables.arrow import ArrowBatch, ArrowSchema, Rows
from kdump.tables.batch_rows import BatchRows
from kdump.tables.declarations import FINDINGS
from kdump.tables.filters import PushedFilters
from kdump.tables.fleet import Fleet, find
from kdump.tables.mounted_paths import mount_for_task, same_place
from kdump.tables.read_options import OptionError, ReadOptions, TaskItem
from kdump.tables.record_rows import RecordRows, decoded_fields
from kdump.tables.segment_split import SegmentSplit, opened, own_regions
from kdump.tables.small_tables import entry_rows, finding_rows, segment_rows, unread_rows
from kdump.tables.table_plan import parts_of

Row = dict[str, Any]
NOT_THE_RECORDS = ("topic", "partition", "state")
"""Columns that come from the file's directory in other tables, but from the record in these."""


class DecodedRows(RegionObserver):
    """Reads slices of segments. Skips batches whose checksum does not match."""

    def __init__(self, options: ReadOptions, selection: Selection, schema: ArrowSchema) -> None:
        self.limits = options.limits
        self.rows = Rows(options.table, schema)
        self.read_record = ROWS[options.table.name]

    def read(self, part: SegmentSplit, window: Window, common: Row) -> Iterator[ArrowBatch]:
        """Yield the rows of a slice. Raises SourceError."""
        self.own = {name: value for name, value in common.items() if name not in NOT_THE_RECORDS}
        self.target, self.decoder = part.target, RecordDecoder(DecodeOptions()).decoder(part.target)
        yield from walk(partial(own_regions, part, window, self.limits), [self])

    def region(self, region: Region) -> Iterator[ArrowBatch]:
        for batch in batches_of(region):
            if not batch.crcValid:
                continue
            for record in records(batch):
                row_values: Row = {}
                if self.decoder is not None and not record.is_control:
                    row_values = decoded_fields(self.decoder, self.target, record)
                row = self.read_record(record, row_values)
                if row is None:
                    continue
                row |= self.own | {"recordOffset": record.offset, "timestamp": record.timestamp}
                row["problem"] = row_values.get("keyProblem") or row_values.get("valueProblem")
                if self.rows.add(row):
                    yield from self.rows.take()

    def rest(self) -> Iterator[ArrowBatch]:
        """Yield the rows that have been read but not yielded yet."""
        yield from self.rows.take()


def _data(fields: Row, part: str) -> Row:
    """Return the fields of a decoded key or value."""
    decoded = fields.get(f"{part}Decoded")
    data = decoded.get("data") if isinstance(decoded, dict) else None
    return data if isinstance(data, dict) else {}


def _group_offset(record: Record, fields: Row) -> Row | None:
    key = fields.get("keyDecoded")
    if not isinstance(key, dict) or key.get("name") != "OffsetCommitKey":
        return None
    names, value = _data(fields, "key"), _data(fields, "value")
    return {
        "groupId": names.get("group"),
        "topic": names.get("topic"),
        "partition": names.get("partition"),
        **{name: value.get(name) for name in ("offset", "leaderEpoch", "metadata", "commitTimestamp")},
        **{name: value.get(name) for name in ("expireTimestamp", "topicId")},
        "producerId": record.batch.producerId if record.batch.isTransactional else -1,
        "tombstone": record.valueSize < 0,
    }


def _transaction(record: Record, fields: Row) -> Row | None:
    if record.is_control:
        return None
    state = decode_transaction(record.key, record.value)
    if state.problem is not None:
        fields.setdefault("valueProblem", str(state.problem))
    row: Row = {"transactionalId": state.transactionalId, "tombstone": state.tombstone}
    if not state.tombstone:
        row |= {name: getattr(state, name) for name in OF_TRANSACTION}
        row["partitions"] = [{"topic": topic, "partitions": numbers} for topic, numbers in state.partitions.items()]
    return row


def _metadata_record(record: Record, fields: Row) -> Row | None:
    if record.is_control:
        control = decode_control(record.key, record.value)
        data = None if control.value is None else json.dumps(plain(control.value), ensure_ascii=False)
        return {"name": control.type, "version": control.version, "data": data}
    decoded = fields.get("valueDecoded")
    if not isinstance(decoded, dict):
        return {}
    data = json.dumps(decoded["data"], ensure_ascii=False) if "data" in decoded else None
    return {"name": decoded.get("name"), "apiKey": decoded.get("type"), "version": decoded.get("version"), "data": data}


OF_TRANSACTION = (
    *("producerId", "producerEpoch", "state", "transactionStartTimestampMs", "transactionLastUpdateTimestampMs"),
    *("transactionTimeoutMs", "clientTransactionVersion"),
)
ROWS: dict[str, Callable[[Record, Row], Row | None]] = {
    "group_offsets": _group_offset,
    "transactions": _transaction,
    "metadata_records": _metadata_record,
}
"""Functions that return the row of a record, given its decoded form; None for a record without a row."""


READERS: dict[str, Callable[[ReadOptions, Selection, ArrowSchema], BatchRows | RecordRows | DecodedRows]] = {
    "batches": BatchRows,
    "records": RecordRows,
    "group_offsets": DecodedRows,
    "transactions": DecodedRows,
    "metadata_records": DecodedRows,
}


class TableRead:
    """A read of a table. `filters` restricts what is read; `check`: how it is read and checked, by default as in the
    options."""

    def __init__(
        self, options: ReadOptions, filters: PushedFilters | None = None, check: Options | None = None
    ) -> None:
        self.options = options
        self.filters = filters or PushedFilters()
        self.check = check or Options(
            limits=options.limits,
            **vars(options.findings),
            now=int(time.time() * 1000) if options.now is None else options.now,
            window=options.window,
            open_source=careful_source,
        )

    def parts(self) -> list[list[TaskItem]]:
        """Return the tasks. Raises OptionError for a path that does not exist, but no error for problems on the
        disks."""
        return parts_of(self.fleet(), self.options, self.check, self.filters)

    def fleet(self) -> Fleet:
        """Find what is below the paths. Raises OptionError for one that does not exist, except for the table findings,
        which has a row for it, and for bundles that cannot be told apart."""
        self.use_storage()
        unmount_paths()
        fleet = find(self.options.paths, self.check, self.options.broker, self.options.brokers)
        if fleet.missing and self.options.table is not FINDINGS:
            raise OptionError(fleet.missing[0])
        message = same_place(fleet.recorded(), "the option brokers")
        if message is not None:
            raise OptionError(message)
        return fleet

    def read(self, pieces: Sequence[TaskItem], schema: ArrowSchema) -> Iterator[ArrowBatch]:
        """Yield the rows of a task. Never raises an error for problems on the disks: what cannot be read is a row of
        the table findings."""
        self.use_storage()
        mount_for_task(path_of(piece.input) for piece in pieces)
        if self.options.table.splits:
            yield from self.slices(pieces, schema)
            return
        rows = Rows(self.options.table, schema)
        for piece in pieces:
            common = self.common(piece)
            for row in self._rows(piece):
                if rows.add(common | {name: value for name, value in row.items() if value is not None}):
                    yield from rows.take()
        yield from rows.take()

    def slices(self, pieces: Iterable[TaskItem], schema: ArrowSchema) -> Iterator[ArrowBatch]:
        """Yield the rows of slices of segments, without unreadable bytes, which are findings."""
        reader = READERS[self.options.table.name](self.options, self.filters.selection, schema)
        for piece in pieces:
            own: SegmentSplit = piece.input
            try:
                window = opened(own.target, self.options.window)
            except SourceError:
                continue
            try:
                yield from reader.read(own, window, self.common(piece, own.target))
            except SourceError:
                pass
            finally:
                window.source.close()
        yield from reader.rest()

    def _rows(self, piece: TaskItem) -> Iterator[dict[str, Any]]:
        name = self.options.table.name
        if name == "segments":
            yield from segment_rows(piece.input)
        elif name == "findings":
            totals = CheckTotals()
            yield from finding_rows(piece.input, totals)
            yield from unread_rows(piece.input, totals)
        else:
            yield from entry_rows(piece.input)

    def common(self, piece: TaskItem, target: Target | None = None) -> dict[str, Any]:
        """Return the columns that all rows of a piece share."""
        if target is None:
            target = file_of(piece.input)
        columns: dict[str, Any] = dict(vars(piece.identity))
        columns["state"] = piece.state
        if target is not None:
            columns |= {
                "source": path_text(target.source),
                "topic": target.topic,
                "partition": target.partition,
                "file": path_text(target.path),
            }
        return columns

    def use_storage(self) -> None:
        """Configure fsspec with the option storageOptions."""
        if self.options.storage:
            import fsspec

            for protocol in {path.partition("://")[0] for path in self.options.paths if "://" in path}:
                fsspec.config.conf.setdefault(protocol, {}).update(self.options.storage)


def file_of(what: Any) -> Target | None:
    """Return the file that the input of a piece (TaskItem.input) is; None if it is a unit, or could not be read."""
    if isinstance(what, Target):
        return what
    if isinstance(what, SegmentSplit):
        return what.target
    facts = what[0] if isinstance(what, tuple) else None
    return facts.segment.log if isinstance(facts, SegmentSummary) else None


def path_of(what: Any) -> str:
    """Return the path of the input of a piece (TaskItem.input)."""
    if isinstance(what, SegmentSplit):
        return what.target.path
    if isinstance(what, Target):
        return what.path
    if isinstance(what, CheckUnit):
        return what.name
    facts = what[0]
    return facts if isinstance(facts, str) else facts.segment.log.path
