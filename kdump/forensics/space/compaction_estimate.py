"""What the next cleaning of compacted topics frees: an estimate, because the cleaner's output is compressed again, and
records of one batch go one by one.

The largest compacted partitions are read for that (`kdump retention --keys`), if asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdump.forensics.retention.answers import PartitionRetention
from kdump.forensics.retention.partition import RetentionQuery
from kdump.forensics.retention.run import run_query
from kdump.forensics.space.answers import CONFIG, NOTHING, RUNNING, SpaceKept, SpaceStep
from kdump.forensics.space.first_cleaning import LOW_RATIO, RATIO
from kdump.forensics.space.leftover_steps import step
from kdump.forensics.space.lower_retention import BY_CONTROLLER, RetainedTopic, alter_topic, undo
from kdump.format.count_text import count_text
from kdump.format.size_text import size_text
from kdump.log.run import Run


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
