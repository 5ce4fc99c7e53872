"""Where the replicas on the disks of several brokers diverge, from kdump.questions.diff.run."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kdump.check.options import Options
from kdump.format.count_text import count_text
from kdump.incident.doctor.disks import Disks
from kdump.incident.doctor.examination import AS_READ, Examination, OutOfTime, command
from kdump.io.directory_listing import length
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.problems.problem import Problem
from kdump.questions.diff.differences import DAMAGE, DIVERGENT
from kdump.questions.diff.run import LITTLE, Diff, diff_copies
from kdump.questions.find_copies import Copy, copy_of


def examine_divergence(disks: Disks, on: Examination, ordered: Collection[tuple[str, str, int]] = ()) -> None:
    """Compare the partitions that several brokers of a cluster have, the smallest first; what is equal byte by byte
    is not decoded. `ordered`: log directory, topic and number of those that the order of starts is reported for."""
    question = on.question
    copies: dict[tuple[int, str, int], dict[int, Copy]] = {}
    owner = {each.path: number for number, broker in enumerate(disks.brokers) for each in broker.directories}
    cluster = {each.path: number for number, mine in enumerate(disks.clusters.values()) for each in mine}
    for unit in disks.units:
        place = unit.partition
        if place is None or place.state or place.topic is None or place.partition is None:
            continue
        if place.source in owner and place.segments:
            key = (cluster[place.source], place.topic, place.partition)
            copies.setdefault(key, {}).setdefault(owner[place.source], copy_of(place, unit.known))
    several = [same for replicas in copies.values() for same in _of_one_topic([*replicas.values()]) if len(same) > 1]
    several.sort(key=lambda same: (sum(length(log.path) or 0 for copy in same for log in copy.segments), same[0].key))
    options = on.reporting(
        Options(disks.options.limits, only=LITTLE, now=disks.options.now, open_source=disks.options.open_source)
    )
    question.partitionsLeft = len(several)
    diverged = 0
    try:
        for same in several:
            on.limit.raise_if_over()
            made = diff_copies(same, options)
            question.partitions += 1
            question.partitionsLeft -= 1
            if made.relation == DIVERGENT and not _is_superseded(made):
                diverged += 1
                if (same[0].segments[0].source, made.topic, made.partition) not in ordered:
                    _item(made, same, on)
            for each in made.copies:
                for unread in each.unread:
                    on.unread(unread)
    except OutOfTime:
        on.out_of_time("diff", *(broker.paths[0] for broker in disks.brokers))
    finally:
        count = count_text(question.partitions, "partition")
        question.answer = (
            f"DIVERGENCE in {diverged:,} of {count}"
            if diverged
            else f"no divergence in {count} that several brokers have"
        )
        question.answer += AS_READ if on.is_partial else ""
    question.isComplete = not question.partitionsLeft and not question.unread


def _is_superseded(made: Diff) -> bool:
    """Return True for metadata logs that differ by what a leader had that was not elected again, which is usual: what
    that loses is in the plan of the startup."""
    epochs = {made.epoch_at(number) for number in range(len(made.copies))} - {None}
    return made.topic == METADATA_TOPIC and len(epochs) > 1


def _of_one_topic(copies: list[Copy]) -> Iterator[list[Copy]]:
    """Yield the copies that are replicas of one partition: a topic may have been deleted and created again while a
    broker was down, with another topic ID."""
    ids: list[str | None] = [*dict.fromkeys(copy.topic_id for copy in copies if copy.topic_id)]
    for topic_id in ids or [None]:
        yield [copy for copy in copies if copy.topic_id in (topic_id, None)]


def _item(made: Diff, copies: list[Copy], on: Examination) -> None:
    paths = [copy.path for copy in copies]
    damaged = [number for number in range(len(copies)) if made.epoch_at(number) is None]
    if made.cause == DAMAGE and damaged:
        on.report(
            Problem("replica-damaged", {"first": made.firstDivergentOffset, "damaged": paths[damaged[0]]}),
            copies[damaged[0]].segments[0].source,
            at=made,
            evidence=tuple(paths),
            offset=made.firstDivergentOffset,
            commands=(command("diff", *paths),),
        )
        return
    cause = {
        "missing": "one copy lacks records",
        "damage": "the copies are damaged",
        "records": "the records differ",
        "epochs": "only the leader epochs differ",
    }
    evidence = []
    for number, copy in enumerate(made.copies):
        epoch = made.epoch_at(number)
        has = f"a batch of leader epoch {epoch}" if epoch is not None else "nothing valid"
        evidence.append(f"{copy.path}: {has} there; log end offset {copy.logEndOffset}")
    later = made.later_leader
    values: dict[str, object] = {"first": made.firstDivergentOffset, "cause": cause.get(made.cause, made.cause)}
    if later is not None:
        values["later"] = " and ".join(paths[number] for number in later.copies)
        values["earlier"] = " and ".join(paths[number] for number in later.earlier)
        evidence.append(f"the log of the later leader from there on (leader epoch {later.epoch}): {values['later']}")
    on.report(
        Problem("replicas-diverge", values, {"laterLeader": later is not None}),
        copies[0].segments[0].source,
        at=made,
        evidence=tuple(evidence),
        offset=made.firstDivergentOffset,
        commands=(command("diff", *paths),),
    )
