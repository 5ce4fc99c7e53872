"""The rows of the table: what frees space on a file system, in the order in which an operator would take it.

What costs nothing comes first, then what retention deletes anyway, what only the operator can judge, replicas that are
complete elsewhere, and last the records that consumers may still read.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kdump.format.count_text import all_of, count_text
from kdump.questions.retention.configs import TOPIC
from kdump.questions.space.answer import (
    CONFIG,
    DUE,
    FILES,
    JUDGE,
    NOTHING,
    RECORDS,
    REPLICA,
    RUNNING,
    STOPPED,
    WAIT,
    KeptFrom,
    SpaceKept,
    SpaceStep,
)
from kdump.questions.space.disks import Disk
from kdump.questions.space.first_cleaning import Cleaning
from kdump.questions.space.replica_copies import Key, ReplicaCopies, StrayVerdict, reassignment, stray_verdict
from kdump.questions.space.retained_topics import RetainedLog, RetainedTopic, with_value
from kdump.questions.space.usage import DirectoryUsage, Files, Foreign, PartitionUsage

DELETE_DELAY_MS = 60_000
"""Default of file.delete.delay.ms and log.segment.delete.delay.ms."""
INITIAL_DELAY_MS, CHECK_MS = 30_000, 300_000
"""Defaults of log.initial.task.delay.ms and log.retention.check.interval.ms."""
LEAVE_RESERVED = 64 << 20
"""Reserved bytes of a file system from which lowering them is worth a step."""
MOST_RESERVED = 0.1
"""Share of a file system above which something else than tune2fs reserves its blocks, such as a quota: mke2fs reserves
5 %."""
LOST_AND_FOUND = "lost+found"
LARGE = 65_536
"""Allocated bytes from which a file that is not Kafka's is worth mentioning."""
SHOWN = 4
"""Maximum number of lower values of a config of a topic."""
RATIO = "min.cleanable.dirty.ratio"
BY_CONTROLLER = "while no broker is up, use --bootstrap-controller in place of --bootstrap-server"
UNKNOWN_CONFIGS = "pass the log directory or a bundle of a controller with --with, or the topics' configs with --config"
"""What to do if configs are not in the metadata of the broker."""


class Given(NamedTuple):
    """What the rows of a file system are made from. `topics`: with their partitions there, the largest first;
    `cleanings`: those after a startup; `limit`: number of topics and replicas to examine."""

    topics: Sequence[RetainedTopic]
    cleanings: Sequence[Cleaning]
    copies: ReplicaCopies
    node_id: int | None
    limit: int
    is_selected: Callable[[str], bool]


def steps(disk: Disk, given: Given) -> Iterator[SpaceStep | SpaceKept]:
    """Yield the rows, and what is not offered. The caller gives each row to `disk.take` before the next: what it still
    lacks decides how many segments of the next are removed by hand."""
    yield from _reserved(disk)
    for usage in disk.usages:
        yield from _deleted(usage, disk.state, given.is_selected)
    strays = [
        (each, stray_verdict(each.place, given.copies, given.node_id))
        for usage in disk.usages
        for each in usage.in_state("stray")
        if given.is_selected(each.place.topic or "")
    ]
    yield from _strays(strays, NOTHING)
    yield from _postponed(disk, given.cleanings)
    yield from _due(disk, given.topics)
    if disk.lacks:
        yield from _uncertain(disk, given.topics)
    for usage in disk.usages:
        yield from _others(usage)
    yield from _strays(strays, JUDGE)
    yield from _strays(strays, None)
    yield from _replicas(disk, given)
    for topic in given.topics[: given.limit]:
        yield from _compacted(topic)
        yield from _lower_retention(disk, topic)


def _reserved(disk: Disk) -> Iterator[SpaceStep]:
    """Yield the step that hands blocks reserved for root to the broker (ext4 reserves 5 %)."""
    system = disk.system
    if system is None or system.source is None or not (system.type or "").startswith("ext"):
        return
    if LEAVE_RESERVED <= system.reserved <= system.total * MOST_RESERVED:
        text = (
            f"{system.type} reserves these blocks for root, which a disk of log directories does not need; a broker "
            "that runs as root has them already"
        )
        command = f"tune2fs -m 0 {shlex.quote(system.source)}"
        size = system.reserved
        yield SpaceStep(
            "reservedBlocks", CONFIG, min(disk.sources), text, frees=size, freesAtOnce=size, command=command
        )


