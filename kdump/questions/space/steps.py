"""The rows of the table: what frees space on a file system, in the order in which an operator would take it.

What costs nothing comes first, then what retention deletes anyway, what only the operator can judge, replicas that are
complete elsewhere, and last the records that consumers may still read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from kdump.format.count_text import all_of, count_text, first_of
from kdump.problems.problem import title_of
from kdump.questions.restart_plan.node.access_rights import MOST_RESERVED
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
from kdump.questions.space.replica_copies import ReplicaCopies, reassignment, stray_verdict
from kdump.questions.space.retained_topics import Cleaning, RetainedTopic, with_value
from kdump.questions.space.usage import DirectoryUsage, Files, PartitionUsage, total
from kdump.text import host_word, shell_word

DELETE_DELAY_MS = 60_000
"""Default of file.delete.delay.ms and log.segment.delete.delay.ms."""
INITIAL_DELAY_MS, CHECK_MS = 30_000, 300_000
"""Defaults of log.initial.task.delay.ms and log.retention.check.interval.ms."""
LEAVE_RESERVED = 64 << 20
"""Reserved bytes of a file system from which lowering them is worth a step."""
LOST_AND_FOUND = "lost+found"
LARGE = 65_536
"""Allocated bytes from which a file that is not Kafka's is worth mentioning."""
SHOWN = 4
"""Maximum number of lower values of a config of a topic."""
RATIO = "min.cleanable.dirty.ratio"


class Given(NamedTuple):
    """What the rows of a file system are made from. `topics`: with their partitions there, the largest first;
    `cleanings`: those after a startup; `limit`: number of topics and replicas to examine."""

    topics: Sequence[RetainedTopic]
    cleanings: Sequence[Cleaning]
    copies: ReplicaCopies
    node_id: int | None
    limit: int
    is_selected: Callable[[str], bool]

    def selects(self, usage: PartitionUsage) -> bool:
        return self.is_selected(usage.place.topic or "")


def steps(disk: Disk, given: Given) -> Iterator[SpaceStep | SpaceKept]:
    """Yield the rows, and what is not offered. The caller gives each row to `disk.take` before the next: what it still
    lacks decides how many segments of the next are removed by hand."""
    yield from _reserved(disk)
    for usage in disk.usages:
        yield from _deleted(usage, disk.state, given)
    strays = _strays(disk, given)
    yield from (row for cost, row in strays if cost == NOTHING)
    yield from _postponed(disk, given.cleanings)
    yield from _due(disk, given.topics)
    largest = given.topics[: given.limit]
    for topic in largest:
        if topic.stays_remote:
            yield from _lower_retention(disk, topic)
    if disk.lacks:
        yield from _uncertain(disk, given.topics)
    for usage in disk.usages:
        yield from _others(usage)
    yield from (row for cost, row in strays if cost == JUDGE)
    yield from (row for cost, row in strays if cost is None)
    yield from _replicas(disk, given)
    for topic in largest:
        yield from _compacted(topic)
        if not topic.stays_remote:
            yield from _lower_retention(disk, topic)


def _removal(
    step: str,
    how: str,
    source: str,
    text: str,
    files: Files,
    commands: Iterable[str],
    paths: Iterable[str],
    **more: Any,
) -> SpaceStep:
    """Return a step that removes files, which frees what they occupy, at once unless `more` has other bytes."""
    row = SpaceStep(step, how, source, text, command="\n".join(commands), paths=tuple(paths))
    sums = {"frees": files.allocated, "freesAtOnce": files.allocated, "size": files.size, "files": files.number}
    return row._replace(**{**sums, **more})


def _remove(usage: PartitionUsage) -> str:
    return f"rm -rf {host_word(usage.place.path)}"


