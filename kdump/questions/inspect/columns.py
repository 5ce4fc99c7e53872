"""Columns of the batch table and of the record table. Names are JSON keys; a few columns combine several of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from typing import Any, NamedTuple

from kdump import jsonl
from kdump.answer import ANSWERS, Object, answer_keys, put_bytes, shown_keys
from kdump.check.rules.records import header_findings
from kdump.core.record_columns import each_header
from kdump.decode.decoder_interface import DecodedRecord
from kdump.format.errors import BATCH_LENGTH_INVALID, CRC_MISMATCH, MAGIC_UNKNOWN, OFFSET_INVALID, RECORD_COUNT_MISMATCH
from kdump.log.inspect_answer import ENTRIES, InspectedBatch, InspectedRecord
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch
from kdump.render.decoded_values import add_decoded, key_cell, value_cell
from kdump.render.escape import PIECE, bytes_text, bytes_text_pieces, printable
from kdump.render.inspect_json import control_object
from kdump.render.sink import TYPE
from kdump.render.state_tables import column_of, known_columns, named
from kdump.render.table import Column, check_names

FLAGS = {"isTransactional": "txn", "isControlBatch": "control", "hasDeleteHorizonMs": "horizon"}
DAMAGE_FLAGS = {
    BATCH_LENGTH_INVALID: "LENGTH!",
    MAGIC_UNKNOWN: "MAGIC!",
    CRC_MISMATCH: "CRC!",
    RECORD_COUNT_MISMATCH: "COUNT!",
    OFFSET_INVALID: "OFFSET!",
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
    same = [Column(TYPE, TYPE, lambda item: type_name)]
    for key in answer_keys(InspectedBatch)[:4]:
        same.append(column_of(key, zone, lambda item, name=key.name: file().get(name), "-"))  # type: ignore[misc]
    if type_name == "batch":
        columns = named(names, *known_columns(Batch, zone, {"flags": _flags}, *same))
    elif type_name == "record":
        columns = record_columns(zone, names, full, decodes, same)
    else:
        return _entry_columns(type_name, zone, names, same)
    if names is None and "tier" in file():
        columns.insert(1, same[-1])
    return columns


def refuse_unknown(names: list[str] | None) -> None:
    """Raise UnknownColumn for the first name that none of the tables of inspect has."""
    classes = (InspectedBatch, InspectedRecord, *ENTRIES)
    keys = (key.name for cls in classes for key in (*shown_keys(cls), *answer_keys(cls)))
    check_names(names or (), dict.fromkeys((*keys, TYPE)))


def _flags(batch: Batch) -> str:
    words = [word for key, word in FLAGS.items() if getattr(batch, key)]
    if batch.timestampType == "LogAppendTime":
        words.append("logAppend")
    damage = {DAMAGE_FLAGS.get(finding.code, OTHER_DAMAGE) for finding in header_findings(NOWHERE, batch)}
    return ",".join((*words, *(flag for flag in (*DAMAGE_FLAGS.values(), OTHER_DAMAGE) if flag in damage)))


def record_columns(
    zone: tzinfo,
    names: list[str] | None,
    full: bool,
    decodes: TableDecoder | None = None,
    same: Iterable[Column] = (),
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

    cells: dict[str, Callable[[Record], str]] = {
        "key": key,
        "value": value,
        "headers": lambda record: _header_text(record, limit),
        "keyEncoding": lambda record: _encoding(record.key),
        "valueEncoding": lambda record: _encoding(record.value),
        "control": lambda record: control_object(record)["type"] if record.is_control else "-",
        "damaged": lambda record: "yes" if record.is_damaged else "no",
        **{name: lambda record, name=name: _decoded_text(record, name, decodes) for name in DECODED},  # type: ignore[misc]
    }
    default, known = known_columns(InspectedRecord, zone, cells, *same)
    known |= {name: known[name]._replace(least=8) for name in DECODED}
    for part, name in enumerate(("key", "value")) if decodes else ():
        decoded_name = f"{name}Decoded"
        column = known[name]._replace(name=decoded_name, cell=lambda record, part=part: decoded(record, part))  # type: ignore[misc]
        if decodes and decodes.is_wide:
            column = column._replace(rank=9, least=(64, 92)[part])
        known[decoded_name] = column
        if decoded_name not in (names or ()):
            known[name] = column
    return named(names, default, known)


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


def _entry_columns(type_name: str, zone: tzinfo, names: list[str] | None, same: list[Column]) -> list[Column]:
    """Return the columns for the entries of a file without batches: its JSON keys, or `names`; `same`: those that
    are the same for all entries. Raises UnknownColumn."""
    own = ("topic", "partition") if type_name == "checkpointEntry" else ()
    columns = {column.name: column for column in same}
    keys = [key for key in answer_keys(ANSWERS[type_name]) if key.name in own or key.name not in columns]
    for key in keys:  # those that no entry has are left out
        get = lambda entry, name=key.name: entry.values.get(name)  # noqa: E731
        columns[key.name] = column_of(key, zone, get, right=True)._replace(rank=1)
    return named(names, [key.name for key in keys], columns)


def _encoding(data: bytes | None) -> str:
    """Return what a JSON object states about the encoding of a key or value."""
    out: dict[str, Any] = {}
    put_bytes(out, "data", data)
    return str(out.get("dataEncoding", "-"))


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