def _removed(step: SpaceStep, files: Files, commands: Iterable[str], paths: Iterable[str]) -> SpaceStep:
    """Return a step that removes files, with what that frees."""
    return step._replace(
        frees=files.allocated,
        freesAtOnce=files.allocated,
        size=files.size,
        files=files.count,
        command="\n".join(commands),
        paths=tuple(paths),
    )


def _deleted(usage: DirectoryUsage, state: str, is_selected: Callable[[str], bool]) -> Iterator[SpaceStep]:
    """Yield the step for .deleted and .cleaned files and -delete directories, which no broker reads again.

    A startup deletes all .cleaned files, but they also determine which .swap files it completes (LogLoader): they stay
    in a partition that has any of these."""
    gone = [each for each in usage.in_state("delete") if is_selected(each.place.topic or "")]
    live = [each for each in usage.live() if is_selected(each.place.topic or "")]
    inside = [each for each in live if ".deleted" in each.by_suffix]
    is_left = [each for each in live if ".cleaned" in each.by_suffix and ".swap" not in each.by_suffix]
    unfinished = is_left if state == STOPPED else []
    files, what = Files(), []
    for suffix, partitions, of in (
        (".deleted", inside, count_text(len(inside), "partition")),
        (".cleaned", unfinished, "an interrupted log cleaner"),
    ):
        number = sum(each.with_suffix(suffix).count for each in partitions)
        what += [f"{count_text(number, f'{suffix} file')} of {of}"] if number else []
        for each in partitions:
            files.add(each.with_suffix(suffix))
    if gone:
        what.insert(1 if inside else 0, count_text(len(gone), "-delete directory", "-delete directories"))
    for each in gone:
        files.add(each.all)
    if not files.count:
        return
    path, found = usage.directory.path, all_of(what)
    if state == RUNNING:
        text = f"{found}: the broker deletes them within file.delete.delay.ms (1 min); leave them to it"
        step = SpaceStep("deleted", WAIT, path, text, needs="running", freesAfter=DELETE_DELAY_MS)
        yield _removed(step, files, (), ())._replace(freesAtOnce=0)
        return
    patterns = [(each.place.path, "/*.deleted") for each in inside]
    patterns += [(each.place.path, "/*.cleaned") for each in unfinished]
    text = f"{found}: no broker reads them again; the next startup deletes them anyway"
    if unfinished:
        text += ". After startup, the log cleaner begins again, and needs the space of a segment"
    yield _removed(
        SpaceStep("deleted", FILES, path, text, needs="stopped"),
        files,
        [f"rm -f {shlex.quote(place)}{pattern}" for place, pattern in patterns] + [_remove(each) for each in gone],
        [place + pattern for place, pattern in patterns] + [each.place.path for each in gone],
    )


def _remove(partition: PartitionUsage) -> str:
    return f"rm -rf {shlex.quote(partition.place.path)}"


def _strays(strays: Sequence[tuple[PartitionUsage, StrayVerdict]], cost: str | None) -> Iterator[SpaceStep | SpaceKept]:
    """Yield the steps for the -stray directories that cost that, or why there is none."""
    for each, verdict in strays:
        place = each.place
        if verdict.cost != cost:
            continue
        if cost is None:
            text = f"not offered: {verdict.why}; copy it elsewhere, or pass --with"
            yield SpaceKept(place.path, each.allocated, False, text)
            continue
        text = f"stray directory: {verdict.why}"
        step = SpaceStep("stray", FILES, place.source, text, topic=place.topic, cost=cost, needs="stopped")
        yield _removed(step, each.all, [_remove(each)], [place.path])


