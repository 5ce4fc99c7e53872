"""The events of a startup up to the moment when its logs are loaded: what stops it, and what happens to the logs."""

from __future__ import annotations

from collections.abc import Iterator

from kdump.format.count_text import count_text
from kdump.log.internal_topics import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTION_TOPIC
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import PartitionPlan, RestartPlan, StartupFailure
from kdump.questions.restart_plan.course import (
    BEFORE,
    CERTAIN,
    FIRST_MINUTES,
    LOADING,
    MAY,
    METADATA,
    OFFSETS,
    RECORDS,
    TRANSACTIONS,
    WHILE_LOADING,
    Loss,
    Part,
    StartupEvent,
    UnansweredStep,
)

KEEPS = {METADATA_TOPIC: METADATA, OFFSETS_TOPIC: OFFSETS, TRANSACTION_TOPIC: TRANSACTIONS}
"""What the records of Kafka's own topics are; all others are records."""


def kind_of(log: PartitionPlan) -> str:
    """Return what the records of a log are."""
    return KEEPS.get(log.topic, RECORDS)


def before(plan: RestartPlan) -> Part:
    """Return what keeps the node from starting, or from using a log directory."""
    stops = [*plan.stops, *(stop for directory in plan.directories for stop in directory.stops)]
    return Part(tuple(_stop(plan, stop) for stop in stops))


def _stop(plan: RestartPlan, stop: StartupFailure, log: PartitionPlan | None = None) -> StartupEvent:
    phase = BEFORE if log is None else LOADING
    event = StartupEvent(phase, stop.problem, None if log else 0, WHILE_LOADING if log else "", plan.nodeId)
    event = event._replace(file=stop.file)
    return event if log is None else event._replace(topic=log.topic, partition=log.partition)


def loading(plan: RestartPlan) -> Part:
    """Return what happens to the logs while they are loaded."""
    events = [event for log in plan.partitions for event in log_events(plan, log)]
    events += (event for log in plan.partitions for event in log.later)
    unanswered = [UnansweredStep("loading", problem) for problem in plan.unread]
    for log in plan.partitions:
        if log.forgets is None:
            why = f"{log.name} has no producer snapshot, and damage hides its open transactions"
            unanswered.append(UnansweredStep("transactions", why))
    return Part(tuple(events), tuple(unanswered))


def log_events(plan: RestartPlan, log: PartitionPlan) -> Iterator[StartupEvent]:
    """Yield what happens to a log while it is loaded."""
    yield from (_stop(plan, stop, log) for stop in log.stops)
    event = StartupEvent(LOADING, Problem(""), None, WHILE_LOADING, plan.nodeId, log.topic, log.partition, log.path)
    if log.missing:
        problem = log.problem or Problem("startup-missing")
        yield event._replace(phase=FIRST_MINUTES, problem=problem.given(log.facts), dueMs=0, loss=_of_missing(log))
    elif log.stray:
        stray = Problem("startup-stray", case="deleted" if log.strayDeleted else "")
        is_certain = log.strayDeleted or plan.loses_metadata
        loss = None if log.costs_nothing else _of_stray(log, is_certain=is_certain)
        yield event._replace(problem=stray, loss=loss)
    elif log.loses or log.mayLoseTorn:
        case = "torn" if log.mayLoseTorn else "new" if log.losesOnlyNew else ""
        problem = Problem("startup-loses", {"path": log.path}, log.facts, case)
        loss = _of_cuts(log)
        is_sole = plan.quorum is not None and bool(plan.quorum.isVoter) and len(plan.quorum.voters) == 1
        if log.topic == METADATA_TOPIC and is_sole:
            loss = loss._replace(certainty=CERTAIN)
        yield event._replace(problem=problem, loss=loss)
    if log.otherTopic is not None and not (log.stray or log.state or log.stops):
        other, own_id = log.otherTopic
        mixed = Problem("startup-topic-id-of-another", {"id": log.topicId, "other": other, "newId": own_id})
        loss = _of_stray(log, is_certain=_elsewhere(log) == ())
        yield event._replace(phase=FIRST_MINUTES, problem=mixed, dueMs=0, loss=loss._replace(elsewhere=_elsewhere(log)))
    if log.forgets:
        forgotten = Problem("startup-producers-forgotten", {"open": count_text(log.forgets, "open transaction")})
        yield event._replace(problem=forgotten, loss=Loss(TRANSACTIONS))


def _elsewhere(log: PartitionPlan) -> tuple[int, ...] | None:
    return None if log.replicas is None else log.replicas.brokers


def _of_missing(log: PartitionPlan) -> Loss:
    """Return what is lost with a missing directory: of the only replica, the high watermark is the log end offset."""
    elsewhere = _elsewhere(log)
    is_certain = elsewhere == () and bool(log.highWatermark)
    return Loss(kind_of(log), CERTAIN if is_certain else MAY, offsets=log.highWatermark, elsewhere=elsewhere)


def _of_stray(log: PartitionPlan, *, is_certain: bool) -> Loss:
    start, end = log.logStartOffset, log.logEndOffset
    offsets = None if start is None or end is None else end - start
    last = None if end is None else end - 1
    return Loss(kind_of(log), CERTAIN if is_certain else MAY, None, offsets, None, start, last, log.assignedTo)


def _of_cuts(log: PartitionPlan) -> Loss:
    """Return what is lost with the bytes that a startup removes from a log."""
    counts = [cut.records for cut in log.cuts]
    counts += [cut.tornRecords for cut in log.cuts]
    records = None if None in counts else sum(filter(None, counts)) + sum(cut.damagedRecords for cut in log.cuts)
    firsts = [each for cut in log.cuts for each in (cut.offset, cut.tornOffset) if each is not None]
    lasts = [each for cut in log.cuts for each in (cut.lastOffset, cut.tornLastOffset) if each is not None]
    first, last = min(firsts, default=log.logEndOffset), max(lasts, default=None)
    if log.acknowledged and log.highWatermark is not None and (last is None or last < log.highWatermark - 1):
        last = log.highWatermark - 1
        records = None if log.cuts else records  # what is not in any header
    offsets = None if first is None or last is None else max(0, last + 1 - first)
    elsewhere = _elsewhere(log)
    is_certain = elsewhere == () and not (log.losesOnlyNew or log.mayLoseTorn)
    size = sum(cut.size for cut in log.cuts)
    return Loss(kind_of(log), CERTAIN if is_certain else MAY, records, offsets, size, first, last, elsewhere)
