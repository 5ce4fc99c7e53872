"""The step that gives up replicas which are complete on other brokers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from kdump.forensics.space.answers import CONFIG, REPLICA, RUNNING, SpaceKept, SpaceStep
from kdump.forensics.space.leftover_steps import DELETE_DELAY_MS, step
from kdump.forensics.space.lower_retention import RetainedTopic
from kdump.forensics.space.replica_copies import Key, ReplicaCopies, reassignment
from kdump.forensics.space.usage import PartitionUsage
from kdump.format.count_text import count_text


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