def _reserved(disk: Disk) -> Iterator[SpaceStep]:
    """Yield the step that hands blocks reserved for root to the broker (ext4 reserves 5 %)."""
    system = disk.system
    if system is None or system.device is None or not (system.fileSystem or "").startswith("ext"):
        return
    if LEAVE_RESERVED <= system.reserved <= system.total * MOST_RESERVED:
        text = title_of("space-reservedBlocks", fileSystem=system.fileSystem)
        commands, size = [f"tune2fs -m 0 {shell_word(system.device)}"], Files(allocated=system.reserved)
        yield _removal("reservedBlocks", CONFIG, min(disk.sources), text, size, commands, ())


def _deleted(usage: DirectoryUsage, state: str, given: Given) -> Iterator[SpaceStep]:
    """Yield the step for .deleted and .cleaned files and -delete directories, which no broker reads again.

    A startup deletes all .cleaned files, but they also determine which .swap files it completes (LogLoader): they stay
    in a partition that has any of these."""
    gone = [part for part in usage.in_state("delete") if given.selects(part)]
    live = [part for part in usage.live() if given.selects(part)]
    inside = [part for part in live if ".deleted" in part.left]
    is_left = [part for part in live if ".cleaned" in part.left and ".swap" not in part.left]
    unfinished = is_left if state == STOPPED else []
    deleted = total(part.with_suffix(".deleted") for part in inside)
    cleaned = total(part.with_suffix(".cleaned") for part in unfinished)
    what = (
        [f"{count_text(deleted.number, '.deleted file')} of {count_text(len(inside), 'partition')}"]
        if deleted.number
        else []
    )
    what += [count_text(len(gone), "-delete directory", "-delete directories")] if gone else []
    what += [f"{count_text(cleaned.number, '.cleaned file')} of an interrupted log cleaner"] if cleaned.number else []
    files = total((deleted, cleaned, *(part.all for part in gone)))
    if not files.number:
        return
    where, names = usage.directory.path, all_of(what)
    if state == RUNNING:
        text = title_of("space-deleted", "running", what=names)
        later = {"freesAtOnce": 0, "needs": "running", "freesAfter": DELETE_DELAY_MS}
        yield _removal("deleted", WAIT, where, text, files, (), (), **later)
        return
    patterns = [(part.place.path, "/*.deleted") for part in inside]
    patterns += [(part.place.path, "/*.cleaned") for part in unfinished]
    copy = f". {title_of('space-deleted', 'copy')}" if gone else ""
    text = title_of("space-deleted", "unfinished" if unfinished else "", what=names, copy=copy)
    commands = [f"rm -f {host_word(path)}{pattern}" for path, pattern in patterns] + [_remove(part) for part in gone]
    paths = [path + pattern for path, pattern in patterns] + [part.place.path for part in gone]
    yield _removal("deleted", FILES, where, text, files, commands, paths, needs="stopped")


def _strays(disk: Disk, given: Given) -> list[tuple[str | None, SpaceStep | SpaceKept]]:
    """Return the steps for the -stray directories, each with what it costs, and None with why there is none."""
    rows: list[tuple[str | None, SpaceStep | SpaceKept]] = []
    for stray in (part for usage in disk.usages for part in usage.in_state("stray") if given.selects(part)):
        place = stray.place
        cost, why = stray_verdict(place, given.copies, given.node_id)
        if cost is None:
            text = title_of("space-stray", "kept", why=why)
            rows.append((None, SpaceKept(place.path, stray.allocated, False, text)))
            continue
        remove, more = [_remove(stray)], {"topic": place.topic, "cost": cost, "needs": "stopped"}
        text = title_of("space-stray", why=why)
        rows.append((cost, _removal("stray", FILES, place.source, text, stray.all, remove, [place.path], **more)))
    return rows


