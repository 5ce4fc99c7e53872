"""The bytes that a finding is about, annotated, as text parts with the names of their styles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from datetime import timezone, tzinfo

from kdump.check.diagnosis.diagnose import UNKNOWN, diagnose
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.format.count_text import plain_count
from kdump.format.varint import Bytes
from kdump.io.errors import SourceError
from kdump.io.window import Window
from kdump.log import file_kinds
from kdump.log.batch_records import records
from kdump.log.entries import Entry, entries
from kdump.log.file_kinds import BATCHES, by_content
from kdump.log.paths import target
from kdump.log.record import Record
from kdump.log.region import JUNK, Batch, DefaultRecordBatch, Region
from kdump.log.region_reader import regions
from kdump.render.field_meanings import FieldMeaning
from kdump.render.hexdump import Hexdump
from kdump.render.style_marks import CapturedOutput, Parts, mark_style

WIDTH = 132
LINES = 110
"""Maximum number of lines of one dump; of a longer one, the beginning is kept and what is wrong."""
CONTEXT = 4
FIRST_RECORDS, RECORDS = 2, 20_000
"""Number of records of a batch that are shown, and maximum number of records searched for the one in a finding."""
LARGEST = 4 << 20
"""Size in bytes above which a region is shown without parsing it again, except for crc-mismatch."""
ENTRIES = 400_000
"""Maximum number of entries of a file that are searched."""
BEFORE = 2


class _Dump(Hexdump):
    """A hexdump whose styles are marks in the text."""

    def __init__(self, zone: tzinfo) -> None:
        self.lines: list[Parts] = []
        super().__init__(CapturedOutput(WIDTH, self.lines.append), zone=zone)
        self.paint = mark_style
        self.damage = UNKNOWN
        """What the damage to the batch looks like, if known."""
        self.has_payload = True
        """Whether bytes are shown that are, or could be, those of records."""

    def region(self, region: Region, window: Window) -> None:
        if self.has_payload:
            super().region(region, window)

    def batch(self, batch: Batch, chosen: Iterable[Record]) -> None:
        if self.has_payload or isinstance(batch, DefaultRecordBatch):
            super().batch(batch, chosen)

    def _bytes(self, position: int, data: Bytes, name: str, words: FieldMeaning, inner: bool = False) -> None:
        damaged = self.damage.position
        if damaged is not None and not inner and not words.wrong and position <= damaged < position + len(data):
            words = words._replace(wrong=self.damage.text)
        super()._bytes(position, data, name, words, inner)

    def _text(self, line: str, style: str) -> None:
        super()._text(line.replace(" (--full)", ""), style)


def hexdump(
    finding: Finding,
    options: Options,
    offsets: Collection[int],
    *,
    zone: tzinfo = timezone.utc,
    has_payload: bool = True,
) -> list[Parts]:
    """Return the batch, the bytes or the entries that a finding is about, with the records at `offsets`; empty if it is
    not about bytes, or they can no longer be read. Without `has_payload`, only the headers of batches are shown: any
    other bytes may be those of records."""
    file = target(finding.file, source=finding.source)
    dump = _Dump(zone)
    if file.path == "-" or not finding.size:
        return []
    dump.has_payload = has_payload
    try:
        window = options.open(file)
    except SourceError:
        return []
    with closing(window.source):
        try:
            kind = file.kind or by_content(window)
            if kind in BATCHES or kind is None:
                dump.target = file
                _region(dump, finding, offsets, window, options)
            elif dump.has_payload:
                _entries(dump, finding, window, kind, file.name_offset or 0)
        except SourceError:
            pass
    while dump.lines and not any(part.strip() for part, _ in dump.lines[-1]):
        dump.lines.pop()
    return excerpt(dump.lines)


def _region(dump: _Dump, finding: Finding, offsets: Collection[int], window: Window, options: Options) -> None:
    if finding.size > LARGEST and finding.code != "crc-mismatch":  # its end is known, no need to search for it
        dump.region(Region(JUNK, finding.position, finding.size, finding.message, code=finding.code), window)
        return
    name_offset = target(finding.file).name_offset
    found_regions = regions(window, name_offset=name_offset, start=finding.position, limits=options.limits)
    region = next(found_regions, None)
    if isinstance(region, Batch):
        if finding.code == "crc-mismatch" and not region.crcValid:
            dump.damage = diagnose(region)
        dump.batch(region, _chosen(region, offsets, dump.damage.position) if dump.has_payload else ())
    elif region is not None:
        dump.region(region, window)


def _chosen(batch: Batch, offsets: Collection[int], position: int | None) -> Iterator[Record]:
    """Yield the first records, those with the offsets, and the one that contains the byte at `position`."""
    for record in records(batch):
        start = -1 if batch.is_compressed else record.space_position
        is_hit = position is not None and 0 <= start <= position < start + len(record.raw)
        if record.index < FIRST_RECORDS or record.offset in offsets or is_hit:
            yield record
        if record.index >= RECORDS:
            return


def _entries(dump: _Dump, finding: Finding, window: Window, kind: file_kinds.FileKind, base: int) -> None:
    """Write the entries that the finding is about, and those before."""
    before: list[Entry] = []
    end = finding.position + max(1, finding.size)
    shown = 0
    for number, item in enumerate(entries(kind, window, base)):
        position = getattr(item, "position", None)
        if number > ENTRIES or shown >= LINES or (position is not None and position >= end):
            return
        if isinstance(item, Entry):
            if item.position + item.size <= finding.position:
                before = [*before[1 - BEFORE :], item]
                continue
            for entry in before:
                dump.entry(entry)
            before = []
            if shown == 0:
                dump.finding(finding)
            dump.entry(item)
        elif isinstance(item, Region):
            if item.position + item.size <= finding.position:
                continue
            dump.region(item, window)
        shown += 1


def excerpt(lines: list[Parts]) -> list[Parts]:
    """Return at most LINES lines: the beginning, and what is wrong."""
    if len(lines) <= LINES:
        return lines
    selected = set(range(LINES // 2))
    for number, line in enumerate(lines):
        if any(style == "bad" for _, style in line):
            selected |= set(range(number - CONTEXT, number + CONTEXT))
    kept = sorted(number for number in selected if 0 <= number < len(lines))[:LINES]
    made: list[Parts] = []
    last = -1
    for number in kept:
        if number > last + 1:
            made.append(((f"… {plain_count(number - last - 1, 'line')} are left out", "dim"),))
        made.append(lines[number])
        last = number
    if last + 1 < len(lines):
        made.append(((f"… {plain_count(len(lines) - last - 1, 'line')} are left out", "dim"),))
    return made
