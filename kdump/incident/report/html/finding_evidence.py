"""Findings for the page: grouped by cause, with the bytes concerned, the consequence for brokers and consumers, and the
fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timezone, tzinfo

from kdump.check.diagnosis.diagnose import UNKNOWN, diagnose
from kdump.check.finding import ERROR, INFO, SEVERITIES, Finding
from kdump.check.options import Options
from kdump.format.count_text import count_text, plain_count
from kdump.format.errors import CRC_MISMATCH
from kdump.format.varint import Bytes
from kdump.incident.report.facts import PartitionFacts, PostMortem
from kdump.incident.report.html.labels import PageLabels
from kdump.io.errors import SourceError
from kdump.io.window import Window
from kdump.log import file_kinds
from kdump.log.batch_records import records
from kdump.log.entries import Entry, entries
from kdump.log.file_contents import by_content
from kdump.log.file_kinds import BATCHES
from kdump.log.paths import target
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import JUNK, Batch, DefaultRecordBatch, Region
from kdump.log.region_reader import regions
from kdump.problems.catalogue import declaration
from kdump.render.field_meanings import FieldMeaning
from kdump.render.findings_report import EVERYWHERE, FindingGroup, PartitionFindings
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

    def batch(self, batch: Batch, chosen: Iterable[Record]) -> Reading[Batch]:
        is_shown = self.has_payload or isinstance(batch, DefaultRecordBatch)
        return super().batch(batch, chosen) if is_shown else Reading(batch)

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
    if finding.size > LARGEST and finding.code != CRC_MISMATCH:  # its end is known, no need to search for it
        dump.region(Region(JUNK, finding.position, finding.size, finding.message, code=finding.code), window)
        return
    name_offset = target(finding.file).name_offset
    found_regions = regions(window, name_offset=name_offset, start=finding.position, limits=options.limits)
    region = next(found_regions, None)
    if isinstance(region, Batch):
        if finding.code == CRC_MISMATCH and not region.crcValid:
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


DUMPED = 60
"""Maximum groups of findings with a hexdump."""
MAX_EXPLAINED = 300
"""Maximum groups of findings on the page."""
OF_ONE_CODE = 10
"""Maximum groups of findings of one code in one partition."""
Chosen = tuple[PartitionFacts, FindingGroup, list[PartitionFacts]]


@dataclass
class ExplainedFindings:
    """A group of findings as shown on the page. All text has been escaped for a terminal; the page also escapes it for
    HTML."""

    id: str
    finding: Finding
    """The first one. Its texts are not escaped."""
    place: str
    file: str
    message: str
    consequence: str
    fix: str
    more: str
    lost: str
    same: str = ""
    """ID of the finding above whose dump shows the same bytes; empty if there is none."""
    dump: list[Parts] = field(default_factory=list)


@dataclass
class FindingsSection:
    """The findings section of the page. `omitted`: the number of groups for which there was no room; `codes`: severity,
    code, number of findings and meaning."""

    explained: list[ExplainedFindings]
    omitted: int
    codes: list[tuple[str, str, int, str]]


def evidence(made: PostMortem, names: PageLabels, options: Options) -> FindingsSection:
    """Return errors first, then warnings, then informational findings; the first groups have a hexdump of their
    bytes."""
    groups = [(facts, story) for facts in (*made.others, *made.partitions) for story in _stories(facts)]
    stories, omitted = _folded(groups)
    stories.sort(key=lambda each: SEVERITIES.index(each[1].first.severity))
    omitted += max(0, len(stories) - MAX_EXPLAINED)
    explained = [_explain(number, *each, names) for number, each in enumerate(stories[:MAX_EXPLAINED])]
    _dump(explained, options, names)
    codes: dict[tuple[str, str], int] = {}
    for facts in (*made.others, *made.partitions):
        for key, count in facts.codes.items():
            codes[key] = codes.get(key, 0) + count
    rows = sorted(codes.items(), key=lambda each: (SEVERITIES.index(each[0][0]), -each[1], each[0][1]))
    return FindingsSection(explained, omitted, [(*key, count, declaration(key[1]).meaning) for key, count in rows])


def _dump(explained: list[ExplainedFindings], options: Options, names: PageLabels) -> None:
    """Dump the bytes of the first groups of findings. Those of one batch are shown once, at the first of the groups,
    with the records of all."""
    chosen: dict[tuple[str, int], list[ExplainedFindings]] = {}
    for each in explained[:DUMPED]:
        if each.finding.severity != INFO or len(explained) <= DUMPED // 2:
            chosen.setdefault((each.finding.file, each.finding.position), []).append(each)
    for first, *others in chosen.values():
        offsets = {each.finding.offset for each in (first, *others) if each.finding.offset is not None}
        first.dump = hexdump(first.finding, options, offsets, zone=names.zone, has_payload=names.redaction is None)
        for each in others if first.dump else ():
            each.same = first.id


def _stories(facts: PartitionFacts) -> list[FindingGroup]:
    group = PartitionFindings(facts.name)
    for finding in facts.findings:
        if finding.case != "damage" or not group.explains(finding):
            group.add(finding)
    return group.stories


def _folded(groups: list[tuple[PartitionFacts, FindingGroup]]) -> tuple[list[Chosen], int]:
    """Return the groups of findings to show, each with its partitions, and the number of groups left out. Groups that
    are not errors and occur in more than EVERYWHERE partitions are merged by code. Of one code in one partition, at
    most OF_ONE_CODE groups are shown."""
    places: dict[str, dict[int, PartitionFacts]] = {}
    for facts, story in groups:
        if story.first.severity != ERROR:
            places.setdefault(story.first.code, {})[id(facts)] = facts
    folded = {code: list(of.values()) for code, of in places.items() if len(of) > EVERYWHERE}
    counts: Counter[tuple[str, int]] = Counter()
    chosen: list[Chosen] = []
    omitted = 0
    for facts, story in groups:
        code = story.first.code
        is_folded = code in folded and story.first.severity != ERROR
        key = (code, 0 if is_folded else id(facts))
        counts[key] += 1
        if is_folded:
            if counts[key] == 1:
                chosen.append((facts, story, folded[code]))
        elif counts[key] <= OF_ONE_CODE:
            chosen.append((facts, story, [facts]))
        else:
            omitted += 1
    return chosen, omitted


def _explain(
    number: int, facts: PartitionFacts, story: FindingGroup, places: list[PartitionFacts], names: PageLabels
) -> ExplainedFindings:
    finding = story.first
    count = sum(story.codes.values())
    more = ""
    if len(places) > 1:
        first = ", ".join(names.of(place) for place in places[:EVERYWHERE])
        total = sum(place.codes[finding.severity, finding.code] for place in places)
        more = f"{count_text(total, 'finding')}, in {first} and others. The first is in {names.of(facts)}:"
    elif count > 1:
        kinds = ", ".join(f"{times:,} {code}" for code, times in story.codes.most_common())
        reach = f" up to offset {story.last_offset:,}" if story.last_offset is not None else ""
        more = f"First of {count_text(count, 'finding')} here: {kinds}{reach}."
    return ExplainedFindings(
        id=f"finding-{number + 1}",
        finding=finding,
        place=names.of(facts) if len(places) == 1 else count_text(len(places), "partition"),
        file=names.file_name(finding.file),
        message=names.clean(finding.message),
        consequence=names.clean(finding.consequence),
        fix=names.clean(". ".join(finding.actions)) if names.redaction is None else declaration(finding.code).fix,
        more=more,
        lost=names.clean(story.lost),
    )