def _postponed(disk: Disk, cleanings: Sequence[Cleaning]) -> Iterator[SpaceStep]:
    """Yield the steps that postpone the cleaning of topics, if all of it takes more than is free at the start."""
    here = [cleaning for cleaning in cleanings if cleaning.log.place.source in disk.sources]
    if disk.state != STOPPED or disk.system is None:
        return
    if sum(cleaning.writes for cleaning in here) <= disk.system.free + disk.freed:
        return
    text = title_of("space-postponeCleaning")
    sizes: list[tuple[int, str, RetainedTopic]] = []
    for name, of_topic in groupby(
        (cleaning for cleaning in here if cleaning.is_postponable), lambda cleaning: cleaning.topic.name
    ):
        parts = list(of_topic)
        sizes.append((sum(cleaning.writes for cleaning in parts), name, parts[0].topic))
    for size, name, topic in sorted(sizes, key=lambda row: (-row[0], row[1])):
        command, back = alter_topic(name, f"--add-config {RATIO}=1"), undo(topic, RATIO)
        yield SpaceStep("postponeCleaning", CONFIG, "", text, topic=name, size=size, command=command, undo=back)


class Deleted(NamedTuple):
    """The first segments of partitions that a row deletes, and which of them are removed by hand, so that a stopped
    broker has room to start: as many of the oldest as it lacks. `removal`: what to say of these."""

    files: Files
    starts: list[KeptFrom]
    commands: list[str]
    paths: list[str]
    at_once: int
    removal: str


def _deleted_segments(stops: Iterable[tuple[PartitionUsage, int, bool]], missing: int) -> Deleted:
    """Return what a row deletes. `stops`: partitions, each with the number of the first segment that stays, and whether
    segments may be removed by hand; `missing`: bytes that are to be freed at once."""
    gone, starts, removable = [], [], []
    commands: list[str] = []
    paths: list[str] = []
    at_once = 0
    for log, stop, may_be_removed in stops:
        if stop > log.goes:
            gone += log.segments[log.goes : stop]
            starts.append(KeptFrom(log.key[1], max(log.facts.log_start, log.segments[stop].baseOffset)))
            log.goes = stop
        if may_be_removed and not log.waits and log.removed < log.goes:
            removable.append(log)
    # Those partitions whose first segments are largest come first.
    for log in sorted(removable, key=lambda log: -log.segments[log.removed].allocated):
        while at_once < missing and log.removed < log.goes:
            segment = log.segments[log.removed]
            at_once += segment.allocated
            stem = f"{log.place.path}/{segment.baseOffset:020}"
            quoted = host_word(stem)
            commands.append(f"rm -f {quoted}.log {quoted}.*index {quoted}.snapshot")
            paths += [f"{stem}.log", f"{stem}.*index", f"{stem}.snapshot"]
            log.removed += 1
    count = len(commands)
    what = "the oldest segment" if count == 1 else f"the {count:,} oldest segments"
    removal = f"; {what} by hand, to make room for the startup" if count else ""
    size, allocated = (sum(getattr(segment, name) for segment in gone) for name in ("size", "allocated"))
    return Deleted(Files(len(gone), size, allocated), starts, commands, paths, at_once, removal)


def _due(disk: Disk, topics: Sequence[RetainedTopic]) -> Iterator[SpaceStep]:
    """Yield the step in which the broker deletes what is due now."""
    due = [(topic, log, log.due(topic.settings)) for topic in topics for log in topic.logs]
    is_assumed = any(count and not topic.is_certain("cleanup.policy", "retention.ms") for topic, _, count in due)
    deleted = _deleted_segments([(log, count, topic.may_be_removed()) for topic, log, count in due], disk.lacks)
    files = deleted.files
    if not files.number:
        return
    assumed = "; some of them only if the broker has Kafka's default retention (see --properties)" if is_assumed else ""
    text = title_of(
        "space-retentionDue",
        segments=count_text(files.number, "segment"),
        partitions=count_text(len(deleted.starts), "partition"),
        when="at its next check" if disk.state == RUNNING else "30 s after startup, and their files 1 min later",
        assumed=assumed,
        removal=deleted.removal,
    )
    how, needs = (FILES, "stopped") if deleted.commands else (WAIT, "running")
    row = _removal("retentionDue", how, "", text, files, deleted.commands, deleted.paths)
    row = row._replace(freesAtOnce=deleted.at_once, isEstimate=is_assumed)
    yield row._replace(cost=DUE, needs=needs, freesAfter=_delay_ms(disk.state))


