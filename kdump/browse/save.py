"""The selected row as JSON, as the kdump commands that show the same, and as bytes saved to a file: in pieces, without
a second copy in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import NamedTuple

from kdump import jsonl
from kdump.answer import Object, answer_object
from kdump.browse.browser import Browser, NotFound
from kdump.browse.listings import BrowseRow, Level
from kdump.check.engine.check_small_files import file_finding
from kdump.cluster.directory_summary import single_partition_summary
from kdump.cluster.partition_summary import PartitionSummary
from kdump.format.count_text import count_text, plain_count
from kdump.io.run import Run
from kdump.log.entries import Entry
from kdump.log.file_kinds import by_name
from kdump.log.live_files import open_window
from kdump.log.log_directory import LogDirectory
from kdump.log.output_directory import OutputError, OutputExists, OutputFile
from kdump.log.record import Record, damage_text
from kdump.log.region import Batch, Defect
from kdump.questions.ls.answer import directory_answer, partition_answer
from kdump.render.inspect_json import batch_object, entry_object, record_object, region_object
from kdump.text import shell_word

PIECE = 1 << 20
"""Bytes to write at a time."""
VALUE, KEY, HEADER, BATCH, BYTES, JSON = "value", "key", "header:", "batch", "bytes", "json"
PARTS = (VALUE, KEY, HEADER, BATCH, BYTES, JSON)
"""What can be saved of a row."""


class Exists(Exception):
    """Raised if there is a file of that name; `str` of it is the reason."""


class Saved(NamedTuple):
    """What is written: pieces of bytes, their total size, what they are, and a warning about them, or an empty text."""

    pieces: Iterable[bytes | memoryview]
    size: int
    what: str
    warning: str = ""


def parse_saved(typed: str) -> tuple[str, str]:
    """Return what is to be saved (empty: what the row is about), and the path. Raises ValueError."""
    part, _, path = typed.partition(" ")
    is_part = part in PARTS or (part.startswith(HEADER) and part != HEADER)
    if not is_part or part == HEADER:
        part, path = "", typed
    if not path.strip():
        raise ValueError(f"type a file name after {part!r}; for a file of that name, ./{part}")
    return part, os.path.expanduser(path.strip())


def save(browser: Browser, level: Level, row: BrowseRow, part: str, path: str, run: Run, *, replaces: bool) -> str:
    """Write a part of the row to a new file, or with `replaces` to an existing one, and return what was written.
    Nothing is written next to what is read, or on a Kafka disk. Raises Exists, SourceError and NotFound."""
    sources = [browser.places.path, *([level.path] if level.file is not None else [])]
    try:
        output = OutputFile(path, sources, replaces=replaces)
        saved = part_of(browser, level, row, part)
        written = 0
        with output.writing() as file:
            for piece in saved.pieces:
                file.write(piece)
                written += len(piece)
                run.at(written, None)
            if written != saved.size:
                raise NotFound(
                    f"the file was truncated: {written} of {plain_count(saved.size, 'byte')}"
                    f" could be read; nothing saved"
                )
    except OutputExists as error:
        raise Exists(str(error)) from None
    except OutputError as error:
        raise NotFound(str(error)) from None
    message = f"saved {saved.what}, {count_text(written, 'byte')}, to {path}"
    return message + (f"; {saved.warning}" if saved.warning else "")


def part_of(browser: Browser, level: Level, row: BrowseRow, part: str) -> Saved:
    """Return what is saved of a row. Raises NotFound if it does not have that part."""
    if part == JSON:
        json_line = row_json(browser, level, row)
        if json_line is None:
            raise NotFound("this row has no JSON")
        data = json_line.encode("utf-8", "surrogateescape") + b"\n"
        return Saved(_in_pieces(memoryview(data)), len(data), "the JSON of the row")
    if row.type == "field" and level.owner is not None and not part:
        return _field(level, level.owner, row)
    if row.type in ("field", "note") and level.owner is not None:
        row = level.owner
    if row.type == "record":
        record: Record = row.item
        return _raw(level, record.batch) if part == BATCH else _record(record, part or VALUE)
    if part not in ("", BATCH, BYTES):
        raise NotFound(f"this row has no {part.removesuffix(':')}; select a record")
    if row.type in ("batch", "header"):
        return _raw(level, row.item)
    if part != BATCH and isinstance(row.item, Entry) and row.item.size:
        return Saved((row.item.data,), len(row.item.data), f"the entry at byte {row.item.position}")
    if part != BATCH and row.type == "region":
        return _range(level, row.item.position, row.item.size, f"the bytes at {row.item.position}")
    raise NotFound("this row has no bytes of its own; select a record, a batch or a field, or save json")


def _record(record: Record, part: str) -> Saved:
    offset = record.offset
    damage = damage_text(record)
    warning = damage and f"{damage}: the bytes may be damaged"
    if record.batch.replaced_under:
        warning = "names were replaced when the bundle was made"
    if part.startswith(HEADER):
        name = part.removeprefix(HEADER).encode("utf-8", "surrogateescape")
        values = [value for key, value in record.headers if key == name]
        if not name or not values:
            names = b", ".join(dict(record.headers)).decode("utf-8", "backslashreplace") or "none"
            raise NotFound(f"the record has no header {name.decode('utf-8', 'replace')!r}; its headers: {names}")
        if values[-1] is None:
            raise NotFound(f"the header {part.removeprefix(HEADER)} of offset {offset} is null")
        last = "the last header" if len(values) > 1 else "the header"
        return Saved((values[-1],), len(values[-1]), f"{last} {part.removeprefix(HEADER)} of offset {offset}", warning)
    start, size = {
        VALUE: (record.value_start, record.valueSize),
        KEY: (record.key_start, record.keySize),
        BYTES: (record.start, record.end - record.start),
    }[part]
    if size < 0:
        raise NotFound(f"the {part} of offset {offset} is null")
    what = f"the record at offset {offset}" if part == BYTES else f"the {part} of offset {offset}"
    return Saved(_in_pieces(memoryview(record.data)[start : start + size]), size, what, warning)


def _field(level: Level, owner: BrowseRow, row: BrowseRow) -> Saved:
    field, what = row.item, f"the field {row.item.name}"
    if owner.type == "record":
        record: Record = owner.item
        start = record.start + field.position - record.space_position
        return Saved(_in_pieces(memoryview(record.data)[start : start + field.size]), field.size, what)
    if field.inner:
        raise NotFound("this field is in compressed data; select it in its record")
    return _range(level, field.position, field.size, what)


def _raw(level: Level, batch: Batch) -> Saved:
    """Return the bytes of a batch as they are in the file."""
    what = f"the batch at byte {batch.position}"
    if batch.replaced_under:
        raise NotFound(f"{what} is not in the bundle as it was: names were replaced")
    assert level.file is not None
    with closing(open_window(level.file.target).source) as source:  # that of the level may be closed by now
        lacks = source.lacks
    if lacks:
        return Saved(batch.chunks(0, batch.size), batch.size, what)
    return _range(level, batch.position, batch.size, what, "" if batch.crcValid else "it does not match its checksum")


def _range(level: Level, position: int, size: int, what: str, warning: str = "") -> Saved:
    """Return bytes of the file, which is opened again: reading them does not stop the browser."""
    assert level.file is not None
    target = level.file.target

    def pieces() -> Iterator[memoryview]:
        window = open_window(target)
        with closing(window.source):
            yield from window.chunks(position, size)

    return Saved(pieces(), size, what, warning)


def _in_pieces(data: memoryview) -> Iterator[memoryview]:
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]


def row_json(browser: Browser, level: Level, row: BrowseRow) -> str | None:
    """Return the JSON line that inspect, or ls, prints for a row; for a field, that of its batch or record. None if
    there is none. Raises SourceError."""
    with browser.lock:
        value = _object(browser, level, row)
    return None if value is None else jsonl.line(value)


def _object(browser: Browser, level: Level, row: BrowseRow) -> Object | None:
    item = row.item
    if row.type == "field":
        return None if level.owner is None else _object(browser, level, level.owner)
    if row.type == "partition":
        facts = item if isinstance(item, PartitionSummary) else single_partition_summary(item)
        return answer_object(partition_answer(facts))
    if row.type == "directory" and isinstance(item, LogDirectory):
        return answer_object(directory_answer(browser.places.facts_of(item)))
    if level.file is None:
        return None
    target = level.file.target
    if row.type in ("batch", "header"):
        return batch_object(target, item)
    if row.type == "record":
        decoding = browser.places.maker.decoding
        return record_object(target, item, decoding.read(target, item) if decoding.decoder(target) else None)
    if row.type == "region":
        return region_object(target, item)
    if isinstance(item, Entry):
        return entry_object(target, item) if item.type else None
    if isinstance(item, Defect) and level.owner is not None and level.owner.type == "file":
        return answer_object(file_finding(target, item))
    return None


def row_commands(browser: Browser, options: str = "") -> list[str]:
    """Return the commands that show the current list and the bytes of the selected row. `options`: those of the filter,
    as typed."""
    level = browser.level
    row = level.row
    path = level.path
    if level.file is None:
        commands = ["kdump ls " + shell_word(path)]
        if row is not None:
            verb = "ls" if row.type in ("directory", "partition") else "inspect"
            commands.append(f"kdump {verb} {shell_word(row.key)}")
        return commands
    inspect, narrowed = "kdump inspect " + shell_word(path), f" {options}" if options else ""
    if by_name(path)[0] is None:
        inspect += " --as " + level.file.kind.name
    subject = level.owner if row is not None and row.type == "field" and level.owner is not None else row
    if row is None or subject is None:
        return [inspect + narrowed]
    if subject.type in ("batch", "region", "header", "record"):
        position_of_batch, offset = subject.item.position, None
        if subject.type == "record":
            position_of_batch, offset = subject.item.batch.position, subject.item.offset
        records = f" --records --position {position_of_batch}" if subject.type in ("header", "record") else ""
        only = f" --offset {offset}" if offset is not None and offset >= 0 else ""
        return [f"{inspect}{records}{narrowed}", f"{inspect} --hex --position {position_of_batch}{only}"]
    position = getattr(row.item, "position", 0)
    return [inspect, f"{inspect} --hex --position {position}"]
