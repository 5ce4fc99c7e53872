"""What is damaged: the rules of verify within a limit of time, what matters most first.

If there is much: first the headers of all batches, as `ls` reads them, which show where something is wrong; then
everything in partitions where something is, then the newest segment of each partition, then the rest. Everything that
is found was found by the rules of verify, but for what the headers show of partitions that were not reached.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from kdump.check.engine.partition_scan import recovers
from kdump.check.engine.second_look import FindingKey, key
from kdump.check.engine.units import CheckUnit
from kdump.check.finding import ERROR, INFO, Finding, next_command
from kdump.check.rules.remote_segments import OFFSETS_UNREADABLE as UNREADABLE
from kdump.check.totals import CheckTotals
from kdump.cluster.partition_summary import partition_summary
from kdump.format.count_text import count_text, first_of, offsets_text
from kdump.incident.doctor.answer import AffectedRange
from kdump.incident.doctor.causes import place_of
from kdump.incident.doctor.disks import Broker, Disks
from kdump.incident.doctor.examination import Examination, command
from kdump.incident.doctor.intact_copies import IntactCopies
from kdump.io.directory_listing import parent
from kdump.io.low_impact_reads import max_rate
from kdump.log.internal_topics import REMOTE_METADATA_TOPIC
from kdump.log.partition_directory import PartitionDirectory
from kdump.problems.catalogue import declaration
from kdump.problems.problem import Problem
from kdump.questions.space.replica_copies import ReplicaCopies, stray_verdict

LITTLE = 16 << 20
"""Bytes of segments, for each second of the time, up to which they are checked in one go: each is then read once."""
HEADERS_SHARE = 0.4
"""Maximum share of the time that is spent on headers: a few records say more than the rest of many headers."""
SHOWN = 2
"""Number of findings of a kind and partition that are shown as evidence."""
MAX_REMEMBERED = 100_000
"""Maximum number of findings in newest segments that are recognized when their partition is checked."""
MAX_CHAIN = 1000
"""Maximum number of findings whose places are remembered of one kind, or of bytes that touch."""
STRAY, NO_SNAPSHOT = "directory-stray", "snapshot-missing"
KindKey = tuple[str, str, str | None, int | None]


def _key(finding: Finding) -> KindKey:
    return finding.code, finding.severity, finding.topic, finding.partition


@dataclass
class _Kind:
    """The findings of one kind in one unit."""

    first: Finding
    count: int = 0
    evidence: list[str] = field(default_factory=list)
    segments: dict[str, Finding] = field(default_factory=dict)
    """The first one in each segment, by its path without a suffix."""
    places: list[AffectedRange] = field(default_factory=list)


def _causes(kinds: Collection[_Kind], recovered: Iterable[str]) -> list[_Kind]:
    """Return the kinds of a unit without those that one of no lower severity explains in all their segments, and what
    one covers after it. `recovered`: the segments whose indexes the next startup rebuilds, damaged or not."""
    rebuilt = {path for kind in kinds if _stops_recovery(kind.first) for path in kind.segments}.intersection(recovered)
    covered = {code for kind in kinds for code in declaration(kind.first.code).covers}
    explained: dict[tuple[str, str], list[Finding]] = {}
    """What explains a code in a segment."""
    causes = []
    for kind in sorted(kinds, key=lambda kind: (kind.first.severity != ERROR, kind.first.code in covered)):
        code = kind.first.code
        is_index = declaration(code).family == "indexes"
        is_known = (
            (is_index and path in rebuilt) or any(_is_before(cause, first) for cause in explained.get((code, path), ()))
            for path, first in kind.segments.items()
        )
        if kind.count and not all(is_known):
            causes.append(kind)
        for here in declaration(code).covers_here:
            for path, first in kind.segments.items():
                explained.setdefault((here, path), []).append(first)
    return causes


def _recovered(unit: CheckUnit) -> Iterator[str]:
    """Yield the segments that the next startup recovers, by their paths without a suffix."""
    segments = unit.partition.segments if unit.partition is not None and not unit.partition.state else []
    for segment, following in zip_longest(segments, segments[1:]):
        if segment.log is not None and recovers(unit.known, following):
            yield os.path.splitext(segment.log.path)[0]


def _is_before(cause: Finding, other: Finding) -> bool:
    """Return True if a finding in a segment is not before the one that would explain it. Entries of an index have one
    cause, whatever their order."""
    if cause.file == other.file:
        return cause.file.endswith("index") or cause.position <= other.position
    is_damage = declaration(cause.code).family == "bytes" and cause.offset is not None and other.offset is not None
    return not is_damage or (cause.offset or 0) <= (other.offset or 0)


def _stops_recovery(finding: Finding) -> bool:
    """Return True if recovery truncates a segment at this finding."""
    return finding.severity == ERROR and declaration(finding.code).family in ("bytes", "records", "offsets")


class DamageExamination:
    """Checks the units in the order of importance."""

    def __init__(self, disks: Disks, on: Examination) -> None:
        self.disks = disks
        self.on = on
        self.totals = CheckTotals()
        self._intact = IntactCopies(disks)
        self.found: Counter[str] = Counter()
        self._in_newest: set[FindingKey] = set()
        """Findings in newest segments, which are checked again with their partitions."""
        self._left: dict[str, CheckUnit] = {}
        """Units that have not been checked completely, by name."""
        self._newest: dict[str, CheckTotals] = {}
        """What was counted in the newest segment of those in which that has been checked."""
        self._suspects: dict[str, str] = {}
        """Damage that headers show, by the name of the unit."""
        self._no_headers = 0
        self._without_snapshot: list[tuple[_Kind, CheckUnit, str]] = []
        """What is reported at the end: what to do depends on the ends of all logs in the log directory."""
        self._damaged_ends: set[str] = set()
        """Log directories in which a log's last segment is damaged."""
        self._chain: list[Finding] = []
        """Damaged bytes that touch, which have one cause."""
        self._copies: dict[int, ReplicaCopies] = {}
        """By the id() of the broker that has no part in them."""

    def run(self) -> None:
        """Check until the time is over."""
        units = self.disks.units
        parts = [unit for unit in units if unit.directory is None]
        self._left = {unit.name: unit for unit in parts}
        self.on.run.expect(sum(unit.size for unit in parts))
        try:
            for unit in units:
                if unit.directory is not None:
                    self._check(unit, self.on)
            self._in_bucket(units)
            if sum(unit.size for unit in parts) > min(LITTLE, max_rate() or LITTLE) * self.on.limit.left:
                self._headers(parts)
                self._thoroughly([unit for unit in parts if unit.name in self._suspects])
                self._newest_segments(parts)
            self._thoroughly(list(self._left.values()))
        finally:
            self._only_suspects()
            self._report_without_snapshot()
            self._answer(len(parts))

    # --- passes ---

    def _headers(self, parts: list[CheckUnit]) -> None:
        limit = self.on.limit.part(HEADERS_SHARE)
        done = 0
        for unit in parts:
            if limit.is_over:
                break
            place = unit.partition
            if place is not None:
                facts = partition_summary(place, unit.known.clean)
                facts.read()
                if facts.damage and not place.state:
                    self._suspects[unit.name] = facts.damage
                facts.forget_segments()
            done += 1
        self._no_headers = len(parts) - done

    def _newest_segments(self, parts: list[CheckUnit]) -> None:
        for unit in parts:
            if self.on.limit.is_over:
                return
            place = unit.partition
            if unit.name not in self._left or place is None or len(place.segments) < 2:
                continue
            target = place.segments[-1].log
            assert target is not None
            newest = CheckUnit(target.path, replace(unit.known, last=True), unit.options, target=target)
            totals = CheckTotals()
            if self._check(newest, self.on, name=unit.name, totals=totals):
                self._newest[unit.name] = totals
            else:
                self.totals.add(totals)

    def _thoroughly(self, units: list[CheckUnit]) -> None:
        for unit in units:
            if self.on.limit.is_over:
                return
            self._newest.pop(unit.name, None)  # counted with the others
            if self._check(unit, self.on):
                del self._left[unit.name]

    def _check(self, unit: CheckUnit, on: Examination, name: str = "", totals: CheckTotals | None = None) -> bool:
        """Check a unit, and report what was found in it. Returns False if the time was over before its end."""
        kinds: dict[KindKey, _Kind] = {}
        segments = unit.partition.segments if unit.partition is not None else ()
        end = segments[-1].log if segments else unit.target
        stopped = False

        def progress(count: int) -> None:
            nonlocal stopped
            on.run.more(count)
            stopped = stopped or on.limit.is_over
            on.limit.stop_reading()

        try:
            for finding in replace(unit, options=replace(unit.options, more=progress)).run(totals or self.totals):
                if finding.severity != INFO:
                    self._take(finding, kinds, is_newest=bool(name))
                if end is not None and finding.file == end.path and _stops_recovery(finding):
                    self._damaged_ends.add(finding.source)
        finally:
            self._end_chain(kinds)
            is_running = unit.partition is not None and self.disks.is_running(unit.partition.source)
            for kind in _causes(kinds.values(), () if is_running else _recovered(unit)):
                verify = command("verify", name or unit.name)
                if kind.first.code == NO_SNAPSHOT:
                    self._without_snapshot.append((kind, unit, verify))
                else:
                    self._report(kind, unit, verify)
        return not stopped

    def _in_bucket(self, units: list[CheckUnit]) -> None:
        """Report which segments the remote storage lacks, if it was named: names and sizes show it."""
        storage = self.disks.options.remote
        if storage is None:
            return
        from kdump.check.engine.remote_check import remote_check

        options = replace(self.disks.options, now=self.on.now, remote=storage._replace(quick=True))
        check = remote_check(self.disks, options, units, self.totals)
        for place, topic in () if check is None else check.places():
            kinds: dict[KindKey, _Kind] = {}
            for finding in check.findings(place, topic, self.totals) if check is not None else ():
                if finding.code != UNREADABLE.code:  # which is reported without the bucket, too
                    self._take(finding, kinds, is_newest=False)
            self._end_chain(kinds)
            for kind in (kind for kind in kinds.values() if kind.count):
                paths = [directory.path for node in self.disks.nodes for directory in node.directories]
                self._report(kind, None, command("verify", *paths, "--remote", storage.url, "--topic", topic))

    def _take(self, finding: Finding, kinds: dict[KindKey, _Kind], *, is_newest: bool) -> None:
        if key(finding) in self._in_newest:
            return
        if is_newest and len(self._in_newest) < MAX_REMEMBERED:
            self._in_newest.add(key(finding))
        self.found[finding.severity] += 1
        if self._chain and self._chain[-1].file != finding.file:
            self._end_chain(kinds)
        if declaration(finding.code).family != "bytes":
            self._count([finding], kinds)
            return
        last = self._chain[-1] if self._chain else finding
        touches = finding.position <= last.position + last.size and len(self._chain) < MAX_CHAIN
        if (last.file, last.severity) != (finding.file, finding.severity) or not touches:
            self._end_chain(kinds)
        self._chain.append(finding)

    def _end_chain(self, kinds: dict[KindKey, _Kind]) -> None:
        self._count(self._chain, kinds)
        self._chain = []

    def _count(self, chain: list[Finding], kinds: dict[KindKey, _Kind]) -> None:
        """Count findings of one cause. What an item has stated is not reported again, and explains others still."""
        is_explained = any(map(self.on.is_explained, chain))
        for finding in chain:
            kind = kinds.setdefault(_key(chain[0]), _Kind(finding))
            kind.segments.setdefault(os.path.splitext(finding.file)[0], finding)
            if is_explained:
                continue
            kind.first = kind.first if kind.count else finding
            kind.count += 1
            if len(kind.places) < MAX_CHAIN:
                kind.places.append(place_of(finding))
            if len(kind.evidence) < SHOWN:
                at = f" at byte {finding.position}" if finding.size or finding.position else ""
                where = f", offset {finding.offset}" if finding.offset is not None else ""
                same = finding.message == kind.first.message
                kind.evidence.append(f"{finding.file}{at}{where}" + ("" if same else f": {finding.message}"))

    # --- items ---

    def _report(self, kind: _Kind, unit: CheckUnit | None, verify: str) -> None:
        """Report the findings of a kind in a unit, None for remote storage; `verify`: the command that shows them."""
        first = kind.first
        code = declaration(first.code)
        evidence = kind.evidence
        if kind.count > len(evidence):
            evidence.append(f"and {count_text(kind.count - len(evidence), 'more such finding')} here")
        commands = [verify]
        if code.family in ("bytes", "records") and first.size and first.file.endswith(".log"):
            commands.insert(0, next_command(first))
        more: dict[str, Any] = {}
        if unit is not None and code.family in ("bytes", "records") and first.severity == ERROR:
            is_elsewhere, paths = self._intact.of(first, unit)
            evidence += [f"{path} has these offsets intact" for path in paths[:SHOWN]]
            if is_elsewhere is not None:
                first = first._replace(facts={**first.facts, "intactElsewhere": is_elsewhere})
        place = None if unit is None else unit.partition
        if first.code == STRAY and place is not None and place.state == "stray":
            more = self._stray(place)
        self.on.report(
            first,
            first.source,
            severity=first.severity,
            at=first,
            evidence=tuple(evidence),
            findings=kind.count,
            commands=tuple(commands),
            commandForAll=command("verify", first.source) if unit is not None and first.source else verify,
            places=tuple(kind.places),
            **more,
        )

    def _stray(self, place: PartitionDirectory) -> dict[str, Any]:
        """Return the actions for a -stray directory, which are what `kdump space` decides."""
        broker = next((each for each in self.disks.brokers if place.source in (d.path for d in each.directories)), None)
        if broker is None:
            return {}
        verdict = stray_verdict(place, self._copies_for(broker), broker.node_id)
        values = {"why": verdict.why, "run": command("space", *broker.paths)}
        advice = Problem("stray-kept" if verdict.cost is None else "stray-removable", values)
        return {"actions": advice.actions, "named": advice.named}

    def _copies_for(self, broker: Broker) -> ReplicaCopies:
        """Return the partitions of the other brokers."""
        if id(broker) not in self._copies:
            clusters = (each for each in self.disks.clusters.values() if broker in self.disks.brokers_of(each))
            cluster = next(clusters, broker.directories)
            others = [each for each in self.disks.brokers_of(cluster) if each is not broker]
            metadata = self.disks.metadata(cluster)[1]
            self._copies[id(broker)] = ReplicaCopies(others, metadata, self.disks.options, {})
        return self._copies[id(broker)]

    def _only_suspects(self) -> None:
        """Report what the headers show of partitions that were not reached."""
        for name, reason in self._suspects.items():
            unit = self._left.get(name)
            if unit is None or unit.partition is None:
                continue
            place = unit.partition
            self.found[ERROR] += 1
            self.on.report(
                Problem("damaged-headers"),
                place.source,
                at=place,
                evidence=(f"{place.path}: {reason}",),
                file=place.path,
                commands=(command("verify", place.path),),
                commandForAll=command("verify", place.source),
            )

    def _report_without_snapshot(self) -> None:
        """Report the partitions without a snapshot, now that it is known which logs here end in damage."""
        left = {unit.partition.source for unit in self._left.values() if unit.partition is not None}
        for kind, unit, verify in self._without_snapshot:
            source = kind.first.source
            is_unknown = source in left or self.on.is_partial
            is_damaged = True if source in self._damaged_ends else None if is_unknown else False
            self._report(replace(kind, first=kind.first.given({"endDamaged": is_damaged})), unit, verify)

    def _answer(self, parts: int) -> None:
        question = self.on.question
        for totals in self._newest.values():
            self.totals.add(totals)
        for unread in self.totals.unread:
            self.on.unread(unread)
        question.partitions = parts - len(self._left)
        question.partitionsLeft = len(self._left)
        question.headersLeft = self._no_headers
        for unit in self._left.values():
            segments = len(unit.partition.segments) if unit.partition is not None else 1
            newest = self._newest.get(unit.name, CheckTotals())
            question.segmentsLeft += segments - newest.files
            question.bytesLeft += max(0, unit.size - newest.bytes)
        remote = self._in_remote_storage()
        errors, warnings = self.found[ERROR], self.found["warning"]
        found = [
            count_text(errors, "ERROR", "ERRORS") if errors else "",
            count_text(warnings, "warning") if warnings else "",
        ]
        checked = count_text(question.partitions, "partition")
        records = self.totals.records_text
        question.answer = f"{' and '.join(filter(None, found)) or 'no damage'} in what was read: {records}"
        if not (self._left or self.on.is_partial):
            question.answer = (
                f"{' and '.join(filter(None, found)) or 'no damage'}; everything was read: {checked}, {records}"
            )
        lacks = [what for what, count in self.totals.withheld.items() if count]
        for what in sorted(lacks):
            question.notExamined.append(f"{what} are not in the bundle")
        if remote:
            many = count_text(len(remote), "partition has older offsets", "partitions have older offsets")
            what = "that are not on these disks"
            if self.disks.options.remote is not None:
                what += ": names and sizes of their objects were compared, and kdump verify reads them with --remote"
            question.notExamined.append(f"{many} {what}: {first_of(remote, SHOWN)}")
        question.isComplete = not (self._left or question.unread or lacks or remote)

    def _in_remote_storage(self) -> list[str]:
        """Return the partitions whose log starts below their first segment here, with these offsets, and what
        __remote_log_metadata has of them; report those that it lacks. No disk shows whether the store has a segment."""
        lines = []
        for unit in self.disks.units:
            place, start = unit.partition, unit.known.log_start
            if place is None or place.state or start is None or not unit.known.tiered or not place.segments:
                continue
            first = place.segments[0].offset
            if start >= first:
                continue
            name = f"{place.topic}-{place.partition}"
            remote = self.disks.by_directory.remote(parent(place.path))
            start = remote.start_of(unit.known.topic_id, place.partition, start)
            if start >= first:
                continue
            lacks = remote.lacks(unit.known.topic_id, place.partition, start, first)
            if lacks is None:
                lines.append(f"{name} {start}..{first - 1} (what remote storage has of them is unknown)")
                continue
            if lacks:
                self._unreadable(place, lacks)
            offset = start
            for begin, end in [*lacks, (first, first)]:
                if offset < begin:
                    lines.append(f"{name} {offset}..{begin - 1} (in remote storage)")
                offset = end + 1
        return lines

    def _unreadable(self, place: PartitionDirectory, lacks: list[tuple[int, int]]) -> None:
        self.found[ERROR] += 1
        values = {"offsets": offsets_text(lacks)}
        self.on.report(
            Problem("offsets-unreadable", values),
            place.source,
            at=place,
            evidence=(f"log start offset {lacks[0][0]}; {REMOTE_METADATA_TOPIC} has no segment with them",),
            offset=lacks[0][0],
            commands=(
                command("ls", place.path),
                command("inspect", f"{place.source}/{REMOTE_METADATA_TOPIC}-0", "--records"),
            ),
        )
