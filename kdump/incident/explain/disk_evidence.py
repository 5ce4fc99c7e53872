"""What is on this disk where a message points to: the partition, the file and the bytes, what a segment has at an
offset or a byte, their damage, and what the next startup does with them.

What a message names is looked up; nothing else is read. The messages come in the order of their urgency, and after
MOST_PARTITIONS partitions the rest are only located."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from kdump.check.engine.units import CheckUnit, units, units_of
from kdump.check.finding import ERROR, INFO, SEVERITIES, Finding
from kdump.check.options import Options
from kdump.check.totals import CheckTotals
from kdump.cluster.directory_summary import LogDirectoryStates, single_partition_summary
from kdump.cluster.disks import Disks
from kdump.cluster.partition_summary import PartitionSummary
from kdump.format.count_text import count_text
from kdump.format.number_range import Range
from kdump.incident.explain.answer import BATCH, DIRECTORY, FILE, FINDING, PARTITION, STARTUP, Evidence, Explanation
from kdump.incident.explain.broker_paths import partition_of
from kdump.incident.explain.catalogue import family_of, find
from kdump.incident.explain.disk_places import DiskPlaces
from kdump.incident.explain.message import Message
from kdump.incident.explain.state_evidence import DiskState, node_of
from kdump.io import file_system
from kdump.io.directory_listing import parent
from kdump.io.errors import SourceError
from kdump.io.run import Limits
from kdump.log import file_kinds
from kdump.log.batch_validity import invalidity
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import PARTITION as NAME
from kdump.log.paths import Target, target
from kdump.log.region import Batch, Region
from kdump.log.region_scan import RegionScan
from kdump.log.selection import Selection
from kdump.problems.catalogue import Declaration
from kdump.questions.restart_plan.answer import CLEAN, DEGRADED, RECOVERY, STOPPED, UNKNOWN, PartitionPlan, RestartPlan
from kdump.questions.restart_plan.run import RestartQuery, predict_startup
from kdump.text import shell_word


def at_offset(place: PartitionDirectory, offset: int, log_start: int | None, limits: Limits) -> Evidence | None:
    """Return what a partition has at an offset: a batch, damage, or nothing, and whether the offset is below the log
    start offset, so that no consumer gets it. Reads the segment's batches near it only, as far as the offset index is
    valid. None without segments."""
    segments = [segment for segment in place.segments if segment.log is not None]
    if not segments:
        return None
    if offset < segments[0].offset:
        line = f"offset {offset}: below the first segment, which starts at offset {segments[0].offset}"
        if log_start is not None and log_start <= offset:
            line += f"; remote storage should have it, from log start offset {log_start} on"
            line += " (kdump verify reads it with --remote URL)"
        return Evidence(BATCH, place.path, None, offset, line)
    log = [segment for segment in segments if segment.offset <= offset][-1].log
    assert log is not None
    below = f"below the log start offset {log_start}; on the disk " if offset < (log_start or 0) else ""
    head = f"offset {offset}: {below}"
    return _first(log, Selection(offsets=Range(offset, offset)), limits, head, None, offset)


def at_position(path: str, position: int, limits: Limits) -> Evidence | None:
    """Return what a segment has at a byte. None for another file."""
    log = target(path)
    if log.kind is not file_kinds.SEGMENT:
        return None
    return _first(log, Selection(positions=Range(position, position)), limits, f"byte {position}: ", position, None)


def _first(
    log: Target, selection: Selection, limits: Limits, head: str, position: int | None, offset: int | None
) -> Evidence:
    """Describe the first region of a segment in the selection."""
    scan = RegionScan(selection, limits)
    try:
        window = scan.open(log)
        with closing(window.source):
            for region in scan.chosen(log, window):
                return _describe(region, log.path, head, offset)
    except SourceError as error:
        return Evidence(BATCH, log.path, position, offset, f"{head}not read: {error}")
    return Evidence(BATCH, log.path, position, offset, f"{head}there is no batch")


def _describe(region: Region, path: str, head: str, offset: int | None) -> Evidence:
    place = f"{count_text(region.size, 'byte')} at byte {region.position}"
    if not isinstance(region, Batch):
        what = {"torn": "an incomplete batch", "padding": "zeros"}.get(region.kind, "bytes that belong to no batch")
        reason = f" ({region.reason})" if region.reason else ""
        return Evidence(BATCH, path, region.position, offset, f"{head}{what}, {place}{reason}")
    first = region.lastOffset if region.baseOffset is None else region.baseOffset
    parts = [f"a batch with offsets {first}..{region.lastOffset}", place]
    if region.recordCount is not None:
        parts.append(count_text(region.recordCount, "record"))
    if region.producerId is not None and region.producerId >= 0:
        parts.append(f"producer {region.producerId} epoch {region.producerEpoch}, sequence {region.baseSequence}")
    damage = invalidity(region)
    if damage is None:
        parts.append("its checksum matches")
    elif not region.crcValid:
        parts.append(f"its checksum does not match (stored {region.crc:#010x}, computed {region.computedCrc:#010x})")
    else:
        parts.append(damage.reason)
    return Evidence(BATCH, path, region.position, first if offset is None else offset, head + ", ".join(parts))


MOST_PARTITIONS = 100
"""Maximum number of partitions whose bytes are checked."""
LARGEST = 1 << 30
"""Bytes of segments up to which the records of a partition are checked, too; of larger ones only the headers and
checksums are."""
MOST_FINDINGS = 3
"""Maximum number of findings that are named of a partition or a log directory; the others are counted."""
MOST_OF_A_CODE = 20
"""Maximum number of findings that are listed for one code."""
SMALL = 1 << 28
"""Bytes of segments on the disk up to which all of it is read, if need be: for the predicted startup of all topics, and
for messages that name no partition."""
VERDICTS = {
    CLEAN: "the broker starts without recovery",
    RECOVERY: "the broker starts and recovers logs",
    DEGRADED: "the broker starts without a log directory",
    STOPPED: "the broker does not start",
    UNKNOWN: "it is not known whether the broker starts",
}
NEEDED = ("identity", "kraft", "connections", "replication")
OF_NETWORK = ("connections", "java_client", "other_clients")
"""Families whose messages say nothing about a log directory unless they name a partition."""
OFFSETS = ("offset", "endOffset", "baseOffset")
IDS = ("topicId", "otherTopicId")
NODES = ("nodeId", "otherNodeId")


class _Checked(NamedTuple):
    """What a check found: the first findings of each kind in each file, the number of all by severity and code."""

    findings: list[Finding]
    counts: Counter[tuple[str, str]]
    totals: CheckTotals


class DiskEvidence:
    """Looks messages up on the disk at `paths`: log directories of one broker, or partition directories. Raises
    SourceError for a path without Kafka files, unless `options.unreadable` is given. `options.expect` is called before
    all of a disk is read, with its size.

    `checks`: the units of a check of the paths, `disks`: what was found there, if the caller has them.
    `whole`: whether to look for what concerns no single partition, too: the next startup, and damage anywhere."""

    def __init__(
        self,
        paths: tuple[str, ...],
        options: Options | None = None,
        *,
        checks: Iterable[CheckUnit] = (),
        disks: Disks | None = None,
        whole: bool = True,
    ) -> None:
        self.options = options or Options(now=round(time.time() * 1000))
        self.disks = disks or self.options.disks_at(paths)
        self.places = DiskPlaces(paths, self.disks)
        self.state = DiskState(self.places, self.options.limits, self.disks)
        self._units = {unit.name: unit for unit in checks}
        self.whole = whole
        self._topics: set[str] = set()
        self._large: bool | None = None
        self._every: list[Finding] | None = None
        self._plan: RestartPlan | SourceError | None = None
        self._findings: dict[str, _Checked] = {}
        self._summaries: dict[str, PartitionSummary] = {}
        self._states: LogDirectoryStates = {}
        self.found: Finding | None = None
        self.remedy = ""
        """What to do about why the next startup stops at the partition of the last message; empty if it does not."""

    def expect(self, explanations: list[Explanation]) -> None:
        """Note what will be asked for, so that the startup is predicted once, and for these topics alone."""
        for explanation in explanations:
            name = NAME.match(explanation.about.get("partition", ""))
            if name is not None:
                self._topics.add(name["topic"])

    def directory_of(self, explanation: Explanation) -> str | None:
        """Return the log directory on this disk that a message is about; None if it is unknown which."""
        place = self._partition(explanation)
        if place is not None:
            return parent(place.path) if place.source in ("", place.path) else place.source
        directory = self._directory(explanation)
        return None if directory is None else directory.path

    def look(self, explanation: Explanation, message: Message | None) -> tuple[list[Evidence], dict[str, str]]:
        """Return what is on the disk where a message points to, and the paths there of its partition and files, by the
        names that they have in commands."""
        paths: dict[str, str] = {}
        self.remedy = ""
        try:
            evidence = list(self._look(explanation, message, paths))
        except SourceError as error:
            evidence = [Evidence(FILE, "", None, None, f"not read: {error}")]
        return list(dict.fromkeys(evidence)), paths

    def _look(self, explanation: Explanation, message: Message | None, paths: dict[str, str]) -> Iterator[Evidence]:
        about = explanation.about
        place, directory = self._partition(explanation), self._directory(explanation)
        if place is not None:
            paths["path"] = place.path
        yield from self._files(about, paths)
        if place is not None:
            yield from self._of_partition(place, about, message)
        elif "partition" in about and self.places.directories:
            yield self._absent(about["partition"], directory)
        yield from self._of_state(about, place, message, directory)
        concerns_disk = message is None or message.plan or message.codes or family_of(message) not in OF_NETWORK
        if directory is not None and place is None and concerns_disk:
            yield from self._of_directory(directory, about, message)
        if message is not None and message.plan and self.whole:
            yield from self._startup(place, directory)

    def _partition(self, explanation: Explanation) -> PartitionDirectory | None:
        about = explanation.about
        name = about.get("partition")
        message = None if name is not None or explanation.message is None else find(explanation.message)
        if message is not None and family_of(message) == "kraft":
            name = METADATA_LOG
        if name is not None and "file" in about and partition_of({"file": about["file"]}) is None:
            located = self.places.file(about["file"])
            if located is not None and located[1]:
                return None  # a file in the root of the log directory, which concerns all partitions
        hint = about.get("file") or about.get("directory") or ""
        return None if name is None else self.places.partition(name, hint)

    def _directory(self, explanation: Explanation) -> LogDirectory | None:
        about = explanation.about
        return self.places.directory(about.get("directory") or about.get("file") or "")

    def facts(self, explanation: Explanation, message: Message) -> dict[str, bool]:
        """Return the facts that the disk shows, of those on which the actions of a message depend."""
        facts: dict[str, bool] = {}
        wanted = {fact for action in message.actions for fact, _ in action.when}
        files = [
            self.places.file(explanation.about[name]) for name in ("file", "otherFile") if name in explanation.about
        ]
        there = [file[1] for file in files if file is not None]
        if there and "fileOnDisk" in wanted:
            facts["fileOnDisk"] = there[0]
        if len(there) > 1 and "targetOnDisk" in wanted:
            facts["targetOnDisk"] = all(there)
        if "metadataDamaged" in wanted:
            place = self.places.partition(METADATA_LOG)
            checked = None if place is None else self._check(place.path, place)
            if checked is not None and not checked.totals.unread:
                facts["metadataDamaged"] = any(severity == ERROR for severity, _ in checked.counts)
        if "nodesDiffer" in wanted and len(self.places.directories) > 1:
            facts["nodesDiffer"] = len(set(map(node_of, self.places.directories))) > 1
        return facts

    def findings(self, code: Declaration) -> Iterator[Evidence]:
        """Yield where the disk has findings with this code, of which the first one is then `found`. Reads all of it, as
        verify --only FAMILY does."""
        only = frozenset((code.family,)) if code.family != "bytes" else frozenset(("bytes",))
        totals = CheckTotals()
        count = 0
        work = list(units(self.places.paths, replace(self.options, only=only, unreadable=totals.add_unreadable)))
        self.options.expect(sum(unit.size for unit in work))
        for unit in work:
            for finding in unit.run(totals):
                if finding.code != code.code:
                    continue
                self.found = self.found or finding
                count += 1
                if count <= MOST_OF_A_CODE:
                    line = f"{finding.severity} {finding.code}: {finding.message}"
                    yield Evidence(FINDING, finding.file, finding.position, finding.offset, line)
        if count > MOST_OF_A_CODE:
            more = count_text(count - MOST_OF_A_CODE, "more finding")
            yield Evidence(FINDING, self.places.paths[0], None, None, f"and {more} with this code")
        for problem in totals.unread[:MOST_FINDINGS]:
            yield Evidence(FINDING, self.places.paths[0], None, None, f"not read: {problem}")
        if not count:
            line = f"no such finding in {count_text(totals.partitions, 'partition')}"
            yield Evidence(FINDING, self.places.paths[0], None, None, line)

    # --- Files and bytes -----------------------------------------------------------------------------------------

    def _files(self, about: dict[str, str], paths: dict[str, str]) -> Iterator[Evidence]:
        for part in ("file", "otherFile"):
            if part not in about:
                continue
            located = self.places.file(about[part])
            if located is None:
                continue
            path, exists = located
            paths[part] = path
            if not exists:
                yield Evidence(FILE, path, None, None, f"{_short(path)}: not there now")
            elif not file_system.isdir(path):
                yield Evidence(FILE, path, None, None, f"{_short(path)}: {count_text(_size(path), 'byte')}")

    def _of_partition(
        self, place: PartitionDirectory, about: dict[str, str], message: Message | None
    ) -> Iterator[Evidence]:
        facts = self._summary(place)
        name = f"{place.topic}-{place.partition}"
        line = f"{name}{f' ({place.state})' if place.state else ''}: {count_text(len(facts.segments), 'segment')}"
        line += f", {count_text(facts.size, 'byte')}"
        if facts.log_start is not None:
            line += f", log start offset {facts.log_start}"
        if facts.log_end is not None:
            line += f", log end offset {facts.log_end}"
        if facts.high_watermark is not None:
            line += f", checkpointed high watermark {facts.high_watermark}"
        yield Evidence(PARTITION, place.path, None, None, line)
        for other in self.places.partitions[name]:
            if other.path != place.path:
                yield Evidence(PARTITION, other.path, None, None, f"{name}: also in {other.path}")
        if message is not None and message.snapshots:
            yield from _without_snapshot(place)
        limits = self.options.limits
        log = self.places.file(about.get("file", ""))
        if "position" in about and log is not None and log[1]:
            batch_there = at_position(log[0], int(about["position"]), limits)
            if batch_there is not None:
                yield batch_there
        for part in OFFSETS:
            if part in about and int(about[part]) >= 0:
                batch = at_offset(place, int(about[part]), facts.log_start, limits)
                if batch is not None:
                    yield batch
                break
        yield from self._damage(place.path, place, message, about)

    def _summary(self, place: PartitionDirectory) -> PartitionSummary:
        facts = self._summaries.get(place.path)
        if facts is None:
            facts = single_partition_summary(place, self._states)
            if facts.size <= LARGEST:
                facts.read(quick=True)
            self._summaries[place.path] = facts
        return facts

    def _absent(self, name: str, directory: LogDirectory | None) -> Evidence:
        path = self.places.paths[0] if directory is None else directory.path
        return Evidence(PARTITION, path, None, None, f"{name}: no directory on this disk")

    def _of_directory(
        self, directory: LogDirectory, about: dict[str, str], message: Message | None
    ) -> Iterator[Evidence]:
        live = sum(not partition.state for partition in directory.partitions)
        line = f"{count_text(live, 'partition')}, "
        line += "shut down cleanly" if directory.is_clean else "without a clean-shutdown file"
        yield Evidence(DIRECTORY, directory.path, None, None, line)
        if message is not None and (message.plan or message.codes):
            yield from self._damage(directory.path, directory, message, about)
            if message.codes and "partition" not in about and self.whole:
                yield from self._anywhere(directory, message.codes)

    def _anywhere(self, directory: LogDirectory, codes: tuple[str, ...]) -> Iterator[Evidence]:
        """Yield the findings in any partition that belong to a message without a partition, if the disk is small."""
        if self._is_partial():
            line = f"the message names no partition; kdump verify {shell_word(directory.path)} checks all of them"
            yield Evidence(FINDING, directory.path, None, None, line)
            return
        if self._every is None:
            totals = CheckTotals()
            every = list(units(self.places.paths, replace(self.options, unreadable=totals.add_unreadable)))
            self._every = [
                finding
                for unit in every
                if unit.directory is None
                for finding in unit.run(totals)
                if finding.severity != INFO
            ]
        matching = [finding for finding in self._every if finding.code in codes]
        for damage in matching[:MOST_FINDINGS]:
            line = f"{damage.severity} {damage.code}: {damage.message}"
            yield Evidence(FINDING, damage.file, damage.position, damage.offset, line)
        if len(matching) > MOST_FINDINGS:
            more = count_text(len(matching) - MOST_FINDINGS, "more finding")
            yield Evidence(
                FINDING, directory.path, None, None, f"and {more}: kdump verify {shell_word(directory.path)}"
            )

    # --- Findings ------------------------------------------------------------------------------------------------

    def _damage(
        self, path: str, place: PartitionDirectory | LogDirectory, message: Message | None, about: dict[str, str]
    ) -> Iterator[Evidence]:
        """Yield the findings about a partition, or the files in the root of a log directory: first those that belong
        to the message."""
        checked = self._check(path, place)
        if checked is None:
            line = f"not checked: more than {MOST_PARTITIONS} partitions; run kdump verify {shell_word(path)}"
            yield Evidence(FINDING, path, None, None, line)
            return
        findings, counts, totals = checked
        codes = () if message is None else message.codes
        named = os.path.basename(about.get("file", ""))

        def order(finding: Finding) -> tuple[bool, bool, int]:
            other_file = not named or os.path.basename(finding.file) != named
            return finding.code not in codes, other_file, SEVERITIES.index(finding.severity)

        real = [damage for damage in findings if damage.severity != INFO or damage.code in codes]
        shown = sorted((damage for damage in real if damage.severity == ERROR or damage.code in codes), key=order)
        shown = shown[:MOST_FINDINGS]
        for damage in shown:
            line = f"{damage.severity} {damage.code}: {damage.message}"
            yield Evidence(FINDING, damage.file, damage.position, damage.offset, line)
        total = sum(count for (severity, code), count in counts.items() if severity != INFO or code in codes)
        if total > len(shown):
            more = count_text(total - len(shown), "more finding" if shown else "warning")
            yield Evidence(
                FINDING, path, None, None, f"{'and ' if shown else ''}{more}: kdump verify {shell_word(path)}"
            )
        for problem in totals.unread[:MOST_FINDINGS]:
            yield Evidence(FINDING, path, None, None, f"not read: {problem}")
        if not real and not totals.unread:
            line = f"verify finds no damage in {count_text(totals.files, 'file')}"
            if isinstance(place, LogDirectory):
                line += " next to the partitions"
            else:
                line += f", {count_text(totals.batches, 'batch', 'batches')}"
                if self._summary(place).size > LARGEST:
                    line += " (headers, checksums and offsets only)"
            if totals.withheld:
                line += "; the records are not in the bundle and were not checked"
            yield Evidence(FINDING, path, None, None, line)

    def _check(self, path: str, place: PartitionDirectory | LogDirectory) -> _Checked | None:
        earlier = self._findings.get(path)
        if earlier is not None or len(self._findings) >= MOST_PARTITIONS:
            return earlier
        totals = CheckTotals()
        findings: list[Finding] = []
        counts: Counter[tuple[str, str]] = Counter()
        of_file: Counter[tuple[str, str, str]] = Counter()
        unit = self._unit(path, place)
        for finding in () if unit is None else unit.run(totals):
            counts[finding.severity, finding.code] += 1
            of_file[finding.severity, finding.code, finding.file] += 1
            if of_file[finding.severity, finding.code, finding.file] <= MOST_FINDINGS:
                findings.append(finding)
        checked = self._findings[path] = _Checked(findings, counts, totals)
        return checked

    def _unit(self, path: str, place: PartitionDirectory | LogDirectory) -> CheckUnit | None:
        unit = self._units.get(path)
        if isinstance(place, LogDirectory):
            every = units_of(self.disks, self.options)
            unit = unit or next((candidate for candidate in every if candidate.directory is place), None)
        headers_only = isinstance(place, PartitionDirectory) and self._summary(place).size > LARGEST
        if unit is not None:
            return replace(unit, options=replace(unit.options, headers_only=headers_only, more=self.options.more))
        if isinstance(place, LogDirectory):
            return None
        options = Options.of(self.options, now=self.options.now, headers_only=headers_only)
        return next(units_of(options.disks([place]), options), None)

    # --- State and startup ---------------------------------------------------------------------------------------

    def _of_state(
        self,
        about: dict[str, str],
        place: PartitionDirectory | None,
        message: Message | None,
        directory: LogDirectory | None,
    ) -> Iterator[Evidence]:
        state = self.state
        family = "" if message is None else family_of(message)
        if "producerId" in about and place is not None and place.segments:
            yield from state.producer(int(about["producerId"]), place)
        if "transactionalId" in about:
            yield from state.transactional_id(about["transactionalId"])
        elif message is not None and message.prepared:
            yield from state.prepared()
        if "group" in about:
            yield from state.group(about["group"])
        ids = tuple(about[part] for part in IDS if part in about)
        topic = None if place is None else place.topic
        number = None if place is None else place.partition
        if ids or "topic" in about or (family == "replication" and topic is not None):
            yield from state.topic(about.get("topic", topic), ids, number)
        for part in NODES:
            if part in about and family in NEEDED:
                yield from state.node(int(about[part]))
        if family == "identity":
            for log_directory in self.places.directories if directory is None else [directory]:
                yield state.identity(log_directory)
        if family in ("kraft", "connections") and "nodeId" not in about:
            yield from state.quorum()

    def _startup(self, place: PartitionDirectory | None, directory: LogDirectory | None) -> Iterator[Evidence]:
        """Yield what the next startup does: with the partition, or with the directory."""
        plan = self._predicted()
        if plan is None:
            return
        if isinstance(plan, SourceError):
            yield Evidence(STARTUP, "", None, None, f"startup not predicted: {plan}")
            return
        if place is not None:
            plans = [each for each in plan.partitions if each.path == place.path]
            for each in plans:
                self.remedy = self.remedy or ". ".join(stop.remedy for stop in each.stops[:1])
                yield from _partition_startup(each)
            if plans and (plan.verdict not in (STOPPED, DEGRADED) or any(each.stops for each in plans)):
                return
        stops = plan.allStops
        line = f"next startup: {VERDICTS[plan.verdict]}"
        ids = sorted({each.clusterId for each in plan.directories if each.clusterId})
        if plan.verdict != STOPPED and ids:
            line += f", if the cluster has the ID {' and '.join(ids)}"
        if not stops and self._is_partial():
            line += f" (examined: {count_text(len(self._topics), 'topic')} of the log; run kdump restart-plan for all)"
        yield Evidence(STARTUP, "" if directory is None else directory.path, None, None, line)
        for stop in stops[:MOST_FINDINGS]:
            yield Evidence(STARTUP, stop.file, stop.position, stop.offset, f"next startup: {stop.message}")

    def _predicted(self) -> RestartPlan | SourceError | None:
        if self._plan is None and self.places.directories:
            try:
                paths = [directory.path for directory in self.places.directories]
                asked = RestartQuery(paths, self.options, disks=self.disks)
                if self._is_partial():
                    asked = replace(asked, is_selected=lambda topic: topic in self._topics)
                self._plan = predict_startup(asked)
            except SourceError as error:
                self._plan = error
        return self._plan

    def _is_partial(self) -> bool:
        """Return True if the disk is too large to predict the startup of all topics."""
        if self._large is None:
            size = 0
            for places in self.places.partitions.values():
                size += sum(_size(each.log.path) for it in places for each in it.segments if each.log is not None)
                if size > SMALL:
                    break
            self._large = size > SMALL
        return self._large


def _without_snapshot(place: PartitionDirectory) -> Iterator[Evidence]:
    """Yield the segments after the first that have no producer snapshot at their base offset."""
    taken = {snapshot.name_offset for snapshot in place.snapshots}
    for before, segment in pairwise(segment.offset for segment in place.segments if segment.log is not None):
        if segment not in taken:
            line = f"no {segment:020}.snapshot, which the copy of segment {before} needs"
            yield Evidence(PARTITION, place.path, None, segment, line)
            return


def _partition_startup(plan: PartitionPlan) -> Iterator[Evidence]:
    for stop in plan.stops:
        yield Evidence(STARTUP, stop.file, stop.position, stop.offset, f"next startup: {stop.message}")
    if plan.stray:
        yield Evidence(STARTUP, plan.path, None, None, f"next startup: the directory becomes stray: {plan.stray}")
    for cut in plan.cuts[:MOST_FINDINGS]:
        records = "" if not cut.records else f", {count_text(cut.records, 'valid record')} lost"
        where = f"{count_text(cut.size, 'byte')} at byte {cut.position}"
        line = f"next startup: {where} {cut.kind}{records}"
        yield Evidence(STARTUP, cut.file, cut.position, cut.offset, line)
    if plan.stops or plan.stray:
        return
    line = "next startup: "
    line += f"{count_text(plan.recovered, 'segment')} recovered" if plan.recovered else "loaded without recovery"
    if plan.logEndOffset is not None:
        line += f", log end offset {plan.logEndOffset}"
    yield Evidence(STARTUP, plan.path, None, None, line)


def _size(path: str) -> int:
    try:
        return file_system.getsize(path)
    except OSError:
        return 0


def _short(path: str) -> str:
    return "/".join(path.split("/")[-2:])
