"""Packs: what one task of a scan has written. A pack has at most one Parquet file for each table, with the rows of many
units (partitions, files), one unit after the other, and a file with an entry for each unit: what was read, and which
rows of the tables are its own. Of several packs, the rows of a table can be in one file (kdump.spark.merged_files).

Packs are never changed. If a unit of a pack has changed, a task copies the rows of the others to a new pack, which then
stands for the old one. The file _kdump/packs.json lists the packs of the result. It is replaced at the end of a scan,
so that a result is that of one scan or of the next. Local files of a scan that is not finished have names that start
with a dot, which Spark ignores; a scan that was killed leaves them to the next one, which uses them.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kdump.spark.arrow import TYPES
from kdump.spark.store import OWN, Store, StoreError
from kdump.spark.tables import IDENTITY, RESULTS

LAYOUT = "6"
"""Version of the layout of a result's files: units written with another version are read again."""
UNITS = f"{OWN}/units"
LIST = f"{OWN}/packs.json"
ENDING = ".parquet"
ABOUT = b"kdump"
"""Key of a pack's description in the metadata of its file of entries."""


COUNTS = {
    **{name: name for name in ("partitions", "files", "bytes", "batches", "records")},
    "damagedBatches": "damaged_batches",
    "damagedRecords": "damaged_records",
}
"""Counts in an entry, with the attributes of CheckTotals that they come from."""


