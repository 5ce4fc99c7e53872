"""Output of `kdump retention` for people: first the verdict, the retention blockers and what to do about them, then the
segments; or one row per partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdump.answer import answer_object
from kdump.forensics.retention import answers
from kdump.forensics.retention.answers import PartitionRetention, RetentionBlocker, SegmentRetention
from kdump.forensics.retention.configs import ASSUMED, DEFAULT, FILE, FOREVER
from kdump.format.count_text import count_text
from kdump.render.amounts import duration
from kdump.render.escape import printable
from kdump.render.sink import Sink
from kdump.render.state_tables import StateTables, style
from kdump.render.stdout import Output
from kdump.render.summary_lines import SummaryLines, file_text, place_text
from kdump.render.times import iso

MAX_SEGMENT_ROWS = 1_000
"""Maximum number of segments of a partition that are kept until its verdict, except for held ones; the others are
counted."""
TITLES = {
    answers.FUTURE: "a timestamp in the future",
    answers.OPEN: "an open transaction",
    answers.HANGING: "a hanging transaction",
    answers.WATERMARK: "the high watermark",
    answers.DAMAGED: "damaged bytes",
    answers.CLEANER: "log.cleaner.enable=false",
    answers.TIER: "segments missing from remote storage",
    answers.STRAY: "its stray state",
}
OF_DELETION = ("retention.ms", "retention.bytes", "local.retention.ms", "local.retention.bytes")
OF_COMPACTION = (
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "delete.retention.ms",
    "segment.ms",
    "segment.bytes",
    "log.cleaner.enable",
)


class HoldTable(Sink[Any]):
    """A table of what keeps data longer than the configs require, one row per cause."""

    def __init__(self, tables: StateTables) -> None:
        self.tables = tables
        self._blockers: list[RetentionBlocker] = []

    def add(self, found: Any) -> None:
        if isinstance(found, RetentionBlocker):
            self._blockers.append(found)

    def end(self) -> None:
        without = () if len({blocker.source for blocker in self._blockers}) > 1 else ("source",)
        self.tables.write("retentionHold", map(answer_object, self._blockers), without)


class RetentionReport(Sink[Any]):
    """Receives the answers as they come. With `single`, each partition is shown in full; else it is a row. Without
    columns that the user has chosen, that is also done if the first partition was `named` by the user."""

    def __init__(self, output: Output, tables: StateTables, now: int, *, single: bool) -> None:
        self.output = output
        self.tables = tables
        self.now = now
        self.single = single
        self.lines = SummaryLines(output)
        self.partitions = 0
        self._begun = False
        self._segments: list[SegmentRetention] = []
        self._unshown = 0
        self._blockers: list[RetentionBlocker] = []
        self._rows: list[PartitionRetention] = []
        self._held: list[tuple[PartitionRetention, list[RetentionBlocker]]] = []

    def part(self, name: str, *, was_named: bool = False) -> None:
        self.single = self.single or (was_named and not self._begun and self.tables.names is None)
        self._begun = True

    def add(self, found: Any) -> None:
        if isinstance(found, SegmentRetention):
            if not self.single:
                return
            if len(self._segments) < MAX_SEGMENT_ROWS or found.deletion == answers.HELD:
                self._segments.append(found)
            else:
                self._unshown += 1
        elif isinstance(found, RetentionBlocker):
            self._blockers.append(found)
        elif isinstance(found, PartitionRetention):
            self._partition(found)

    def _partition(self, found: PartitionRetention) -> None:
        if self.single:
            if self.partitions:
                self.output.line("")
            self._whole(found)
        else:
            self._rows.append(found)
            if self._blockers:
                self._held.append((found, self._blockers))
        self.partitions += 1
        self._segments, self._blockers, self._unshown = [], [], 0

    def end(self) -> None:
        """Write what has waited for the end: the table of partitions, and their retention blockers."""
        if self.single or not self._rows:
            return
        if len(self._rows) > 1:
            self._summary()
        without = () if len({row.source for row in self._rows}) > 1 else ("source",)
        self.tables.write("retention", map(answer_object, self._rows), without)
        for found, blockers in self._held:
            self.output.line("")
            self._verdict(found, blockers)
            self._all_blockers(blockers)
        self.output.line("")
        self._defaults(self._rows)

    def _defaults(self, rows: list[PartitionRetention]) -> None:
        """Note which values are defaults: the broker may have other ones, which no disk contains."""
        sources = {each.source for row in rows for each in row.settings.values()}
        if sources & {DEFAULT, ASSUMED} and FILE not in sources:
            words = " and ".join(sorted(sources & {DEFAULT, ASSUMED}))
            self.lines.text(
                f"  {words}: Kafka's value, unless the broker's server.properties has another (--properties FILE)"
            )

    def _summary(self) -> None:
        held = [row for row in self._rows if row.verdict == answers.HELD]
        text = f"{count_text(len(self._rows), 'partition')}: "
        text += (
            f"{len(held)} held for longer than the configs require" if held else "nothing is kept except by the configs"
        )
        due = sum(row.deletableBytes for row in self._rows)
        if due:
            count = sum(bool(row.deletableBytes) for row in self._rows)
            text += f"; {due:,} bytes in {count_text(count, 'partition')} are due now"
        self.lines.text(text, text.partition(":")[0], "bad" if held else "head")
        self.output.line("")

    def _whole(self, found: PartitionRetention) -> None:
        self._verdict(found, self._blockers)
        self._all_blockers(self._blockers)
        for text in self._of_cleaner(found):
            self.lines.text(f"  {text}")
        for text in found.notes:
            self.lines.text(f"  {printable(text)}")
        self.lines.damages(found.damages)
        self.lines.text(f"  by {self._settings(found)}")
        self._defaults([found])
        if self._segments:
            self.output.line("")
            without: tuple[str, ...] = () if found.wouldClean is not None else ("tombstones", "markers", "compaction")
            if all(each.timestampFrom == "batch" for each in self._segments):
                without += ("timestampFrom",)
            table = self.tables.open("retentionSegment", without)
            for each in self._segments:
                value = answer_object(each)
                table.add(value, style(value))
            table.flush()
        if self._unshown:
            self.lines.text(f"  … and {count_text(self._unshown, 'segment')} more (--json)")

    def _verdict(self, found: PartitionRetention, blockers: list[RetentionBlocker]) -> None:
        name = place_text(found)
        against = [blocker for blocker in blockers if blocker.isAgainstPolicy]
        parts = []
        if against:
            by = ", ".join(dict.fromkeys(TITLES[blocker.hold] for blocker in against))
            parts.append(f"held by {by}")
        elif found.verdict == answers.UNKNOWN:
            parts.append("incomplete: something could not be read or is unknown")
        if found.state in ("", "future"):
            parts.append(self._deletion(found))
            if found.wouldClean is not None:
                parts.append(self._cleaning(found, any(blocker.keeps == "compaction" for blocker in against)))
        elif found.state == "delete":
            parts.append(f"{found.bytes:,} bytes are deleted with it")
        self.lines.text(f"{name}: {'; '.join(part for part in parts if part)}", name, "bad" if against else "head")

    def _deletion(self, found: PartitionRetention) -> str:
        rules = list(dict.fromkeys(each.deletionRule for each in self._segments if each.deletion == "now"))
        by = f", by {' and '.join(map(str, rules))}" if rules and None not in rules else ""
        if found.deletableSegments:
            which = (
                "everything"
                if found.deletableSegments == found.segments
                else f"{found.deletableSegments} of {count_text(found.segments, 'segment')}"
            )
            return f"the next check deletes {which}, {found.deletableBytes:,} bytes{by}"
        if found.heldSegments:
            return f"{count_text(found.heldSegments, 'segment')} ({found.heldBytes:,} bytes) kept"
        if any(each.blockedBy == "roll" for each in self._segments):
            return "the next check rolls the active segment, which is deleted once remote storage has it"
        if found.nextDeletionAt is not None:
            wait = duration(max(0, found.nextDeletionAt - self.now))
            text = f"nothing is due for deletion until {self._iso(found.nextDeletionAt)}, in {wait}"
            # The active segment is kept as long as it is written to.
            return text + (", if nothing is written before" if found.segments == 1 else "")
        if "delete" not in found.cleanupPolicy:
            return "nothing is deleted: cleanup.policy is " + (found.cleanupPolicy or "empty")
        size = found.settings["retention.bytes"].value
        return "nothing is due for deletion" + ("" if size >= 0 else ": no retention.ms, no retention.bytes")

    def _cleaning(self, found: PartitionRetention, is_held: bool) -> str:
        if found.wouldClean:
            return f"eligible for cleaning: {found.cleanableBytes:,} bytes"
        if not found.cleanableBytes:
            return "the cleaner is blocked" if is_held else "the cleaner has nothing to do"
        return "not yet eligible for cleaning"

    def _of_cleaner(self, found: PartitionRetention) -> Iterator[str]:
        """Yield lines on what the cleaner's decision depends on."""
        if found.wouldClean is None:
            return
        least = found.settings["min.cleanable.dirty.ratio"].value
        ratio = 0 if found.dirtyRatio is None else found.dirtyRatio
        text = f"first dirty offset {found.firstDirtyOffset}, first uncleanable {found.firstUncleanableOffset}; "
        text += (
            f"{found.cleanableBytes:,} of {(found.cleanBytes or 0) + (found.cleanableBytes or 0):,} bytes are dirty: "
        )
        text += f"ratio {ratio:.3g}, {'above' if ratio > least else 'not above'} {least:g}"
        yield text
        if found.droppedRecords is not None and found.cleanedRecords:
            yield (
                f"a cleaning now would remove {found.droppedRecords:,} of {count_text(found.cleanedRecords, 'record')},"
                f" {found.droppedBytes:,} bytes uncompressed; {count_text(found.keys or 0, 'key')} in the dirty part"
                + ("" if found.keysFit else ", too many for the cleaner's map: several cleanings are needed")
            )
        if found.resetBecause:
            yield f"the broker ignores cleaner-offset-checkpoint: {found.resetBecause}"
        if not found.wouldClean and found.missingBytes is not None:
            wait = f"it waits for {found.missingBytes:,} more dirty bytes in rolled segments"
            if found.missingBytes == 1:
                wait = "it waits for a segment to be rolled"
            if found.overdueAt is not None and found.cleanableBytes:
                wait += f", or for {self._iso(found.overdueAt)} (max.compaction.lag.ms)"
            yield wait
        if found.rollsAfter is not None:
            jitter = found.settings["segment.jitter.ms"].value
            early = f", or up to {duration(jitter)} earlier (segment.jitter.ms)" if jitter > 0 else ""
            yield (
                "the active segment is never cleaned; the first record with a timestamp above "
                f"{self._iso(found.rollsAfter)} rolls it{early}, or one that fills segment.bytes"
            )
        yield from self._tombstones(found)

    def _tombstones(self, found: PartitionRetention) -> Iterator[str]:
        count = (found.tombstones or 0) + (found.markers or 0)
        if not count:
            return
        text = "tombstones were not counted"
        if found.tombstones is not None:
            text = count_text(found.tombstones, "tombstone")
        text += f", {count_text(found.markers or 0, 'transaction marker')}"
        due = (found.tombstonesDue or 0) + (found.markersDue or 0)
        if due:
            text += f": the next cleaning removes {due}, whose delete horizon has passed"
        if found.nextDeleteHorizonMs is not None:
            text += f"{';' if due else ':'} the next delete horizon is {self._iso(found.nextDeleteHorizonMs)}"
        if not due and found.nextDeleteHorizonMs is None:
            text += ", without a delete horizon yet: a cleaning sets it for tombstones, and for markers once nothing is"
            text += " left of their transaction"
        yield text

    def _all_blockers(self, blockers: list[RetentionBlocker]) -> None:
        for blocker in blockers:
            self._blocker(blocker)

    def _blocker(self, blocker: RetentionBlocker) -> None:
        head = f"{blocker.keeps} held" if blocker.isAgainstPolicy else f"{blocker.keeps} waits"
        text = f"  {head}: "
        if blocker.producerId is not None:
            whose = f"producer {blocker.producerId}"
            named = "" if blocker.transactionalId is None else f"{printable(blocker.transactionalId)}, "
            text += f"{named}{whose}, "
        if blocker.offset is not None:
            text += f"offset {blocker.offset}, "
        if blocker.timestamp is not None:
            ago = self.now - blocker.timestamp
            when = f"in {duration(-ago)}" if ago < 0 else f"{duration(ago)} ago"
            text += f"{self._iso(blocker.timestamp)} ({when}), "
        text += f"{printable(blocker.message)}; {count_text(blocker.segments, 'segment')}, {blocker.bytes:,} bytes"
        if blocker.until is not None:
            text += f", until {self._iso(blocker.until)}"
        self.lines.text(text, f"{head}:", "bad" if blocker.isAgainstPolicy else "torn")
        if blocker.position is not None:
            self.lines.text(f"    at byte {blocker.position} of {file_text(blocker.file)}")
        if blocker.fix is not None:
            self.lines.text(f"    action: {printable(blocker.fix)}")

    def _settings(self, found: PartitionRetention) -> str:
        """Return the configs that matter here, with the source of each."""
        names = ["cleanup.policy"]
        tiered = found.settings["remote.storage.enable"].value
        if "delete" in found.cleanupPolicy or tiered:
            names += OF_DELETION[: 4 if tiered else 2]
        if "compact" in found.cleanupPolicy:
            names += OF_COMPACTION
        texts = []
        for name in names:
            each = found.settings[name]
            texts.append(f"{name}={setting_text(name, each.value)} ({each.source})")
        return ", ".join(texts)

    def _iso(self, at: int) -> str:
        return iso(at, self.tables.zone)


def setting_text(name: str, value: Any) -> str:
    """Return the value as Kafka writes it; a long time also in words."""
    if isinstance(value, bool):
        return str(value).lower()
    if name.endswith(".ms") and value == FOREVER:
        return "no bound"
    if name.endswith(".ms") and value >= 1000:
        return f"{value} = {duration(value)}"
    return f"{value:g}" if isinstance(value, float) else str(value)
