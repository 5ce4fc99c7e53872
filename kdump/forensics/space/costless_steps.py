"""The steps that cost no record that retention keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kdump.check.options import Options
from kdump.cluster.disks import Node
from kdump.forensics.retention.partition import RetentionQuery
from kdump.forensics.space.answers import SpaceKept, SpaceStep
from kdump.forensics.space.broker_disks import BrokerDisks
from kdump.forensics.space.brokers import state_of
from kdump.forensics.space.compaction_estimate import compaction_steps
from kdump.forensics.space.leftover_steps import deleted_steps, other_steps, stray_steps
from kdump.forensics.space.lower_retention import RetainedTopic
from kdump.forensics.space.query import SpaceQuery
from kdump.forensics.space.replica_copies import ReplicaCopies
from kdump.forensics.space.replica_steps import replica_steps
from kdump.forensics.space.retention_steps import due_step, reserved_step
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