def _list_of(**fields: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", pa.struct(list(fields.items()))))


ENTRY = pa.schema(
    [
        ("key", pa.string()),
        ("unit", pa.string()),
        ("fingerprint", pa.string()),
        ("run", pa.string()),
        ("rows", _list_of(table=pa.string(), start=pa.int64(), count=pa.int64(), kept=pa.int64())),
        *((column.name, TYPES[column.type]) for column in IDENTITY),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("state", pa.string()),
        *((name, pa.int64()) for name in COUNTS),
        ("unread", pa.list_(pa.field("element", pa.string()))),
        ("notes", pa.list_(pa.field("element", pa.string()))),
        ("notInBundle", pa.list_(pa.field("element", pa.string()))),
        (
            "formats",
            _list_of(
                magic=pa.int32(), compression=pa.string(), batches=pa.int64(), records=pa.int64(), bytes=pa.int64()
            ),
        ),
        ("codes", _list_of(code=pa.string(), severity=pa.string(), count=pa.int64())),
        *((name, pa.int64()) for name in ("dataBatches", "dataRecords", "dataBytes")),
        *((name, pa.int64()) for name in ("segments", "size", "negative", "oldest", "newest")),
        *((name, pa.int64()) for name in ("logStartOffset", "lastStableOffset", "logEndOffset")),
        (
            "open",
            _list_of(
                producerId=pa.int64(),
                producerEpoch=pa.int32(),
                firstOffset=pa.int64(),
                timestamp=pa.int64(),
                records=pa.int64(),
            ),
        ),
        ("seconds", pa.float64()),
        ("kept", pa.string()),
        ("keptState", pa.binary()),
    ]
)
"""Columns of the entry of a unit. `rows`: its rows in the pack's file of each table, by number, and how many of them
need not be read again (`kept`) if the check resumes at the point `kept` (kdump.spark.resume_point), with the state
`keptState`. An entry without a fingerprint is of a unit that was not read to its end."""
PLANNED = ["key", "fingerprint", "rows", "kept"]
"""Columns of an entry from which a scan is planned."""
MAX_LIST_BYTES = 256 * 1024 * 1024


class TableRows(NamedTuple):
    """The rows of a table that a pack has: their number, their size in bytes, the stem of the name of the file with
    them, and the number of the first one there."""

    number: int
    bytes: int
    stem: str
    start: int = 0


class Pack(NamedTuple):
    """A pack: the stem of its file names, the group of units that it has some of, and its rows by table."""

    stem: str
    group: str
    tables: dict[str, TableRows]

    @property
    def bytes(self) -> int:
        """Size of its rows."""
        return sum(rows.bytes for rows in self.tables.values())

    def file(self, table: str) -> str:
        """Return the name of the file with its rows of a table."""
        return table_file(table, self.tables[table].stem)

    @property
    def entries(self) -> str:
        """The name of the file with its entries, which is written last."""
        return f"{UNITS}/{self.stem}{ENDING}"


def table_file(table: str, stem: str) -> str:
    """Return the name of a file of a table."""
    return f"{table}/{stem}{ENDING}"


def new_run() -> str:
    """Return a name for a run of a scan, which sorts after those of earlier runs."""
    return f"{time.time_ns() // 1000:017d}{secrets.token_hex(3)}"


def hidden(name: str) -> str:
    """Return the name of a file before its scan is finished."""
    directory, _, file = name.rpartition("/")
    return f"{directory}/.{file}"


def refuse_old(store: Store) -> None:
    """Raise StoreError if the result is that of an earlier version, whose files this one does not know."""
    if any(name.endswith(".json") for name in store.list(UNITS)):
        raise StoreError(f"{store.root}: the result of an earlier version of kdump; choose a new directory")


def committed(store: Store) -> list[Pack]:
    """Return the packs of the result, after the last scan that was finished; none if that is unknown."""
    return listed(store) or []


def listed(store: Store) -> list[Pack] | None:
    """Return the same; None if the list of packs is missing, or not one of this version."""
    data = store.read(LIST)
    try:
        found = json.loads(data) if data is not None and len(data) <= MAX_LIST_BYTES else {}
        if found.get("layout") != LAYOUT:
            return None
        return [Pack(str(stem), str(group), _table_rows(tables)) for stem, group, tables in found["packs"]]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def all_packs(store: Store) -> list[Pack]:
    """Return the packs of the result, and those of a scan that was not finished, in the order in which they were
    written; without those of which a file is missing, whose units are read again."""
    known = {pack.stem: pack for pack in committed(store)}
    there = {directory: {*store.list(directory)} for directory in (UNITS, *PACKED)}
    for name in there[UNITS]:
        stem = name.removesuffix(ENDING)
        if stem not in known and name.endswith(ENDING) and not name.startswith("."):
            pack = _described(store, stem)
            if pack is not None:
                known[stem] = pack
    return sorted(pack for pack in known.values() if _is_complete(pack, there))


def _table_rows(tables: dict[str, list[Any]]) -> dict[str, TableRows]:
    return {
        name: TableRows(int(count), int(size), str(stem), int(start))
        for name, (count, size, stem, start) in tables.items()
    }


def _is_complete(pack: Pack, there: dict[str, set[str]]) -> bool:
    files = ((table, f"{rows.stem}{ENDING}") for table, rows in pack.tables.items())
    return f"{pack.stem}{ENDING}" in there[UNITS] and all(
        {file, f".{file}"} & there.get(table, set()) for table, file in files
    )


def _described(store: Store, stem: str) -> Pack | None:
    """Return a pack by the description in its file of entries; None if there is none that this version can use."""
    try:
        with store.open(f"{UNITS}/{stem}{ENDING}") as file:
            about = json.loads((pq.read_metadata(file).metadata or {})[ABOUT])
        if about["layout"] != LAYOUT:
            return None
        return Pack(stem, str(about["group"]), _table_rows(about["tables"]))
    except (StoreError, OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
        return None


def description(pack: Pack) -> dict[str, str]:
    """Return what the metadata of a pack's file of entries says of it."""
    about = {"layout": LAYOUT, "group": pack.group, "tables": pack.tables}
    return {ABOUT.decode(): json.dumps(about)}


def commit(store: Store, packs: list[Pack]) -> None:
    """Make these the packs of the result, and delete all other files of earlier scans. Raises StoreError."""
    store.write(LIST, json.dumps({"layout": LAYOUT, "packs": sorted(packs)}).encode())
    finish_commit(store, packs)
    sweep(store, packs)


def finish_commit(store: Store, packs: Iterable[Pack]) -> None:
    """Give the files of the result their names. Raises StoreError."""
    if store.is_remote:
        return
    waiting = {table: {name for name in store.list(table) if name.startswith(".")} for table in RESULTS}
    for table, name in {(table, pack.file(table)) for pack in packs for table in pack.tables}:
        if hidden(name).rpartition("/")[2] in waiting.get(table, ()):
            store.rename(hidden(name), name)


def sweep(store: Store, packs: Iterable[Pack]) -> None:
    """Delete the files of packs that are not among these: those of earlier scans, and what a killed scan has left."""
    every = list(packs)
    for directory in (UNITS, *PACKED):
        kept = {
            pack.entries if directory == UNITS else pack.file(directory)
            for pack in every
            if directory == UNITS or directory in pack.tables
        }
        for name in store.list(directory):
            if f"{directory}/{name}" not in kept and (name.endswith(ENDING) or name.startswith(".")):
                store.remove(f"{directory}/{name}")


PACKED = tuple(name for name, table in RESULTS.items() if not table.derived)
"""Tables whose rows are in packs."""


DAMAGED = "is damaged, so scan with --from-scratch"


def entries(store: Store, pack: Pack, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """Return the entries of a pack. Raises StoreError."""
    try:
        with store.open(pack.entries) as file:
            found: list[dict[str, Any]] = pq.read_table(file, columns=columns).to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StoreError(f"{store.path(pack.entries)}: {DAMAGED}: {error}") from error
    return found


def rows_of(store: Store, pack: Pack, table: str, ranges: Iterable[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
    """Yield rows of a pack's table, given the first of each range and their number, in ascending order. Raises
    StoreError."""
    own = pack.tables[table].start
    return rows_in(store, pack.file(table), [(own + start, count) for start, count in ranges])


def rows_in(store: Store, name: str, ranges: Iterable[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
    """Yield rows of a table's file, whether or not its scan was finished, as `rows_of` does. Raises StoreError."""
    try:
        with _opened(store, name) as opened:
            file = pq.ParquetFile(opened)
            left = [(start, start + count) for start, count in ranges if count]
            begin = 0
            for number in range(file.num_row_groups):
                end = begin + file.metadata.row_group(number).num_rows
                if left and left[0][0] < end:
                    group = file.read_row_group(number)
                    while left and left[0][0] < end:
                        start, stop = left[0]
                        first = max(start, begin)
                        yield from group.slice(first - begin, min(stop, end) - first).to_batches()
                        if stop > end:
                            break
                        left.pop(0)
                begin = end
            if left:
                raise StoreError(f"{store.path(name)}: {DAMAGED}: it has {begin} rows, not {left[-1][1]}")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StoreError(f"{store.path(name)}: {DAMAGED}: {error}") from error


def _opened(store: Store, name: str) -> Any:
    if not store.is_remote:
        try:
            return store.open(hidden(name))
        except StoreError:
            pass
    return store.open(name)
