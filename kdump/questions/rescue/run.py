"""Rescues a cluster's metadata from the copies on its disks, as log directories for its controllers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kdump.cluster.disks import Disks
from kdump.cluster.metadata_copies import MetadataCopies
from kdump.cluster.metadata_files import MetadataFiles, Unreachable, metadata_files
from kdump.cluster.metadata_log import replay_metadata
from kdump.cluster.metadata_refusals import FEATURE_LEVEL, record_rule, refusals
from kdump.cluster.release_evidence import LEVEL, NEWER_NUMBER, applied_release
from kdump.format.count_text import first_of
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.format.known_releases import Line, at_most
from kdump.format.metadata_record import decode_metadata_record, is_usual
from kdump.io import file_system
from kdump.io.command_line_paths import missing, no_kafka_files
from kdump.io.errors import SourceError, Unread, raise_error, reason
from kdump.io.run import Run
from kdump.kafka.config_def import config_exception
from kdump.kafka.quorum_state import complete_quorum
from kdump.kafka.small_files import topic_id
from kdump.log.internal_topics import METADATA_LOG, METADATA_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.log.output_directory import OutputDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.problems.problem import title_of
from kdump.query import offered
from kdump.questions.rescue.answer import Rescue, RescueError, RescueInvention, RescueStep
from kdump.questions.rescue.copies import MetadataHistories
from kdump.questions.rescue.first_start import DiskReplicas, first_start, put_in_charge
from kdump.questions.rescue.from_data import NOTE, DataRescuer
from kdump.questions.rescue.ledger import ledger
from kdump.questions.rescue.rescuer import RescueQuery, Rescuer, refuse_copies, refuse_zookeeper, refused
from kdump.questions.rescue.steps import steps, steps_of_copies
from kdump.questions.rescue.write_log import NewLog
from kdump.questions.restart_plan.replicas.replicas_report import worst_text
from kdump.state.as_of import AsOf
from kdump.state.effective_config import is_public
from kdump.state.internal_records import ROOM_METADATA
from kdump.state.left_out_records import RecordChoice, RuleOf
from kdump.state.metadata_image import TOPIC, MetadataImage, QuorumImage
from kdump.state.metadata_problem import Kind
from kdump.state.metadata_refusal import Rule
from kdump.state.metadata_replay import NESTED
from kdump.state.secrets import CONFIG, SECRET_FIELDS
from kdump.text import host_word

__all__ = ["rescue"]


def answers(query: RescueQuery) -> Rescue:
    """Find the copies of a cluster's metadata in the log directories `paths`, of any of its nodes, and write a log
    directory for each of its controllers to `out`, a new directory; without `out`, only say what would be written.
    With `from_data`, no copy is left, and the metadata is rebuilt from the partition directories.

    Raises RescueError if there is nothing to rescue, or a decision is needed; SourceError if a path cannot be read or
    has no log directory, because a copy in it may be the newest; OutputError. Nothing has been written then."""
    paths = list(query.paths)
    directory = None if query.out is None else OutputDirectory(query.out, paths)
    for path in paths:
        if not file_system.exists(path):
            raise missing(path)
    run = replace(query.run, unreadable=raise_error)
    disks = Disks.at(paths, run)
    for path in paths:
        if not disks.below(path):
            raise no_kafka_files(path, f"{path}: no Kafka log directory here or below")
    kind: type[Rescuer] = DataRescuer if query.from_data else CopyRescuer
    return kind(disks, query, run).result(directory, query.out)


rescue = offered("rescue", RescueQuery, answers)


class CopyRescuer(Rescuer):
    """Rescues the state that a copy of the metadata log has."""

    def __init__(self, disks: Disks, asked: RescueQuery, run: Run) -> None:
        _refuse_missing(disks)
        super().__init__(disks, asked, run)
        self._taken: set[bytes] = set()
        """Types and versions of records that the release takes whatever their content is."""
        # Each copy is replayed once, before it is known which release has written it.
        self.release = asked.release or NEWEST
        choices = _Choices(self._rule_of_any if asked.release is None else self._rule, asked.offsets)
        disks.copies = MetadataCopies(run.limits, choices)
        self.histories = MetadataHistories(disks, asked.copy, run)
        refuse_copies(disks)
        self.source = self.histories.source
        self.release, self.choice = self._release(), choices[self.source]
        self.files = MetadataFiles("")
        self.image = self._state()
        self.voters = self.named_voters()

    def _release(self) -> KafkaRelease:
        """Return the release whose rules apply."""
        node = self.disks.node_of(next(each for each in self.places if each.path == self.source))
        _, image = self.disks.newest_metadata(self.source)
        applied = applied_release([each.path for each in node.directories], image, self.asked.release)
        if applied.newer and self.asked.release is None:
            raise RescueError(
                f"{self.source}: written by a release {NEWER_NUMBER} ({applied.newer[0]}): what it means is not known, "
                "and would be lost; use a newer kdump, or name the release that is to run with --kafka-version"
            )
        return applied.release

    def _rule(self, name: str, value: bytes) -> Rule | None:
        """Return why a record is left out, whatever the state is."""
        if value[:3] not in self._taken:
            rule = record_rule(value, at_most(self.release.line))
            if rule is not None:
                return rule
            if name != FEATURE_LEVEL and name not in NESTED and is_usual(value):
                self._taken.add(value[:3])
        return self._rule_of_any(name, value)

    def _rule_of_any(self, name: str, value: bytes) -> Rule | None:
        """Return why a record is left out that any release reads."""
        values = (decode_metadata_record(value).values or {}) if name == CONFIG else {}
        if values.get("resourceType") == TOPIC and values.get("value") is not None:
            exception = config_exception(values["name"], values["value"], self.release)
            return Rule(loader=exception) if exception else None
        return None

    def _state(self) -> MetadataImage:
        """Replay the copy that is used. Raises RescueError if the result is not the state at the moment."""
        folder = os.path.join(self.source, METADATA_LOG)
        moment = self.asked.moment
        try:
            self.files = metadata_files(folder)
        except OSError as error:
            raise SourceError.at(folder, reason(error, folder)) from error
        used = self.histories.used
        image = self._first_replay()
        try:
            if image is None:
                self.choice = _Choices(self._rule, self.asked.offsets, self.line)[self.source]
                image = replay_metadata(self.files, moment, room=ROOM_METADATA, run=self.run, choice=self.choice)
        except Unreachable as error:
            raise RescueError(f"--as-of: {error}; another copy may go back further (--copy)") from error
        unread = [each for found in (image, *self.histories.images.values()) if found for each in found.problems]
        for problem in unread:
            if isinstance(problem.text, Unread):
                raise SourceError(problem.text)
        if image.is_too_large or self.choice.is_full:
            what = "too large to keep in memory" if image.is_too_large else "with too many records that are left out"
            raise RescueError(f"{folder}: the metadata is {what}")
        if image.gap is not None and image.end_offset > image.gap:
            raise _damaged(folder, image, self._others())
        if image.is_partial and image.gap is None:
            raise RescueError(f"{folder}: {image.doubt.text if image.doubt else 'records are missing'}")
        if moment.offset is not None and moment.offset >= used.end_offset:
            raise RescueError(f"--as-of: {folder} ends at offset {used.end_offset}")
        if LEVEL not in image.features and self.line >= (4, 0):
            raise RescueError(
                f"{folder}: the state at offset {image.end_offset} has no {LEVEL}, without which no node "
                f"of Kafka {self.release.number} loads it"
            )
        if not image.features and not image.topics and not image.brokers:
            raise RescueError(f"{folder}: the metadata log describes no cluster yet")
        missing = self.asked.offsets - {each.refusal.offset for each in self.choice.left_out}
        if missing:
            raise RescueError(
                f"--leave-out {min(missing)}: {folder} has no metadata record at this offset after its snapshot"
            )
        complete_quorum(image, folder)
        return image

    def _first_replay(self) -> MetadataImage | None:
        """Return the state that was found when the copies were compared, unless a rule of the release was not applied:
        a replay takes a second for each 50,000 records."""
        image, left_out = self.disks.copies.replayed(self.source), self.choice.left_out
        if image is None or self.asked.moment != AsOf() or image.is_partial:
            return None
        is_known = self.asked.release is not None or self.release == NEWEST
        if any(left.refusal.until < self.line or (left.refusal.record == CONFIG and not is_known) for left in left_out):
            return None
        if any(left not in image.refusals for left in refusals(image, self.release)):
            return None
        topics = (configs for (kind, _), configs in image.configs.items() if kind == TOPIC)
        settings = {item for configs in topics for item in configs.items()}
        return None if any(config_exception(*item, self.release) for item in settings) else image

    def _others(self) -> list[str]:
        return [path for path, image in self.histories.images.items() if path != self.source and image is not None]

    def found_directory(self, number: int) -> LogDirectory | None:
        """Return the log directory of a node that has its metadata log."""
        return next((place for place in self.histories.places if self.histories.node_id(place) == number), None)

    @property
    def images(self) -> list[QuorumImage]:
        return [image for image in (*self.histories.images.values(), self.image) if image is not None]

    def invent(self, log: NewLog) -> None:
        super().invent(log)
        self.replicas = DiskReplicas(self.disks, self.image)
        for (topic, number), before, after in put_in_charge(self.replicas):
            was = f"leader {before.leader}, ISR {list(before.isr)}, ELR {list(before.eligibleLeaderReplicas)}"
            now = f"leader {after.leader}, ISR {list(after.isr)}, ELR {list(after.eligibleLeaderReplicas)}"
            gone = sorted({*before.isr, *before.eligibleLeaderReplicas} - {*after.isr, *after.eligibleLeaderReplicas})
            nodes = f"node {gone[0]} has" if len(gone) == 1 else f"nodes {', '.join(map(str, gone))} have"
            reason = title_of(NOTE, "emptyReplica", nodes=nodes)
            self.inventions.append(RescueInvention(f"{topic}-{number}", was, now, reason))

    def answers(self, made: Rescue) -> None:
        made.firstStart = first_start(self.replicas)
        made.summary.losesAtStart, made.summary.losesLeast = made.firstStart.lost, made.firstStart.least
        if made.firstStart.worst is not None:
            made.summary.worstAtStart = worst_text(made.firstStart.worst)
        made.copies = self.histories.answers()
        made.records = list(ledger(self.files, self.image, self.histories.used.end_offset, self.choice, made.copies))
        image, left_out, summary = self.image, self.choice.left_out, made.summary
        unlisted = self._unlisted()
        summary.source, summary.notes, summary.notUsed = self.source, list(self._notes(unlisted)), len(unlisted)
        damaged = image.gap is not None and self.histories.used.end_offset <= image.gap
        summary.damagedOffset = image.gap if damaged else None
        summary.committedOffset = self.histories.committed(self.histories.used.voters)
        dependents = [left for left in left_out if left.is_dependent]
        summary.leftOut = len(left_out) - len(dependents)
        summary.dependents = sum((left.last or 0) - (left.refusal.offset or 0) + 1 for left in dependents)

    def _unlisted(self) -> list[PartitionDirectory]:
        """Return the directories of partitions that the state does not have: brokers make them stray, or have."""
        logs = (log for place in self.places for log in place.partitions)
        logs = (log for log in logs if log.topic not in (None, METADATA_TOPIC) and log.state != "delete")
        ids = ((log, topic_id(log)) for log in logs)
        return [log for log, name in ids if name is not None and not self.image.registration(name, log.partition)]

    def steps(self, made: Rescue) -> Iterator[RescueStep]:
        return steps(made, self.disks, steps_of_copies(made, self.histories, self.release))

    def _notes(self, unlisted: list[PartitionDirectory]) -> Iterator[str]:
        voters = self.histories.used.voters
        new = [voter.voterId for voter in self.voters if voter.voterId not in voters]
        if voters and new:
            earlier = ", ".join(map(str, sorted(voters)))
            yield title_of(NOTE, "voters", new=", ".join(map(str, new)), voters=earlier)
        if unlisted:
            yield title_of(NOTE, "unlisted", paths=first_of(sorted(log.path for log in unlisted)))
        for problem in self.image.problems:
            if not problem.is_of_record:  # those are in the ledger
                yield problem.text
        if self.image.newer:
            yield f"left out: {', '.join(self.image.newer)}"


class _Choices(dict[str, RecordChoice]):
    """What is left out of the copy in each log directory."""

    def __init__(self, rule: RuleOf, asked: frozenset[int], line: Line | None = None) -> None:
        super().__init__()
        self.rule, self.asked, self.line = rule, asked, line

    def __missing__(self, path: str) -> RecordChoice:
        is_mounted = file_system.tree_at(path) is not None
        self[path] = RecordChoice(self._of_mounted if is_mounted else self.rule, self.line, self.asked)
        return self[path]

    def _of_mounted(self, name: str, value: bytes) -> Rule | None:
        """Return why a record that is mounted is left out: it has other characters in the place of secrets."""
        values = (decode_metadata_record(value).values or {}) if name == CONFIG else {}
        if name in SECRET_FIELDS or (values and not is_public(values)):
            return Rule(loader="its secret is not in the bundle")
        return self.rule(name, value)


def _refuse_missing(disks: Disks) -> None:
    """Raise RescueError if no log directory has a copy of the metadata log."""
    places = disks.directories
    if any(file_system.isdir(os.path.join(place.path, METADATA_LOG)) for place in places):
        return
    refuse_zookeeper(disks)
    raise refused("missing", paths=", ".join(place.path for place in places))


def _damaged(folder: str, image: MetadataImage, others: Sequence[str]) -> RescueError:
    """Return what is damaged in the log, and what to do."""
    why = image.gap_problem
    where = "" if why is None or why.kind == Kind.MISSING else f" ({why.text})"
    copies = " ".join(f"--replica {host_word(os.path.join(each, METADATA_LOG))}" for each in others)
    values = {"path": folder, "gap": image.gap, "last": image.end_offset - 1, "where": where, "copies": copies}
    error = refused("damagedElsewhere" if others else "damaged", **values)
    before = (image.gap or 0) - 1
    return error if before < 0 else RescueError(f"{error}; or {refused('before', before=before)}")