def _delay_ms(state: str) -> int:
    """Return how long it takes at most until what is due is deleted: after startup, or of a running broker."""
    return (CHECK_MS if state == RUNNING else INITIAL_DELAY_MS) + DELETE_DELAY_MS


def _uncertain(disk: Disk, topics: Sequence[RetainedTopic]) -> Iterator[SpaceKept]:
    """Yield why segments are not removed: those of topics whose configs are unknown, and those that are due only if the
    broker has Kafka's defaults."""
    deleting = [topic for topic in topics if not topic.settings.compacts]
    unknown = [topic for topic in deleting if topic.is_unknown]
    assumed = [topic for topic in deleting if topic.settings.is_known and not topic.may_be_removed()]
    of_unknown = title_of("space-unknown", topics=count_text(len(unknown), "topic"))
    of_assumed = title_of("space-unknown", "assumed")
    rolled = sum(log.occupied(0, len(log.segments) - 1) for topic in unknown for log in topic.logs)
    due = sum(log.occupied(0, log.goes) for topic in assumed for log in topic.logs)
    for why, allocated in ((of_unknown, rolled), (of_assumed, due)):
        if allocated:
            yield SpaceKept(", ".join(sorted(disk.sources)), allocated, False, why)


def _others(usage: DirectoryUsage) -> Iterator[SpaceStep]:
    """Yield the step for files and directories that are not Kafka's."""
    foreign = [other for other in usage.others if os.path.basename(other.path) != LOST_AND_FOUND]
    foreign += [other for part in usage.in_state("") for other in part.unknown]
    foreign = sorted((other for other in foreign if other.files.allocated >= LARGE), key=lambda one: -one.files[2])
    if foreign:
        paths, where = [other.path for other in foreign], usage.directory.path
        names = first_of([os.path.relpath(path, where) for path in paths], 3)
        text = title_of("space-otherFiles", names=names)
        commands = [" ".join(("mv", *map(host_word, paths), "/ANOTHER/DISK/"))]
        files = total(other.files for other in foreign)
        yield _removal("otherFiles", FILES, where, text, files, commands, paths, cost=JUDGE)


def _replicas(disk: Disk, given: Given) -> Iterator[SpaceStep | SpaceKept]:
    """Yield the step for the largest replicas that may go, and why others of the largest may not. Kafka's own topics
    are left alone."""
    if not given.copies.copies:
        return
    every = (log for topic in given.topics if not topic.name.startswith("__") for log in topic.logs)
    stays: dict[tuple[str, int], tuple[int, ...]] = {}
    logs = []
    for log in sorted(every, key=lambda log: -log.allocated)[: given.limit]:
        verdict = given.copies.verdict(log, given.node_id, log.facts.high_watermark)
        if verdict.may_go:
            stays[log.key] = verdict.stays_on
            logs.append(log)
            log.waits = True
        else:
            yield SpaceKept(log.place.path, log.allocated, False, title_of("space-replicas", "kept", why=verdict.why))
    if not logs:
        return
    names = ", ".join(f"{topic}-{number}" for topic, number in stays)
    text = title_of("space-replicas", replicas=count_text(len(stays), "replica"), names=names)
    commands = [
        f"echo {shell_word(reassignment(stays))} > reassign.json",
        "kafka-reassign-partitions.sh --bootstrap-server HOST:PORT --reassignment-json-file reassign.json --execute",
    ]
    is_running = disk.state == RUNNING
    removed = [] if is_running else logs
    sources = {log.place.source for log in logs}
    source = min(sources) if len(sources) == 1 else ""
    commands += map(_remove, removed)
    # What earlier rows free is not freed again.
    frees = sum(log.allocated - log.occupied(0, log.goes) for log in logs)
    at_once = sum(log.allocated - log.occupied(0, log.removed) for log in removed)
    row = _removal("replicas", CONFIG, source, text, total(log.all for log in logs), commands, ())
    row = row._replace(frees=frees, freesAtOnce=at_once, paths=tuple(log.place.path for log in removed), cost=REPLICA)
    yield row._replace(needs="running" if is_running else "stopped", freesAfter=DELETE_DELAY_MS if is_running else 0)