def _postponed(disk: Disk, cleanings: Sequence[Cleaning]) -> Iterator[SpaceStep]:
    """Yield the steps that postpone the cleaning of topics, if all of it takes more than is free at the start."""
    here = [each for each in cleanings if each.log.usage.place.source in disk.sources]
    if disk.state != STOPPED or disk.system is None:
        return
    if sum(each.writes for each in here) <= disk.system.free + disk.freed:
        return
    text = (
        "the log cleaner begins at startup, and writes cleaned segments next to the old ones, which it deletes 1 min "
        f"later: more than is free then. This postpones it until you set the value back; {BY_CONTROLLER}"
    )
    writes: dict[str, int] = {}
    topics = {each.topic.name: each.topic for each in here if each.is_postponable}
    for each in here:
        if each.is_postponable:
            writes[each.topic.name] = writes.get(each.topic.name, 0) + each.writes
    for name, size in sorted(writes.items(), key=lambda pair: (-pair[1], pair[0])):
        command = alter_topic(name, f"--add-config {RATIO}=1")
        back = undo(topics[name], RATIO)
        yield SpaceStep("postponeCleaning", CONFIG, "", text, topic=name, size=size, command=command, undo=back)


class Segments:
    """The first segments of partitions that a row deletes, and which of them are removed by hand, so that a stopped
    broker has room to start: as many of the oldest as it lacks."""

    def __init__(self) -> None:
        self.files = Files()
        self.partitions = 0
        self.starts: list[KeptFrom] = []
        self._removable: list[tuple[RetainedLog, int]] = []
        self.commands: list[str] = []
        self.paths: list[str] = []
        self.at_once = 0

    def add(self, log: RetainedLog, stop: int, *, may_be_removed: bool) -> None:
        """Add the segments before number `stop` that no earlier row deletes."""
        first = log.goes
        if stop > first:
            self.partitions += 1
            size = sum(log.usage.sizes[first:stop])
            self.files.add(Files(stop - first, size, log.allocated(first, stop)))
            self.starts.append(KeptFrom(log.usage.key[1], log.start_after(stop)))
            log.goes = stop
        if may_be_removed and not log.waits and log.removed < log.goes:
            self._removable.append((log, log.goes))

    def remove(self, missing: int) -> None:
        """Remove what frees that many bytes. Those partitions whose first segments are largest come first."""
        for log, stop in sorted(self._removable, key=lambda pair: -pair[0].usage.allocs[pair[0].removed]):
            while self.at_once < missing and log.removed < stop:
                self.at_once += log.usage.allocs[log.removed]
                stem = f"{log.usage.place.path}/{log.usage.bases[log.removed]:020}"
                quoted = shlex.quote(stem)
                self.commands.append(f"rm -f {quoted}.log {quoted}.*index {quoted}.snapshot")
                self.paths += [f"{stem}.log", f"{stem}.*index", f"{stem}.snapshot"]
                log.removed += 1

    @property
    def removal_text(self) -> str:
        """What to say of those that are removed by hand; empty if none are."""
        count = len(self.commands)
        what = "the oldest segment" if count == 1 else f"the {count:,} oldest segments"
        return f"; {what} by hand, to make room for the startup" if count else ""


def _due(disk: Disk, topics: Sequence[RetainedTopic]) -> Iterator[SpaceStep]:
    """Yield the step in which the broker deletes what is due now."""
    found = Segments()
    is_assumed = False
    for topic in topics:
        for log in topic.logs:
            due = log.due(topic.settings)
            is_assumed |= due > 0 and not topic.is_certain("cleanup.policy", "retention.ms")
            found.add(log, due, may_be_removed=topic.may_be_removed())
    if not found.files.count:
        return
    found.remove(disk.lacks)
    text = (
        f"retention deletes {count_text(found.files.count, 'segment')} of {count_text(found.partitions, 'partition')} "
        "that are due now, "
        + ("at its next check" if disk.state == RUNNING else "30 s after startup, and their files 1 min later")
    )
    if is_assumed:
        text += "; some of them only if the broker has Kafka's default retention (see --properties)"
    is_by_hand = bool(found.commands)
    step = SpaceStep("retentionDue", FILES if is_by_hand else WAIT, "", text + found.removal_text, cost=DUE)
    yield _removed(step, found.files, found.commands, found.paths)._replace(
        freesAtOnce=found.at_once,
        isEstimate=is_assumed,
        needs="stopped" if is_by_hand else "running",
        freesAfter=_delay_ms(disk.state),
    )


