"""Output of `kdump retention` for people: first the verdict, the retention blockers and what to do about them, then the
segments; or one row per partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdump.format.count_text import count_text
from kdump.log.internal_topics import state_in
from kdump.problems.problem import title_of
from kdump.questions.retention import answer as answers
from kdump.questions.retention.answer import PartitionRetention, RetentionBlocker, SegmentRetention
from kdump.questions.retention.build_answers import LossNote
from kdump.questions.retention.configs import ASSUMED, DEFAULT, FILE, FOREVER
from kdump.questions.summary_lines import SummaryLines, file_text, place_text
from kdump.render.amounts import duration_text
from kdump.render.escape import printable
from kdump.render.sink import Sink
from kdump.render.state_tables import StateTables
from kdump.render.stdout import Output
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
    answers.TOO_LARGE: "a record above max.decompressed.message.bytes",
    answers.CLEANER: "log.cleaner.enable=false",
    answers.TIER: "segments missing from remote storage",
    answers.STRAY: "its stray state",
    answers.MOVE: "the move to another log directory",
    answers.SHARE: "a snapshot of a share partition",
    answers.OFFLINE: "its log directory, which is offline",
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

    def add(self, answer: Any) -> None:
        if isinstance(answer, RetentionBlocker):
            self._blockers.append(answer._replace(problem=None))

    def end(self) -> None:
        self.tables.write_summary(self._blockers)


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
        self._held: list[PartitionRetention] = []
        self._held_by: list[list[RetentionBlocker]] = []  # of each of those held

    def part(self, name: str, *, was_named: bool = False) -> None:
        self.single = self.single or (was_named and not self._begun and self.tables.names is None)
        self._begun = True

    def add(self, answer: Any) -> None:
        if isinstance(answer, SegmentRetention):
            if not self.single:
                return
            if len(self._segments) < MAX_SEGMENT_ROWS or answer.deletion == answers.HELD:
                self._segments.append(answer)
            else:
                self._unshown += 1
        elif isinstance(answer, RetentionBlocker):
            self._blockers.append(answer._replace(problem=None))  # its texts are all that is shown
        elif isinstance(answer, PartitionRetention):
            self._partition(answer)

    def _partition(self, answer: PartitionRetention) -> None:
        if self.single:
            if self.partitions:
                self.output.line("")
            self._whole(answer)
        else:
            self._rows.append(answer)
            if self._blockers:
                self._held.append(answer)
                self._held_by.append(self._blockers)
        self.partitions += 1
        self._segments, self._blockers, self._unshown = [], [], 0

    def end(self) -> None:
        """Write what has waited for the end: the table of partitions, and their retention blockers."""
        if self.single or not self._rows:
            return
        if len(self._rows) > 1:
            self._summary()
        self.tables.write_summary(self._rows)
        for answer, blockers in zip(self._held, self._held_by, strict=True):
            self.output.line("")
            self._verdict(answer, blockers)
            self._all_blockers(blockers)
        for row in self._rows:
            self._state_lost(row)
            for note in row.notes:
                if isinstance(note, LossNote):
                    self.lines.text(f"{place_text(row)}: {printable(note)}", place_text(row), "bad")
        self.output.line("")
        self._defaults(self._rows)

    def _state_lost(self, answer: PartitionRetention) -> None:
        """Say when records are lost that must stay."""
        name, what = place_text(answer), state_in(answer.topic)
        if answer.stateLostAt is not None:
            error = f"{name}: ERROR: cleanup.policy={answer.cleanupPolicy} deletes {what} from "
            error += f"{self._iso(answer.stateLostAt)} on; set cleanup.policy=compact before"
            self.lines.text(error, name, "bad")
        if answer.stateLostBefore is not None:
            error = f"{name}: ERROR: cleanup.policy={answer.cleanupPolicy} has deleted {what}: offsets "
            error += f"0..{answer.stateLostBefore - 1} are gone; set cleanup.policy=compact"
            self.lines.text(error, name, "bad")

    def _defaults(self, rows: list[PartitionRetention]) -> None:
        """Note which values are defaults: the broker may have other ones, which no disk contains."""
        sources = {setting.source for row in rows for setting in row.settings.values()}
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
        lost = sum(row.stateLostAt is not None or row.stateLostBefore is not None for row in self._rows)
        if lost:
            text += f"; {lost} LOSE STATE THAT MUST STAY (cleanup.policy)"
        due = sum(row.deletableBytes for row in self._rows)
        if due:
            count = sum(bool(row.deletableBytes) for row in self._rows)
            text += f"; {count_text(due, 'byte')} in {count_text(count, 'partition')} are due now"
        self.lines.text(text, text.partition(":")[0], "bad" if held or lost else "head")
        self.output.line("")

    def _whole(self, answer: PartitionRetention) -> None:
        self._verdict(answer, self._blockers)
        self._all_blockers(self._blockers)
        self._state_lost(answer)
        for line in self._of_cleaner(answer):
            self.lines.text(f"  {line}")
        for line in answer.notes:
            self.lines.text(f"  {printable(line)}")
        self.lines.damages(answer.damages)
        self.lines.text(f"  by {self._settings(answer)}")
        self._defaults([answer])
        if self._segments:
            self.output.line("")
            without: tuple[str, ...] = () if answer.wouldClean is not None else ("tombstones", "markers", "compaction")
            if all(segment.timestampFrom == "batch" for segment in self._segments):
                without += ("timestampFrom",)
            self.tables.write(self._segments, without)
        if self._unshown:
            self.lines.text(f"  … and {count_text(self._unshown, 'segment')} more (--json)")

    def _verdict(self, answer: PartitionRetention, blockers: list[RetentionBlocker]) -> None:
        name = place_text(answer)
        against = [blocker for blocker in blockers if blocker.isAgainstPolicy]
        parts = []
        if against:
            by = ", ".join(dict.fromkeys(TITLES[blocker.hold] for blocker in against))
            parts.append(f"held by {by}")
        elif answer.verdict == answers.UNKNOWN:
            parts.append("incomplete: something could not be read or is unknown")
        if answer.state in ("", "future"):
            parts.append(self._deletion(answer))
            if answer.wouldClean is not None:
                parts.append(self._cleaning(answer, any(blocker.keeps == "compaction" for blocker in against)))
        elif answer.state == "delete":
            parts.append(f"{count_text(answer.bytes, 'byte')} are deleted with it")
        self.lines.text(f"{name}: {'; '.join(part for part in parts if part)}", name, "bad" if against else "head")

    def _deletion(self, answer: PartitionRetention) -> str:
        rules = list(dict.fromkeys(segment.deletionRule for segment in self._segments if segment.deletion == "now"))
        by = f", by {' and '.join(map(str, rules))}" if rules and None not in rules else ""
        if answer.deletableSegments:
            which = (
                "everything"
                if answer.deletableSegments == answer.segments
                else f"{answer.deletableSegments} of {count_text(answer.segments, 'segment')}"
            )
            return f"the next check deletes {which}, {count_text(answer.deletableBytes, 'byte')}{by}"
        if answer.heldSegments:
            return f"{count_text(answer.heldSegments, 'segment')} ({count_text(answer.heldBytes, 'byte')}) kept"
        if any(segment.blockedBy == "roll" for segment in self._segments):
            return "the next check rolls the active segment, which is deleted once remote storage has it"
        if answer.nextDeletionAt is not None:
            wait = duration_text(max(0, answer.nextDeletionAt - self.now))
            text = f"nothing is due for deletion until {self._iso(answer.nextDeletionAt)}, in {wait}"
            # The active segment is kept as long as it is written to.
            return text + (", if nothing is written before" if answer.segments == 1 else "")
        if "delete" not in answer.cleanupPolicy:
            return "nothing is deleted: cleanup.policy is " + (answer.cleanupPolicy or "empty")
        size = answer.settings["retention.bytes"].value
        return "nothing is due for deletion" + ("" if size >= 0 else ": no retention.ms, no retention.bytes")

    def _cleaning(self, answer: PartitionRetention, is_held: bool) -> str:
        if answer.wouldClean:
            return f"eligible for cleaning: {answer.cleanableBytes:,} bytes"
        if not answer.cleanableBytes:
            return "the cleaner is blocked" if is_held else "the cleaner has nothing to do"
        return "not yet eligible for cleaning"

    def _of_cleaner(self, answer: PartitionRetention) -> Iterator[str]:
        """Yield lines on what the cleaner's decision depends on."""
        if answer.wouldClean is None:
            return
        least = answer.settings["min.cleanable.dirty.ratio"].value
        ratio = 0 if answer.dirtyRatio is None else answer.dirtyRatio
        text = f"first dirty offset {answer.firstDirtyOffset}, first uncleanable {answer.firstUncleanableOffset}; "
        dirty = answer.cleanableBytes or 0
        text += f"{answer.cleanableBytes:,} of {count_text((answer.cleanBytes or 0) + dirty, 'byte')} are dirty: "
        text += f"ratio {ratio:.3g}, {'above' if ratio > least else 'not above'} {least:g}"
        yield text
        if answer.droppedRecords is not None and answer.cleanedRecords:
            yield (
                f"a cleaning now would remove {answer.droppedRecords:,} of"
                f" {count_text(answer.cleanedRecords, 'record')}, {answer.droppedBytes:,} bytes uncompressed;"
                f" {count_text(answer.keys or 0, 'key')} in the dirty part"
                + ("" if answer.keysFit else ", too many for the cleaner's map: several cleanings are needed")
            )
        if answer.resetBecause:
            yield f"the broker ignores cleaner-offset-checkpoint: {answer.resetBecause}"
        if not answer.wouldClean and answer.missingBytes is not None:
            case = "roll" if answer.missingBytes == 1 else ""
            wait = title_of("retention-wait", case, missing=f"{answer.missingBytes:,}")
            if answer.overdueAt is not None and answer.cleanableBytes:
                wait += f", or for {self._iso(answer.overdueAt)} (max.compaction.lag.ms)"
            yield wait
        if answer.rollsAfter is not None:
            jitter = answer.settings["segment.jitter.ms"].value
            early = f", or up to {duration_text(jitter)} earlier (segment.jitter.ms)" if jitter > 0 else ""
            yield (
                "the active segment is never cleaned; the first record with a timestamp above "
                f"{self._iso(answer.rollsAfter)} rolls it{early}, or one that fills segment.bytes"
            )
        yield from self._tombstones(answer)

    def _tombstones(self, answer: PartitionRetention) -> Iterator[str]:
        count = (answer.tombstones or 0) + (answer.markers or 0)
        if not count:
            return
        text = "tombstones were not counted"
        if answer.tombstones is not None:
            text = count_text(answer.tombstones, "tombstone")
        text += f", {count_text(answer.markers or 0, 'transaction marker')}"
        due = (answer.tombstonesDue or 0) + (answer.markersDue or 0)
        later = answer.withoutHorizon or 0
        if due:
            text += f": the next cleaning removes {due}"
            text += ", whose delete horizon has passed" if later == 0 else ""
        if answer.nextDeleteHorizonMs is not None:
            text += f"{';' if due else ':'} the next delete horizon is {self._iso(answer.nextDeleteHorizonMs)}"
        if later:
            text += (
                f"; {later:,} have no delete horizon, and are removed once their segment is delete.retention.ms older"
            )
            text += " than the last clean one"
        elif not due and answer.nextDeleteHorizonMs is None:
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
            when = f"in {duration_text(-ago)}" if ago < 0 else f"{duration_text(ago)} ago"
            text += f"{self._iso(blocker.timestamp)} ({when}), "
        text += (
            f"{printable(blocker.message)}; {count_text(blocker.segments, 'segment')}"
            f", {count_text(blocker.bytes, 'byte')}"
        )
        if blocker.until is not None:
            text += f", until {self._iso(blocker.until)}"
        self.lines.text(text, f"{head}:", "bad" if blocker.isAgainstPolicy else "torn")
        if blocker.position is not None:
            self.lines.text(f"    at byte {blocker.position} of {file_text(blocker.file)}")
        if blocker.fix is not None:
            self.lines.text(f"    action: {printable(blocker.fix)}")

    def _settings(self, answer: PartitionRetention) -> str:
        """Return the configs that matter here, with the source of each."""
        names = ["cleanup.policy"]
        tiered = answer.settings["remote.storage.enable"].value
        if "delete" in answer.cleanupPolicy or tiered:
            names += OF_DELETION[: 4 if tiered else 2]
        if "compact" in answer.cleanupPolicy:
            names += OF_COMPACTION
        texts = []
        for name in names:
            setting = answer.settings[name]
            texts.append(f"{name}={setting_text(name, setting.value)} ({setting.source})")
        return ", ".join(texts)

    def _iso(self, time: int) -> str:
        return iso(time, self.tables.zone)


def setting_text(name: str, value: Any) -> str:
    """Return the value as Kafka writes it; a long time also in words."""
    if isinstance(value, bool):
        return str(value).lower()
    if name.endswith(".ms") and value == FOREVER:
        return "no bound"
    if name.endswith(".ms") and value >= 1000:
        return f"{value} = {duration_text(value)}"
    return f"{value:g}" if isinstance(value, float) else str(value)
