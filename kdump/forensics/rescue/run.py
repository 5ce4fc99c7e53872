"""Rescues a cluster's metadata from the copies on its disks, as log directories for its controllers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kdump.answer import answer_object
from kdump.cluster.disks import Disks
from kdump.cluster.metadata_files import MetadataFiles, Unreachable, metadata_files
from kdump.cluster.metadata_log import replay_metadata
from kdump.cluster.metadata_refusals import FEATURE_LEVEL, record_rule
from kdump.cluster.release_evidence import LEVEL, NEWER_NUMBER, applied_release, level_name
from kdump.forensics.output_directory import OutputDirectory
from kdump.forensics.rescue.answers import (
    Rescue,
    RescueController,
    RescueError,
    RescueInvention,
    RescueSummary,
)
from kdump.forensics.rescue.copies import MetadataHistories, one_cluster
from kdump.forensics.rescue.ledger import ledger
from kdump.forensics.rescue.numbers import LeaderEpochs, new_epoch, new_offset, new_producer_id
from kdump.forensics.rescue.steps import steps
from kdump.forensics.rescue.write_log import NewDirectory, NewLog, write_logs
from kdump.forensics.restart.lock_holder import lock_holder
from kdump.forensics.restart.refused_records import config_exception
from kdump.format.count_text import count_text
from kdump.format.kafka_release import KafkaRelease
from kdump.format.kafka_uuid import uuid_text
from kdump.format.known_releases import Line, at_most
from kdump.format.metadata_record import decode_metadata_record, is_usual
from kdump.jsonl import line
from kdump.kafka.quorum_state import complete_quorum
from kdump.log import file_system
from kdump.log.command_line_paths import missing, no_kafka_files
from kdump.log.errors import SourceError, Unread, raise_error
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.log_directory import LogDirectory
from kdump.log.run import PLAIN_RUN, Run
from kdump.state.as_of import AsOf
from kdump.state.image_records import image_records
from kdump.state.internal_records import ROOM_METADATA
from kdump.state.metadata_image import TOPIC, Endpoint, MetadataImage, ProducerIds, Voter
from kdump.state.metadata_refusal import Rule
from kdump.state.metadata_replay import NESTED
from kdump.state.record_choice import RecordChoice

LEDGER = "ledger.jsonl"
WITH_DIRECTORY_ID = (3, 7)
CONFIG = "ConfigRecord"
BY_CONTENT = {FEATURE_LEVEL, CONFIG, *NESTED}
"""Records of which the release takes some and not others."""
LISTENER = "CONTROLLER"
"""Name of the controllers' listener, if no voter states another one."""


END = AsOf()