def _delay_ms(state: str) -> int:
    """Return how long it takes at most until what is due is deleted: after startup, or of a running broker."""
    return (CHECK_MS if state == RUNNING else INITIAL_DELAY_MS) + DELETE_DELAY_MS


def _uncertain(disk: Disk, topics: Sequence[RetainedTopic]) -> Iterator[SpaceKept]:
    """Yield why segments are not removed: those of topics whose configs are unknown, and those that are due only if the
    broker has Kafka's defaults."""
    path = ", ".join(sorted(disk.sources))
    deleting = [topic for topic in topics if not topic.settings.compacts]
    unknown = [topic for topic in deleting if topic.is_unknown]
    allocated = sum(log.allocated(0, len(log.segments) - 1) for topic in unknown for log in topic.logs)
    if allocated:
        text = (
            f"segments of {count_text(len(unknown), 'topic')} whose configs are not in the metadata here, so that it "
            f"is unknown which are due: {UNKNOWN_CONFIGS}"
        )
        yield SpaceKept(path, allocated, False, text)
    assumed = [topic for topic in deleting if topic.settings.is_known and not topic.may_be_removed()]
    allocated = sum(log.allocated(0, log.goes) for topic in assumed for log in topic.logs)
    if allocated:
        text = (
            "segments that are due if the broker has Kafka's default retention: pass its server.properties with "
            "--properties, and they are offered to make room for the startup"
        )
        yield SpaceKept(path, allocated, False, text)


def _others(usage: DirectoryUsage) -> Iterator[SpaceStep]:
    """Yield the step for files and directories that are not Kafka's."""
    found: list[Foreign] = [each for each in usage.others if os.path.basename(each.path) != LOST_AND_FOUND]
    found += [each for part in usage.partitions if not part.place.state for each in part.unknown]
    found = sorted((each for each in found if each.files.allocated >= LARGE), key=lambda each: -each.files.allocated)
    if not found:
        return
    names = ", ".join(os.path.relpath(each.path, usage.directory.path) for each in found[:3])
    more = f" and {len(found) - 3:,} more" if len(found) > 3 else ""
    text = f"not Kafka's: {names}{more}; the broker needs none of them, but you may"
    files = Files()
    for each in found:
        files.add(each.files)
    paths = [each.path for each in found]
    command = "mv " + " ".join(map(shlex.quote, paths)) + " /ANOTHER/DISK/"
    yield _removed(SpaceStep("otherFiles", FILES, usage.directory.path, text, cost=JUDGE), files, [command], paths)


def _replicas(disk: Disk, given: Given) -> Iterator[SpaceStep | SpaceKept]:
    """Yield the step for the largest replicas that may go, and why others of the largest may not. Kafka's own topics
    are left alone."""
    if not given.copies.copies:
        return
    largest = sorted(
        (log for topic in given.topics if not topic.name.startswith("__") for log in topic.logs),
        key=lambda log: -log.usage.allocated,
    )
    stays: dict[Key, tuple[int, ...]] = {}
    logs, files, at_once = [], Files(), 0
    for log in largest[: given.limit]:
        found = given.copies.verdict(log.usage, given.node_id, log.facts.high_watermark)
        if not found.may_go:
            yield SpaceKept(log.usage.place.path, log.usage.allocated, False, f"replica not offered: {found.why}")
            continue
        stays[log.usage.key] = found.stays_on
        logs.append(log)
        files.add(log.usage.all)
        files.allocated -= log.allocated(0, log.goes)
        at_once += log.usage.allocated - log.allocated(0, log.removed)
        log.waits = True
    if not logs:
        return
    names = ", ".join(f"{topic}-{number}" for topic, number in stays)
    text = (
        f"{count_text(len(stays), 'replica')} complete on other brokers, by leader epochs and end offsets, gone from "
        f"here: {names}; each then has one replica less (compare the records first: kdump diff)"
    )
    commands = [
        f"echo {shlex.quote(reassignment(stays))} > reassign.json",
        "kafka-reassign-partitions.sh --bootstrap-server HOST:PORT --reassignment-json-file reassign.json --execute",
    ]
    is_running = disk.state == RUNNING
    removed = [] if is_running else logs
    sources = {log.usage.place.source for log in logs}
    source = min(sources) if len(sources) == 1 else ""
    yield _removed(
        SpaceStep("replicas", CONFIG, source, text, cost=REPLICA, needs="running" if is_running else "stopped"),
        files,
        [*commands, *(_remove(log.usage) for log in removed)],
        [log.usage.place.path for log in removed],
    )._replace(freesAtOnce=0 if is_running else at_once, freesAfter=DELETE_DELAY_MS if is_running else 0)