def _compacted(topic: RetainedTopic) -> Iterator[SpaceKept]:
    rolled = sum(log.occupied(0, len(log.segments) - 1) for log in topic.logs)
    if topic.settings.compacts and rolled:
        text = title_of("space-compacted", ratio=RATIO)
        yield SpaceKept(topic.name, rolled, False, text)


def _lower_retention(disk: Disk, topic: RetainedTopic) -> Iterator[SpaceStep]:
    """Yield the steps that set lower values of retention.ms, and then of retention.bytes: of those that delete
    something, the first, the last, and some between."""
    settings = topic.settings
    tried: dict[str, list[tuple[int, int, list[int]]]] = {}
    stops = [log.goes for log in topic.logs]
    for config, value, current in topic.lower_values():
        settings = with_value(settings, config, value)
        below = [max(before, log.due(settings)) for before, log in zip(stops, topic.logs)]
        if any(log.occupied(*pair) for log, pair in zip(topic.logs, zip(stops, below))):
            tried.setdefault(config, []).append((value, current, below))
            stops = below
    may_be_removed = topic.may_be_removed("cleanup.policy")
    for config, values in tried.items():
        what = "older than the value" if config.endswith(".ms") else "above the value, for each partition"
        for value, current, below in _spread(values):
            deleted = _deleted_segments([(*pair, may_be_removed) for pair in zip(topic.logs, below)], disk.lacks)
            unknown = "; the topic's configs are unknown: if it is compacted, this deletes nothing"
            text = title_of(
                "space-retention",
                "remote" if topic.stays_remote else "",
                segments=count_text(deleted.files.number, "segment"),
                topic=topic.name,
                what=what,
                removal=deleted.removal,
                unknown=unknown if topic.is_unknown else "",
                controller="" if disk.state == RUNNING else f"; {title_of('space-retention', 'controller')}",
            )
            commands = [alter_topic(topic.name, f"--add-config {config}={value}"), *deleted.commands]
            yield _removal("retention", CONFIG, "", text, deleted.files, commands, deleted.paths)._replace(
                topic=topic.name,
                cost=NOTHING if topic.stays_remote else RECORDS,
                config=config,
                value=value,
                current=current,
                freesAtOnce=deleted.at_once,
                isEstimate=topic.is_unknown,
                needs="stopped" if deleted.commands else "any",
                freesAfter=_delay_ms(disk.state),
                undo=undo(topic, config),
                logStartOffsets=() if topic.settings.is_tiered else tuple(deleted.starts),
            )


def _spread(values: list[Any]) -> list[Any]:
    """Return at most SHOWN of them: the first, the last, and some between."""
    if len(values) <= SHOWN:
        return values
    return [values[number] for number in sorted({round(n * (len(values) - 1) / (SHOWN - 1)) for n in range(SHOWN)})]


def alter_topic(topic: str, change: str) -> str:
    """Return the command that changes a config of a topic."""
    name = shell_word(topic)
    return f"kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name {name} {change}"


def undo(topic: RetainedTopic, config: str) -> str:
    """Return the command that restores the config."""
    before = topic.settings.values[config]
    own = f"--add-config {config}={before.value}" if before.source == TOPIC else f"--delete-config {config}"
    return alter_topic(topic.name, own)
