"""Columns of the batch table and of the record table. Names are JSON keys; a few columns combine several of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timezone, tzinfo
from typing import Any, NamedTuple

from kdump import jsonl
from kdump.answer import ANSWERS, Key, Object, answer_keys, put_bytes
from kdump.check.rules.records import header_findings
from kdump.core.record_columns import each_header
from kdump.decode.decoder_interface import DecodedRecord
from kdump.log.inspect_answer import ENTRIES, InspectedBatch, InspectedRecord
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch
from kdump.render.decoded_values import add_decoded, key_cell, value_cell
from kdump.render.escape import PIECE, bytes_text, bytes_text_pieces, printable
from kdump.render.inspect_json import control_object
from kdump.render.sink import TYPE
from kdump.render.table import Column, check_names
from kdump.render.times import iso

FLAGS = {"isTransactional": "txn", "isControlBatch": "control", "hasDeleteHorizonMs": "horizon"}
DAMAGE_FLAGS = {
    "batch-length-invalid": "LENGTH!",
    "magic-unknown": "MAGIC!",
    "crc-mismatch": "CRC!",
    "record-count-mismatch": "COUNT!",
    "offset-invalid": "OFFSET!",
    "attributes-reserved": "ATTRIBUTES!",
    "producer-fields-invalid": "PRODUCER!",
}
"""Flags of findings that headers and checksums show, by code."""
OTHER_DAMAGE = "RECORDS!"
"""Flag of the others, which reading the offsets of a wrapper (magic 0 and 1) may note."""
NOWHERE = Target("", None, None, None)
SHOWN_BYTES = 512
"""Maximum number of bytes of a key or value that a cell reads, unless everything is shown."""
MANY = 10_000
"""Maximum number of headers in a piece of their text."""


DECODED = ("keyDecoded", "valueDecoded", "keyProblem", "valueProblem", "keyNote", "valueNote", "names")
"""Columns of records that need their decoder."""


class TableDecoder(NamedTuple):
    """A decoder for the records of a table. `is_keyless`: keys are null, and the decoded key is the kind of record;
    `is_wide`: decoded text is long, and gets room from other columns; `is_stacked`: decoded text is below the row."""

    read: Callable[[Record], DecodedRecord | None]
    is_keyless: bool = False
    is_wide: bool = False
    is_stacked: bool = False


def columns_of(
    type_name: str,
    zone: tzinfo,
    names: list[str] | None,
    full: bool,
    decodes: TableDecoder | None = None,
    file: Callable[[], Object] = dict,
) -> list[Column]:
    """Return the columns of a table of these JSON objects: the default ones, or `names`. `file` returns the log_keys
    of the current file: of these, a table shows the tier by default. Raises UnknownColumn."""
    same = {TYPE: Column(TYPE, TYPE, lambda item: type_name)}
    for name, right in (("file", False), ("topic", False), ("partition", True), ("tier", False)):
        same[name] = Column(name, name, lambda item, name=name: _text(file().get(name)), right)  # type: ignore[misc]
    if type_name == "batch":
        columns = batch_columns(zone, names, same)
    elif type_name == "record":
        columns = record_columns(zone, names, full, decodes, same)
    else:
        return entry_columns(type_name, zone, names, same)
    if names is None and "tier" in file():
        columns.insert(1, same["tier"])
    return columns


def refuse_unknown(names: list[str] | None) -> None:
    """Raise UnknownColumn for the first name that none of the tables of inspect has."""
    if not names:
        return
    tables = [batch_columns(timezone.utc, None), record_columns(timezone.utc, None, False)]
    columns = dict.fromkeys(column.name for table in tables for column in table)
    classes = (InspectedBatch, InspectedRecord, *ENTRIES)
    columns |= dict.fromkeys((TYPE, *(key.name for cls in classes for key in answer_keys(cls))))
    check_names(names, columns)


def batch_columns(zone: tzinfo, names: list[str] | None, same: dict[str, Column] | None = None) -> list[Column]:
    """Return the default columns of the batch table, or `names`; `same`: those that are the same for all batches.
    Raises UnknownColumn."""

    def flags(batch: Batch) -> str:
        words = [word for key, word in FLAGS.items() if getattr(batch, key)]
        if batch.timestampType == "LogAppendTime":
            words.append("logAppend")
        damage = {DAMAGE_FLAGS.get(finding.code, OTHER_DAMAGE) for finding in header_findings(NOWHERE, batch)}
        return ",".join((*words, *(flag for flag in (*DAMAGE_FLAGS.values(), OTHER_DAMAGE) if flag in damage)))

    def producer(batch: Batch) -> str:
        none = batch.producerId is None or (batch.producerId == -1 and batch.producerEpoch == -1)
        return "" if none else f"{batch.producerId}/{batch.producerEpoch}"

    def sequence(batch: Batch) -> str:
        return "" if batch.baseSequence in (None, -1) else _range(batch.baseSequence, batch.lastSequence)

    def epoch(batch: Batch) -> str:
        return "" if batch.partitionLeaderEpoch is None else str(batch.partitionLeaderEpoch)

    default = [
        Column("position", "position", lambda b: str(b.position), right=True, rank=8),
        Column("offsets", "offsets", lambda b: _range(b.baseOffset, b.lastOffset), right=True),
        Column("recordCount", "records", lambda b: _text(b.recordCount), right=True, rank=7),
        Column("size", "size", lambda b: str(b.size), right=True, rank=6),
        Column("compression", "codec", lambda b: b.compression, rank=5),
        Column("flags", "flags", flags, rank=8),
        Column("maxTimestamp", "maxTimestamp", lambda b: iso(b.maxTimestamp, zone), rank=6),
        Column("producer", "producer", producer, rank=4),
        Column("sequences", "sequences", sequence, right=True, rank=3),
        Column("partitionLeaderEpoch", "leaderEpoch", epoch, right=True, rank=2),
        Column("magic", "magic", lambda b: str(b.magic), right=True, rank=1),
        Column("crcValid", "crc", lambda b: "ok" if b.crcValid else "BAD", rank=1),
    ]
    others = {key.name: _batch_key(key, zone) for key in answer_keys(InspectedBatch)[1:]}
    return _choose(default, others | (same or {}), names)


def record_columns(
    zone: tzinfo,
    names: list[str] | None,
    full: bool,
    decodes: TableDecoder | None = None,
    same: dict[str, Column] | None = None,
) -> list[Column]:
    """Return the default columns of the record table, or `names`; `same`: those that are the same for all records. With
    a decoder, `key` and `value` show what is decoded (except next to keyDecoded or valueDecoded), and the bytes of what
    is not. Raises UnknownColumn."""
    limit = None if full else SHOWN_BYTES

    def key(record: Record) -> str:
        return str(control_object(record)["type"]) if record.is_control else _bytes(record, "key", limit)

    def value(record: Record) -> str:
        return (_control_value(record) if record.is_control else "") or _bytes(record, "value", limit)

    def decoded(record: Record, part: int) -> str:
        raw = (key, value)[part]
        reading = decodes.read(record) if decodes else None
        decoded_record = None
        if decodes and reading:
            decoded_record = (key_cell, value_cell)[part](
                reading, zone, titles=decodes.is_keyless or decodes.is_stacked
            )
        return raw(record) if decoded_record is None else decoded_record[: None if limit is None else 4 * limit]

    def decoded_column(name: str, label: str, part: int) -> Column:
        rank, least = ((9, 64), (9, 92))[part] if decodes and decodes.is_wide else ((8, 8), (9, 28))[part]
        return Column(name, label, lambda r: decoded(r, part), rank=rank, least=least)

    plain_key = Column("key", "key", key, rank=8, least=8)
    plain_value = Column("value", "value", value, least=28)
    shown_key = decoded_column("keyDecoded", "key", 0) if decodes else plain_key
    shown_value = decoded_column("valueDecoded", "value", 1) if decodes else plain_value
    default = [
        Column("offset", "offset", lambda r: _text(r.offset), right=True),
        Column("timestamp", "timestamp", lambda r: iso(r.timestamp, zone), rank=7),
        Column("sequence", "sequence", lambda r: "" if r.sequence in (None, -1) else str(r.sequence), True, 2),
        Column("position", "batch at", lambda r: str(r.position), right=True, rank=1),
        Column("keySize", "keySize", lambda r: str(r.keySize), right=True, rank=1),
        Column("valueSize", "valueSize", lambda r: str(r.valueSize), right=True, rank=1),
        shown_key,
        Column("headers", "headers", lambda r: _header_text(r, limit), rank=3, least=10),
        shown_value,
    ]
    others = {key.name: _record_key(key, zone) for key in answer_keys(InspectedRecord)[1:]}
    for name in DECODED:
        others[name] = Column(name, name, lambda record, name=name: _decoded_text(record, name, decodes), least=8)  # type: ignore[misc]
    others["key"] = plain_key if "keyDecoded" in (names or ()) else shown_key
    others["value"] = plain_value if "valueDecoded" in (names or ()) else shown_value
    others |= same or {}
    return _choose(default, others, names)


def _control_value(record: Record) -> str:
    read = control_object(record)
    parts = [f"{key} {read[key]}" for key in ("version", "coordinatorEpoch") if read.get(key) is not None]
    return printable(", ".join(parts + ([jsonl.line(read["value"])] if "value" in read else [])))


def _header_text(record: Record, limit: int | None) -> str:
    shown = ""
    for piece in header_pieces(record, limit):
        shown += piece
        if limit is not None and len(shown) > 4 * limit:
            return shown + "…"
    return shown


def _decoded_text(record: Record, name: str, decodes: TableDecoder | None) -> str:
    """Return what a decoder returns under one key of the JSON object; "-" for nothing."""
    reading = decodes.read(record) if decodes else None
    out: dict[str, Any] = {}
    if reading is not None:
        add_decoded(out, reading)
    if name not in out:
        return "-"
    return printable(out[name] if isinstance(out[name], str) else jsonl.line(out[name]))


def entry_columns(
    type_name: str, zone: tzinfo, names: list[str] | None, same: dict[str, Column] | None = None
) -> list[Column]:
    """Return the columns for the entries of a file without batches: its JSON keys, or `names`; `same`: those that
    are the same for all entries. Raises UnknownColumn."""
    of_entry = ("topic", "partition") if type_name == "checkpointEntry" else ()
    keys = [key for key in answer_keys(ANSWERS[type_name]) if key.name in of_entry or key.name not in (same or ())]
    columns = [_column(key, lambda entry, key=key: entry.values.get(key.name), zone, absent="") for key in keys]  # type: ignore[misc]
    return _choose(columns, same or {}, names)


def _choose(default: list[Column], others: dict[str, Column], names: list[str] | None) -> list[Column]:
    if names is None:
        return default
    columns = others | {column.name: column for column in default}
    check_names(names, columns)
    return [columns[name] for name in names]


def _batch_key(key: Key, zone: tzinfo) -> Column:
    def get(batch: Batch) -> Any:
        return getattr(batch, key.name)

    return _column(key, get, zone)


def _record_key(key: Key, zone: tzinfo) -> Column:
    name = key.name

    def get(record: Record) -> Any:
        if name == "damaged":
            return not record.batch.crcValid
        if name in ("keyEncoding", "valueEncoding"):
            return _encoding(record.key if name == "keyEncoding" else record.value)
        if name == "control":
            return control_object(record)["type"] if record.is_control else None
        return getattr(record, name, None)

    return _column(key, get, zone)


def _encoding(data: bytes | None) -> str | None:
    """Return what a JSON object states about the encoding of a key or value."""
    out: dict[str, Any] = {}
    put_bytes(out, "data", data)
    return out.get("dataEncoding")


def _column(key: Key, get: Callable[[Any], Any], zone: tzinfo, absent: str = "-") -> Column:
    show = _formatter(get, key.unit, zone)
    rank = 1 if absent == "" else 9  # keys that no entry has are left out
    cell = (lambda item: absent if get(item) is None else show(item)) if absent == "" else show
    return Column(key.name, key.name, cell, right=key.type.startswith("number"), rank=rank)


def _formatter(get: Callable[[Any], Any], unit: str, zone: tzinfo) -> Callable[[Any], str]:
    if unit == "epoch ms":
        return lambda item: iso(get(item), zone)
    if unit in ("crc", "CRC-32"):
        return lambda item: "-" if get(item) is None else f"0x{get(item):08x}"
    if unit == "bits":
        return lambda item: "-" if get(item) is None else f"0x{get(item) & 0xFFFF:04x}"
    return lambda item: _text(get(item))


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable(value) if isinstance(value, str) else str(value)


def _range(first: int | None, last: int | None) -> str:
    if first is None:
        return f"?..{last}"
    return str(first) if first == last else f"{first}..{last}"


def _bytes(record: Record, name: str, limit: int | None) -> str:
    """Return a key or value as a cell. Copies no more of it than the cell shows."""
    start, size = (record.key_start, record.keySize) if name == "key" else (record.value_start, record.valueSize)
    if size < 0:
        return "null"
    cut = size if limit is None else min(size, limit + 1)
    return bytes_text(bytes(record.data[start : start + cut]), limit)


def header_pieces(record: Record, limit: int | None = None) -> Iterator[str]:
    """Yield the text of the headers in pieces, at most `limit` bytes of each key and value."""
    if not record.header_count:
        return
    max_size = PIECE if limit is None else limit
    gathered: list[str] = []
    size = 0
    comma = ""
    data = memoryview(record.data)
    for key, value in each_header(data, record.header_start, record.header_count, record.end):
        if limit is None and len(key) + len(value or b"") > PIECE:
            yield "".join(gathered)
            gathered, size = [], 0
            yield comma
            yield from bytes_text_pieces(key)
            yield "="
            yield from iter(("null",)) if value is None else bytes_text_pieces(value)
        else:
            header = f"{comma}{_shown(key, limit)}={_shown(value, limit)}"
            gathered.append(header)
            size += len(header)
            if size > max_size or len(gathered) == MANY:
                yield "".join(gathered)
                gathered, size = [], 0
        comma = ", "
    yield "".join(gathered)


def _shown(data: memoryview | None, limit: int | None) -> str:
    return bytes_text(None if data is None else bytes(data[: None if limit is None else limit + 1]), limit)