def _compacted(topic: RetainedTopic) -> Iterator[SpaceKept]:
    rolled = sum(log.allocated(0, len(log.segments) - 1) for log in topic.logs)
    if topic.settings.compacts and rolled:
        text = (
            f"compacted: kdump retention --keys estimates what the log cleaner would free, and {RATIO}=0.01 makes it "
            "begin; it first writes the cleaned segments next to the old ones"
        )
        yield SpaceKept(topic.name, rolled, False, text)


class _Lower(NamedTuple):
    """A lower value, and the number of segments of each partition that go with it and with those before it."""

    config: str
    value: int
    current: int
    goes: list[int]


def _lower_retention(disk: Disk, topic: RetainedTopic) -> Iterator[SpaceStep]:
    """Yield the steps that set lower values of retention.ms, and then of retention.bytes."""
    settings = topic.settings
    lower: dict[str, list[_Lower]] = {}
    goes = [log.goes for log in topic.logs]
    for config, value, current in topic.lower_values():
        settings = with_value(settings, config, value)
        below = [max(before, log.due(settings)) for before, log in zip(goes, topic.logs)]
        if any(log.allocated(*pair) for log, pair in zip(topic.logs, zip(goes, below))):
            lower.setdefault(config, []).append(_Lower(config, value, current, below))
            goes = below
    for each in (each for tried in lower.values() for each in _spread(tried)):
        found = Segments()
        for log, stop in zip(topic.logs, each.goes):
            found.add(log, stop, may_be_removed=topic.may_be_removed("cleanup.policy"))
        found.remove(disk.lacks)
        what = "older than the value" if each.config.endswith(".ms") else "above the value, for each partition"
        text = (
            f"deletes {count_text(found.files.count, 'segment')} of {topic.name} {what}: consumers that have not read "
            f"them lose these records{found.removal_text}"
        )
        if topic.is_unknown:
            text += "; the topic's configs are unknown: if it is compacted, this deletes nothing"
        if disk.state != RUNNING:
            text += f"; {BY_CONTROLLER}"
        command = alter_topic(topic.name, f"--add-config {each.config}={each.value}")
        step = SpaceStep("retention", CONFIG, "", text, topic=topic.name, cost=RECORDS)
        yield _removed(step, found.files, [command, *found.commands], found.paths)._replace(
            config=each.config,
            value=each.value,
            current=each.current,
            freesAtOnce=found.at_once,
            isEstimate=topic.is_unknown,
            needs="stopped" if found.commands else "any",
            freesAfter=_delay_ms(disk.state),
            undo=undo(topic, each.config),
            logStartOffsets=tuple(found.starts),
        )


def _spread(tried: list[_Lower]) -> list[_Lower]:
    """Return at most SHOWN of them: the first, the last, and some between."""
    if len(tried) <= SHOWN:
        return tried
    return [tried[number] for number in sorted({round(n * (len(tried) - 1) / (SHOWN - 1)) for n in range(SHOWN)})]


def alter_topic(topic: str, change: str) -> str:
    """Return the command that changes a config of a topic."""
    name = shlex.quote(topic)
    return f"kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name {name} {change}"


def undo(topic: RetainedTopic, config: str) -> str:
    """Return the command that restores the config."""
    before = topic.settings.values[config]
    own = f"--add-config {config}={before.value}" if before.source == TOPIC else f"--delete-config {config}"
    return alter_topic(topic.name, own)
