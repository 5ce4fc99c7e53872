"""Sentences about a plan: what it loses, and which release is started."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kdump.cluster.release_evidence import DEFAULT, DISK, OPTION
from kdump.format.count_text import count_text, first_of
from kdump.format.kafka_release import NEWEST, ZOOKEEPER, parse_release
from kdump.questions.restart_plan.answer import CLEAN, DEGRADED, RECOVERY, STOPPED, PartitionPlan, RestartPlan
from kdump.questions.restart_plan.course import CERTAIN, TOGETHER, StartupEvent

STARTS = {
    CLEAN: "starts{after}",
    RECOVERY: "starts after an unclean shutdown and recovers its logs",
    DEGRADED: "STARTS WITHOUT A LOG DIRECTORY",
    STOPPED: "DOES NOT START",
}
UNKNOWN_START = "UNKNOWN WHETHER IT STARTS"
MAX_REASONS = 3
"""Maximum number of reasons that a verdict names."""


def after_shutdown(plan: RestartPlan) -> str:
    """Return after which shutdown a plan that recovers nothing starts; empty of a disk that states none: that of a
    controller, or one that was only formatted."""
    return " after a clean shutdown" if any(directory.clean for directory in plan.directories) else ""


def start_text(plan: RestartPlan, verdict: str) -> str:
    """Return whether the broker starts, as the words of a sentence."""
    return STARTS[verdict].format(after=after_shutdown(plan))


class _Story(NamedTuple):
    """What some events lose together, for the verdict, {time} after the start. `subject`: it, if the node does it."""

    certain: str
    may: str = ""
    subject: str = "it "


STORIES: dict[tuple[str, str], _Story] = {
    ("startup-loses", ""): _Story("LOSES RECORDS of {partitions}"),
    ("startup-loses", "torn"): _Story(
        "LOSES {records} of {partitions}, in incomplete batches",
        "MAY LOSE {records} of {partitions}, in incomplete batches",
    ),
    ("startup-loses", "new"): _Story("LOSES NEW RECORDS of {partitions}"),
    ("startup-stray", ""): _Story("MAKES {every}{partitions} STRAY"),
    ("startup-stray", "deleted"): _Story("DELETES {every}{partitions} AS STRAY"),
    ("startup-topic-id-of-another", ""): _Story("DOES NOT SERVE {partitions}, and perhaps others"),
    ("startup-missing", ""): _Story("LACKS {missing} ({names})"),
    ("startup-missing", "created"): _Story("CREATES {missing} EMPTY ({names})"),
    ("startup-missing", "mayBeCreated"): _Story("MAY CREATE {missing} EMPTY ({names})"),
    ("startup-retention", "all"): _Story(
        "RETENTION DELETES ALL RECORDS of {partitions} {time}",
        "RETENTION MAY DELETE ALL RECORDS of {partitions} {time}",
        "",
    ),
    ("startup-retention", ""): _Story(
        "RETENTION DELETES RECORDS of {partitions} {time}", "RETENTION MAY DELETE RECORDS of {partitions} {time}", ""
    ),
    ("startup-remote-metadata-gone", ""): _Story(
        "LOSES WHAT REMOTE STORAGE HAS of {partitions}", "MAY LOSE WHAT REMOTE STORAGE HAS of {partitions}"
    ),
    ("startup-offsets-expire", ""): _Story(
        "COMMITTED OFFSETS EXPIRE {time}", "COMMITTED OFFSETS MAY EXPIRE {time}", ""
    ),
    ("startup-producers-forgotten", ""): _Story("FORGETS THE OPEN TRANSACTIONS of {partitions}"),
}
"""By code and case of the problem."""


def loss_texts(plan: RestartPlan) -> list[str]:
    """Return what the startup and the hour after it lose, for the verdict, the worst first: LOSES RECORDS of 2
    partitions; then what becomes stray without a loss."""
    return [text for _, text in _losses(plan)]


def once_text(plan: RestartPlan) -> str:
    """Return what a node that does not start loses once it does."""
    does = [f"{story.subject}{text}" for story, text in _losses(plan)]
    return f"; once it does, {' and '.join(does)}" if does else ""


def _losses(plan: RestartPlan) -> list[tuple[_Story, str]]:
    stories: dict[_Story, list[StartupEvent]] = {}
    strays = (event for event in plan.course.events if event.code == "startup-stray" and event.loss is None)
    for event in (*plan.course.losses, *strays):
        stories.setdefault(STORIES[event.code, event.problem.case], []).append(event)
    return [(story, _told(plan, story, events)) for story, events in stories.items()]


def _told(plan: RestartPlan, story: _Story, events: list[StartupEvent]) -> str:
    losses = [event.loss for event in events if event.loss is not None]
    is_certain = any(loss.certainty == CERTAIN for loss in losses)
    text = story.certain if is_certain or not story.may else story.may
    heading = count_text(len(events), "MISSING PARTITION", "MISSING PARTITIONS")
    return text.format(
        partitions=count_text(len(events), "partition"),
        every="all " if 1 < len(events) == len(plan.logs) else "",
        missing=heading,
        names=first_of([f"{event.topic}-{event.partition}" for event in events]),
        records=count_text(sum(loss.records or 0 for loss in losses), "RECORD", "RECORDS"),
        time=time_text(min((event.dueMs for event in events if event.dueMs is not None), default=0)),
    )


def time_text(due: int) -> str:
    """Return when something happens that is due so many ms after the start."""
    if due < 1000:
        return "at once"
    return f"after {due // 1000} s" if due < 120_000 else f"after {due // 60_000} min"


LOADS = "loading the logs loses"


def no_loss_text(plan: RestartPlan) -> str:
    """Return that a startup loses nothing, and until when; only of loading the logs if a later step is not answered. Of
    records alone if there are warnings, which may be about anything."""
    warnings = plan.warnings
    is_answered = plan.course.losesWithinHour == "no"
    if is_answered and not warnings:
        return "nothing is lost, and nothing within an hour"
    text = f"{LOADS} no records; {count_text(len(warnings), 'warning')}" if warnings else f"{LOADS} nothing"
    if any(step.reason == TOGETHER for step in plan.course.unanswered):
        return f"{text}; {TOGETHER}"
    reasons = [step.reason for step in plan.course.unanswered if step.step != "loading"]
    more = f"; and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return f"{text}; what follows is unknown: {reasons[0]}{more}" if reasons else text


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
    parts = [f"{rules} it {start_text(plan, plan.verdictOfRules)}", *loss_texts(plan)]
    return f"{reasons}{f', and {more} more reasons' if more > 0 else ''}; {', '.join(parts)}"


def saved_text(plan: PartitionPlan) -> str:
    """Return what `plan.salvage` saves of what a startup removes."""
    batches, damaged = sum(cut.batches for cut in plan.cuts), sum(cut.damagedBatches for cut in plan.cuts)
    parts = [count_text(batches, "valid batch", "valid batches")] if batches else []
    if damaged:
        records = sum(cut.damagedRecords for cut in plan.cuts)
        what = f"up to {count_text(records, 'record')}" if records else "the records that decode"
        parts.append(f"{what} of {count_text(damaged, 'damaged batch', 'damaged batches')}, whose values may be wrong")
    if plan.mayLoseTorn:
        parts.append("those records of the incomplete batch that are complete")
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
