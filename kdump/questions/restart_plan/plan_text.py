"""Sentences about a plan: what it loses, and which release is started."""

from __future__ import annotations

from collections.abc import Iterator

from kdump.cluster.release_evidence import DEFAULT, DISK, OPTION
from kdump.format.count_text import count_text, first_of
from kdump.format.kafka_release import NEWEST, ZOOKEEPER, parse_release
from kdump.questions.restart_plan.answer import CLEAN, DEGRADED, RECOVERY, STOPPED, PartitionPlan, RestartPlan, totals

STARTS = {
    CLEAN: "starts after a clean shutdown",
    RECOVERY: "starts after an unclean shutdown and recovers its logs",
    DEGRADED: "STARTS WITHOUT A LOG DIRECTORY",
    STOPPED: "DOES NOT START",
}
UNKNOWN_START = "UNKNOWN WHETHER IT STARTS"
MAX_REASONS = 3
"""Maximum number of reasons that a verdict names."""


def loss_texts(plan: RestartPlan) -> list[str]:
    """Return what the startup loses, for the verdict: LOSES RECORDS of 2 partitions. Empty if it loses nothing."""
    numbers = totals(plan.logs)
    new = sum(1 for partition in plan.partitions if partition.losesOnlyNew)
    gone = plan.missing
    lost = sum(1 for partition in plan.partitions if partition.loses and not partition.missing) - new
    parts = []
    if gone:
        heading = count_text(len(gone), "MISSING PARTITION", "MISSING PARTITIONS")
        names = first_of([log.name for log in gone])
        is_created = any(log.steps for log in gone)
        parts.append(f"CREATES {heading} EMPTY ({names})" if is_created else f"LACKS {heading} ({names})")
    if lost:
        parts.append(f"LOSES RECORDS of {count_text(lost, 'partition')}")
    if new:
        parts.append(f"LOSES NEW RECORDS of {count_text(new, 'partition')}")
    if numbers.strays:
        every = "all " if 1 < numbers.strays == numbers.partitions else ""
        deletes = any(log.strayDeleted for log in plan.logs)
        partitions = f"{every}{count_text(numbers.strays, 'partition')}"
        parts.append(f"DELETES {partitions} AS STRAY" if deletes else f"MAKES {partitions} STRAY")
    return parts


LOADS = "loading the logs loses"


def no_loss_text(plan: RestartPlan) -> str:
    """Return that loading the logs loses nothing, which is what was looked at: not what retention deletes later, or a
    leader that lacks records. Of records alone if there are warnings, which may be about anything."""
    warnings = plan.warnings
    return f"{LOADS} no records; {count_text(len(warnings), 'warning')}" if warnings else f"{LOADS} nothing"


def metadata_text(plan: RestartPlan) -> str:
    """Return what a startup does if no controller has the metadata that is not here; empty if it is here."""
    if not plan.withoutMetadata:
        return ""
    logs = [log for log in plan.logs if log.state not in ("delete", "stray") and not log.stray]
    heading = "the metadata log here has no topics" if plan.withoutTopics else "there is no metadata log here"
    count = f"{'all ' if len(logs) > 1 else ''}{count_text(len(logs), 'partition')}"
    return f"{heading}: if the controllers have none either, MAKES {count} STRAY" if logs else heading


def unknown_text(plan: RestartPlan) -> str:
    """Return why it is not known whether the node starts, and what it does by the rules that are known."""
    assert plan.release is not None
    reasons = ", ".join(plan.unknowns[:MAX_REASONS])
    more = len(plan.unknowns) - MAX_REASONS
    is_newer = parse_release(plan.release.version).is_newer
    of = NEWEST.number if is_newer else plan.release.version
    rules = "otherwise" if plan.is_named else f"by the rules of Kafka {of}"
    parts = [f"{rules} it {STARTS[plan.verdictOfRules]}", *loss_texts(plan)]
    return f"{reasons}{f', and {more} more reasons' if more > 0 else ''}; {', '.join(parts)}"


def saved_text(plan: PartitionPlan) -> str:
    """Return what `plan.salvage` saves of what a startup removes."""
    batches, damaged = sum(cut.batches for cut in plan.cuts), sum(cut.damagedBatches for cut in plan.cuts)
    parts = [count_text(batches, "valid batch", "valid batches")] if batches else []
    if damaged:
        records = sum(cut.damagedRecords for cut in plan.cuts)
        what = f"up to {count_text(records, 'record')}" if records else "the records that decode"
        parts.append(f"{what} of {count_text(damaged, 'damaged batch', 'damaged batches')}, whose values may be wrong")
    return " and ".join(parts)


def release_texts(plan: RestartPlan) -> Iterator[str]:
    """Yield lines on the release whose startup this is, why that one, and what another one than the disk's changes."""
    release = plan.release
    if release is None:
        return
    mode = " with ZooKeeper" if release.mode == ZOOKEEPER else ""
    rules = NEWEST.number if parse_release(release.version).is_newer else release.version
    line = f"release: Kafka {release.version}{mode} (--kafka-version)"
    if release.source == OPTION:
        stated = release.diskVersion or "a release that no file states"
        stated = f"a release {stated}" if release.newer else stated
        line += f"; the disk is that of {stated}" if plan.change is not None else ""
    elif release.source == DEFAULT:
        line = f"release: Kafka {release.version}{mode}; {release.reason} (--kafka-version)"
    else:
        reason = "" if release.newer else f", because {release.reason}"  # which is in the verdict
        line = f"release: Kafka {release.diskVersion}{mode}{reason}"
    if release.doubt:
        line += f"; {release.doubt}" + ("" if release.source == OPTION else " (--kafka-version)")
    if (release.source == DISK and release.diskVersion != release.version) or not release.tried:
        line += f"; rules as of {rules}"
    line += "" if release.tried else ", untried"
    yield line
    if plan.change is not None:
        yield from (f"  changes: {rewritten}" for rewritten in plan.change.rewrites)
        yield from (f"  way back: {way}" for way in plan.change.wayBack)
