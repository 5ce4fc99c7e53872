"""Steps that need no file names: configs, what the broker deletes by itself, and blocks reserved for root."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from kdump.forensics.space.answers import CONFIG, DUE, NOTHING, RECORDS, RUNNING, WAIT, SpaceCandidate, SpaceStep
from kdump.forensics.space.file_systems import FileSystem
from kdump.forensics.space.leftover_steps import DELETE_DELAY_MS, step
from kdump.forensics.space.lower_retention import BY_CONTROLLER, RetainedTopic
from kdump.format.count_text import count_text

INITIAL_DELAY_MS, CHECK_MS = 30_000, 300_000
"""Defaults of log.initial.task.delay.ms and log.retention.check.interval.ms."""
LEAVE_RESERVED = 64 << 20
"""Reserved bytes of a file system from which lowering them is worth a step."""
MOST_RESERVED = 0.1
"""Share of a file system above which something else than tune2fs reserves its blocks, such as a quota: mke2fs reserves
5 %."""


def delay_ms(broker: str) -> int:
    """Return how long it takes at most until what is due is deleted: after startup, or of a running broker."""
    return (CHECK_MS if broker == RUNNING else INITIAL_DELAY_MS) + DELETE_DELAY_MS


def reserved_step(system: FileSystem, source: str) -> Iterator[SpaceStep]:
    """Yield the step that hands blocks reserved for root to the broker (ext4 reserves 5 %)."""
    is_ext = system.source is not None and (system.type or "").startswith("ext")
    if not is_ext or not LEAVE_RESERVED <= system.reserved <= system.total * MOST_RESERVED:
        return
    yield step(
        "reservedBlocks",
        CONFIG,
        source,
        frees=system.reserved,
        cost=NOTHING,
        text=f"{system.type} reserves these blocks for root, which a disk of log directories does not need; a broker "
        "that runs as root has them already",
        command=f"tune2fs -m 0 {shlex.quote(system.source or '')}",
    )


def due_step(topics: Sequence[RetainedTopic], due: Mapping[str, list[int]], broker: str) -> SpaceStep | None:
    """Return the step in which the broker deletes what is due now; None if nothing is."""
    frees = size = files = partitions = 0
    is_assumed = False
    for topic in topics:
        is_assumed |= any(due[topic.name]) and not topic.is_certain("cleanup.policy", "retention.ms")
        for log, count in zip(topic.logs, due[topic.name]):
            partitions += count > 0
            frees += log.allocated(0, count)
            size += sum(log.usage.sizes[:count])
            files += count
    if not files:
        return None
    text = (
        f"retention deletes {count_text(files, 'segment')} of {count_text(partitions, 'partition')} that are due now, "
        + ("at its next check" if broker == RUNNING else "30 s after startup, and their files 1 min later")
    )
    if is_assumed:
        text += "; some of them only if the broker has Kafka's default retention (see --properties)"
    return step(
        "retentionDue",
        WAIT,
        "",
        frees=frees,
        size=size,
        files=files,
        cost=DUE,
        needs="running",
        freesAfter=delay_ms(broker),
        text=text,
        isEstimate=is_assumed,
    )


def lower_step(chosen: SpaceCandidate, broker: str, *, is_unknown: bool) -> SpaceStep:
    """Return the step that sets a lower value. `is_unknown`: whether the topic's configs are."""
    what = "older than the value" if chosen.config.endswith(".ms") else "above the value, for each partition"
    text = (
        f"deletes {count_text(chosen.segments, 'segment')} of {chosen.topic} {what}: consumers that have not read them "
        "lose these records"
    )
    if is_unknown:
        text += "; the topic's configs are unknown: if it is compacted, this deletes nothing"
    if broker != RUNNING:
        text += f"; {BY_CONTROLLER}"
    return step(
        "retention",
        CONFIG,
        "",
        topic=chosen.topic,
        frees=chosen.frees,
        size=chosen.frees,
        files=chosen.segments,
        cost=RECORDS,
        needs="any",
        freesAfter=delay_ms(broker),
        text=text,
        command=chosen.command,
        undo=chosen.undo,
        isEstimate=is_unknown,
    )
