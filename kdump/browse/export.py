"""The selected row as JSON, and as the kdump commands that show the same."""

from __future__ import annotations

import os
import shlex
from typing import Any

from kdump import jsonl
from kdump.answer import answer_object
from kdump.browse.browser import Browser
from kdump.browse.level import Level
from kdump.browse.row_listings import BrowseRow
from kdump.check.engine.check_small_files import file_finding
from kdump.cluster.directory_summary import single_partition_summary
from kdump.forensics.ls_answer import directory_object, partition_object
from kdump.log.entries import Entry
from kdump.log.file_kinds import by_name
from kdump.log.log_directory import LogDirectory
from kdump.log.region import Problem
from kdump.render.escape import printable
from kdump.render.inspect_json import batch_object, entry_object, record_object, region_object
from kdump.state.partition_summary import PartitionSummary

Object = dict[str, Any]


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
        return partition_object(item if isinstance(item, PartitionSummary) else single_partition_summary(item))
    if row.type == "directory" and isinstance(item, LogDirectory):
        return directory_object(browser.places.facts_of(item))
    if level.file is None:
        return None
    at = level.file.target
    if row.type in ("batch", "header"):
        return batch_object(at, item)
    if row.type == "record":
        decoding = browser.places.maker.decoding
        return record_object(at, item, decoding.read(at, item) if decoding.decoder(at) else None)
    if row.type == "region":
        return region_object(at, item)
    if isinstance(item, Entry):
        return entry_object(at, item) if item.type else None
    if isinstance(item, Problem) and level.owner is not None and level.owner.type == "file":
        return answer_object(file_finding(at, item))
    return None


def row_commands(browser: Browser, options: str = "") -> list[str]:
    """Return the commands that show the current list and the bytes of the selected row. `options`: those of the filter,
    as typed."""
    level = browser.level
    row = level.row
    path = level.path
    if level.file is None:
        found = ["kdump ls " + shell_word(path)]
        if row is not None:
            verb = "ls" if row.type in ("directory", "partition") else "inspect"
            found.append(f"kdump {verb} {shell_word(row.key)}")
        return found
    inspect, narrowed = "kdump inspect " + shell_word(path), f" {options}" if options else ""
    if by_name(path)[0] is None:
        inspect += " --as " + level.file.kind.name
    subject = level.owner if row is not None and row.type == "field" and level.owner is not None else row
    if row is None or subject is None:
        return [inspect + narrowed]
    if subject.type in ("batch", "region", "header", "record"):
        at, offset = subject.item.position, None
        if subject.type == "record":
            at, offset = subject.item.batch.position, subject.item.offset
        records = f" --records --position {at}" if subject.type in ("header", "record") else ""
        only = f" --offset {offset}" if offset is not None and offset >= 0 else ""
        return [f"{inspect}{records}{narrowed}", f"{inspect} --hex --position {at}{only}"]
    position = getattr(row.item, "position", 0)
    return [inspect, f"{inspect} --hex --position {position}"]


def shell_word(path: str) -> str:
    """Return a path as a word of a shell command: as $'…', for bash and zsh, if some of it is not shown."""
    if printable(path) == path:
        return shlex.quote(path)
    shown = (
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\" else f"\\x{byte:02x}" for byte in os.fsencode(path)
    )
    return f"$'{''.join(shown)}'"
