"""The steps that cost no record that retention keeps.

The largest compacted partitions are read for that (`kdump retention --keys`), if asked for.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from kdump.check.options import Options
from kdump.cluster.disks import Node
from kdump.forensics.retention.answers import PartitionRetention
from kdump.forensics.retention.partition import RetentionQuery
from kdump.forensics.retention.run import run_query
from kdump.forensics.space.answers import CONFIG, NOTHING, REPLICA, RUNNING, SpaceKept, SpaceStep
from kdump.forensics.space.broker_disks import BrokerDisks
from kdump.forensics.space.brokers import state_of
from kdump.forensics.space.first_cleaning import LOW_RATIO, RATIO
from kdump.forensics.space.leftover_steps import DELETE_DELAY_MS, deleted_steps, other_steps, step, stray_steps
from kdump.forensics.space.lower_retention import BY_CONTROLLER, RetainedTopic, alter_topic, undo
from kdump.forensics.space.query import SpaceQuery
from kdump.forensics.space.replica_copies import Key, ReplicaCopies, reassignment
from kdump.forensics.space.retention_steps import due_step, reserved_step
from kdump.forensics.space.usage import PartitionUsage
from kdump.format.count_text import count_text
from kdump.format.size_text import size_text
from kdump.log.run import Run
from kdump.state.metadata_image import MetadataImage


def costless_steps(
    broker: Node,
    others: Sequence[Node],
    metadata: MetadataImage | None,
    disks: BrokerDisks,
    topics: Sequence[RetainedTopic],
    due: Mapping[str, list[int]],
    question: SpaceQuery,
    now: int,
    run: Run,
) -> Iterator[SpaceStep | SpaceKept]:
    """Yield the steps, and what is not offered. `topics`: the largest first; `due`: number of due segments by topic and
    partition; `now`: epoch ms."""
    state, node = state_of(broker), broker.node_id
    copies = ReplicaCopies(others, metadata, Options(run.limits, now=now), question.given.properties)
    for device, system in disks.systems.items():
        yield from reserved_step(system, min(disks.sources[device]))
    for usage in disks.usages:
        yield from deleted_steps(usage, state, question.topic)
        yield from other_steps(usage)
        yield from stray_steps(usage, copies, node, question.topic)
    step = due_step(topics, due, state)
    if step is not None:
        yield step
    query = RetentionQuery(now=now, given=question.given, deep=False, keys=True)
    for topic in topics[: question.limit]:
        yield from compaction_steps(topic, query, run, reads_keys=question.keys, broker=state)
    if others:
        yield from replica_steps(topics, copies, node, question.limit, state)


def replica_steps(
    topics: Sequence[RetainedTopic], copies: ReplicaCopies, node_id: int | None, limit: int, broker: str
) -> Iterator[SpaceStep | SpaceKept]:
    """Yield the steps for the largest replicas that may go, at most `limit`, one for each log directory, and why others
    of the largest may not. Kafka's own topics are left alone."""
    largest = sorted(
        (log for topic in topics if not topic.name.startswith("__") for log in topic.logs),
        key=lambda log: -log.usage.allocated,
    )
    stays: dict[str, dict[Key, tuple[int, ...]]] = {}
    usages: dict[str, list[PartitionUsage]] = {}
    for log in largest[:limit]:
        found = copies.verdict(log.usage, node_id, log.facts.high_watermark)
        if found.may_go:
            source = log.usage.place.source
            stays.setdefault(source, {})[log.usage.key] = found.stays_on
            usages.setdefault(source, []).append(log.usage)
        else:
            yield SpaceKept(log.usage.place.path, log.usage.allocated, False, f"replica not offered: {found.why}")
    for source, here in stays.items():
        yield _step(source, here, usages[source], broker)


def _step(source: str, stays: dict[Key, tuple[int, ...]], usages: list[PartitionUsage], broker: str) -> SpaceStep:
    names = ", ".join(f"{topic}-{number}" for topic, number in stays)
    text = (
        f"{count_text(len(stays), 'replica')} complete on other brokers, by leader epochs and end offsets, gone from "
        f"here: {names}; each then has one replica less (compare the records first: kdump diff)"
    )
    lines = [
        f"echo {shlex.quote(reassignment(stays))} > reassign.json",
        "kafka-reassign-partitions.sh --bootstrap-server HOST:PORT --reassignment-json-file reassign.json --execute",
    ]
    if broker != RUNNING:
        lines += [f"rm -rf {shlex.quote(each.place.path)}" for each in usages]
    return step(
        "replicas",
        CONFIG,
        source,
        frees=sum(each.allocated for each in usages),
        size=sum(each.size for each in usages),
        files=sum(each.files for each in usages),
        cost=REPLICA,
        needs="running" if broker == RUNNING else "stopped",
        freesAfter=DELETE_DELAY_MS if broker == RUNNING else 0,
        text=text,
        command="\n".join(lines),
        paths=() if broker == RUNNING else tuple(each.place.path for each in usages),
    )


def compaction_steps(
    topic: RetainedTopic, question: RetentionQuery, run: Run, *, reads_keys: bool, broker: str
) -> Iterator[SpaceStep | SpaceKept]:
    """Yield the step that makes the cleaner clean a compacted topic, or why its effect is not known."""
    rolled = sum(log.allocated(0, len(log.segments) - 1) for log in topic.logs)
    if not topic.settings.compacts or not rolled:
        return
    if not reads_keys:
        text = "compacted: pass --keys to read its keys, and to estimate what the log cleaner would free"
        yield SpaceKept(topic.name, rolled, False, text)
        return
    frees = writes = 0
    waiting = []
    for log in topic.logs:
        for answer in run_query([log.usage.place.path], question, run=Run(run.limits, run.unreadable)):
            if isinstance(answer, PartitionRetention) and answer.cleanedBytes and answer.droppedBytes:
                reached = (answer.cleanBytes or 0) + (answer.cleanableBytes or 0)
                dropped = min(rolled, reached * answer.droppedBytes // answer.cleanedBytes)
                frees += dropped
                writes += reached - dropped
                if not answer.wouldClean:
                    waiting.append(answer.partition)
    if not frees:
        yield SpaceKept(topic.name, rolled, False, "compacted: the next cleaning would free nothing")
        return
    text = (
        f"the log cleaner drops replaced records of {topic.name}. It first writes the cleaned segments next to the old "
        f"ones, which go 1 min later: until then, that takes about {size_text(writes)}"
    )
    command = ""
    if waiting:
        text += f"; {count_text(len(waiting), 'partition')} below {RATIO}"
        command = alter_topic(topic.name, f"--add-config {RATIO}={LOW_RATIO}")
        if broker != RUNNING:
            text += f"; {BY_CONTROLLER}"
    yield step(
        "compaction",
        CONFIG if command else "wait",
        "",
        topic=topic.name,
        frees=frees,
        size=frees,
        isEstimate=True,
        cost=NOTHING,
        needs="running",
        freesAfter=None,
        text=text,
        command=command,
        undo=undo(topic, RATIO) if command else "",
    )