class NewController(NamedTuple):
    """A controller of the rescued cluster; `host` and `port`: as the voters are named (controller.quorum.voters)."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.node_id}@{host}:{self.port}"


@dataclass(frozen=True)
class RescueRequest:
    """What to rescue. `copy`: the log directory whose copy is used, None for the newest; `leave_out`: offsets of
    records; `controllers`: none for the voters that the metadata names; `release`: None for the one that the disks
    state; `while_running`: also read the disks of nodes at work."""

    moment: AsOf = END
    copy: str | None = None
    leave_out: frozenset[int] = frozenset()
    controllers: tuple[NewController, ...] = ()
    release: KafkaRelease | None = None
    while_running: bool = False


def rescue(
    paths: str | Iterable[str],
    out: str | None = None,
    *,
    request: RescueRequest | None = None,
    run: Run = PLAIN_RUN,
) -> Rescue:
    """Find the copies of a cluster's metadata in the log directories `paths`, of any of its nodes, and write a log
    directory for each of its controllers to `out`, a new directory; without `out`, only say what would be written.

    `run.at` is called with the bytes of metadata read so far and the total.

    Raises RescueError if there is nothing to rescue, or a decision is needed; SourceError if a path cannot be read or
    has no log directory, because a copy in it may be the newest; OutputError. Nothing has been written then.
    """
    asked = request or RescueRequest()
    paths = [paths] if isinstance(paths, str) else list(paths)
    directory = None if out is None else OutputDirectory(out, paths)
    for path in paths:
        if not file_system.exists(path):
            raise missing(path)
    run = replace(run, unreadable=raise_error)
    disks = Disks.at(paths, run)
    for path in paths:
        if not disks.below(path):
            raise no_kafka_files(path, f"{path}: no Kafka log directory here or below")
    return _Rescue(disks, asked, run).result(directory, out)


class _Rescue:
    """One rescue."""

    def __init__(self, disks: Disks, asked: RescueRequest, run: Run) -> None:
        self.disks, self.asked, self.run = disks, asked, run
        self.places = disks.directories
        _refuse_missing(disks)
        self.cluster_id = one_cluster(disks, self.places)
        _refuse_running(self.places, asked.while_running)
        self.histories = MetadataHistories(disks, asked.copy, run)
        self.source = self.histories.source
        self.release = self._release()
        self._taken: set[bytes] = set()
        """Types and versions of records that the release takes whatever their content is."""
        self.choice = RecordChoice(self._rule, self.line)
        self.inventions: list[RescueInvention] = []
        self.files = MetadataFiles("")
        self.image = self._state()
        self.voters = self._voters()
        self.kraft_version = self.image.kraft_version or 0

    @property
    def line(self) -> Line:
        return at_most(self.release.line).line

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

    def _rule(self, offset: int | None, name: str, value: bytes) -> Rule | None:
        """Return why a record is left out, whatever the state is."""
        if offset is not None and offset in self.asked.leave_out:
            return Rule()
        if value[:3] in self._taken:
            return None
        known = record_rule(value, at_most(self.release.line))
        if known is None and name not in BY_CONTENT and is_usual(value):
            self._taken.add(value[:3])
        if known is None and name == CONFIG:
            values = decode_metadata_record(value).values or {}
            if values.get("resourceType") == TOPIC and values.get("value") is not None:
                exception = config_exception(values["name"], values["value"], self.release)
                return Rule(loader=exception) if exception else None
        return known

    def _state(self) -> MetadataImage:
        """Replay the copy that is used. Raises RescueError if the result is not the state at the moment."""
        folder = os.path.join(self.source, METADATA_LOG)
        moment = self.asked.moment
        try:
            self.files = metadata_files(folder)
        except OSError as error:
            raise SourceError(f"{folder}: {error.strerror}") from error
        used = self.histories.used
        try:
            image = replay_metadata(
                self.files,
                moment,
                room=ROOM_METADATA,
                run=self.run,
                choice=self.choice,
            )
        except Unreachable as error:
            raise RescueError(f"--as-of: {error}; another copy may go back further (--copy)") from error
        unread = [each for found in (image, *self.histories.images.values()) if found for each in found.problems]
        for text in unread:
            if isinstance(text, Unread):
                raise SourceError(text)
        if image.is_too_large or self.choice.is_full:
            what = "too large to keep in memory" if image.is_too_large else "with too many records that are left out"
            raise RescueError(f"{folder}: the metadata is {what}")
        if image.gap is not None and image.end_offset > image.gap:
            raise RescueError(_damaged(folder, image, self._others()))
        if image.is_partial and image.gap is None:
            raise RescueError(f"{folder}: {image.problems[0] if image.problems else 'records are missing'}")
        if moment.offset is not None and moment.offset >= used.end_offset:
            raise RescueError(f"--as-of: {folder} ends at offset {used.end_offset}")
        if LEVEL not in image.features and self.line >= (4, 0):
            raise RescueError(
                f"{folder}: the state at offset {image.end_offset} has no {LEVEL}, without which no node "
                f"of Kafka {self.release.number} loads it"
            )
        if not image.features and not image.topics and not image.brokers:
            raise RescueError(f"{folder}: the metadata log describes no cluster yet")
        missing = self.asked.leave_out - {each.refusal.offset for each in self.choice.left_out}
        if missing:
            raise RescueError(
                f"--leave-out {min(missing)}: {folder} has no metadata record at this offset after its snapshot"
            )
        complete_quorum(image, folder)
        return image

    def _others(self) -> list[str]:
        return [path for path, image in self.histories.images.items() if path != self.source and image is not None]

    def _voters(self) -> list[Voter]:
        """Return the voters of the rescued cluster, each with its directory and endpoints as far as they are known."""
        known = self.image.voters
        asked = {each.node_id: each for each in self.asked.controllers}
        numbers = list(asked) or sorted(known)
        if not numbers:
            raise RescueError(
                f"{self.source}: no voter is known: neither the log nor quorum-state names one; name the controllers "
                "with --controller ID@HOST:PORT"
            )
        listener = next((each.name for voter in known.values() for each in voter.endpoints), LISTENER)
        voters = []
        for number in numbers:
            voter = known.get(number, Voter(number))
            endpoints = voter.endpoints
            if number in asked:
                endpoints = (Endpoint(listener, asked[number].host, asked[number].port),)
            voters.append(Voter(number, self._directory_id(number, voter), endpoints))
        for voter in voters if self.image.kraft_version else ():
            if not voter.endpoints:
                raise RescueError(f"no address of controller {voter.voterId} is known; name it with --controller")
        if set(numbers) != set(known):
            reason = "named with --controller"
            self.inventions.append(RescueInvention("voters", sorted(known), sorted(numbers), reason))
        return voters

    def found_directory(self, number: int) -> LogDirectory | None:
        """Return the log directory of a node that has its metadata log."""
        return next((each for each in self.histories.places if self.histories.node_id(each) == number), None)

    def _directory_id(self, number: int, voter: Voter) -> str | None:
        """Return the directory.id of a controller: that of its log directory, the one that the voters have, or a new
        one. None if the release has none."""
        place = self.found_directory(number)
        found = None if place is None else self.disks.ids(place).get("directory.id")
        if found is not None or self.line < WITH_DIRECTORY_ID:
            return found
        if voter.voterDirectoryId is not None:
            return voter.voterDirectoryId
        made = _new_uuid(self.cluster_id, number)
        reason = "neither a log directory of it nor the log states one"
        self.inventions.append(RescueInvention(f"directory.id of controller {number}", None, made, reason))
        return made

    def result(self, directory: OutputDirectory | None, out: str | None) -> Rescue:
        """Write everything, or nothing if `directory` is None. `out`: its path as it was given."""
        images = [each for each in (*self.histories.images.values(), self.image) if each is not None]
        time = self.image.end_time or 0
        log = NewLog(
            new_offset(images, self.places),
            new_epoch(images, self.places),
            time,
            self.kraft_version,
            self.voters,
        )
        self._invent(log)
        names = [
            NewDirectory(f"controller-{each.voterId}", self.cluster_id, each.voterId, each.voterDirectoryId)
            for each in self.voters
        ]
        copies = self.histories.answers()
        records = list(ledger(self.files, self.image, self.histories.used.end_offset, self.choice, copies))
        leader_epochs = LeaderEpochs(self.places)
        values = image_records(self.image, self.line, leader_epochs.raise_epoch)
        try:
            if directory is None:
                count = sum(1 for _ in values)
            else:
                with directory.whole() as passing:
                    count = write_logs(passing, names, log, values)
                    self._raised(leader_epochs)
                    with passing.writing(LEDGER) as file:
                        for each in (*records, *self.inventions):
                            file.write(line(answer_object(each)).encode() + b"\n")
        except ValueError as error:
            raise RescueError(f"{self.source}: a record cannot be written again: {error}") from error
        if out is None:
            self._raised(leader_epochs)
        controllers = [self._controller(each, out) for each in self.voters]
        summary = self._summary(log, count, out)
        made = Rescue(summary, copies, records, self.inventions, controllers)
        made.steps = steps(made, self.disks, self.histories, self.release)
        return made

    def _invent(self, log: NewLog) -> None:
        """Add what is written and is in no copy, and change the state accordingly."""
        found = "above those of every copy, quorum-state and broker epoch that was found"
        self.inventions.append(RescueInvention("end offset", self.image.end_offset, log.offset, found))
        reason = f"{found}: a node that still has its old copy fetches the new snapshot"
        self.inventions.append(RescueInvention("leader epoch", self.image.epoch, log.epoch, reason))
        block = self.image.producer_ids.get("")
        new = new_producer_id(self.image)
        self.image.producer_ids[""] = ProducerIds(-1, -1, new)
        reason = "above every block that may have been assigned since, so that no producer ID is assigned twice"
        was = None if block is None else block.nextProducerId
        self.inventions.append(RescueInvention("next producer ID", was, new, reason))
        gone = sorted(set(self.image.controllers) - {each.voterId for each in self.voters})
        for number in gone:
            del self.image.controllers[number]
            reason = "it is not a controller of the rescued cluster"
            self.inventions.append(RescueInvention(f"registration of controller {number}", "registered", None, reason))

    def _raised(self, epochs: LeaderEpochs) -> None:
        if epochs.raised:
            what = f"leader epochs of {count_text(epochs.raised, 'partition')}"
            reason = (
                "each is above those in the state and on the disks: with an older one, replicas may truncate records"
            )
            self.inventions.append(RescueInvention(what, None, f"up to {epochs.highest}", reason))

    def _controller(self, voter: Voter, out: str | None) -> RescueController:
        endpoint = next(iter(voter.endpoints), None)
        place = self.found_directory(voter.voterId)
        return RescueController(
            voter.voterId,
            None if out is None else os.path.join(out, f"controller-{voter.voterId}"),
            voter.voterDirectoryId,
            None if endpoint is None else f"{endpoint.host}:{endpoint.port}",
            None if place is None else place.path,
        )

    def _summary(self, log: NewLog, count: int, out: str | None) -> RescueSummary:
        image, left_out = self.image, self.choice.left_out
        dependents = sum((each.last or 0) - (each.refusal.offset or 0) + 1 for each in left_out if each.is_dependent)
        level = image.features.get(LEVEL)
        return RescueSummary(
            self.cluster_id,
            str(self.release),
            self.source,
            out,
            None if out is None else os.path.join(out, LEDGER),
            image.snapshot,
            image.end_offset,
            image.end_time,
            image.epoch,
            None if image.gap is None or self.histories.used.end_offset > image.gap else image.gap,
            self.histories.committed(self.histories.used.voters),
            log.offset,
            log.epoch,
            None if level is None else level_name(LEVEL, level),
            self.kraft_version,
            count,
            sum(not each.is_dependent for each in left_out),
            dependents,
            len(image.brokers),
            len(image.topics),
            sum(len(each.partitions) for each in image.topics.values()),
            sum(map(len, image.configs.values())),
            len(image.acls),
            len(image.scram),
            list(self._notes()),
        )

    def _notes(self) -> Iterator[str]:
        for problem in self.image.problems:
            if "at offset" not in problem:  # those of records are in the ledger
                yield problem
        if self.image.newer:
            yield f"left out: {', '.join(self.image.newer)}"


def _refuse_missing(disks: Disks) -> None:
    """Raise RescueError if no log directory has a copy of the metadata log."""
    places = disks.directories
    if any(file_system.isdir(os.path.join(each.path, METADATA_LOG)) for each in places):
        return
    names = ", ".join(each.path for each in places)
    for each in places:
        ids = disks.ids(each)
        if "broker.id" in ids and ids.get("version", "0") == "0":
            raise RescueError(
                f"{each.path}: the disk of a broker with ZooKeeper, which has the cluster's metadata; restore that. "
                "The records can be saved with kdump salvage"
            )
    raise RescueError(f"{names}: no copy of the metadata log ({METADATA_LOG}); add the disks of the other nodes")


def _refuse_running(places: Sequence[LogDirectory], while_running: bool) -> None:
    for each in places:
        process = None if while_running else lock_holder(each.path)
        if process is not None:
            raise RescueError(
                f"{each.path}: a node is running on it (process {process}), so that it may change, and its copy may be "
                "behind; stop it, or pass --while-running"
            )


def _damaged(folder: str, image: MetadataImage, others: Sequence[str]) -> str:
    """Return what is damaged in the log, and what to do."""
    where = next((each for each in image.problems if " at byte " in each), "")
    text = f"{folder}: damaged from offset {image.gap} on, with valid records after that, up to {image.end_offset - 1}"
    text += f" ({where})" if where else ""
    if others:
        copies = " ".join(f"--replica {os.path.join(each, METADATA_LOG)}" for each in others)
        text += f"; fill it from the other copies: kdump salvage {folder} {copies} --out DIR"
    before = (image.gap or 0) - 1
    return text + (f"; or take the state before it with --as-of {before}" if before >= 0 else "")


def _new_uuid(cluster_id: str, number: int) -> str:
    """Return an ID for the log directory of a node, the same on every run; as Kafka's, it does not begin with a dash
    (Uuid.randomUuid)."""
    digest = hashlib.sha256(f"kdump rescue {cluster_id} {number}".encode())
    while (text := uuid_text(digest.digest()[:16])).startswith("-"):
        digest.update(b"-")
    return text
